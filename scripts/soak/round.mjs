// One round of all that an application can do with instances: opened, drawn from in every way, closed.
// What a round leaves behind is a leak, so scripts/soak.mjs and scripts/leaks.mjs run many.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { CachedSnowFlake, layouts, SnowFlake, SnowFlakeError } from 'snowdrift';
import { memory } from 'snowdrift/lease/memory';
import { publicIds } from 'snowdrift/public';

/** A process remembers every node that it ever was, so there are few here: two a datacenter. */
const layout = { ...layouts.node, datacenterBits: 7, workerBits: 1 };
const A_TURN = 100;

/** However slow valgrind makes it, every wait is waited for and no lease expires. */
const patient = { layout, maxWait: 60_000 };
const ttl = 3_600_000;

/** The native thread calls back whenever it finds the ring full. */
const SCHEDULED = { scheduleIntervalMs: 1, onRejectedPut() {} };

const store = memory();
const orders = publicIds({ kind: 'order', key: randomBytes(32).toString('hex') });

/** IDs of an instance, by each of its calls. */
export async function draw(flake) {
  const ids = [];
  for (let i = 0; i < A_TURN; i++) ids.push(flake.nextId());
  for (let i = 0; i < A_TURN; i++) ids.push(BigInt(flake.nextIdString()));
  ids.push(...flake.nextIds(A_TURN), ...flake.nextIdStrings(A_TURN).map(BigInt));
  ids.push(await flake.nextIdAsync());
  const [id] = ids;
  assert.equal(flake.compose(flake.parse(id)), id);
  assert.ok(flake.floorId(new Date()) >= 0n);
  assert.deepEqual(ids.map(orders.encode).map(orders.decode), ids);
  JSON.parse(flake.toUidString(id));
  flake.stats();
  return ids;
}

function isRefused(call) {
  assert.throws(call, SnowFlakeError);
}

/** Draws in a thread of its own, with an instance that nobody closes. */
async function drawInThread(workerId) {
  const thread = new Worker(new URL('./thread.mjs', import.meta.url), {
    workerData: { ...patient, datacenterId: 0, workerId },
  });
  const [[ids]] = await Promise.all([once(thread, 'message'), once(thread, 'exit')]);
  return ids;
}

/**
 * @param n which round it is
 * @param directory for what is recorded
 * @param inThread whether a thread takes part, which takes longer than all the rest
 * @returns how many IDs it drew
 */
export async function round(n, { directory, inThread }) {
  const workerId = n % 2;
  const plain = { ...patient, datacenterId: 0, workerId };
  const leased = { ...patient, datacenterId: 2, ttl };
  const cached = { ...patient, workerId, boostPower: 0 };

  const thread = inThread ? drawInThread(workerId) : [];
  const ids = [];
  for (const flake of [
    new SnowFlake(plain),
    new SnowFlake(plain),
    new SnowFlake({ ...plain, datacenterId: 1, state: directory, ttl }),
    await SnowFlake.lease(pathToFileURL(directory), leased),
    await SnowFlake.lease(store, { ...leased, datacenterId: 3 }),
    new CachedSnowFlake({ ...cached, datacenterId: 4 }),
    new CachedSnowFlake({ ...cached, datacenterId: 5, ...SCHEDULED }),
  ]) {
    isRefused(() => flake.parse('no ID'));
    isRefused(() => flake.nextIds(-1));
    ids.push(...(await draw(flake)));
    await flake[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]();
    isRefused(flake.nextId);
  }
  isRefused(() => new SnowFlake({ ...plain, layout: 'no layout' }));
  ids.push(...(await thread));
  assert.equal(new Set(ids).size, ids.length, 'an ID was drawn twice');
  return ids.length;
}
