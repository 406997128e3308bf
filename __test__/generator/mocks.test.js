'use strict';
// What tests of an application do to instances and to the class: spies, mocks, subclasses. jest and vitest do
// the same in app/mocks.test.js.

const assert = require('node:assert/strict');
const { afterEach, describe, mock, test } = require('node:test');

const { CachedSnowFlake, SnowFlake, refuses, rejects } = require('../support/support.js');
const { closeLater, loadCopy, refuses: refusesOfCopy } = require('../support/default-copy.js');
const { PrimarySnowFlakeColumn } = require('../../js/orm/typeorm.js');
const { memory } = require('../../js/stores/memory.js');
const { getMetadataArgsStorage } = require('typeorm');

const GENERATING = [
  ...['nextId', 'nextIdString', 'nextIdBase32', 'nextIdNumber'],
  ...['nextIds', 'nextIdStrings', 'nextIdAsync'],
];
const CONFIG = 'ERR_SNOWFLAKE_CONFIG';
const ARGUMENT = 'ERR_SNOWFLAKE_ARGUMENT';
const options = { layout: 'safe', workerId: 40 };

afterEach(() => mock.restoreAll());

for (const Class of [SnowFlake, CachedSnowFlake]) {
  describe(Class.name, () => {
    test('each method of an instance can be mocked, and is restored', () => {
      const flake = new Class(options);
      closeLater(flake);
      for (const name of [...GENERATING, 'parse', 'floorId', 'stats', 'close']) {
        const before = flake[name];
        const { mock: calls } = mock.method(flake, name, () => 'mocked');
        assert.equal(flake[name](1), 'mocked');
        assert.equal(calls.callCount(), 1);
        mock.restoreAll();
        assert.equal(flake[name], before, name);
      }
      assert.equal(typeof flake.nextId(), 'bigint');
    });

    test('a mock on the prototype is used by instances that are made after it', () => {
      for (const name of [...GENERATING, 'parse']) {
        mock.method(Class.prototype, name, () => 'mocked');
        const flake = new Class(options);
        closeLater(flake);
        assert.equal(flake[name](1), 'mocked');
        mock.restoreAll();
        const drawn = name === 'parse' ? flake.parse('1').id : flake[name](1);
        assert.ok(drawn !== undefined && drawn !== 'mocked', name);
      }
      const flake = new Class(options);
      closeLater(flake);
      for (const name of GENERATING.slice(0, 4)) assert.ok(Object.hasOwn(flake, name), name);
    });

    test('the prototype has all methods, as automocks and super need them', () => {
      const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(Class.prototype));
      for (const name of [...GENERATING, 'parse', 'compose', 'close']) {
        assert.ok(methods.includes(name), name);
      }
      class Orders extends Class {
        nextOrder() {
          return `${super.nextIdString()} ${super.nextId()} ${super.nextIdNumber()} ${super.nextIdBase32()}`;
        }
      }
      const flake = new Orders(options);
      closeLater(flake);
      assert.match(flake.nextOrder(), /^\d+ \d+ \d+ [\dA-Z]{13}$/);
    });

    test('a subclass that overrides a method that generates is refused by the name of the method', () => {
      for (const name of GENERATING) {
        class Traced extends Class {}
        Traced.prototype[name] = () => 'own';
        class Deeper extends Traced {}
        for (const Sub of [Traced, Deeper]) {
          const { message } = refuses(() => new Sub(options), CONFIG);
          assert.match(message, new RegExp(`^a subclass overrides ${name}\\(\\), .* another name`));
        }
      }
      // Nothing was opened: another maxWait would be refused.
      closeLater(new Class({ ...options, maxWait: 3 }));
    });

    test('lease() of a subclass is refused, since it would not return its instance', async () => {
      class Orders extends Class {}
      const { message } = await rejects(Orders.lease(memory(), { datacenterId: 1 }), CONFIG);
      assert.match(
        message,
        new RegExp(`call ${Class.name}\\.lease\\(\\), and write a class that has`),
      );
      const { lease } = Class;
      for (const take of [lease, (...values) => lease.call({}, ...values)]) {
        const flake = await take(memory(), { datacenterId: 1 });
        assert.equal(flake.lease.state, 'held');
        await flake.close();
      }
    });

    test('an instance of a frozen class has its functions', () => {
      const { [Class.name]: Copy } = loadCopy();
      Object.freeze(Object.getPrototypeOf(Copy.prototype));
      const { nextId } = closeLater(new Copy(options));
      assert.notEqual(nextId(), nextId());
    });

    test('a subclass may override what generates nothing', () => {
      class Traced extends Class {
        parse(id) {
          return { ...super.parse(id), traced: true };
        }

        close() {
          return super.close().then(() => 'traced');
        }
      }
      const flake = new Traced(options);
      closeLater(flake);
      assert.equal(flake.parse(flake.nextId()).traced, true);
      assert.equal(JSON.parse(flake.toUidString(flake.nextId())).UID.length > 0, true);
    });

    test('a field of a subclass replaces the function of its instances, which are no default instance', () => {
      class Fixed extends Class {
        nextIdString = () => '7';
      }
      const flake = new Fixed(options);
      closeLater(flake);
      assert.equal(flake.nextIdString(), '7');
      const { message } = refuses(() => SnowFlake.use(flake), ARGUMENT);
      assert.match(message, /nextIdString of this one was replaced: static calls would not follow/);
    });
  });
}

describe('static methods', () => {
  test('each can be mocked, and is restored', async () => {
    const { SnowFlake: Copy } = loadCopy();
    closeLater(Copy.configure(options));
    for (const name of [...GENERATING, 'parse', 'floorId', 'lease', 'ready', 'use', 'configure']) {
      mock.method(Copy, name, () => 'mocked');
      assert.equal(Copy[name](1), 'mocked');
      mock.restoreAll();
    }
    for (const name of GENERATING) assert.notEqual(await Copy[name](1), 'mocked', name);
  });

  test('they do not follow a mock of the default instance', async () => {
    const { SnowFlake: Copy } = loadCopy();
    const flake = Copy.configure(options);
    closeLater(flake);
    for (const name of GENERATING) {
      mock.method(flake, name, () => 'mocked');
      assert.equal(flake[name](1), 'mocked');
      assert.notEqual(await Copy[name](1), 'mocked', name);
    }
  });

  test('they do not follow a mock in the place of SnowFlake.default', async () => {
    const { SnowFlake: Copy } = loadCopy();
    const flake = Copy.configure(options);
    closeLater(flake);
    mock.getter(Copy, 'default', () => ({ nextId: () => 1n }));
    for (const name of [...GENERATING, 'floorId']) {
      const of = flake.layout.epoch + 1;
      assert.notEqual(await Copy[name](name === 'floorId' ? of : 1), 1n, name);
    }
    assert.equal(Copy.default.nextId(), 1n);
  });

  test('an instance with a mock becomes no default instance', () => {
    const { SnowFlake: Copy } = loadCopy();
    const flake = new Copy(options);
    closeLater(flake);
    mock.method(flake, 'nextId', () => 1n);
    refusesOfCopy(
      () => Copy.use(flake),
      ARGUMENT,
      /a mock in the place of SnowFlake\.nextId instead/,
    );
    mock.restoreAll();
    assert.equal(Copy.use(flake), flake);
  });

  test("TypeORM's column follows a mock of nextIdString", () => {
    class Order {}
    PrimarySnowFlakeColumn()(Order.prototype, 'id');
    const { transformer } = getMetadataArgsStorage().columns.find(
      ({ target }) => target === Order,
    ).options;
    mock.method(SnowFlake, 'nextIdString', () => '7');
    assert.equal(transformer.next(), '7');
  });
});
