// The candidates: each is a function that returns one ID.

import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import kinds from './peers/kinds.cjs';

const { KINDS, open } = kinds;
const require = createRequire(import.meta.url);
export const snowdrift = require('..');

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
  for (const [kind, { isAsync, isFull, missing }] of Object.entries(KINDS)) {
    const reason =
      missing ?? (isAsync && !process.env.DATABASE_URL ? 'there is no server' : undefined);
    if (kind === 'snowdrift') continue;
    if (reason !== undefined) {
      console.log(`Without ${kind}: ${reason}`);
      continue;
    }
    const draw = await open(kind);
    // Some take arguments; these get none.
    const call = () => draw();
    // The first and the last ms of a burst have all of their numbers: with few calls, it would exceed its limit.
    if (isFull !== undefined) call.calls = 200_000;
    (isAsync ? counted : peers)[kind] = call;
  }
  return { peers, counted };
}

/** Opens all that is measured. */
export async function candidates() {
  const { SnowFlake } = snowdrift;
  const flake = new SnowFlake({ layout: wide, datacenterId: 0, workerId: 0 });
  SnowFlake.configure({ layout: wide, datacenterId: 0, workerId: 1 });
  const state = mkdtempSync(join(tmpdir(), 'snowdrift-bench-'));
  process.on('exit', () => rmSync(state, { recursive: true }));
  const recorded = new SnowFlake({ layout: wide, datacenterId: 1, workerId: 0, state });
  /** Of the default layout. */
  const plain = {
    flake: new SnowFlake({ datacenterId: 2, workerId: 3 }),
    recorded: new SnowFlake({ datacenterId: 2, workerId: 4, state }),
  };
  const { CachedSnowFlake } = snowdrift;
  const cached = new CachedSnowFlake({ layout: wide, datacenterId: 1, workerId: 1, boostPower: 0 });
  const { Worker: SnowflakeUuid } = require('snowflake-uuid');
  const { nanoid } = await import('nanoid');
  const { peers, counted } = await others();
  const bits = { workerIdBits: 1, datacenterIdBits: 1, sequenceBits: 20 };
  const uuidWorker = new SnowflakeUuid(0, 1, bits);
  const theClass = nodeClass();
  return {
    flake,
    plain,
    recorded,
    counted,
    ours: {
      'snowdrift nextId()': flake.nextId,
      'snowdrift nextId(), with state': recorded.nextId,
      'snowdrift SnowFlake.nextId()': () => SnowFlake.nextId(),
      'snowdrift nextIdString()': flake.nextIdString,
      'snowdrift CachedSnowFlake': cached.nextId,
    },
    baselines: {
      'Node SnowFlake class': theClass,
      'Node SnowFlake class, string': () => theClass().toString(),
      'hand-tuned JavaScript': handTuned(),
    },
    peers: { ...peers, 'snowflake-uuid': () => uuidWorker.nextId(), nanoid: () => nanoid() },
  };
}
