'use strict';
// snowdrift/id: what it reads, writes and refuses is what plain arithmetic and Rust do, and what `snowdrift` does.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { dirname, join, relative } = require('node:path');
const { test } = require('node:test');

const fc = require('fast-check');

const { isQuick } = require('../support/amount.js');
const { SnowFlake, SnowFlakeError, layouts, refuses, runScript } = require('../support/support.js');
const {
  LARGEST_ID,
  decodePlainly,
  encodePlainly,
  ids,
  layoutsOfAllKinds,
  layoutsWithFields,
} = require('../support/layouts.js');
const vectors = require('./vectors.json');
const id = require('snowdrift/id');
const native = require('../../js/runtime/native.js');
const { unwrap } = require('../../js/messages/errors.js');

const ARGUMENT = 'ERR_SNOWFLAKE_ARGUMENT';
const CONFIG = 'ERR_SNOWFLAKE_CONFIG';
const INVALID_ID = 'ERR_SNOWFLAKE_INVALID_ID';

const RUNS = { numRuns: isQuick ? 1500 : 5000 };

/** What a call returns, or the code and message of what it throws. */
function outcome(call) {
  try {
    return call();
  } catch (error) {
    assert.ok(error instanceof SnowFlakeError, error.stack);
    return { code: error.code, message: error.message };
  }
}

test('its layouts are the public ones, and that of Rust and of snowdrift', () => {
  assert.deepEqual(id.layouts, vectors.layouts);
  const source = readFileSync(join(__dirname, '../../src/core/layout.rs'), 'utf8');
  const [, numbers] = /NODE: Layout = Layout::new\(([^;]*)\);/.exec(source);
  const inRust = numbers.replaceAll('_', '').match(/\d+/g).map(Number);
  assert.deepEqual(Object.values(id.layouts.node), inRust);
  assert.equal(id.layouts, layouts);
  assert.ok(Object.isFrozen(layouts) && Object.values(layouts).every(Object.isFrozen));
});

test('parse() takes an ID apart as plain arithmetic does: any layout, any ID, in each form', () => {
  fc.assert(
    fc.property(layoutsOfAllKinds, ids, (layout, value) => {
      const plain = outcome(() => decodePlainly(layout, value));
      const parsed = (form) => outcome(() => ({ ...id.parse(form, layout) }));
      assert.deepEqual(parsed(value), plain);
      assert.deepEqual(parsed(String(value)), plain);
      assert.equal(id.isId(value, layout), plain.code === undefined);
      const bits = Object.values(layout)
        .slice(0, 5)
        .reduce((sum, width) => sum + width);
      const number = parsed(Number(value));
      if (bits > 53 || value >= 2n ** 53n) assert.equal(number.code, INVALID_ID);
      else assert.deepEqual(number, plain);
    }),
    RUNS,
  );
});

test('compose(), floorId() and ceilingId() put IDs together as plain arithmetic does, also at times beyond the layout', () => {
  fc.assert(
    fc.property(layoutsWithFields, ({ layout, fields }) => {
      const plain = (all) => outcome(() => encodePlainly(layout, { ...fields, ...all }));
      assert.deepEqual(
        outcome(() => id.compose(fields, layout)),
        plain({}),
      );
      const each = (pick) => ({
        datacenterId: pick(layout.datacenterBits),
        workerId: pick(layout.workerBits),
        clockBack: pick(layout.clockBackBits),
        sequence: pick(layout.sequenceBits),
      });
      const { timestamp } = fields;
      assert.deepEqual(
        outcome(() => id.floorId(timestamp, layout)),
        plain(each(() => 0)),
      );
      assert.deepEqual(
        outcome(() => id.ceilingId(new Date(timestamp), layout)),
        plain(each((bits) => 2 ** bits - 1)),
      );
    }),
    RUNS,
  );
});

test('times further from the epoch than a number counts keep their last bit', () => {
  const epoch = -8.64e15;
  const layout = { ...layouts.node, timestampBits: 62, sequenceBits: 1, tickMs: 1, epoch };
  Object.assign(layout, { datacenterBits: 0, workerBits: 0, clockBackBits: 0 });
  for (const timestamp of [
    2 ** 53 + epoch - 1,
    2 ** 53 + epoch,
    2 ** 53 + epoch + 1,
    8.64e15 - 1,
  ]) {
    const value = id.compose({ timestamp, sequence: 1 }, layout);
    assert.equal(value, (BigInt(timestamp) - BigInt(epoch)) * 2n + 1n);
    assert.equal(id.parse(value, layout).timestamp, timestamp);
  }
});

test('a layout is refused where Rust refuses it, and in its words', () => {
  const width = fc.integer({ min: -1, max: 64 });
  const layout = fc.record({
    timestampBits: width,
    datacenterBits: width,
    workerBits: width,
    clockBackBits: fc.integer({ min: -1, max: 5 }),
    sequenceBits: width,
    tickMs: fc.constantFrom(-1, 0, 1, 86_400_000, 86_400_001),
    epoch: fc.constantFrom(0, 8.64e15, -8.64e15, 8.64e15 + 2, -8.64e15 - 2),
  });
  fc.assert(
    fc.property(layout, (given) => {
      // A width below zero is 0 to Rust, which reads it as unsigned.
      fc.pre(Object.values(given).every((value) => value !== -1));
      const fault = outcome(() => unwrap(native.tickAt(given, 0)));
      const isRight = typeof fault === 'number';
      assert.deepEqual(
        outcome(() => id.compose({}, given)),
        isRight ? 0n : fault,
      );
      // What its epoch is has the words of checks.js there.
      if (Math.abs(given.epoch) > 8.64e15) return;
      assert.deepEqual(
        outcome(() => SnowFlake.parse(0n, given).id),
        isRight ? 0n : fault,
      );
    }),
    RUNS,
  );
});

test('ranges of adjacent times meet, and hold the IDs of their time', () => {
  for (const [layout, { tickMs, epoch, timestampBits }] of Object.entries(layouts)) {
    const end = epoch + 2 ** timestampBits * tickMs;
    const [a, b, c] = [epoch + 5 * tickMs, epoch + 900 * tickMs, epoch + 901 * tickMs + 0.5];
    const [one, two] = [id.idRange(a, new Date(b), layout), id.idRange(new Date(b), c, layout)];
    assert.equal(one.first, id.floorId(a, layout));
    assert.equal(one.last, id.ceilingId(b - 1, layout));
    assert.equal(two.first, one.last + 1n);
    assert.equal(id.parse(two.last, layout).timestamp, epoch + 900 * tickMs);
    const all = id.idRange(epoch, end, layout);
    assert.equal(all.first, 0n);
    assert.equal(all.last, layout === 'safe' ? 2n ** 53n - 1n : LARGEST_ID);
    const firstTick = id.idRange(epoch, epoch + tickMs, layout);
    assert.deepEqual(firstTick, { first: 0n, last: id.ceilingId(epoch, layout) });
    // Of no tick: the last ID is below the first.
    assert.deepEqual(id.idRange(b, b, layout), { first: two.first, last: one.last });
    assert.deepEqual(id.idRange(epoch, epoch, layout), { first: 0n, last: -1n });
    const { message } = refuses(() => id.idRange(b, a, layout), ARGUMENT);
    assert.ok(message.includes(`starts at ${b} and ends at ${a}`), message);
    refuses(() => id.idRange(epoch - 1, b, layout), ARGUMENT);
    refuses(() => id.idRange(b, end + 1000 * tickMs, layout), ARGUMENT);
  }
});

test('the known IDs, and the fields that compose() is not given', () => {
  for (const { id: text, layout, source, iso, ...fields } of vectors.ids) {
    const parsed = id.parse(text, layout);
    assert.deepEqual({ ...parsed }, { ...fields, id: BigInt(text), date: new Date(iso) }, source);
    assert.equal(id.compose(parsed, layout), BigInt(text));
    assert.deepEqual(parsed, SnowFlake.parse(text, layout));
    const flake = new SnowFlake({ layout, datacenterId: 0, workerId: 0, clockBack: 'wait' });
    assert.deepEqual(flake.parse(text), parsed);
    assert.equal(flake.compose(fields), BigInt(text));
    flake.close();
  }
  assert.equal(id.compose({}), 0n);
  assert.equal(id.compose({ sequence: 5 }, 'twitter'), 5n);
  assert.equal(id.parse(5n).toJSON().id, '5');
});

test('what is wrong is refused with a code and a remedy, and none of it runs', () => {
  const run = () => assert.fail('it ran');
  // As a Date, but none.
  const trap = { toString: run, valueOf: run, getTime: () => 0 };
  const inherited = Object.create({ datacenterId: 1 });
  for (const wrong of [trap, inherited, null, undefined, Infinity, '5', 5n, []]) {
    if (wrong !== undefined) refuses(() => id.floorId(wrong), ARGUMENT);
    refuses(() => id.parse(wrong === 5n || wrong === '5' ? trap : wrong), INVALID_ID);
    if (wrong !== undefined) refuses(() => id.parse(1n, wrong), CONFIG);
    refuses(() => id.compareIds(wrong === 5n || wrong === '5' ? trap : wrong, 1n), INVALID_ID);
  }
  for (const wrong of [null, undefined, 5, 'node']) refuses(() => id.compose(wrong), ARGUMENT);
  for (const wrong of [{ workerId: 32 }, { workerId: -1 }, { sequence: 1.5 }, { clockBack: '1' }]) {
    refuses(() => id.compose(wrong), ARGUMENT);
  }
  refuses(() => id.parse(1n, 'mastodon'), CONFIG);
  refuses(() => id.parse(1n, 'toString'), CONFIG);
  refuses(() => id.parse(1n, { ...layouts.node, sequenceBits: 13 }), CONFIG);
  const { message } = refuses(() => id.parse('x'.repeat(500)), INVALID_ID);
  assert.ok(message.length < 200);
});

test('a refusal names what is wrong, and no password', () => {
  const messageOf = (call, code) => refuses(call, code).message;
  const hidden = messageOf(() => id.parse('postgres://u:secret@h/db'), INVALID_ID);
  assert.doesNotMatch(hidden, /secret/);
  assert.match(
    messageOf(() => id.compose({ workerid: 5 }), ARGUMENT),
    /has no 'workerid'.*workerId/,
  );
  const wider = { ...layouts.node, workerbits: 3 };
  assert.match(
    messageOf(() => id.parse(1n, wider), CONFIG),
    /has no 'workerbits'/,
  );
  const base32 = id.toBase32(2n ** 62n + 31n);
  assert.match(
    messageOf(() => id.parse(base32), INVALID_ID),
    /fromBase32/,
  );
  const beyond = Number.MAX_SAFE_INTEGER + 1;
  assert.match(
    messageOf(() => id.parse(beyond, 'safe'), INVALID_ID),
    /number up to 9007199254740991/,
  );
});

test('objects that throw are refused', () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const throwing = {
    get workerId() {
      throw new Error('it ran');
    },
  };
  for (const wrong of [proxy, throwing]) refuses(() => id.compose(wrong), ARGUMENT);
  for (const wrong of [proxy, { ...layouts.node, __proto__: throwing, workerBits: undefined }]) {
    refuses(() => id.parse(1n, wrong), CONFIG);
  }
});

test('a wrong layout is refused as the first one, too', async () => {
  const { stdout } = await runScript(
    `try { require('snowdrift/id').parse(1n, {}) } catch ({ code }) { console.log(code) }`,
  );
  assert.equal(stdout, `${CONFIG}\n`);
});

test('without `snowdrift`, an error is one short line, too', async () => {
  const { stdout } = await runScript(`
    const { parse } = require('snowdrift/id');
    for (const id of ['a\\nb\\u202e', 'redis://app:secret@db', 'redis://db?password=secret', 'x'.repeat(1e6), Symbol('\\n'.repeat(1e5)), 1n << 900n])
      try { parse(id) } catch ({ message }) { console.log(message.split('; it is ')[1]) }
  `);
  const [text, login, options, long, symbol, bigint, ...rest] = stdout.split('\n');
  assert.equal(text, String.raw`'a\u000ab\u202e'`);
  assert.equal(login, 'a text of 21 characters');
  assert.equal(options, 'a text of 26 characters');
  assert.equal(long, 'a text of 1000000 characters');
  assert.match(symbol, /^Symbol\((\\u000a){53}$/);
  assert.equal(bigint, 'a bigint of more than 60 digits');
  assert.deepEqual(rest, ['']);
});

test('a layout that the application changes is read anew', () => {
  const layout = { ...layouts.node };
  const before = id.parse('501276370534961153', layout);
  layout.epoch += 1000;
  assert.equal(id.parse('501276370534961153', layout).timestamp, before.timestamp + 1000);
});

test('it and snowdrift/schema need neither Node nor the addon', () => {
  const ROOT = join(__dirname, '../..');
  const files = new Set(['js/id.js', 'js/schema.js']);
  for (const file of files) {
    const text = readFileSync(join(ROOT, file), 'utf8');
    for (const [, name] of text.matchAll(/(?:require|import)\(['"]([^'"]+)/g)) {
      assert.match(name, /^\.\//, `${file} requires ${name}`);
      files.add(relative(ROOT, join(ROOT, dirname(file), name)));
    }
    assert.doesNotMatch(text, /\b(?:process|Buffer|globalThis|__dirname|global)\b/, file);
  }
  assert.ok(files.size > 3);
});

test('ES modules import its names', async () => {
  const { default: whole, ...names } = await import('snowdrift/id');
  delete names['module.exports'];
  assert.deepEqual({ ...names }, { ...id });
  assert.equal(whole, id);
});
