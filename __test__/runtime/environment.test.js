'use strict';
// datacenterId and workerId from the environment: never a default, a mask or a NaN.

const assert = require('node:assert/strict');
const { afterEach, test } = require('node:test');

const { SnowFlake, entry, layouts, refuses, runWorker } = require('../support/support.js');

afterEach(() => {
  delete process.env.datacenterId;
  delete process.env.workerId;
});

function withEnvironment(datacenterId, workerId, options) {
  process.env.datacenterId = datacenterId;
  process.env.workerId = workerId;
  return new SnowFlake(options);
}

test('the whole range of each is accepted', () => {
  for (const [datacenterId, workerId] of [
    [0, 0],
    [7, 31],
  ]) {
    const flake = withEnvironment(String(datacenterId), String(workerId));
    assert.deepEqual([flake.datacenterId, flake.workerId], [datacenterId, workerId]);
    const parsed = flake.parse(flake.nextId());
    assert.deepEqual([parsed.datacenterId, parsed.workerId], [datacenterId, workerId]);
  }
});

test('a missing value is an error that says what to set, also for static calls', () => {
  for (const call of [() => new SnowFlake(), () => SnowFlake.nextId(), () => SnowFlake.default]) {
    const { message } = refuses(call, 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /datacenterId is not set, neither as an option nor in the environment/);
    assert.match(message, /takes 0 to 7/);
    assert.match(message, /, and workerId is not set, .*takes 0 to 31.* Set both/);
    assert.match(message, /cluster\.fork\(\{ datacenterId: 1, workerId: 3 \}\)/);
  }
  process.env.datacenterId = '1';
  assert.match(
    refuses(() => new SnowFlake(), 'ERR_SNOWFLAKE_CONFIG').message,
    /workerId is not set.*takes 0 to 31/,
  );
});

test('anything but a whole decimal number in range is refused, and shown', () => {
  const wrong = ['', ' ', '32', '-1', '+1', '1.0', '1.5', '1e1', '0x1', '01', ' 1', '1 ', '1\n'];
  wrong.push(
    '"3"',
    'web-3',
    'a',
    'NaN',
    'Infinity',
    'undefined',
    'null',
    '１',
    '٣',
    '1_0',
    '9'.repeat(400),
  );
  for (const value of wrong) {
    const { message } = refuses(() => withEnvironment('1', value), 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /environment variable workerId is '/, value);
  }
  const { message } = refuses(() => withEnvironment('8', '1'), 'ERR_SNOWFLAKE_CONFIG');
  assert.match(message, /datacenterId is '8'; layout 'node' takes 0 to 7/);
});

test('options come before the environment', () => {
  const flake = withEnvironment('nonsense', '5', { datacenterId: 2 });
  assert.deepEqual([flake.datacenterId, flake.workerId], [2, 5]);
});

test('a layout without bits for it needs none', () => {
  const layout = { ...layouts.uid, epoch: Date.UTC(2026, 0) };
  process.env.workerId = '4194303';
  assert.equal(new SnowFlake({ layout }).datacenterId, 0);
  assert.equal(new SnowFlake({ layout }).workerId, 4194303);
  refuses(() => new SnowFlake({ layout, datacenterId: 1 }), 'ERR_SNOWFLAKE_CONFIG');
  process.env.datacenterId = '0';
  assert.equal(new SnowFlake({ layout }).datacenterId, 0);
  // Two processes of one worker ID that differ only in this would issue equal IDs.
  process.env.datacenterId = '1';
  const { message } = refuses(() => new SnowFlake({ layout }), 'ERR_SNOWFLAKE_CONFIG');
  assert.match(message, /datacenterId holds '1', and the layout has no bits for it/);
  for (const own of [{ datacenterId: 0 }, { workerId: 5 }]) {
    assert.equal(new SnowFlake({ layout, ...own }).datacenterId, 0);
  }
});

test('a worker thread reads the environment as it sees it itself', async () => {
  process.env.datacenterId = '1';
  process.env.workerId = '1';
  const script = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const { parentPort } = require('node:worker_threads');
    let answer;
    try { answer = SnowFlake.default.workerId; } catch (error) { answer = error.code; }
    parentPort.postMessage(answer);`;
  assert.equal(await runWorker(script, { env: { datacenterId: '1', workerId: '9' } }), 9);
  assert.equal(await runWorker(script, { env: {} }), 'ERR_SNOWFLAKE_CONFIG');
  assert.equal(await runWorker(script), 1);
});

test('an object in the place of process.env is read as the application reads it', () => {
  const { env } = process;
  Object.assign(env, { datacenterId: '1', workerId: '4', SNOWDRIFT_STATE: 'ftp://nowhere/ids' });
  const proxy = new Proxy({}, { get: (_, name) => env[name] });
  try {
    for (const other of [Object.create(env), proxy]) {
      process.env = other;
      assert.match(
        refuses(() => new SnowFlake(), 'ERR_SNOWFLAKE_CONFIG').message,
        /SNOWDRIFT_STATE must be the absolute path/,
      );
    }
    delete env.SNOWDRIFT_STATE;
    process.env = Object.create(env);
    assert.equal(new SnowFlake().workerId, 4);
  } finally {
    process.env = env;
    delete env.SNOWDRIFT_STATE;
  }
});
