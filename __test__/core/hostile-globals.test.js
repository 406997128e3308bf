'use strict';
// What test frameworks and careless packages do to globals: timers and clocks are replaced by fakes, and
// Object.prototype has properties. Leases are renewed, and errors say what is wrong.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { entry, runScript } = require('../support/support.js');

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

test('classes that replace those of typed arrays see no memory of IDs', async () => {
  const { stdout, stderr } = await runScript(`${PRELUDE}
    const seen = [];
    for (const name of ['BigUint64Array', 'Float64Array', 'Uint32Array', 'DataView']) {
      globalThis[name] = new Proxy(globalThis[name], {
        construct(target, values) {
          seen.push(name);
          return Reflect.construct(target, values);
        },
      });
    }
    const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
    for (const draw of ['nextId', 'nextIdString', 'nextIdBase32']) flake[draw]();
    console.log(seen.join());`);
  assert.equal(stdout, '\n', stderr);
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
