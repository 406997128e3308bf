'use strict';
// What other code of the process can pass to native functions, do to the memory of a block, and see of a channel: it
// may spoil IDs, but it reads and writes no memory of others, and ends no process.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { existsSync, mkdtempSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { dirname, join } = require('node:path');
const { after, test } = require('node:test');

const { Drawer } = require('../../js/generator/draw.js');
const native = require('../../js/runtime/native.js');
const { removeDirectory } = require('../support/own-directory.js');
const { requestOf } = require('../support/request.js');
const { entry, refuses, rejects, runScript, wide } = require('../support/support.js');

const request = (more) => requestOf(wide, more);

const detach = (buffer) => structuredClone(buffer, { transfer: [buffer] });

/** Everything but the memory of a channel. */
const NO_MEMORY = [
  ...[undefined, null, true, 0, 1, -1, 0.5, Number.NaN, 2 ** 32, 2 ** 32 + 1, 1n, '1', Symbol('s')],
  ...[{}, [], () => 1, Object(1), new Proxy({}, {}), new ArrayBuffer(0), new ArrayBuffer(2079)],
  ...[new ArrayBuffer(1 << 16), new SharedArrayBuffer(1 << 16), new BigUint64Array(4096)],
];

test('a call without the memory of a channel draws from none', () => {
  const channel = native.open(request());
  const length = Math.abs(channel.refill(channel.memory));
  const block = new BigUint64Array(channel.memory).slice(0, length);
  for (const value of NO_MEMORY) {
    assert.equal(channel.refill(value), 0);
    assert.equal(channel.tryRefill(value), 0);
    assert.equal(channel.fill(value, new BigUint64Array(4), true), 0);
    assert.equal(channel.giveBack(value, 1), undefined);
  }
  assert.equal(channel.stats().issued, length);
  assert.deepEqual(new BigUint64Array(channel.memory).slice(0, length), block);
  channel.close();
});

test('a memory that names another channel draws from that or from none', () => {
  const channel = native.open(request());
  const at = new Uint32Array(channel.memory);
  const number = at[518];
  assert.ok(number > 0, 'a block starts with zeros: 0 is the number of no channel');
  for (const forged of [0, number + 1, 2 ** 31, 2 ** 32 - 1]) {
    at[518] = forged;
    assert.equal(channel.refill(channel.memory), 0);
  }
  at[518] = number;
  assert.ok(channel.refill(channel.memory) > 0);
  channel.close();
});

test('a method called on no channel throws', () => {
  const channel = native.open(request());
  const Channel = channel.constructor;
  const spoofed = Object.create(Channel.prototype);
  for (const value of [undefined, null, 1, {}, channel.memory, Channel, spoofed]) {
    assert.throws(() => channel.stats.call(value), TypeError);
  }
  assert.throws(() => new Channel(), /can not new it/);
  channel.close();
});

test('only an array that is apart from the memory is filled', () => {
  const channel = native.open(request());
  const { memory } = channel;
  const others = [undefined, 1, [], new Uint8Array(8), new BigInt64Array(4), new DataView(memory)];
  others.push(new BigUint64Array(new SharedArrayBuffer(32)));
  for (const array of [
    ...others,
    new BigUint64Array(memory),
    new BigUint64Array(memory, 2072, 1),
  ]) {
    assert.equal(channel.fill(memory, array, true), 0);
  }
  const array = new BigUint64Array(4);
  assert.ok(channel.fill(memory, array, true) !== 0);
  assert.equal(new Set(array).size, 4);
  detach(array.buffer);
  assert.ok(channel.fill(memory, array, true) !== 0, 'none of no IDs');
  channel.takeBack(array);
  assert.throws(() => channel.takeBack([1n]), { message: 'no BigUint64Array' });
  channel.close();
});

test('numbers that are none end no process', () => {
  const channel = native.open(request());
  for (const number of [Number.NaN, Infinity, -Infinity, -1, 1e300]) {
    if (number <= 0 || Number.isNaN(number)) native.sleep(number);
    try {
      channel.noteWaits(number, number);
    } catch ({ message }) {
      assert.match(message, /overflow/);
    }
    const clocked = native.open(request({ datacenterId: 0, ownClock: true }));
    new Float64Array(clocked.memory, 2048, 1)[0] = number;
    clocked.tryRefill(clocked.memory);
    clocked.close();
  }
  channel.close();
});

test('an instance whose memory was detached is refused, and closes', async () => {
  const channel = native.open(request());
  const drawer = new Drawer(channel, request());
  drawer.nextId();
  detach(channel.memory);
  await undefined;
  const closed = 'ERR_SNOWFLAKE_CLOSED';
  for (const draw of [drawer.nextId, drawer.nextIdString, drawer.nextIdBase32]) {
    refuses(draw, closed);
  }
  refuses(() => drawer.nextIds(1), closed);
  refuses(() => drawer.nextIds(100), closed);
  await rejects(drawer.nextIdAsync(), closed);
  drawer.close();
  channel.close();
});

test('classes that replace those of typed arrays see no memory of IDs', async () => {
  const { stdout, stderr } = await runScript(`
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const seen = [];
    for (const name of ['BigUint64Array', 'Float64Array', 'Uint32Array', 'DataView']) {
      const construct = (target, values) => seen.push(name) && Reflect.construct(target, values);
      globalThis[name] = new Proxy(globalThis[name], { construct });
    }
    const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
    for (const draw of ['nextId', 'nextIdString', 'nextIdBase32']) flake[draw]();
    console.log(seen.join());`);
  assert.equal(stdout, '\n', stderr);
});

test('nobody replaces what a channel has', () => {
  const channel = native.open(request());
  for (const name of ['memory', 'workerId']) {
    assert.throws(() => (channel[name] = 1), TypeError);
    assert.throws(() => delete channel[name], TypeError);
  }
  channel.close();
});

/** Others' memory is what Node gives out next: it would change, or the process would end. */
const USES = `
  const native = require(${JSON.stringify(entry.replace('index.js', 'runtime/native.js'))});
  const channels = Array.from({ length: 1000 }, () => native.open(${JSON.stringify(request())}));
  const moved = channels.map(
    ({ memory }) => new WeakRef(structuredClone(memory, { transfer: [memory] })),
  );
  const turn = () => new Promise(setImmediate);
  (async () => {
    for (let n = 0; n < 5; n++) {
      gc();
      await turn();
    }
    const others = Array.from({ length: 3000 }, () => new Uint8Array(2080));
    for (const channel of channels) {
      for (let n = 0; n < 3; n++) channel.refill(channel.memory);
      channel.giveBack(channel.memory, 1);
      channel.restored();
      channel.close();
    }
    const isFreed = moved.some((one) => one.deref() === undefined);
    console.log(isFreed, others.some((other) => other.some((byte) => byte !== 0)));
  })();`;

test('memory that was transferred and freed is not written', async () => {
  const { stdout, stderr, code, signal } = await runScript(USES, { args: ['--expose-gc'] });
  assert.deepEqual([stdout, code, signal], ['true false\n', 0, null], stderr);
});

const headers = join(dirname(dirname(process.execPath)), 'include/node');
const isBuildable = existsSync(join(headers, 'node_api.h')) && !spawnSync('cc', ['-v']).error;
const skip = process.platform === 'win32' || !isBuildable ? 'no C compiler or headers' : false;

test('buffers and objects of another addon', { skip }, async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'snowdrift-'));
  after(() => removeDirectory(directory));
  const file = join(directory, 'foreign.node');
  const link = process.platform === 'darwin' ? ['-bundle', '-undefined', 'dynamic_lookup'] : [];
  const source = join(__dirname, '../support/foreign-addon.c');
  const built = spawnSync('cc', ['-shared', '-fPIC', ...link, '-I', headers, source, '-o', file]);
  assert.equal(built.status, 0, String(built.stderr));
  const foreign = require(file);

  await context.test('an unaligned array is filled, and taken back', () => {
    const channel = native.open(request({ datacenterId: 0 }));
    const array = new BigUint64Array(foreign.oddBuffer(), 8, 1000);
    assert.ok(channel.fill(channel.memory, array, true) !== 0);
    assert.equal(new Set(array).size, 1000);
    assert.equal(new BigUint64Array(array.buffer)[0], 0n);
    assert.equal(new BigUint64Array(array.buffer)[1001], 0n);
    assert.equal(channel.stats().issued, 1000);
    channel.takeBack(array.subarray(999));
    assert.equal(channel.stats().issued, 999);
    channel.close();
    assert.equal(channel.fill(channel.memory, array, true), 0);
    assert.deepEqual(new Set(array), new Set([0n]), 'refused');
  });

  await context.test('an unaligned buffer is no memory of a channel', () => {
    const channel = native.open(request({ datacenterId: 0 }));
    const buffer = foreign.oddBuffer();
    new Uint8Array(buffer).set(new Uint8Array(channel.memory));
    assert.equal(channel.refill(buffer), 0);
    channel.close();
  });

  await context.test('an object that wraps another pointer is no channel', () => {
    const channel = native.open(request({ datacenterId: 0 }));
    const object = foreign.wrappingObject();
    const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(channel));
    for (const name of ['stats', 'refusal', 'close', 'ceiling', 'restored']) {
      assert.ok(methods.includes(name), name);
      assert.throws(() => channel[name].call(object), TypeError);
    }
    channel.close();
  });
});
