'use strict';
// What test frameworks and careless packages do to globals: timers and clocks are replaced by fakes, and
// Object.prototype has properties. Leases are renewed, and errors say what is wrong.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { SnowFlake, entry, refuses, runScript } = require('../support/support.js');

const PRELUDE = `
  const real = { setTimeout, now: Date.now };
  const pause = (ms) => new Promise((resolve) => real.setTimeout(resolve, ms));
  const fake = () => {
    const never = () => ({ unref() {}, ref() {} });
    const fakes = { setTimeout: never, clearTimeout: never, setInterval: never, setImmediate: never };
    Object.assign(globalThis, fakes, { queueMicrotask: never });
    Object.assign(require('node:timers'), fakes);
    globalThis.Date = class extends Date { static now() { return 0; } };
    performance.now = () => 0;
    process.nextTick = never;
  };
  const { SnowFlake } = require(${JSON.stringify(entry)});
  /** Prints the state of a lease that has been renewed since, and draws. Late timers only take longer. */
  const showRenewed = async (flake) => {
    const { renewals } = flake.lease;
    const drawn = () => { try { return typeof flake.nextId(); } catch ({ code }) { return code; } };
    let found;
    for (let n = 0; n < 1500; n++) {
      found = [flake.lease.renewals > renewals + 1, flake.lease.state, drawn()].join(' ');
      if (found === 'true held bigint') break;
      await pause(20);
    }
    console.log(found);
    process.exit();
  };
`;

test('a lease is renewed under fake timers and a fake Date', async () => {
  const { stdout, stderr } = await runScript(`${PRELUDE}
    const { memory } = require('snowdrift/lease/memory');
    (async () => {
      const { now } = Date;
      const flake = await SnowFlake.lease(memory({ now }), { datacenterId: 1, ttl: 1000 });
      fake();
      await showRenewed(flake);
    })();`);
  assert.equal(stdout, 'true held bigint\n', stderr);
});

test('node:test’s own fakes change nothing either', async () => {
  const { stdout, stderr } = await runScript(`${PRELUDE}
    const { mock } = require('node:test');
    const { memory } = require('snowdrift/lease/memory');
    (async () => {
      const flake = await SnowFlake.lease(memory({ now: Date.now }), { datacenterId: 1, ttl: 1000 });
      mock.timers.enable();
      await showRenewed(flake);
    })();`);
  assert.equal(stdout, 'true held bigint\n', stderr);
});

test('nextIdAsync() waits by real timers', async () => {
  const { stdout, stderr } = await runScript(`${PRELUDE}
    const layout = { timestampBits: 41, datacenterBits: 3, workerBits: 5, clockBackBits: 2, sequenceBits: 1, tickMs: 1, epoch: 1580486400000 };
    const flake = new SnowFlake({ datacenterId: 1, workerId: 1, layout });
    fake();
    Promise.all(Array.from({ length: 20 }, () => flake.nextIdAsync()))
      .then((ids) => console.log(new Set(ids).size));`);
  assert.equal(stdout, '20\n', stderr);
});

test('properties of Object.prototype are neither errors nor options', () => {
  const names = [
    ...[
      'code',
      'cause',
      'holders',
      'kind',
      'retryAfterMs',
      'fault',
      'refused',
      'rollback',
      'waits',
    ],
    ...['ring', 'recording', 'shared', 'isLeased', 'ownClock', 'lease', 'publish'],
    ...['made', 'rejected', 'warnings', 'wantRenewal', 'report', 'renewer'],
    // Of property descriptors.
    ...['get', 'set', 'value', 'writable', 'enumerable', 'configurable'],
  ];
  const warnings = [];
  const warn = (warning) => warnings.push(warning);
  const { emitWarning } = process;
  process.emitWarning = warn;
  const evils = ['EVIL', () => 'EVIL'];
  for (const [name, value] of names.flatMap((name) => evils.map((evil) => [name, evil]))) {
    Object.prototype[name] = value;
    try {
      const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
      const id = flake.nextId();
      assert.equal(flake.parse(id).workerId, 1, name);
      assert.equal(flake.compose(flake.parse(id)), id);
      const { message } = refuses(
        () => new SnowFlake({ datacenterId: 1, workerId: 32 }),
        'ERR_SNOWFLAKE_CONFIG',
      );
      assert.match(message, /workerId must be a whole number from 0 to 31; it is 32/);
      flake.close();
      refuses(flake.nextId, 'ERR_SNOWFLAKE_CLOSED');
    } finally {
      delete Object.prototype[name];
    }
  }
  process.emitWarning = emitWarning;
  assert.deepEqual(warnings, []);
});

test('a getter in the options of configure() that draws by default is a conflict', async () => {
  const { stdout, stderr } = await runScript(
    `${PRELUDE}
    const options = { get workerId() { SnowFlake.nextId(); return 5; } };
    try { SnowFlake.configure(options); } catch ({ code }) { console.log(code, SnowFlake.default.workerId); }`,
    { env: { datacenterId: '1', workerId: '3' } },
  );
  assert.equal(stdout, 'ERR_SNOWFLAKE_CONFLICT 3\n', stderr);
});
