'use strict';
// The time limits of calls, in a process that was stopped or busy for longer.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const net = require('node:net');
const { after, before, test } = require('node:test');
const { Worker } = require('node:worker_threads');

const { CallTimeout, runWithin } = require('../../js/runtime/limits.js');
const { monotonic } = require('../../js/runtime/time.js');
const { memory } = require('../../js/stores/memory.js');
const { limitWait } = require('../support/limit-wait.js');
const { SnowFlake, until } = require('../support/support.js');

const LIMIT_MS = 300;

/** A server in a thread of its own: replies, and counts replies that this process can read. */
const SERVER = `
  const { parentPort, workerData } = require('node:worker_threads');
  const replies = new Int32Array(workerData);
  const server = require('node:net').createServer((socket) =>
    socket.on('data', (data) => socket.write(data, () => {
      Atomics.add(replies, 0, 1);
      Atomics.notify(replies, 0);
    })));
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;

const replies = new Int32Array(new SharedArrayBuffer(8));
let thread;
let port;
before(async () => {
  thread = new Worker(SERVER, { eval: true, workerData: replies.buffer });
  [port] = await limitWait(once(thread, 'message'), 'the port of the server');
});
after(() => thread.terminate());

/** Stops this thread until its reply is there, and for longer than any limit here. */
function stop(count) {
  while (Atomics.load(replies, 0) < count) Atomics.wait(replies, 0, Atomics.load(replies, 0), 1000);
  Atomics.wait(replies, 1, 0, 3 * LIMIT_MS);
}

test('a reply that came while the process was stopped counts, not the time', async () => {
  const socket = net.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  const reply = await runWithin(LIMIT_MS, async () => {
    const read = once(socket, 'data');
    await new Promise((resolve) => socket.write('x', resolve));
    stop(1);
    return read;
  });
  assert.equal(String(reply[0]), 'x');
  socket.destroy();
});

test('without a reply a call ends after its limit, as CallTimeout says', async () => {
  const begun = monotonic();
  const failure = await runWithin(LIMIT_MS, () => new Promise(() => {})).catch((each) => each);
  assert.ok(failure instanceof CallTimeout);
  assert.equal(failure.message, `no answer within ${LIMIT_MS} ms`);
  // A timer of Node may be early by a ms.
  assert.ok(monotonic() - begun >= LIMIT_MS - 10);
});

test('a renewal that its ttl leaves too little time names ttl', async () => {
  const store = memory();
  let isSilent = false;
  for (const name of ['read', 'write', 'now']) {
    const call = store[name];
    store[name] = (...values) => (isSilent ? new Promise(() => {}) : call(...values));
  }
  const options = { datacenterId: 1, scope: 'process', ttl: 1000, callTimeout: 60_000 };
  const flake = await SnowFlake.lease(store, options);
  isSilent = true;
  await until(() => flake.lease.failure !== undefined);
  assert.match(flake.lease.failure, /did not answer within 166 ms: .* set a longer ttl$/);
  isSilent = false;
  await flake.close();
});
