'use strict';
// Keys of snowdrift/public: which are refused, and that no message shows one.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { randomBytes } = require('node:crypto');
const { readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');
const { inspect } = require('node:util');

const { publicIds } = require('snowdrift/public');
const { createKey } = require('../../js/public/key.js');
const { amount } = require('../support/amount.js');
const { KEY, toBase64, vectors } = require('../support/public-ids.js');
const { refuses } = require('../support/support.js');

const CONFIG = 'ERR_SNOWFLAKE_CONFIG';
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
  // Mostly text: another encoding, cut within a character, padded, with a byte before it.
  ...[
    Buffer.from('Gr\xfc\xdfe aus K\xf6ln-Ehrenfeld 12345!!', 'latin1'),
    Buffer.from(
      '\u041f\u0430\u0440\u043e\u043b\u044c \u0434\u043b\u044f \u0437\u0430\u043a\u0430\u0437\u043e\u0432',
    ),
    Buffer.from('quick brown fxjm', 'utf16le'),
    Buffer.concat([Buffer.from('Tr0ub4dor&3-kqWxyZHpl;,m'), Buffer.alloc(8)]),
    Buffer.concat([Buffer.from('Tr0ub4dor&3-kqWxyZHpl;,m'), Buffer.alloc(8, 8)]),
    Buffer.from('\x01\x02\x03Tr0ub4dor&3-kqWxyZHpl;,mnbvcx'),
  ].map((bytes) => bytes.subarray(0, 32)),
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

/** What is spelt as a key is, in the files that people read. */
function publishedKeys() {
  const root = join(__dirname, '../..');
  const folders = ['.', 'docs', 'js', 'js/stores', 'js/orm', 'demo', '__test__/public'];
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => /\.(md|ts|html|json)$/.test(name) && name !== 'package-lock.json')
      .map((name) => join(root, folder, name)),
  );
  const found = files.flatMap(
    (file) =>
      readFileSync(file, 'utf8').match(
        /(?<![\w+/-])(?:[A-Za-z0-9+/]{43}=|[0-9a-f]{64})(?![\w+/-])/gi,
      ) ?? [],
  );
  return new Set(found);
}

test('the keys that pages and vectors print are refused, however they are spelt', () => {
  const printed = publishedKeys();
  const vectorKeys = new Set(vectors.map(({ key }) => key));
  assert.ok(vectorKeys.size >= 2);
  for (const key of vectorKeys) assert.ok(printed.has(key));
  assert.ok(printed.size > vectorKeys.size, 'base64, too');
  for (const key of printed) {
    const hex = key.length === 64 ? key : Buffer.from(key, 'base64').toString('hex');
    for (const spelt of [hex, hex.toUpperCase(), toBase64(hex)]) {
      const message = /^key is published: .* print it\. npx snowdrift public key makes one$/;
      assert.match(
        refuses(() => publicIds({ kind: 'order', key: spelt }), CONFIG).message,
        message,
      );
      const { message: second } = refuses(
        () => publicIds({ kind: 'order', keys: [KEY, spelt] }),
        CONFIG,
      );
      assert.match(second, /^keys\[1\] is published/);
    }
  }
});

test('a missing key says where it comes from; what it is instead, what to do', () => {
  for (const [key, said] of [
    [undefined, /^key is undefined: check that the variable/],
    ['', /^key is empty: check that the variable/],
    [`${KEY}\n`, /64 digits\); it is a text of 65 characters\. npx/],
    [`"${toBase64(KEY)}"`, /44 characters\) .* it is a text of 46 characters\. npx/],
    [
      toBase64(KEY).replace(/[/+]/g, '_').replace('=', ''),
      /needs \+ instead of -, \/ instead of _/,
    ],
    [Buffer.from(KEY, 'hex'), /of another type\. npx/],
    [null, /of another type\. npx/],
  ]) {
    assert.match(refuses(() => publicIds({ kind: 'order', key }), CONFIG).message, said);
  }
  for (const key of [5, true, {}, Object(KEY), Symbol('a'), new ArrayBuffer(32)]) {
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

/** A key of the test's own, without its bytes in Node's pool. */
function newKey() {
  const key = createKey();
  const bytes = Buffer.from(new ArrayBuffer(32));
  bytes.write(key, 'base64');
  return { bytes, key };
}

test('a key in the place of another value is not shown, whatever stands around it', () => {
  const { key, bytes } = newKey();
  const [other, hex] = [newKey().key, bytes.toString('hex')];
  const urlSafe = bytes.toString('base64url');
  for (const one of [key, hex, urlSafe, encodeURIComponent(key)]) {
    const spelt = [
      ...[one, `${one}\n`, `"${one}"`, `${one},${other}`, `PUBLIC_ID_KEY=${one}`, one.slice(0, 43)],
      ...[`${'x '.repeat(8)}${one}`, `${'x '.repeat(20)}${one}`, `?key=${one}&a=b`, `${one}_`],
    ];
    for (const text of [...spelt, Symbol(one), Symbol(spelt[7])]) {
      const messages = [
        () => publicIds({ kind: text, key }),
        () => publicIds({ kind: 'order', key, prefix: text }),
        () => publicIds({ kind: 'order', key, [text]: 1 }),
        () => publicIds({ kind: 'order', key: text === one ? 'x' : text }),
        () => orders.encode(text),
        () => orders.decode(text),
        () => orders.schema({ as: text }),
        () => orders.schema({ [text]: 1 }),
      ].flatMap((call) => {
        try {
          call();
          return [];
        } catch ({ message }) {
          return message;
        }
      });
      assert.ok(messages.length >= 5, String(messages));
      messages.push(orders.schema()['~standard'].validate(text).issues[0].message);
      for (const message of messages) {
        for (let at = 0; at + 12 <= one.length; at++) {
          assert.ok(!message.includes(one.slice(at, at + 12)), message);
        }
      }
    }
  }
  // It would be in every public ID.
  for (const kind of [key, urlSafe, hex, `${key}\n`, `${key},${other}`, hex.slice(0, 43)]) {
    refuses(() => publicIds({ kind, key, prefix: false }), CONFIG);
  }
  for (const prefix of [`${urlSafe}_`, `${hex}-`, `key-${hex}_`]) {
    refuses(() => publicIds({ kind: 'order', key, prefix }), CONFIG);
  }
  // Long names are no keys, and their texts are shown.
  for (const kind of [
    'x'.repeat(300),
    'customer_subscription_invoice_line_item_tax',
    'Order-550e8400-e29b-41d4-a716-446655440000-a',
  ]) {
    const text = publicIds({ kind, key: other }).encode(1n);
    const { message } = refuses(
      () => publicIds({ kind, key }).decode(text),
      'ERR_SNOWFLAKE_INVALID_ID',
    );
    assert.ok(message.startsWith(`'${text.slice(0, 60)}`), message);
  }
});

test('no bytes of a key are left in the memory of buffers', (t) => {
  const allocated = [];
  const { alloc } = Buffer;
  t.mock.method(Buffer, 'alloc', (...args) => {
    const buffer = alloc.call(Buffer, ...args);
    allocated.push(buffer);
    return buffer;
  });
  const rounds = 20;
  for (let n = 0; n < rounds; n++) {
    const { key, bytes } = newKey();
    assert.ok(publicIds({ kind: 'a', key }).encode(1n));
    refuses(() => publicIds({ kind: '', key }), CONFIG);
    const pool = Buffer.from(Buffer.from('hi').buffer);
    assert.ok(!pool.includes(bytes));
  }
  const keys = allocated.filter(({ length }) => length === 32);
  assert.equal(keys.length, 2 * rounds);
  for (const bytes of keys) assert.deepEqual(bytes, alloc(32));
});

test('a runtime without AES-256-ECB is refused with what to do', () => {
  const program = `
    require('node:crypto').createCipheriv = () => {
      throw Object.assign(new Error('Unknown cipher'), { code: 'ERR_CRYPTO_UNKNOWN_CIPHER' });
    };
    try {
      require('snowdrift/public').publicIds({ kind: 'order', key: '${KEY}' });
    } catch ({ code, message }) {
      console.log(code, message);
    }`;
  const printed = execFileSync(process.execPath, ['-e', program], { cwd: __dirname });
  assert.match(
    String(printed),
    /^ERR_SNOWFLAKE_CONFIG node:crypto of this runtime has no AES-256-ECB \(ERR_CRYPTO_UNKNOWN_CIPHER\): run it/,
  );
});

test('random keys are good', () => {
  const keys = Array.from({ length: amount(300, 100_000) }, createKey);
  assert.equal(new Set(keys).size, keys.length);
  for (const key of keys) assert.ok(publicIds({ kind: 'order', key }));
});
