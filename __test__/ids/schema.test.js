'use strict';
// snowdrift/schema: which values pass, by layout and form. app/boundary.test.js has it in frameworks.

const assert = require('node:assert/strict');
const { test } = require('node:test');

require('../support/own-directory.js');
const { ceilingId, compose, floorId, layouts } = require('snowdrift/id');
const { idSchema } = require('snowdrift/schema');
const { SnowFlake, refuses } = require('../support/support.js');

const INVALID_ID = 'ERR_SNOWFLAKE_INVALID_ID';
const CONFIG = 'ERR_SNOWFLAKE_CONFIG';
const ARGUMENT = 'ERR_SNOWFLAKE_ARGUMENT';
const LARGEST_ID = 2n ** 63n - 1n;

/** Asserts that is(), parse() and the Standard Schema agree that a value, of the schema's form, is no ID. */
function refusesValue(schema, value) {
  assert.equal(schema.is(value), false);
  const { message } = refuses(() => schema.parse(value), INVALID_ID);
  assert.deepEqual(schema['~standard'].validate(value), { issues: [{ message }] });
  return message;
}

/** Asserts that a value passes and is converted. */
function converts(schema, value, id) {
  assert.equal(schema.parse(value), id);
  assert.deepEqual(schema['~standard'].validate(value), { value: id });
  assert.equal(schema.is(value), typeof value === typeof id);
  assert.equal(schema.is(id), true);
}

test('without a layout every ID passes, and nothing else', () => {
  const schema = idSchema();
  for (const id of ['0', '9', '900710334548459520', String(LARGEST_ID)]) {
    converts(schema, id, id);
    converts(schema, BigInt(id), id);
  }
  const trap = { toString: () => assert.fail('it ran'), valueOf: () => assert.fail('it ran') };
  for (const value of [
    ...[5, 1.5, null, undefined, true, ['5'], trap, Object('5'), Symbol('5')],
    ...['', ' 5', '5\n', '-5', '+5', '007', '00', '1e3', '0x5', '5n', '\u0665', '\uff15', 'abc'],
    ...[-1n, LARGEST_ID + 1n, String(LARGEST_ID + 1n), '0RZZQ8VR4HG00'],
  ]) {
    refusesValue(schema, value);
  }
  const flake = new SnowFlake({ datacenterId: 1, workerId: 3 });
  assert.ok(schema.is(flake.nextIdString()));
});

test('with a layout the IDs of that one pass, until a day from now', (t) => {
  const now = Date.UTC(2026, 10, 22);
  t.mock.timers.enable({ apis: ['Date'], now });
  const day = 86_400_000;
  for (const [layout, { epoch }] of Object.entries(layouts)) {
    if (layout === 'uid') continue;
    const schema = idSchema({ layout, as: 'bigint' });
    for (const time of [epoch, now - day, now, now + day]) {
      const id = floorId(time, layout);
      converts(schema, String(id), id);
    }
    const message = refusesValue(schema, floorId(now + day + 1, layout));
    assert.match(message, /of another layout.* 2026-11-23T00:00:00.001Z, in the future$/);
  }
  t.mock.timers.setTime(now + 1);
  assert.ok(idSchema({ layout: 'node' }).is(String(floorId(now + day + 1, 'node'))));
});

test("IDs of a layout with an earlier epoch, or with more bits, are refused; with a later one by 'since'", (t) => {
  const now = Date.UTC(2026, 10, 22);
  t.mock.timers.enable({ apis: ['Date'], now });
  const since = Date.UTC(2024, 0);
  const names = ['twitter', 'discord', 'node', 'safe'];
  const passing = (options) =>
    names.slice(0, options === undefined ? 4 : 3).map((layout) => {
      const schema = idSchema({ layout, ...options });
      return names.filter((other) => schema.is(String(floorId(now, other)))).join();
    });
  // Each takes its own, and those of the ones after it.
  assert.deepEqual(passing(), [
    'twitter,discord,node,safe',
    'discord,node,safe',
    'node,safe',
    'safe',
  ]);
  assert.deepEqual(passing({ since }), ['twitter', 'discord', 'node']);
});

test('since is the time of the first ID that passes', () => {
  const since = new Date(Date.UTC(2024, 0));
  const schema = idSchema({ layout: 'node', since });
  converts(schema, floorId(since), String(floorId(since)));
  const message = refusesValue(schema, String(ceilingId(Number(since) - 1)));
  assert.match(message, /2023-12-31T23:59:59.999Z, before the first ID$/);
});

test('numbers are IDs only with a layout of at most 53 bits', () => {
  const id = compose({ timestamp: Date.UTC(2026, 5), sequence: 3 }, 'safe');
  const number = Number(id);
  converts(idSchema({ layout: 'safe', as: 'number' }), number, number);
  converts(idSchema({ layout: 'safe', as: 'number' }), String(id), number);
  converts(idSchema({ layout: 'safe' }), number, String(id));
  converts(idSchema({ layout: { ...layouts.safe }, as: 'bigint' }), number, id);
  for (const value of [2 ** 53, -1, 0.5, Number.NaN, Infinity]) {
    refusesValue(idSchema({ layout: 'safe', as: 'number' }), value);
  }
  refusesValue(idSchema({ layout: 'safe' }), '900710334548459520');
  const wider = { ...layouts.safe, sequenceBits: 6 };
  refusesValue(idSchema({ layout: wider }), number);
  for (const layout of [undefined, 'node', wider])
    refuses(() => idSchema({ as: 'number', layout }), CONFIG);
});

test('wrong options are refused', () => {
  for (const options of [null, 'node', 5]) refuses(() => idSchema(options), CONFIG);
  assert.match(refuses(() => idSchema({ as: 'text' }), CONFIG).message, /it is 'text'$/);
  for (const as of ['base32', null, 5, 'toString', {}]) refuses(() => idSchema({ as }), CONFIG);
  for (const layout of ['mastodon', null, {}, 5]) refuses(() => idSchema({ layout }), CONFIG);
  refuses(() => idSchema({ since: Date.UTC(2024, 0) }), CONFIG);
  for (const since of [Number.NaN, '2024-01-01', new Date(Number.NaN), Date.UTC(2000, 0)]) {
    refuses(() => idSchema({ layout: 'node', since }), ARGUMENT);
  }
});

test('a layout that the application breaks later is an error, not a wrong ID', () => {
  const layout = { ...layouts.node };
  const schema = idSchema({ layout });
  assert.ok(schema.is('5'));
  layout.sequenceBits = 63;
  for (const call of [schema.is, schema.parse, schema['~standard'].validate]) {
    refuses(() => call('5'), CONFIG);
  }
});

test('nobody can replace its functions, which need no `this`', () => {
  const schema = idSchema();
  assert.ok(Object.isFrozen(schema) && Object.isFrozen(schema['~standard']));
  assert.deepEqual(['5', 5].map(schema.is), [true, false]);
});

test('each option is read once, and those of a polluted Object.prototype are not', () => {
  const layouts = ['node', 'twitter'];
  const changing = {
    get layout() {
      return layouts.shift();
    },
  };
  idSchema(changing);
  assert.deepEqual(layouts, ['twitter']);
  for (const name of ['layout', 'since']) {
    Object.defineProperty(Object.prototype, name, { value: undefined, configurable: true });
    try {
      assert.equal(idSchema().parse('1'), '1');
    } finally {
      delete Object.prototype[name];
    }
  }
});
