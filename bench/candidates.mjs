// The candidates: functions that return one ID, by name.

import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import kinds from './peers/kinds.cjs';

const { KINDS, namesHere, open } = kinds;
const require = createRequire(import.meta.url);
export const snowdrift = require('..');
export const [HAND, CLASS] = ['hand-tuned JavaScript', 'Node SnowFlake class'];

/** A layout whose sequence never exhausts, so that only code is measured. */
export const wide = {
  timestampBits: 41,
  datacenterBits: 1,
  workerBits: 1,
  clockBackBits: 0,
  sequenceBits: 20,
  tickMs: 1,
  epoch: 1580486400000,
};

/** The algorithm of the Node SnowFlake class, written afresh: BigInt throughout. */
function nodeClass() {
  let last = -1n;
  let sequence = 0n;
  return () => {
    let now = BigInt(new Date().getTime());
    if (now === last) {
      sequence = (sequence + 1n) & 0xfffffn;
      if (sequence === 0n) while (now <= last) now = BigInt(new Date().getTime());
    } else {
      sequence = 0n;
    }
    if (now < last) throw new Error('the clock stepped back');
    last = now;
    return ((now - 1580486400000n) << 22n) | (0n << 21n) | (0n << 20n) | sequence;
  };
}

/** The fastest plain JavaScript: Number arithmetic, and one read that creates the BigInt. */
function handTuned() {
  const words = new Uint32Array(2);
  const whole = new BigUint64Array(words.buffer);
  let last = -1;
  let sequence = 0;
  return () => {
    const now = Date.now() - 1580486400000;
    if (now === last) {
      if (++sequence === 0x100000) throw new Error('the sequence is used up');
    } else {
      if (now < last) throw new Error('the clock stepped back');
      last = now;
      sequence = 0;
      words[1] = Math.floor(now / 1024);
    }
    words[0] = ((now & 1023) << 22) | sequence;
    return whole[0];
  };
}

/** The other packages, each as its README shows, by kind. A kind that is awaited is a round trip to a server. */
async function others() {
  const [peers, counted] = [{}, {}];
  for (const kind of namesHere().filter((name) => name !== 'snowdrift')) {
    const { isAsync, isFull } = KINDS[kind];
    const draw = await open(kind);
    // Some take arguments; these get none.
    const call = () => draw();
    // The first and the last ms of a burst have all of their numbers: with few calls, it would exceed its limit.
    if (isFull !== undefined) call.calls = 200_000;
    if (isAsync) call.calls = 20;
    (isAsync ? counted : peers)[kind] = call;
  }
  const { Worker } = require('snowflake-uuid');
  const { nanoid } = await import('nanoid');
  const worker = new Worker(0, 1, { workerIdBits: 1, datacenterIdBits: 1, sequenceBits: 20 });
  return {
    peers: { ...peers, 'snowflake-uuid': () => worker.nextId(), nanoid: () => nanoid() },
    counted,
  };
}

/** Opens all that is measured. `loop` has a wide layout, `callback` the default one. */
export async function candidates() {
  const { CachedSnowFlake, SnowFlake } = snowdrift;
  const state = mkdtempSync(join(tmpdir(), 'snowdrift-bench-'));
  process.on('exit', () => rmSync(state, { recursive: true }));
  const ours = (first, second) => {
    const flake = new SnowFlake(first);
    return {
      'snowdrift nextId()': flake.nextId,
      'snowdrift nextIdString()': flake.nextIdString,
      'snowdrift nextId(), with state': new SnowFlake({ ...second, state }).nextId,
    };
  };
  SnowFlake.configure({ layout: wide, datacenterId: 0, workerId: 1 });
  const cached = new CachedSnowFlake({ layout: wide, datacenterId: 1, workerId: 1, boostPower: 0 });
  const [theClass, byHand] = [nodeClass(), handTuned()];
  const baselines = {
    [HAND]: byHand,
    [`${HAND}, string`]: () => String(byHand()),
    [CLASS]: theClass,
    [`${CLASS}, string`]: () => theClass().toString(),
  };
  const { peers, counted } = await others();
  return {
    counted,
    peers: Object.keys(peers),
    loop: {
      ...ours(
        { layout: wide, datacenterId: 0, workerId: 0 },
        { layout: wide, datacenterId: 1, workerId: 0 },
      ),
      'snowdrift SnowFlake.nextId()': () => SnowFlake.nextId(),
      'snowdrift CachedSnowFlake': cached.nextId,
      ...baselines,
      ...peers,
    },
    callback: {
      ...ours({ datacenterId: 2, workerId: 3 }, { datacenterId: 2, workerId: 4 }),
      ...baselines,
      ...peers,
    },
  };
}
