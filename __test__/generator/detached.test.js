'use strict';
// Methods without their instance, and on a Proxy of it: they work, or the error says what to do.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { CachedSnowFlake, SnowFlake, refuses, rejects } = require('../support/support.js');
const id = require('../../js/id.js');
const { publicIds } = require('../../js/public.js');
const { idSchema } = require('../../js/schema.js');
const { KEY } = require('../support/public-ids.js');

const ARGUMENT = 'ERR_SNOWFLAKE_ARGUMENT';
const ids = ['900710334548459520', '900710334548459521'];

/** All methods and getters that need their instance. */
function membersOf(flake) {
  const members = new Map();
  let prototype = Object.getPrototypeOf(flake);
  for (; prototype !== Object.prototype; prototype = Object.getPrototypeOf(prototype)) {
    for (const name of Reflect.ownKeys(prototype)) {
      if (name === 'constructor') continue;
      const { get, value } = Object.getOwnPropertyDescriptor(prototype, name);
      members.set(name, get ?? value);
    }
  }
  return members;
}

for (const Class of [SnowFlake, CachedSnowFlake]) {
  test(`${Class.name}: each method and getter without its instance says how to call it`, async () => {
    const flake = new Class({ datacenterId: 1, workerId: 17 });
    const members = membersOf(flake);
    assert.ok(members.size >= 18);
    const proxy = new Proxy(flake, {});
    const others = [undefined, null, 1, {}, [], Object.create(flake), Class, proxy];
    for (const [name, member] of members) {
      for (const value of others) {
        const call = () => member.call(value, 1);
        const error =
          name === 'nextIdAsync' ? await rejects(call(), ARGUMENT) : refuses(call, ARGUMENT);
        if (typeof name === 'string') assert.match(error.message, new RegExp(`^${name}\\b`));
        assert.match(error.message, /without its instance, or on a Proxy of it: write flake\.\w+/);
      }
    }
    assert.equal(flake.isClosed, false);
    await flake.close();
  });

  test(`${Class.name}: its own functions and fields work detached, and on a Proxy`, async () => {
    const flake = new Class({ datacenterId: 1, workerId: 17 });
    const { nextId, nextIdString, nextIdBase32, parse } = flake;
    assert.deepEqual(
      ids.map(parse).map((parsed) => String(parsed.id)),
      ids,
    );
    for (const draw of [nextId, nextIdString, nextIdBase32]) {
      assert.equal(new Set(ids.map(draw)).size, 2);
    }
    const proxy = new Proxy(flake, {});
    assert.equal(proxy.parse(proxy.nextId()).workerId, proxy.workerId);
    assert.equal(proxy.layout, flake.layout);
    await flake.close();
  });
}

test('the index that map() passes is no layout, and the error says so', () => {
  const layoutIs =
    /it is 0\. map\(\) and filter\(\) pass the index, too: write \(id\) => parse\(id\)/;
  for (const call of [SnowFlake.parse, CachedSnowFlake.parse, id.parse, id.isId]) {
    assert.match(refuses(() => ids.map(call), 'ERR_SNOWFLAKE_CONFIG').message, layoutIs);
  }
  const dates = [new Date()];
  for (const call of [id.floorId, id.ceilingId]) {
    assert.match(refuses(() => dates.map(call), 'ERR_SNOWFLAKE_CONFIG').message, layoutIs);
  }
});

test('static methods, and functions of the other entries, work as callbacks', () => {
  const { fromBase32, toBase32, compareIds } = id;
  assert.deepEqual(ids.map(toBase32).map(fromBase32).map(String).sort(compareIds), ids);
  const { encode, decode, decodeString, is, schema } = publicIds({ kind: 'order', key: KEY });
  assert.deepEqual(ids.map(encode).filter(is).map(decodeString), ids);
  assert.deepEqual(ids.map(encode).map(schema().parse), ids.map(encode).map(decode));
  const { is: isString, parse } = idSchema({ layout: 'node' });
  assert.deepEqual(ids.filter(isString).map(parse), ids);
  const flake = SnowFlake.configure({ datacenterId: 1, workerId: 17 });
  const dates = [new Date(), Date.now()];
  assert.deepEqual(
    dates.map(SnowFlake.floorId),
    dates.map((date) => flake.floorId(date)),
  );
});
