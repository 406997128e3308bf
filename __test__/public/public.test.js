'use strict';
// snowdrift/public: one text for one ID, and no ID for any other text. public-keys.test.js has its keys, app/public-ids.test.js
// frameworks and other languages.

const assert = require('node:assert/strict');
const { createCipheriv, createHmac, randomBytes } = require('node:crypto');
const { test } = require('node:test');
const { inspect } = require('node:util');

const fc = require('fast-check');

const { SnowFlakeError } = require('snowdrift');
const { publicIds } = require('snowdrift/public');
const { amount, isStorms, seed } = require('../support/amount.js');
const { KEY, OTHER_KEY, idOf, textOf, toBase64, vectors } = require('../support/public-ids.js');
const { refuses } = require('../support/support.js');

const CONFIG = 'ERR_SNOWFLAKE_CONFIG';
const INVALID_ID = 'ERR_SNOWFLAKE_INVALID_ID';
const LARGEST_ID = 2n ** 63n - 1n;
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const LENGTH = 26;

const orders = publicIds({ kind: 'order', key: KEY });

/** Random IDs, from a block of random bytes. */
function* randomIds(count) {
  for (let left = count; left > 0; left -= 4096) {
    const bytes = randomBytes(8 * Math.min(left, 4096));
    for (let at = 0; at < bytes.length; at += 8) yield bytes.readBigUInt64BE(at) >> 1n;
  }
}

/** A text with the right prefix that spells a random block. */
function randomText() {
  const bytes = randomBytes(LENGTH);
  const spell = (byte, at) => ALPHABET[byte & (at === 0 ? 7 : 31)];
  return `order_${Array.from(bytes, spell).join('')}`;
}

/** Asserts that no way in takes a value, and that all say the same of it. */
function refusesText(ids, value) {
  const { message } = refuses(() => ids.decode(value), INVALID_ID);
  assert.equal(ids.is(value), false);
  assert.equal(refuses(() => ids.decodeString(value), INVALID_ID).message, message);
  const schema = ids.schema();
  assert.deepEqual(schema['~standard'].validate(value), { issues: [{ message }] });
  assert.equal(refuses(() => schema.parse(value), INVALID_ID).message, message);
  assert.equal(schema.is(value), false);
  return message;
}

test('the test vectors, both ways; a key is hex or base64', () => {
  assert.ok(vectors.length > 40);
  for (const { text: published, ...vector } of vectors) {
    const { kind, prefix, id } = vector;
    assert.equal(textOf(vector), published);
    assert.equal(idOf({ ...vector, text: published }), BigInt(id));
    // Published keys are refused, so another one takes the same way.
    const text = textOf({ ...vector, key: KEY });
    for (const spelt of [KEY, KEY.toUpperCase(), toBase64(KEY)]) {
      const ids = publicIds({ kind, key: spelt, prefix: prefix === '' ? false : prefix });
      assert.equal(ids.encode(id), text);
      assert.equal(ids.encode(BigInt(id)), text);
      assert.equal(ids.decode(text), BigInt(id));
      assert.equal(ids.decodeString(text), id);
      assert.equal(ids.is(text), true);
    }
  }
});

test('nobody can replace its functions', () => {
  const schema = orders.schema();
  for (const one of [orders, schema, schema['~standard']]) assert.ok(Object.isFrozen(one));
});

test('random IDs decode to themselves', () => {
  for (const id of randomIds(amount(20_000, 10_000_000))) {
    const text = orders.encode(id);
    if (text.length !== 32 || orders.decode(text) !== id) assert.fail(`${id} ${text}`);
  }
});

test('no random text decodes', () => {
  for (let left = amount(20_000, 10_000_000); left > 0; left--) {
    const text = randomText();
    if (orders.is(text)) assert.fail(text);
  }
});

test('flipping any character is refused, and there is one spelling', () => {
  for (const id of [0n, 900710334548443136n, LARGEST_ID, ...randomIds(amount(3, 300))]) {
    const text = orders.encode(id);
    for (let at = 0; at < text.length; at++) {
      for (const other of `${ALPHABET}iloILOuU_-A Z\n\0\u0660\uff11\u{10400}`) {
        const changed = text.slice(0, at) + other + text.slice(at + 1);
        if (changed !== text && orders.is(changed)) assert.fail(changed);
      }
      refusesText(orders, text.slice(0, at) + text.slice(at + 1));
      refusesText(orders, `${text.slice(0, at)}0${text.slice(at)}`);
      const swapped =
        text.slice(0, at) +
        text
          .slice(at, at + 2)
          .split('')
          .reverse()
          .join('');
      const changed = swapped + text.slice(at + 2);
      if (changed !== text) refusesText(orders, changed);
    }
  }
});

test('the two bits more than a block has are 0', () => {
  const bare = publicIds({ kind: 'order', key: KEY, prefix: false });
  const text = bare.encode(5n);
  for (const more of [8, 16, 24]) {
    const first = ALPHABET[ALPHABET.indexOf(text[0]) + more];
    refusesText(bare, first + text.slice(1));
  }
});

test('a block whose ID has 64 bits, or whose tag differs in a bit, is refused', () => {
  const key = Buffer.from(KEY, 'hex');
  const spell = (id, flipped = 0n) => {
    const tag = createHmac('sha256', key).update('order').digest().subarray(0, 8);
    const plain = Buffer.alloc(16);
    plain.writeBigUInt64BE(id);
    plain.writeBigUInt64BE(tag.readBigUInt64BE() ^ flipped, 8);
    const cipher = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false);
    let block = BigInt(`0x${cipher.update(plain).toString('hex')}`);
    let text = '';
    for (let n = 0; n < LENGTH; n++, block >>= 5n) text = ALPHABET[Number(block & 31n)] + text;
    return `order_${text}`;
  };
  assert.equal(orders.decode(spell(LARGEST_ID)), LARGEST_ID);
  for (const id of [2n ** 63n, 2n ** 64n - 1n]) refusesText(orders, spell(id));
  for (let bit = 0n; bit < 64n; bit++) refusesText(orders, spell(5n, 1n << bit));
});

test('two kinds or keys have no text in common, and refuse each other', () => {
  const count = isStorms ? 2 ** 20 : 2 ** 10;
  const bare = (kind, key) => publicIds({ kind, key, prefix: false });
  const all = [
    bare('order', KEY),
    bare('user', KEY),
    bare('orders', KEY),
    bare('order', OTHER_KEY),
  ];
  const seen = new Set();
  const ids = [...randomIds(count)];
  for (const one of all) {
    for (const id of ids) seen.add(one.encode(id));
  }
  assert.equal(seen.size, all.length * count);
  for (const one of all) {
    const text = one.encode(ids[0]);
    for (const other of all) if (other !== one) refusesText(other, text);
  }
});

test('kinds of any length and script, each with texts of its own', () => {
  const kinds = ['a', 'b', '__proto__', 'A', 'a_b', 'a-b', 'x'.repeat(300), 'x'.repeat(301)];
  const free = [' ', 'a\0', 'a\0\0', '\u00e9', '\u6ce8\u6587', '\u{1f69a}', '='];
  const bare = [...kinds, ...free].map((kind) => publicIds({ kind, key: KEY, prefix: false }));
  const texts = bare.map(({ encode }) => encode(5n));
  assert.equal(new Set(texts).size, texts.length);
  for (const [at, one] of bare.entries()) {
    for (const [other, text] of texts.entries()) assert.equal(one.is(text), other === at);
  }
  for (const kind of kinds) {
    const ids = publicIds({ kind, key: KEY });
    assert.equal(ids.prefix, `${kind}_`);
    assert.equal(ids.decode(ids.encode(7n)), 7n);
  }
  for (const kind of free) {
    const { message } = refuses(() => publicIds({ kind, key: KEY }), CONFIG);
    assert.match(message, /^a prefix has letters, .* or prefix: false$/);
  }
});

test('kinds that could be taken for one another are refused', () => {
  const options = { key: KEY, prefix: false };
  // As UTF-8 they would all be U+FFFD.
  for (const kind of ['\ud800', 'a\udc00', '\udc00\ud800', `a${'\u0300'.repeat(31)}`]) {
    assert.match(
      refuses(() => publicIds({ ...options, kind }), CONFIG).message,
      /^kind is no text/,
    );
  }
  for (const kind of ['e\u0301', '\u212b', '\ufa10']) {
    assert.match(refuses(() => publicIds({ ...options, kind }), CONFIG).message, /normalize/);
    assert.ok(publicIds({ ...options, kind: kind.normalize() }).encode(1n));
  }
  for (const kind of ['', undefined, 5, ['order'], Object('order')]) {
    refuses(() => publicIds({ ...options, kind }), CONFIG);
  }
});

test('a prefix may be another one, or none', () => {
  const text = orders.encode(5n).slice('order_'.length);
  for (const prefix of ['cus_', 'a-', '_', 'order_', 'Order_', `${'p'.repeat(500)}_`]) {
    const ids = publicIds({ kind: 'order', key: KEY, prefix });
    assert.equal(ids.encode(5n), prefix + text);
    assert.equal(ids.decode(prefix + text), 5n);
    if (prefix !== 'order_') refusesText(ids, orders.encode(5n));
    refusesText(ids, text);
  }
  for (const prefix of ['', 'cus', 'a_b', '\u00e9_', 'a_\n', null, undefined]) {
    const { message } = refuses(() => publicIds({ kind: 'order', key: KEY, prefix }), CONFIG);
    assert.match(message, /^prefix must be letters/);
  }
  // One prefix of two kinds.
  const others = publicIds({ kind: 'user', key: KEY, prefix: 'order_' });
  refusesText(others, orders.encode(5n));
});

test('several keys: the first encodes, all decode', () => {
  const before = publicIds({ kind: 'order', keys: [OTHER_KEY] });
  const both = publicIds({ kind: 'order', keys: [KEY, toBase64(OTHER_KEY)] });
  assert.equal(both.encode(5n), orders.encode(5n));
  assert.equal(both.decode(before.encode(5n)), 5n);
  assert.equal(both.decode(orders.encode(5n)), 5n);
  refusesText(before, both.encode(5n));
  refusesText(both, publicIds({ kind: 'user', key: KEY, prefix: 'order_' }).encode(5n));
});

test('encode takes bigints and decimal strings of 0 to 2^63 - 1, and nothing else', () => {
  const trap = { toString: () => assert.fail('it ran'), valueOf: () => assert.fail('it ran') };
  for (const value of [
    ...[undefined, 5, -0, true, ['5'], trap, Object(5n), Symbol('5')],
    ...['', ' 5', '5\n', '-5', '+5', '007', '1e3', '0x5', '5n', '\u0665', 'abc', '0RZZQ8VR4HG00'],
    ...[-1n, LARGEST_ID + 1n, 2n ** 64n, 10n ** 5000n, String(LARGEST_ID + 1n), () => '5'],
    orders.encode(5n),
  ]) {
    refuses(() => orders.encode(value), INVALID_ID);
  }
  assert.match(refuses(() => orders.encode(5), INVALID_ID).message, /which may be rounded/);
  const twice = refuses(() => orders.encode(orders.encode(5n)), INVALID_ID).message;
  assert.match(twice, /it is 'order_\w{26}'$/);
});

test('decode takes texts of its own, and nothing else', () => {
  const text = orders.encode(5n);
  const trap = { length: 32, toString: () => assert.fail('it ran'), startsWith: () => true };
  for (const value of [
    ...[undefined, null, 5, 5n, true, {}, [], [text], trap, Object(text), Symbol(text), () => text],
    ...['', 'order_', ' ', text.toUpperCase(), `Order_${text.slice(6)}`, ` ${text}`, `${text}\n`],
    ...[text.slice(6), `_${text.slice(6)}`, `user_${text.slice(6)}`, text + text, `order_${text}`],
    ...[text.replace('_', '-'), text.replace('_', '%5F'), text.replaceAll(/\d/g, '\uff11')],
    `order_${'\ud800'.repeat(26)}`,
    `order_${'\u{1f69a}'.repeat(13)}`,
    Buffer.from(text),
  ]) {
    refusesText(orders, value);
  }
  assert.match(
    refusesText(orders, '900710334548443136'),
    /it is the ID '900710334548443136' itself$/,
  );
  assert.match(
    refusesText(orders, 'x'),
    /^a public ID must be 'order_' and 26 characters .*; it is 'x'$/,
  );
  assert.match(
    refusesText(orders, randomText()),
    /is no public ID of this kind and key: it is forged/,
  );
  assert.match(refusesText(orders, '\u001b[31m\u202e'), /it is '\\u001b\[31m\\u202e'$/);
});

test('schema() gives a bigint or a string', () => {
  const text = orders.encode(5n);
  for (const [options, id] of [
    [undefined, 5n],
    [{}, 5n],
    [{ as: undefined }, 5n],
    [{ as: 'bigint' }, 5n],
    [{ as: 'string' }, '5'],
  ]) {
    const schema = orders.schema(options);
    const { version, vendor, validate } = schema['~standard'];
    assert.deepEqual([version, vendor], [1, 'snowdrift']);
    assert.deepEqual(validate(text), { value: id });
    assert.equal(schema.parse(text), id);
    assert.equal(schema.is(text), true);
    assert.ok(Object.isFrozen(schema) && Object.isFrozen(schema['~standard']));
  }
  for (const options of [null, 'string', { as: 'number' }, { as: 'toString' }, { to: 1 }]) {
    refuses(() => orders.schema(options), CONFIG);
  }
});

test('options are read once, and not from Object.prototype; later changes have no effect', () => {
  const reads = [];
  const values = { kind: 'order', keys: [KEY, OTHER_KEY] };
  const options = new Proxy(values, {
    get: (target, name) => {
      reads.push(name);
      return target[name];
    },
  });
  const ids = publicIds(options);
  assert.deepEqual(reads.filter((name) => typeof name === 'string').sort(), [
    'key',
    'keys',
    'kind',
    'prefix',
  ]);
  values.keys.length = 0;
  values.kind = 'user';
  assert.equal(ids.decode(orders.encode(5n)), 5n);
  Object.assign(Object.prototype, { prefix: false, keys: [OTHER_KEY], as: 'string' });
  try {
    assert.equal(publicIds({ kind: 'order', key: KEY }).encode(5n), orders.encode(5n));
    assert.equal(orders.schema().parse(orders.encode(5n)), 5n);
  } finally {
    for (const name of ['prefix', 'keys', 'as']) delete Object.prototype[name];
  }
});

const wild = fc.oneof(
  fc.anything({ withBigInt: true, withDate: true, withTypedArray: true, withNullPrototype: true }),
  fc.constantFrom(KEY, OTHER_KEY, 'order', 'order_', false, [KEY], '9'),
  // Any characters, also halves of one. fast-check's own take half a second to be made.
  fc.array(fc.integer({ min: 0, max: 0x10ffff })).map((codes) => String.fromCodePoint(...codes)),
);

/** What a call returns; undefined if it is refused as everything is that is refused. */
function orRefusal(call) {
  try {
    return call();
  } catch (error) {
    assert.ok(error instanceof SnowFlakeError, inspect(error));
    assert.ok(error.code === CONFIG || error.code === INVALID_ID);
    assert.ok(!error.message.includes(KEY), error.message);
    return undefined;
  }
}

const RUNS = { numRuns: amount(500, 50_000), seed };

test('any options, IDs and texts are refused, or come back as they were', () => {
  const options = fc.record(
    { kind: wild, key: wild, keys: wild, prefix: wild },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(options, wild), wild, wild, (given, id, text) => {
      const ids = orRefusal(() => publicIds(given)) ?? orders;
      const encoded = orRefusal(() => ids.encode(id));
      if (encoded !== undefined) assert.equal(ids.decode(encoded), BigInt(id));
      const decoded = orRefusal(() => ids.decode(text));
      if (decoded !== undefined) assert.equal(ids.encode(decoded), text);
      assert.equal(ids.is(text), decoded !== undefined);
    }),
    RUNS,
  );
});
