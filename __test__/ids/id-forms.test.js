'use strict';
// snowdrift/id: the forms of an ID, and their order.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const fc = require('fast-check');

const { refuses } = require('../support/support.js');
const { LARGEST_ID, ids, within } = require('../support/layouts.js');
const id = require('snowdrift/id');

const INVALID_ID = 'ERR_SNOWFLAKE_INVALID_ID';

const RUNS = { numRuns: 5000 };
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Base32 by BigInt: no line of it is in js/ids/text.js. */
function base32Of(value) {
  let text = '';
  for (let shift = 60n; shift >= 0n; shift -= 5n) text += ALPHABET[Number((value >> shift) & 31n)];
  return text;
}

test('base32 is 13 characters that come back, in the order of the IDs', () => {
  const edges = fc.constantFrom(0n, 31n, 32n, 2n ** 32n - 1n, 2n ** 32n, LARGEST_ID);
  const any = fc.oneof(ids, edges);
  fc.assert(
    fc.property(any, any, (a, b) => {
      const [x, y] = [id.toBase32(a), id.toBase32(String(b))];
      assert.equal(x, base32Of(a));
      assert.equal(id.fromBase32(x), a);
      assert.ok(id.isBase32(x) && x.length === 13);
      assert.equal(x < y, a < b);
      assert.equal(x === y, a === b);
    }),
    RUNS,
  );
  assert.equal(id.toBase32(0n), '0000000000000');
  assert.equal(id.toBase32(LARGEST_ID), '7ZZZZZZZZZZZZ');
  assert.equal(id.toBase32('501276370534924288'), base32Of(501276370534924288n));
});

test('base32 is read in its one form only', () => {
  const good = id.toBase32(501276370537314304n);
  for (const text of [
    ...['', good.slice(1), `0${good}`, ` ${good.slice(1)}`, `${good}\n`, good.toLowerCase()],
    ...['8000000000000', 'ZZZZZZZZZZZZZ', '000000000000I', '000000000000L', '000000000000O'],
    ...['000000000000U', '00000-0000000', '000000000000\u0663', '0000000000\u{1f600}0'],
    ...[undefined, null, 5, 5n, [good], { length: 13, charCodeAt: () => 0x30 }],
  ]) {
    assert.ok(!id.isBase32(text), String(text));
    const { message } = refuses(() => id.fromBase32(text), INVALID_ID);
    assert.match(message, /13 characters of 0-9 and A-Z without I, L, O and U/);
  }
  fc.assert(
    fc.property(fc.stringMatching(/^[0-9A-Za-z]{13}$/), (text) => {
      const isRight = /^[0-7][0-9A-HJKMNP-TV-Z]{12}$/.test(text);
      assert.equal(id.isBase32(text), isRight);
      if (isRight) assert.equal(base32Of(id.fromBase32(text)), text);
    }),
    RUNS,
  );
});

test('compareIds() orders all forms as numbers, across every change of length', () => {
  const forms = [(value) => value, String, id.toBase32];
  const lengths = Array.from({ length: 19 }, (_, n) => 10n ** BigInt(n));
  const any = fc.oneof(ids, fc.constantFrom(...lengths, ...lengths.map((one) => one - 1n)));
  const form = within(2).map((n) => forms[n]);
  fc.assert(
    fc.property(any, any, form, form, (a, b, formOfA, formOfB) => {
      const [x, y] = [formOfA(a), formOfB(b)];
      const isEither = (text) => typeof text === 'string' && /^[1-7][0-9]{12}$/.test(text);
      fc.pre(!isEither(x) && !isEither(y));
      assert.equal(id.compareIds(x, y), a === b ? 0 : a < b ? -1 : 1);
    }),
    { numRuns: 20_000 },
  );
  const mixed = ['1000000000000000000', 999999999999999999n, id.toBase32(10n ** 18n + 1n), '7'];
  assert.deepEqual(mixed.sort(id.compareIds).at(0), '7');
  assert.deepEqual(mixed.at(-1), id.toBase32(10n ** 18n + 1n));
  for (const wrong of [5, '', 'abc', '-5', '007', undefined, {}, -1n, 2n ** 63n]) {
    refuses(() => id.compareIds(wrong, 1n), INVALID_ID);
    refuses(() => id.compareIds(1n, wrong), INVALID_ID);
  }
});

test('a string that is two IDs is neither', () => {
  const { message } = refuses(() => id.compareIds('1234567890123', 1n), INVALID_ID);
  assert.match(message, /pass BigInt\('1234567890123'\) or fromBase32\('1234567890123'\)/);
  // These are one ID each.
  assert.equal(id.compareIds('0234567890123', id.fromBase32('0234567890123')), 0);
  assert.equal(id.compareIds('8234567890123', 8234567890123n), 0);
  assert.equal(id.compareIds('123456789012A', id.fromBase32('123456789012A')), 0);
  // Where only one form is taken, nothing is in doubt.
  assert.equal(id.parse('1234567890123').id, 1234567890123n);
  assert.equal(base32Of(id.fromBase32('1234567890123')), '1234567890123');
});

test('isId() is true of what parse() reads', () => {
  for (const good of [0n, '0', 5n, '501276370537314304', LARGEST_ID, String(LARGEST_ID)]) {
    assert.equal(id.isId(good), true, String(good));
    assert.equal(id.isId(good, 'node'), true);
  }
  for (const bad of [
    ...[5, 0, Number.NaN, '', ' 5', '5 ', '+5', '-5', -5n, '05', '007', '1e3', '0x5', '5n', '5.0'],
    ...['٣', '３', 2n ** 63n, String(2n ** 63n), '0'.repeat(19), id.toBase32(5n)],
    ...[undefined, null, true, {}, [], ['5'], Object(5n), Object('5'), Symbol('5'), () => 5],
  ]) {
    assert.equal(id.isId(bad), false, String(bad));
    assert.equal(id.isId(bad, 'node'), false);
  }
  // Numbers are IDs of a layout that they hold exactly.
  assert.equal(id.isId(5, 'safe'), true);
  assert.equal(id.isId(Number.MAX_SAFE_INTEGER, 'safe'), true);
  for (const bad of [Number.MAX_SAFE_INTEGER + 1, -1, 1.5, 2n ** 53n, '9007199254740992']) {
    assert.equal(id.isId(bad, 'safe'), false, String(bad));
  }
});
