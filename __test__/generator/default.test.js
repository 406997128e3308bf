'use strict';
// The default instance: which one it is, by SnowFlake.use(), configure() or the environment; and that nothing
// takes its place by itself. SnowFlake.ready() is in generator/ready.test.js.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { mkdtempSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { afterEach, beforeEach, describe, test } = require('node:test');
const { pathToFileURL } = require('node:url');
const { inspect } = require('node:util');

const { removeDirectory } = require('../support/own-directory.js');
const { storm } = require('../support/amount.js');
const {
  assertAllDraw,
  closeAll,
  closeLater,
  loadCopy,
  open,
  refuses,
  refusesAll,
} = require('../support/default-copy.js');

let SnowFlake;
let CachedSnowFlake;
beforeEach(() => {
  ({ CachedSnowFlake, SnowFlake } = require('../..'));
});

describe('SnowFlake.use()', () => {
  test('static calls draw from it, also those that were taken off the class before', () => {
    const { nextId, nextIdString, use } = SnowFlake;
    const flake = open({ workerId: 9 });
    assert.equal(use(flake), flake);
    assert.equal(SnowFlake.default, flake);
    assertAllDraw(flake);
    for (const id of [nextId(), nextIdString()]) assert.equal(flake.parse(id).workerId, 9);
  });

  test('parse() reads IDs by its layout', () => {
    SnowFlake.use(open({ layout: 'twitter', datacenterId: 31 }));
    assert.equal(SnowFlake.parse(SnowFlake.nextId()).datacenterId, 31);
  });

  test('it may be a CachedSnowFlake', () => {
    const flake = SnowFlake.use(open({ workerId: 10 }, CachedSnowFlake));
    assertAllDraw(flake);
    assert.ok(SnowFlake.default.stats().ring.size > 0);
  });

  test('it may be an instance of a subclass', () => {
    class Orders extends SnowFlake {}
    assertAllDraw(SnowFlake.use(open({ workerId: 11 }, Orders)));
  });

  test('the same instance again is fine, also when it is drawn from', () => {
    const flake = SnowFlake.use(open());
    SnowFlake.nextId();
    assert.equal(SnowFlake.use(flake), flake);
  });

  test('while another one is open it is refused, whatever made that the default', () => {
    process.env.datacenterId = '6';
    process.env.workerId = '2';
    const makers = [
      () => SnowFlake.use(open({ workerId: 3 })),
      () => SnowFlake.configure({ workerId: 4 }),
      () => SnowFlake.default,
    ];
    for (const make of makers) {
      ({ SnowFlake } = loadCopy());
      const flake = make();
      closeLater(flake);
      const other = open({ workerId: 5 });
      refuses(
        () => SnowFlake.use(other),
        'ERR_SNOWFLAKE_CONFLICT',
        /close SnowFlake.default first/,
      );
      refuses(() => SnowFlake.configure({}), 'ERR_SNOWFLAKE_CONFLICT', /default instance already/);
      assertAllDraw(flake);
      flake.close();
      assertAllDraw(SnowFlake.use(other));
    }
  });

  test('a getter in the options of configure() that draws by default is a conflict', () => {
    Object.assign(process.env, { datacenterId: '6', workerId: '2' });
    const options = {
      get workerId() {
        SnowFlake.nextId();
        return 5;
      },
    };
    refuses(
      () => SnowFlake.configure(options),
      'ERR_SNOWFLAKE_CONFLICT',
      /default instance already/,
    );
    closeLater(SnowFlake.default);
    assert.equal(SnowFlake.default.workerId, 2);
  });

  test('configure() makes another one, once the default is closed', () => {
    for (const [layout, datacenterId] of [
      ['twitter', 31],
      ['node', 2],
    ]) {
      const flake = closeLater(SnowFlake.configure({ layout, datacenterId, workerId: 2 }));
      assert.equal(SnowFlake.parse(SnowFlake.nextId()).datacenterId, datacenterId);
      flake.close();
    }
  });

  test('a value that is no open instance of this copy is refused, and no code of it runs', () => {
    let calls = 0;
    const trap = () => {
      calls++;
      throw new RangeError('a trap');
    };
    const traps = new Proxy({}, { get: () => trap });
    const flake = open();
    const { proxy, revoke } = Proxy.revocable(flake, {});
    revoke();
    const others = [
      undefined,
      null,
      1,
      'postgres://app:geheim@db/x',
      Symbol('s'),
      () => 1,
      {},
      SnowFlake,
      Object.create(flake),
      Object.create(SnowFlake.prototype),
      Object.setPrototypeOf({ nextId: () => 1n, isClosed: false }, SnowFlake.prototype),
      {
        get nextId() {
          return trap();
        },
        get isClosed() {
          return trap();
        },
      },
      new Proxy({}, traps),
      new Proxy(flake, traps),
      new Proxy(flake, {}),
      proxy,
      SnowFlake.lease.bind(undefined),
    ];
    for (const value of others) {
      refuses(() => SnowFlake.use(value), 'ERR_SNOWFLAKE_ARGUMENT', /takes a SnowFlake or Cached/);
      assert.throws(
        () => SnowFlake.use(value),
        (error) => !/geheim/.test(inspect(error)),
      );
    }
    assert.equal(calls, 0);
    assertAllDraw(SnowFlake.use(flake));
  });

  test('an instance of another copy of the package is refused', () => {
    const flake = open();
    const { SnowFlake: Other } = loadCopy();
    refuses(() => Other.use(flake), 'ERR_SNOWFLAKE_ARGUMENT', /this copy of the package/);
  });

  test('a closed instance is refused, whatever its properties are', () => {
    const flake = open();
    flake.close();
    refuses(() => SnowFlake.use(flake), 'ERR_SNOWFLAKE_CLOSED', /takes an open instance/);
    Object.defineProperty(flake, 'isClosed', { value: false });
    refuses(() => SnowFlake.use(flake), 'ERR_SNOWFLAKE_CLOSED', /takes an open instance/);
    const open2 = open();
    Object.defineProperty(open2, 'isClosed', { get: () => assert.fail('it was asked') });
    assertAllDraw(SnowFlake.use(open2));
  });

  test('a closed default throws at each static call, and no other one takes its place', async () => {
    process.env.datacenterId = '6';
    process.env.workerId = '2';
    const flake = SnowFlake.use(open());
    const closing = flake.close();
    refusesAll('ERR_SNOWFLAKE_CLOSED', /default instance is closed.*use\(flake\).*ready\(\)/);
    await closing;
    refusesAll('ERR_SNOWFLAKE_CLOSED', /default instance is closed/);
    assert.equal(SnowFlake.default, flake);
    refuses(() => SnowFlake.use(flake), 'ERR_SNOWFLAKE_CLOSED', /open another one/);
    closeLater(await SnowFlake.ready());
    assert.equal(SnowFlake.default.workerId, 2);
    assertAllDraw(SnowFlake.default);
  });

  test('a wrong argument is not taken for a closed instance', () => {
    SnowFlake.use(open()).close();
    refuses(() => SnowFlake.nextIds(-1), 'ERR_SNOWFLAKE_ARGUMENT', /count/);
  });

  test('a subscriber to the end of an instance may choose the next default', async () => {
    process.env.SNOWDRIFT_STATE = mkdtempSync(join(tmpdir(), 'snowdrift-default-'));
    try {
      const first = SnowFlake.use(open({ workerId: 13 }));
      const next = open({ workerId: 14, ttl: 60_000 });
      const choose = () => SnowFlake.use(next);
      subscribe('snowdrift:lease-released', choose);
      await first.close();
      unsubscribe('snowdrift:lease-released', choose);
      assertAllDraw(next);
    } finally {
      await closeAll();
      removeDirectory(process.env.SNOWDRIFT_STATE);
    }
  });
});

describe('drawing while the default instance opens', () => {
  let directory;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'snowdrift-default-'));
    process.env.datacenterId = '6';
  });
  afterEach(() => removeDirectory(directory));

  for (const how of ['default', 'configure', 'ready']) {
    // Without options the lease ends after 10 s.
    test(`a subscriber draws from it, by ${how}`, {
      skip: how === 'configure' ? undefined : storm,
    }, async () => {
      process.env.SNOWDRIFT_LEASE = pathToFileURL(directory).href;
      const drawn = [];
      const draw = () => drawn.push(SnowFlake.nextId());
      subscribe('snowdrift:lease-taken', draw);
      const ways = {
        default: () => SnowFlake.default,
        configure: () => SnowFlake.configure({ maxWait: 50, ttl: 60_000 }),
        ready: () => SnowFlake.ready(),
      };
      closeLater(await ways[how]());
      unsubscribe('snowdrift:lease-taken', draw);
      assert.equal(drawn.length, 1);
      assert.ok(SnowFlake.nextId() > drawn[0]);
    });
  }
});
