'use strict';
// `snowdrift public`: keys, and IDs both ways, by a key of the environment.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { test } = require('node:test');

const { publicIds } = require('snowdrift/public');
const { run } = require('../support/cli.js');
const { KEY, OTHER_KEY, toBase64, vectors } = require('../support/public-ids.js');

const BASE64_KEY = toBase64(KEY);
const PUBLISHED = toBase64(vectors[0].key);
const env = { PUBLIC_ID_KEY: KEY };
const IDS = ['900710334548443136', '5'];

const orders = publicIds({ kind: 'order', key: KEY });
const TEXTS = IDS.map(orders.encode);

/** Runs a command with a standard input. */
async function runWith(input, args) {
  const { code, stdout, stderr } = await run(args, { env, input });
  assert.deepEqual([code, stderr], [0, '']);
  return stdout;
}

test('public key makes keys that snowdrift/public takes', async () => {
  const [one, other] = [await run(['public', 'key']), await run(['public', 'key', '--json'])];
  const keys = [one.stdout.trim(), JSON.parse(other.stdout)];
  assert.match(one.stdout, /^[\w+/]{43}=\n$/);
  assert.notEqual(keys[0], keys[1]);
  for (const key of keys) assert.ok(publicIds({ kind: 'order', key }));
});

test('public encode and decode, from arguments and from the standard input', async () => {
  const lines = (list) => `${list.join('\n')}\n`;
  const [encode, decode] = ['encode', 'decode'].map((name) => ['public', name, '--kind', 'order']);
  assert.equal((await run([...encode, ...IDS], { env })).stdout, lines(TEXTS));
  assert.equal((await run([...encode, '5n'], { env })).stdout, lines([TEXTS[1]]));
  assert.equal(await runWith(JSON.stringify(IDS), encode), lines(TEXTS));
  assert.equal((await run([...decode, ...TEXTS], { env })).stdout, lines(IDS));
  assert.equal(await runWith(lines(TEXTS), decode), lines(IDS));
  const json = await runWith(JSON.stringify(TEXTS), [...decode, '--json']);
  assert.deepEqual(JSON.parse(json), IDS);
});

test('other prefixes, and none', async () => {
  const bare = publicIds({ kind: 'some kind', key: KEY, prefix: false }).encode(5n);
  const short = publicIds({ kind: 'customer', key: KEY, prefix: 'cus_' }).encode(5n);
  for (const [args, text] of [
    [['--kind', 'some kind', '--no-prefix'], bare],
    [['--kind', 'customer', '--prefix', 'cus_'], short],
  ]) {
    assert.equal((await run(['public', 'encode', ...args, '5'], { env })).stdout, `${text}\n`);
    assert.equal((await run(['public', 'decode', ...args, text], { env })).stdout, '5\n');
  }
});

test('several keys: the first encodes, all decode', async () => {
  const rotated = { PUBLIC_ID_KEY: `${OTHER_KEY},${KEY}` };
  assert.equal(
    (await run(['public', 'decode', '--kind', 'order', ...TEXTS], { env: rotated })).code,
    0,
  );
  const { stdout } = await run(['public', 'encode', '--kind', 'order', '5'], { env: rotated });
  assert.equal(stdout, `${publicIds({ kind: 'order', key: OTHER_KEY }).encode(5n)}\n`);
});

test('what is refused, with what to do; a key is never shown', async () => {
  const secret = randomBytes(31).toString('base64');
  const [encode, decode] = ['encode', 'decode'].map((name) => ['public', name, '--kind', 'order']);
  for (const [args, PUBLIC_ID_KEY, code, said] of [
    [
      [...encode, '5'],
      undefined,
      2,
      /set the environment variable PUBLIC_ID_KEY .* public key makes/,
    ],
    [[...encode, '5'], '', 2, /the environment variable PUBLIC_ID_KEY is empty/],
    [[...encode, '5'], secret, 2, /the environment variable PUBLIC_ID_KEY must be 32 random bytes/],
    [[...encode, '5'], `${KEY},`, 2, /key 2 of the environment variable PUBLIC_ID_KEY is empty/],
    [[...encode, '5'], PUBLISHED, 2, /PUBLIC_ID_KEY is published: .* public key makes one/],
    [
      ...[[...encode, '5'], `${KEY},${KEY}`, 2],
      /key 2 of the environment variable PUBLIC_ID_KEY is the same key as key 1 of the environment/,
    ],
    [[...encode, '5'], `${KEY}, ${OTHER_KEY}`, 2, /: key 2 of .* it is a text of 65 characters/],
    [[...encode, '5'], `"${KEY}"`, 2, /PUBLIC_ID_KEY has quotes around it: write it without/],
    // A key in the place of something else
    [['public', KEY], KEY, 2, /no command 'public \*\*\*'/],
    [[KEY], KEY, 2, /no command '\*\*\*'/],
    [[...encode, `--${BASE64_KEY}`, '5'], KEY, 2, /Unknown option '\*\*\*/],
    [[...encode, `${BASE64_KEY},${KEY}`], KEY, 1, /it is '\*\*\*,\*\*\*'/],
    [['public', 'encode', '--kind', KEY, '5'], KEY, 2, /kind has a key in it/],
    [['public', 'decode', '--kind', 'a', BASE64_KEY], KEY, 1, /it is '\*\*\*'/],
    [['public', 'encode', '5'], KEY, 2, /public encode needs --kind, such as --kind order/],
    [encode, KEY, 2, /public encode needs an ID/],
    [
      ['public', 'encode', '--kind', 'a b', '5'],
      KEY,
      2,
      /kind is 'a b': pass another prefix, such as 'order_', or prefix: false/,
    ],
    [[...encode, '--prefix', 'x_', '--no-prefix', '5'], KEY, 2, /leave out one of them/],
    [[...encode, '--key', secret, '5'], KEY, 2, /Unknown option '--key'/],
    [['public', 'key', secret], KEY, 2, /public key takes no argument/],
    [[...encode, '5', 'x'], KEY, 1, /ERR_SNOWFLAKE_INVALID_ID: an ID must be .*it is 'x'/],
    [decode, KEY, 2, /public decode needs a text/],
    [[...decode, 'order_7'], KEY, 1, /must be 'order_' and 26 characters/],
    [[...decode, TEXTS[0]], OTHER_KEY, 1, /of another kind or key$/m],
    [['parse', TEXTS[0]], KEY, 1, /it is 'order_\w{26}'$/m],
    [['decode', TEXTS[0]], KEY, 2, /no command 'decode'\. Did you mean public decode\?/],
  ]) {
    const answer = await run(args, { env: PUBLIC_ID_KEY === undefined ? {} : { PUBLIC_ID_KEY } });
    assert.equal(answer.code, code, answer.stderr);
    if (code !== 0) assert.equal(answer.stdout, '');
    assert.match(answer.stderr, said);
    for (const key of [secret, KEY, OTHER_KEY, BASE64_KEY, PUBLISHED])
      assert.ok(!answer.stderr.includes(key), answer.stderr);
  }
});
