'use strict';
// Keys of snowdrift/public: which are refused, and that no message shows one.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { test } = require('node:test');
const { inspect } = require('node:util');

const { publicIds } = require('snowdrift/public');
const { createKey } = require('../../js/public/key.js');
const { amount } = require('../support/amount.js');
const { refuses } = require('../support/support.js');
const { vectors } = require('./public-vectors.json');

const CONFIG = 'ERR_SNOWFLAKE_CONFIG';
const [{ key: KEY }] = vectors;
const toBase64 = (hex) => Buffer.from(hex, 'hex').toString('base64');
const orders = publicIds({ kind: 'order', key: KEY });

/** Texts that are no key, or a weak one. Each has a part that no message may show. */
const BAD_KEYS = [
  ...['', 'secretsecret', 'correct horse battery staple', KEY.slice(1), `${KEY}0`, `${KEY}\n`],
  ...[` ${toBase64(KEY)}`, toBase64(KEY).slice(0, -1), `${toBase64(KEY)}=`, 'x'.repeat(44)],
  // The same bytes, spelt otherwise.
  toBase64(KEY).replace(/.=$/, (end) => `${String.fromCharCode(end.charCodeAt(0) + 1)}=`),
  randomBytes(31).toString('base64'),
  randomBytes(33).toString('base64'),
  randomBytes(16).toString('hex'),
];
const WEAK_KEYS = [
  ...[
    Buffer.alloc(32),
    Buffer.alloc(32, 255),
    Buffer.alloc(32, 'ab'),
    Buffer.alloc(32, 'abcdefgh'),
  ],
  Buffer.from(Array.from({ length: 32 }, (_, at) => at)),
  Buffer.from(Array.from({ length: 32 }, (_, at) => 255 - 3 * at)),
  Buffer.from('0123456789abcdef'.repeat(4), 'hex'),
  // A digit in each byte.
  Buffer.from(Array.from(KEY.slice(0, 32), (digit) => Number.parseInt(digit, 16))),
  // A short key that was made longer.
  Buffer.concat([randomBytes(8), Buffer.alloc(24)]),
  Buffer.alloc(32, randomBytes(16)),
  Buffer.from('correct horse battery staple 123'),
  Buffer.from('correct horse battery staple 12\n'),
  Buffer.from('Pferd-Batterie-\u00e4\u00f6\u00fc-Heftklammern'.slice(0, 29)),
  Buffer.from(randomBytes(16).toString('hex')),
];

test('weak and missing keys are refused, and never shown', () => {
  const errors = [];
  const refusesKey = (key) => {
    errors.push(refuses(() => publicIds({ kind: 'order', key }), CONFIG));
    errors.push(refuses(() => publicIds({ kind: 'order', keys: [KEY, key] }), CONFIG));
    errors.push(refuses(() => publicIds({ kind: key, key: 'order' }), CONFIG));
    errors.push(refuses(() => publicIds(key), CONFIG));
  };
  for (const spelt of [KEY, toBase64(KEY)]) {
    errors.push(refuses(() => publicIds({ kind: spelt, key: KEY }), CONFIG));
    errors.push(refuses(() => publicIds({ kind: 'order', key: KEY, prefix: spelt }), CONFIG));
    errors.push(refuses(() => orders.encode(spelt), 'ERR_SNOWFLAKE_INVALID_ID'));
    errors.push(refuses(() => orders.decode(spelt), 'ERR_SNOWFLAKE_INVALID_ID'));
  }
  for (const key of BAD_KEYS) refusesKey(key);
  for (const bytes of WEAK_KEYS) {
    assert.equal(bytes.length, 32);
    for (const encoding of ['hex', 'base64']) {
      const key = bytes.toString(encoding);
      refusesKey(key);
      const { message } = refuses(() => publicIds({ kind: 'order', key }), CONFIG);
      assert.match(message, /^key is weak: .*\. npx snowdrift public key makes one$/);
    }
  }
  for (const { message, cause, stack } of errors) {
    assert.equal(cause, undefined);
    for (const key of [
      KEY,
      toBase64(KEY),
      ...BAD_KEYS,
      ...WEAK_KEYS.map(toBase64),
      ...WEAK_KEYS.map(String),
    ]) {
      const [part] = key.trim().match(/.{8,12}/s) ?? [];
      if (part !== undefined) assert.ok(!`${message}${stack}`.includes(part), `${message} ${part}`);
    }
  }
  assert.doesNotMatch(inspect(orders, { depth: 9, showHidden: true }), new RegExp(KEY, 'i'));
  assert.equal(JSON.stringify(orders), '{"kind":"order","prefix":"order_"}');
});

test('a missing key says where it comes from; what it is instead, what to do', () => {
  for (const [key, said] of [
    [undefined, /^key is undefined: check that the variable/],
    ['', /^key is empty: check that the variable/],
    [
      `${KEY}\n`,
      /a text of 65 characters, with spaces or line breaks around it: pass key\.trim\(\)/,
    ],
    [
      toBase64(KEY).replace(/[/+]/g, '_').replace('=', ''),
      /needs \+ instead of -, \/ instead of _/,
    ],
    [Buffer.from(KEY, 'hex'), /of another type: pass Buffer\.from\(bytes\)\.toString\('base64'\)/],
    [new Uint8Array(32), /pass Buffer\.from/],
    [null, /of another type\. npx/],
  ]) {
    assert.match(refuses(() => publicIds({ kind: 'order', key }), CONFIG).message, said);
  }
  for (const key of [
    5,
    5n,
    true,
    {},

    Object(KEY),
    Symbol('a'),
    () => KEY,
    new ArrayBuffer(32),
  ]) {
    refuses(() => publicIds({ kind: 'order', key }), CONFIG);
    refuses(() => publicIds({ kind: 'order', keys: key }), CONFIG);
  }
  refuses(() => publicIds({ kind: 'order', key: [KEY] }), CONFIG);
  refuses(() => publicIds({ kind: 'order', keys: KEY }), CONFIG);
  refuses(() => publicIds({ kind: 'order', keys: [] }), CONFIG);
  refuses(() => publicIds({ kind: 'order', keys: new Array(2 ** 32 - 1) }), CONFIG);
  for (const length of [-1, 0.5, Number.NaN, Infinity, {}, '1', Symbol('1'), 1n]) {
    const keys = new Proxy([KEY], {
      get: (target, name) => (name === 'length' ? length : target[0]),
    });
    refuses(() => publicIds({ kind: 'order', keys }), CONFIG);
  }
  assert.match(
    refuses(() => publicIds({ kind: 'order', keys: [KEY, undefined] }), CONFIG).message,
    /^keys\[1\] is undefined/,
  );
  assert.match(
    refuses(() => publicIds({ kind: 'order', keys: [KEY, toBase64(KEY)] }), CONFIG).message,
    /^keys\[1\] is the same key as keys\[0\]/,
  );
  refuses(() => publicIds({ kind: 'order', key: KEY, keys: [KEY] }), CONFIG);
  refuses(() => publicIds({ kind: 'order', key: KEY, keys: undefined }), CONFIG);
  refuses(() => publicIds({ kind: 'order' }), CONFIG);
  assert.match(
    refuses(() => publicIds({ kind: 'order', key: KEY, prefx: 'x_' }), CONFIG).message,
    /^publicIds\(\) has no 'prefx'\. It knows kind, key, keys, prefix$/,
  );
});

test('random keys are good', () => {
  const keys = Array.from({ length: amount(300, 100_000) }, createKey);
  assert.equal(new Set(keys).size, keys.length);
  for (const key of keys) assert.ok(publicIds({ kind: 'order', key }));
});
