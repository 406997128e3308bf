'use strict';
// A megabyte of hostile text takes a moment, whatever reads or quotes it. Linear code needs milliseconds for it, and
// quadratic code minutes, or with the tenth of it in npm test seconds. The limit is in between. It is processor time,
// so that a busy machine does not matter.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const parseCommand = require('../../js/cli/parse.js');
const { readLayoutFlags, readNodeFlags } = require('../../js/cli/flags.js');
const { applyLeaseFile, readStoreUrl } = require('../../js/cli/store-url.js');
const { copyError, redactCause } = require('../../js/messages/causes.js');
const { SnowFlakeError, describe } = require('../../js/messages/errors.js');
const id = require('../../js/id.js');
const native = require('../../js/runtime/native.js');
const { SnowFlakeTransformer } = require('../../js/orm/typeorm/columns.js');
const { withSnowFlake } = require('../../js/orm/prisma.js');
const { publicIds } = require('../../js/public.js');
const { idSchema } = require('../../js/schema.js');
const secrets = require('../../js/messages/secrets.js');
const { etcd } = require('../../js/stores/etcd.js');
const { kubernetes } = require('../../js/stores/kubernetes.js');
const { storeFailure } = require('../../js/stores/failures.js');
const { redis } = require('../../js/stores/redis.js');
const { decode } = require('../../js/stores/register.js');
const { serverOf, serverUrl } = require('../../js/stores/url.js');
const { workerNode } = require('../../js/stores/worker-node.js');
const { zookeeper } = require('../../js/stores/zookeeper.js');
const { isQuick, isStorms } = require('../support/amount.js');
const { refusing } = require('../support/echo.js');
const { SnowFlake, layouts } = require('../support/support.js');
const { KEY: key } = require('../support/public-ids.js');

const [LENGTH, LIMIT_MS] = isQuick ? [100_000, 1000] : [1_000_000, 2000];
const LINE = '0 held 0000000000000055 0000a1f3 -1 1 1 1 1 -';

/** What a text is full of. */
const UNITS = [
  ...'a 9 @ / // : ? %41 %ff & = + , . [ {"a": a@ :@ ?@ //@ a:// a://? file:// a, ?pass //@/ %C3 a. :1,'.split(
    ' ',
  ),
  ...[' ', '\n', '\0', '"', '\u0315\u0300', '\u202e', '\ud800', 'x://@ ', '\n    at '],
  ...[`${'a'.repeat(42)} `, `${'aA'.repeat(21)}a `],
];
/** How it begins and ends. */
const FRAMES = [
  (text) => text,
  (text) => `redis://app:${text}@`,
  ...(isStorms ? [(text) => `etcd://${text}!`, (text) => `x?${text}@`, (text) => `//${text}`] : []),
];

const CLUSTER = { server: 'https://localhost', token: 'x' };

/** Values that are as large. */
const VALUES = {
  'a bigint': () => 1n << BigInt(8 * LENGTH),
  'a negative bigint': () => -(1n << BigInt(8 * LENGTH)),
  'a symbol': () => Symbol('\0'.repeat(LENGTH)),
  'a boxed text': () => Object(':@'.repeat(LENGTH / 2)),
  'a list': () => Array(LENGTH / 2).fill(0),
  'a list with holes': () => Array(1e9),
  'many properties': () =>
    Object.fromEntries(Array.from({ length: LENGTH / 10 }, (_, n) => [`k${n}`, 0])),
  'a deep list': () => JSON.parse('['.repeat(5000) + ']'.repeat(5000)),
  'a deep object': () => Array.from({ length: LENGTH / 10 }).reduce((inner) => ({ inner }), {}),
  'an error': () => Object.assign(new Error(':@'.repeat(LENGTH / 2)), { code: '@'.repeat(LENGTH) }),
};

const flake = new SnowFlake({ datacenterId: 1, workerId: 1, scope: 'process' });
const orders = publicIds({ kind: 'order', key });
const usage = (text) => new Error(text);
const terminal = { show() {}, complain() {}, usage };
const client = { eval() {}, connect() {}, totalCount: 0 };

/** What reads or quotes a text of a stranger. */
const READERS = {
  'SnowFlake.parse()': (text) => SnowFlake.parse(text),
  'flake.parse()': (text) => flake.parse(text),
  'flake.parse() with a layout': (text) => flake.parse(1n, text),
  'flake.compose()': (text) => flake.compose({ timestamp: text }),
  'the name of a field': (text) => flake.compose({ [text]: 1 }),
  'flake.floorId()': (text) => flake.floorId(text),
  'flake.nextIds()': (text) => flake.nextIds(text),
  'a time zone': (text) => flake.toUidString(1n, { timeZone: text }),
  'id.parse()': (text) => id.parse(text),
  'id.parse() with a layout': (text) => id.parse(1n, text),
  'id.parse() with an option': (text) => id.parse(1n, { ...layouts.node, [text]: 1 }),
  'id.compose()': (text) => id.compose({ timestamp: 0, workerId: text }),
  'id.compareIds()': (text) => id.compareIds(text, text),
  'id.fromBase32()': (text) => id.fromBase32(text),
  'id.toBase32()': (text) => id.toBase32(text),
  'id.isId()': (text) => id.isId(text) || id.isBase32(text),
  'id.idRange()': (text) => id.idRange(text, text),
  'idSchema().parse()': (text) => idSchema().parse(text),
  'idSchema().validate()': (text) => idSchema()['~standard'].validate(text),
  'options of idSchema()': (text) => idSchema({ layout: text }),
  'a public ID': (text) =>
    orders.is(text) || orders.schema().is(`order_${text}`) || orders.decode(text),
  'an ID to encode': (text) => orders.encode(text),
  'a key': (text) => publicIds({ kind: 'order', key: text }),
  'several keys': (text) => publicIds({ kind: 'order', keys: text }),
  'a kind': (text) => publicIds({ kind: text, key, prefix: false }).encode(1n),
  'a kind as a prefix': (text) => publicIds({ kind: text, key }).encode(1n),
  'a prefix': (text) => publicIds({ kind: 'order', key, prefix: `${text}_` }).encode(1n),
  'a layout': (text) => new SnowFlake({ layout: text }),
  'a field of a layout': (text) => new SnowFlake({ layout: { ...layouts.node, epoch: text } }),
  'an epoch': (text) => new SnowFlake({ epoch: text }),
  'a scope': (text) => new SnowFlake({ scope: text }),
  'a worker ID': (text) => new SnowFlake({ datacenterId: 1, workerId: text }),
  'a directory': (text) => new SnowFlake({ datacenterId: 1, workerId: 1, state: text }),
  'a lease': (text) => new SnowFlake({ datacenterId: 1, lease: text }),
  'the name of an option': (text) => new SnowFlake({ [text]: 1 }),
  'SnowFlake.use()': (text) => SnowFlake.use(text),
  'etcd()': (text) => etcd(text),
  'kubernetes()': (text) => kubernetes({ server: text }),
  'a namespace of Kubernetes': (text) => kubernetes({ ...CLUSTER, kubernetesNamespace: text }),
  'zookeeper()': (text) => zookeeper(text),
  'a namespace': (text) => redis(client, { namespace: text }),
  'a client': (text) => redis(text),
  'a host': (text) => workerNode(client, { host: text }),
  'the URL of a server': (text) => serverOf(serverUrl('lease', text)),
  "TypeORM's transformer": (text) => new SnowFlakeTransformer(() => '1', 'User.id').to(text),
  "the models of Prisma's extension": (text) => withSnowFlake({ flake: text }),
  'snowdrift parse': (text) => parseCommand.run({}, [text], terminal).catch(() => {}),
  'snowdrift parse --layout': (text) => readLayoutFlags({ layout: text }),
  'snowdrift parse --epoch': (text) => readLayoutFlags({ epoch: text }),
  'snowdrift next --worker-id': (text) => readNodeFlags({ 'worker-id': text }, layouts.node),
  'snowdrift slots': (text) => readStoreUrl('slots', [text], usage),
  'an argument of the command': (text) => applyLeaseFile({ lease: text }, [text], terminal),
  'describe()': (text) => describe(text) + describe(new Error(text)) + describe({ [text]: text }),
  'describe() of a symbol': (text) => describe(Symbol(text)) + describe(Object(text)),
  'a message': (text) => new SnowFlakeError('ERR_SNOWFLAKE_STORE', text),
  'a cause': (text) => redactCause(text),
  // Of a bigint, the error's text takes most of the time.
  'an error as a cause': (text) => {
    const error = new Error(text);
    return [redactCause(error), copyError(error)];
  },
  'secrets.js': (text) => [
    secrets.redact(text),
    secrets.redactForeign(text),
    secrets.redactValue(text),
    secrets.hasPassword(text),
  ],
  'a value of a store': (text) => decode('store', text, text),
  'a record of a store': (text) => native.readRecord(text, text),
  'a record under a key': (text) => native.readRecord(text, 'snowdrift2 bucket 1 -1'),
  'a holder': (text) =>
    native.readRecord('1/0', `snowdrift2 bucket 0000000000000001 -1\n${LINE} ${text}`),
  'an error of PostgreSQL': (text) => failureOf({ message: text, code: '28P01', detail: text }),
  'an error of MySQL': (text) =>
    failureOf({ message: text, code: 'ER_X', sqlMessage: text, sql: text }),
  'an error of ioredis': (text) =>
    failureOf({ message: text, command: { name: text, args: [text] } }),
  'a code': (text) => failureOf({ message: 'refused', code: `PROTOCOL_${text}` }),
  'errors within an error': (text) =>
    failureOf({ errors: Array(9).fill(new Error(text)), cause: new Error(text) }),
};

function failureOf({ message, ...properties }) {
  const error = Object.assign(new Error(message), properties);
  return [copyError(error), storeFailure('Redis at db:6379', 'now', error)];
}

/** Those that get values of all types: from JSON, or from an application without types. */
const OF_VALUES = [
  ...['SnowFlake.parse()', 'flake.compose()', 'id.parse()', 'id.parse() with a layout'],
  ...['a public ID', 'an ID to encode', 'a key', 'several keys', 'a kind', 'a prefix'],
  ...['id.compareIds()', 'id.fromBase32()', 'idSchema().validate()', 'a layout'],
  ...['a field of a layout', 'an epoch', 'a scope', 'a worker ID', 'a directory', 'a namespace'],
  ...['SnowFlake.use()', "TypeORM's transformer", 'a cause', 'an error as a cause'],
];

/** Processor time of a call, ms. */
async function costOf(call) {
  const start = process.cpuUsage();
  try {
    await call();
  } catch {
    // Almost all are refused.
  }
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

async function isFast(names, input, what) {
  for (const name of names) {
    const cost = await costOf(() => READERS[name](input));
    assert.ok(cost < LIMIT_MS, `${name} takes ${cost} ms for ${what}`);
  }
}

for (const unit of UNITS) {
  test(`${LENGTH} characters of ${JSON.stringify(unit)} take a moment`, async () => {
    const text = unit.repeat(LENGTH / unit.length);
    for (const [n, frame] of FRAMES.entries())
      await isFast(Object.keys(READERS), frame(text), `frame ${n}`);
  });
}

for (const [what, create] of Object.entries(VALUES)) {
  test(`a value as large takes a moment: ${what}`, () => isFast(OF_VALUES, create(), what));
}

/** Of these, what strangers send to an application as an ID or a public ID. */
const OF_STRANGERS = [
  ...['a public ID', 'an ID to encode', 'id.parse()', 'id.parse() with a layout', 'id.isId()'],
  ...['id.toBase32()', 'id.fromBase32()', 'id.compareIds()', 'id.compose()'],
  ...['idSchema().parse()', 'idSchema().validate()', 'SnowFlake.parse()'],
];

/** What reads all characters of a text, unless a cut is found early. */
const SEARCHES = [
  ...['indexOf', 'lastIndexOf', 'includes', 'match', 'matchAll', 'normalize', 'replace'],
  ...['replaceAll', 'search', 'split', 'toLowerCase', 'toUpperCase', 'trim'],
];

/** What a call throws or returns, and the lengths of the texts that it searched. */
function spied(call) {
  const lengths = [];
  const { prototype } = String;
  const originals = SEARCHES.map((name) => [name, prototype[name]]);
  const { exec } = RegExp.prototype;
  let said;
  for (const [name, original] of originals) {
    prototype[name] = function (...args) {
      lengths.push(this.length);
      return Reflect.apply(original, this, args);
    };
  }
  // Also of test(), and of the methods of a text that take a pattern.
  RegExp.prototype.exec = function (text) {
    lengths.push(String(text).length);
    return Reflect.apply(exec, this, [text]);
  };
  try {
    said = call();
  } catch (error) {
    said = error;
  } finally {
    RegExp.prototype.exec = exec;
    for (const [name, original] of originals) prototype[name] = original;
  }
  return { lengths, said };
}

test('a long input is refused by its length, before it is searched', () => {
  const frames = [(text) => text, (text) => `order_${text}`, (text) => `redis://app:${text}@db`];
  for (const name of OF_STRANGERS) {
    for (const unit of ['a', '9', '@', '//', ':@', '%41', 'aA'.repeat(30)]) {
      for (const frame of frames) {
        const text = frame(unit.repeat(LENGTH / unit.length));
        const { lengths, said } = spied(() => READERS[name](text));
        // describe() asks how a text that it cuts goes on, which is one search.
        const long = lengths.filter((length) => length > 10_000);
        assert.ok(long.length <= 1, `${name}: ${unit}, ${long}`);
        if (said?.message) assert.ok(said.message.length < 1000, said.message);
      }
    }
  }
});

for (const engine of ['postgres', 'mysql', 'redis', 'etcd']) {
  test(`a long text that a server of ${engine} says takes a moment`, async () => {
    const server = await refusing(engine);
    for (const unit of [':', '@', '//', 'a://?', '\0x']) {
      server.say(unit.repeat(LENGTH / unit.length));
      const url = `${engine}://app:a-secret-1@127.0.0.1:${server.port}`;
      const cost = await costOf(() => SnowFlake.lease(url, { datacenterId: 1 }));
      assert.ok(cost < LIMIT_MS, `${JSON.stringify(unit)}: ${cost} ms`);
    }
    server.close();
  });
}

// Last, since it makes all that follows slower.
test('a long secret takes a moment to learn, and then to hide', async () => {
  for (const unit of ['a', '@', '/', '+', '%41', '%ff', '&token=x']) {
    const text = unit.repeat(LENGTH / unit.length);
    for (const url of [`redis://app:${text}@db`, `redis://db/?token=${text}`]) {
      const cost = await costOf(() => {
        secrets.learn(new URL(url));
        for (let n = 0; n < 5; n++) describe(new Error(text));
      });
      assert.ok(cost < LIMIT_MS, `${cost} ms for ${url.slice(0, 40)}`);
    }
  }
});
