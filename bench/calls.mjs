// The most frequent calls of applications: one ID per turn of the event loop, or after an await; small batches;
// decoding. All candidates alternate in one run.

import { createRequire } from 'node:module';
import { snowdrift } from './candidates.mjs';
import { callsOf, median } from './measure.mjs';

const require = createRequire(import.meta.url);
const CALLS = 5000;
const TURNS = 20_000;
const ROUND_TRIPS = 20;
/** Few results are kept: many would measure the garbage collector, in whichever call it comes. */
const kept = new Array(16);
const ns = () => Number(process.hrtime.bigint());

/** CPU time in ns. A turn is long against a call, and CPU time excludes other processes. */
function cpuNs() {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

const KINDS = {
  /** One call per turn. */
  lone(call, turns) {
    return new Promise((resolve) => {
      let done = 0;
      const start = cpuNs();
      (function turn() {
        kept[done & 15] = call(done);
        if (++done < turns) setImmediate(turn);
        else resolve((cpuNs() - start) / turns);
      })();
    });
  },
  /** One call after each await. */
  async awaited(call, turns) {
    const start = cpuNs();
    for (let i = 0; i < turns; i++) {
      await undefined;
      kept[i & 15] = call(i);
    }
    return (cpuNs() - start) / turns;
  },
  /** What a call returns is awaited. */
  async promised(call) {
    const start = ns();
    for (let i = 0; i < CALLS; i++) kept[i & 15] = await call(i);
    return (ns() - start) / CALLS;
  },
  /** Of what takes long. */
  async roundTrip(call) {
    const start = ns();
    for (let i = 0; i < ROUND_TRIPS; i++) await call();
    return (ns() - start) / ROUND_TRIPS;
  },
  /** A loop. */
  async loop(call) {
    const start = ns();
    for (let i = 0; i < CALLS; i++) kept[i & 15] = call(i);
    return (ns() - start) / CALLS;
  },
};

async function measured(kind, calls, rounds) {
  const times = Object.fromEntries(Object.keys(calls).map((name) => [name, []]));
  for (let round = -Math.ceil(rounds / 5); round < rounds; round++) {
    for (const [name, call] of Object.entries(calls)) {
      const time = await KINDS[kind](call);
      if (round >= 0) times[name].push(time);
    }
  }
  return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, median(all)]));
}

/** By round, the time of a call beyond that of the empty turns before and after it. */
async function withoutTurn(kind, calls, rounds) {
  const measure = KINDS[kind];
  const empty = () => 1n;
  const turns = {};
  for (const [name, call] of Object.entries(calls)) turns[name] = callsOf(call, TURNS);
  const more = Object.fromEntries(Object.keys(calls).map((name) => [name, []]));
  for (let round = -3; round < rounds; round++) {
    let before = await measure(empty, TURNS);
    // Each is the first one in turn.
    const order = Object.entries(calls);
    order.unshift(...order.splice((round + 3) % order.length));
    for (const [name, call] of order) {
      const time = await measure(call, turns[name]);
      const after = await measure(empty, TURNS);
      if (round >= 0) more[name].push(time - (before + after) / 2);
      before = after;
    }
  }
  return Object.fromEntries(Object.entries(more).map(([name, all]) => [name, median(all)]));
}

/**
 * ns a call, without the turn itself; of `candidates()`. One a turn needs no more than the default layout's IDs; after
 * an await each, a loop may need more.
 */
export async function perTurn({ flake, plain, recorded, baselines, peers, counted }, rounds) {
  const others = {
    'hand-tuned JavaScript': baselines['hand-tuned JavaScript'],
    'hand-tuned JavaScript, string': () => String(baselines['hand-tuned JavaScript']()),
    'Node SnowFlake class': baselines['Node SnowFlake class'],
    'Node SnowFlake class, string': baselines['Node SnowFlake class, string'],
  };
  const callsTo = ({ nextId, nextIdString }, { nextId: withState }) => ({
    nextId,
    nextIdString,
    'nextId, with state': withState,
    ...others,
  });
  const lone = await withoutTurn(
    'lone',
    { ...callsTo(plain.flake, plain.recorded), ...peers },
    rounds,
  );
  const awaited = await withoutTurn('awaited', callsTo(flake, recorded), rounds);
  const promised = await measured(
    'promised',
    { nextId: flake.nextId, nextIdAsync: () => flake.nextIdAsync() },
    rounds,
  );
  const roundTrip = await measured('roundTrip', counted, rounds);
  return { lone, awaited, promised, roundTrip };
}

export const BATCHES = [2, 4, 8, 15, 16, 64, 500];

/** ns per ID of batches, of a loop, and of an array that is only allocated. */
export async function perBatch({ flake }, rounds) {
  const array = new BigUint64Array(1000);
  const calls = { loop: flake.nextId, 'loop, string': flake.nextIdString };
  for (const n of BATCHES) {
    calls[`nextIds(${n})`] = () => flake.nextIds(n);
    calls[`new BigUint64Array(${n})`] = () => new BigUint64Array(n);
    calls[`nextIdStrings(${n})`] = () => flake.nextIdStrings(n);
  }
  calls['nextIds(array of 1000)'] = () => flake.nextIds(array);
  const times = await measured('loop', calls, Math.ceil(rounds / 3));
  const size = (name) => Number(/\d+/.exec(name.slice(name.indexOf('('))) ?? 1);
  const isBatch = (name) => name.includes('(');
  return Object.fromEntries(
    Object.entries(times).map(([name, time]) => [name, isBatch(name) ? time / size(name) : time]),
  );
}

/** ns a call: decode, encode, and the ID of a time. */
export async function decoding(rounds) {
  const { Snowflake: Sapphire } = require('@sapphire/snowflake');
  const sapphire = new Sapphire(new Date(1580486400000));
  const flake = new snowdrift.SnowFlake({ datacenterId: 6, workerId: 0 });
  const ids = Array.from(
    { length: CALLS },
    (_, i) => 900710334548443136n + BigInt(i) * 1234567890n,
  );
  const strings = ids.map(String);
  const fields = ids.map((id) => {
    const { timestamp, sequence } = flake.parse(id);
    return { timestamp, sequence, workerId: 3 };
  });
  const calls = {
    'parse(bigint)': (i) => flake.parse(ids[i]),
    '@sapphire deconstruct(bigint)': (i) => sapphire.deconstruct(ids[i]),
    'parse(string)': (i) => flake.parse(strings[i]),
    '@sapphire deconstruct(string)': (i) => sapphire.deconstruct(strings[i]),
    'new Date(), in each parse()': (i) => new Date(fields[i].timestamp),
    'floorId(ms)': (i) => flake.floorId(fields[i].timestamp),
    'compose(fields)': (i) => flake.compose(fields[i]),
  };
  const times = await measured('loop', calls, rounds);
  flake.close();
  return times;
}
