'use strict';
// No output shows a password, a passphrase or a key that is an option of etcd() or zookeeper(), or a login before each
// server of a list; nor where a text is cut, nor by what a client has attached to its error.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');
const { inspect } = require('node:util');

const { copyError } = require('../../js/messages/causes.js');
const { SnowFlakeError, describe: describeValue } = require('../../js/messages/errors.js');
const { hasPassword, learn, redactForeign, redactValue } = require('../../js/messages/secrets.js');
const { etcd } = require('../../js/stores/etcd.js');
const { memory } = require('../../js/stores/memory.js');
const { mysql } = require('../../js/stores/mysql.js');
const { postgres } = require('../../js/stores/postgres.js');
const { redis } = require('../../js/stores/redis.js');
const { typeorm } = require('../../js/stores/typeorm.js');
const { workerNode } = require('../../js/stores/worker-node.js');
const { zookeeper } = require('../../js/stores/zookeeper.js');
const { amount, gate } = require('../support/amount.js');
const { run } = require('../support/cli.js');
const { refusing } = require('../support/echo.js');
const { missing } = require('../support/lease/servers.js');
const { createPassword, everythingOf, hides, thrownBy } = require('../support/passwords.js');
const { SnowFlake, layouts } = require('../support/support.js');

const ROUNDS = amount(2, 8);

/** Options of etcd() with a secret at each position, right and wrong. */
const ETCD_OPTIONS = {
  password: ({ raw }) => ({ user: 'app', password: raw }),
  'a password alone': ({ raw }) => ({ password: raw }),
  'a password that is an object': ({ raw }) => ({ user: 'app', password: { raw } }),
  'a passphrase': ({ raw }) => ({ tls: { key: KEY, passphrase: raw } }),
  'a passphrase of a function': ({ raw }) => ({ tls: async () => ({ key: KEY, passphrase: raw }) }),
  'a passphrase that is a number': ({ number }) => ({ tls: { key: KEY, passphrase: number } }),
  'a passphrase that is an object': ({ raw }) => ({ tls: { key: KEY, passphrase: { raw } } }),
  'a passphrase that an error quotes': ({ raw }) => ({
    tls: { passphrase: raw, lookup: (_, __, done) => done(new Error(`${raw} was refused`)) },
  }),
  'a key': ({ raw }) => ({ tls: { key: raw, cert: raw } }),
  'keys with passphrases': ({ raw }) => ({ tls: { key: [{ pem: KEY, passphrase: raw }] } }),
  'a CA': ({ raw }) => ({ tls: { ca: raw } }),
  'a CA that is an object': ({ raw }) => ({ tls: { ca: { raw } } }),
  'an archive': ({ raw }) => ({ tls: { pfx: raw, passphrase: raw } }),
  'tls that is a text': ({ raw }) => ({ tls: raw }),
  'a misspelt option': ({ raw }) => ({ passwort: raw }),
};

/** Options `tls` of zookeeper(), likewise. */
const ZOOKEEPER_TLS = {
  'a key and a certificate': ({ raw }) => ({ key: raw, cert: raw }),
  'a key in PEM': ({ raw }) => ({ key: pemOf(raw), cert: pemOf(raw), ca: pemOf(raw) }),
  'a broken header': ({ raw }) => ({ key: `-----BEGIN ${raw}`, cert: `-----BEGIN ${raw}` }),
  'a CA': ({ raw }) => ({ ca: `-----BEGIN CERTIFICATE-----\n${raw}` }),
  'a key alone': ({ raw }) => ({ key: raw }),
  'a key that is an object': ({ raw }) => ({ key: { raw }, cert: { raw } }),
  'a passphrase': ({ raw }) => ({ key: raw, cert: raw, passphrase: raw }),
  'a text': ({ raw }) => raw,
  'a list': ({ raw }) => [raw],
  'a function':
    ({ raw }) =>
    async () => ({ key: raw, cert: raw }),
  'a function that returns a text':
    ({ raw }) =>
    () =>
      raw,
};
const pemOf = (text) => `-----BEGIN PRIVATE KEY-----\n${text}\n-----END PRIVATE KEY-----\n`;

/** No key, but long enough to be taken for one. */
const KEY = `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${'A'.repeat(64)}\n-----END ENCRYPTED PRIVATE KEY-----\n`;

/** The list of servers of a URL, with a login before each. */
const listsOf = (scheme, { raw, encoded }, where) => [
  `${scheme}://app:${encoded}@${where},app:${encoded}@${where}`,
  `${scheme}://app:other@${where},app:${encoded}@h2`,
  `${scheme}://app:${encoded}@${where},h2,app:other@h3`,
  `${scheme}://${encoded}@${where},${encoded}@h2`,
  `${scheme}://app:${raw}@${where},app:${raw}@h2`,
  `${scheme}://app:${encoded}@${where},h2:x`,
  `${scheme}://${where},app:${encoded}@`,
  `${scheme}://app:other@${where}?host=app:${encoded}@h2`,
];

describe('options of stores', () => {
  let server;
  before(async () => {
    server = await refusing('etcd');
  });
  after(() => server.close());

  const refusal = (create) =>
    thrownBy(async () =>
      SnowFlake.lease(await create(), { datacenterId: 1, callTimeout: 1500, scope: 'process' }),
    );

  test('no error shows a secret of an option of etcd()', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      for (const [position, create] of Object.entries(ETCD_OPTIONS)) {
        // A new one each time: another option may have made it known.
        const password = createPassword();
        const number = 100_000 + Math.floor(Math.random() * 1e12);
        const given = create({ ...password, number });
        const isKnown = position === 'password' || /passphrase/.test(position);
        server.say(isKnown ? `'${password.raw}' and ${password.encoded} were refused` : 'refused');
        const scheme = given.tls === undefined ? 'http' : 'https';
        for (const host of [`127.0.0.1:${server.port}`, '127.0.0.1:1', 'absent.invalid']) {
          const error = await refusal(() => etcd(`${scheme}://${host}`, given));
          assert.ok(error instanceof SnowFlakeError, `${position}: ${inspect(error)}`);
          const parts = [...password.parts, String(number)];
          hides({ ...password, parts }, everythingOf(error), `${position}, ${host}`);
        }
      }
    }
  });

  test('no error shows a login of a list of servers, in URLs, lists and commands', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const password = createPassword();
      const { encoded } = password;
      server.say(`'${password.raw}' was refused`);
      const where = `127.0.0.1:${server.port}`;
      for (const scheme of [
        'etcd',
        'etcds',
        'zookeeper',
        'zookeepers',
        'mongodb',
        'redis',
        'rediss',
      ]) {
        for (const url of listsOf(scheme, password, where)) {
          const error = await refusal(() => url);
          assert.ok(error instanceof SnowFlakeError, url);
          hides(password, everythingOf(error), url);
        }
      }
      for (const urls of [
        [`http://app:${encoded}@${where}`, 'http://h2'],
        [`http://app:${encoded}@${where}`, `http://app:${encoded}@127.0.0.1:1`],
        [`http://app:${encoded}@${where}`, 'http://app:other@h2'],
        [`http://${where}`, `http://app:${encoded}@h2`],
        [`http://${where}`, `app:${encoded}@h2`],
        [`http://app:${encoded}@${where}`, { url: `http://app:${encoded}@h2` }],
      ]) {
        const error = await refusal(() => etcd(urls));
        assert.ok(error instanceof SnowFlakeError, urls.join());
        hides(password, everythingOf(error), urls.join());
      }
    }
    for (const commandOf of [
      (url) => [['next', '--lease', url]],
      (_, raw) => [['slots', raw]],
      (url) => [['next'], { SNOWDRIFT_LEASE: url }],
    ]) {
      const password = createPassword();
      const [url, , , , raw] = listsOf('etcd', password, '127.0.0.1:1');
      const [args, more] = commandOf(url, raw);
      const { said, code } = await run(args, { env: { datacenterId: '1', ...more } });
      assert.equal(code, 2, said);
      hides(password, said, args.join(' '));
    }
  });

  test('no error shows a secret of an option of zookeeper()', {
    skip: missing('zookeeper'),
  }, async () => {
    const closing = await refusing('zookeeper');
    for (let round = 0; round < ROUNDS; round++) {
      for (const create of [
        ({ raw }) => [`127.0.0.1:${closing.port}`, { user: 'app', password: raw }],
        ({ raw }) => ['127.0.0.1:1', { user: 'app', password: raw }],
        ({ raw }) => ['127.0.0.1:1', { password: raw }],
        ({ raw }) => ['127.0.0.1:1', { user: `app:${raw}`, password: 'x' }],
        ({ raw }) => ['127.0.0.1:1', { user: 'app', password: { raw } }],
        ...Object.values(ZOOKEEPER_TLS).map((position) => (password) => [
          `127.0.0.1:${closing.port}`,
          { tls: position(password) },
        ]),
        ({ encoded }) => [`app:${encoded}@127.0.0.1:1`],
        ({ encoded }) => [`${encoded}@127.0.0.1:1`],
        ({ raw }) => [`${raw}@127.0.0.1:1`],
        ({ raw }) => [`zookeeper://app:${raw}@127.0.0.1:1`],
      ]) {
        const password = createPassword();
        const [ensemble, options] = create(password);
        const error = await refusal(() => zookeeper(ensemble, options));
        assert.ok(error instanceof SnowFlakeError, inspect(error));
        hides(password, everythingOf(error), `${ensemble} ${inspect(options)}`);
      }
    }
    closing.close();
  });
});

test('a raw password with a malformed escape is removed as the server quotes it', () => {
  const password = { raw: 'Qfirsts %Qseconds', parts: ['Qfirsts', 'Qseconds'] };
  learn(new URL(`postgres://app:${password.raw}@db`));
  const { message } = new SnowFlakeError('ERR_SNOWFLAKE_STORE', `'${password.raw}' was refused`);
  hides(password, message, 'an error');
});

test('the path of a directory is shown, whatever is in it; a login before it is not', () => {
  const password = createPassword();
  const { message } = new SnowFlakeError(
    'ERR_SNOWFLAKE_STORE',
    `snowdrift recover file:///srv/app@2/ids?1, and file://app:${password.parts[0]}@db/x`,
  );
  assert.equal(message, 'snowdrift recover file:///srv/app@2/ids?1, and file://***@db/x');
});

test('a cause that shows no password stays as it is; one that does is copied, however deep it is', () => {
  const password = createPassword();
  learn(new URL(`redis://app:${password.encoded}@db`));
  const causeOf = (cause) =>
    new SnowFlakeError('ERR_SNOWFLAKE_STORE', 'it failed', { cause }).cause;
  const harmless = Object.assign(new Error('no route'), { code: 'EHOSTUNREACH', more: [{ a: 1 }] });
  assert.equal(causeOf(harmless), harmless);
  const secret = { one: new Map([['two', new Set([{ three: [`x${password.raw}x`] }])]]) };
  const cyclic = Object.assign(new TypeError('refused'), { code: 'E1', secret });
  cyclic.self = cyclic;
  const wrapped = new AggregateError([cyclic], 'all failed', { cause: cyclic });
  for (const cause of [cyclic, wrapped, new Error(password.raw), `AUTH ${password.raw}`]) {
    hides(password, everythingOf({ cause: causeOf(cause) }), inspect(cause));
  }
  assert.equal(causeOf(cyclic).code, 'E1');
  assert.equal(causeOf(cyclic).name, 'TypeError');
});

test("an application's own error stays as it is, whatever URLs without a login it shows", () => {
  class HttpError extends Error {
    status = 503;
    requestId = 'r-1';
  }
  for (const text of [
    'GET https://api.test/users?page=2&token=2 failed',
    'GET https://api.test/@scope/package failed',
    'mail a@b.test, see //api.test/a?b=c@d',
    'at webpack://_/@work/a?b:1',
  ]) {
    const own = new HttpError(text);
    assert.equal(new SnowFlakeError('ERR_SNOWFLAKE_CLOCK', 'it failed', { cause: own }).cause, own);
  }
  const unknown = createPassword();
  for (const url of [
    `redis://app:${unknown.encoded}@db`,
    `redis://db/?password=${unknown.encoded}`,
  ]) {
    const { cause } = new SnowFlakeError('ERR_SNOWFLAKE_STORE', 'it failed', {
      cause: new HttpError(`no ${url}`),
    });
    hides(unknown, everythingOf({ cause }), url);
  }
});

test('a secret in a list of properties is hidden where a server quotes it alone', () => {
  const { raw, encoded } = createPassword();
  const properties = `SERVICE_NAME:mongo,AWS_SESSION_TOKEN:${encoded}`;
  for (const list of [properties, encodeURIComponent(properties)]) {
    learn(new URL(`mongodb://db/app?authMechanismProperties=${list}&appName=web`));
    assert.equal(redactForeign(`mongo refuses ${raw} of web`), 'mongo refuses *** of web');
  }
});

test('options that are named like a secret, and are none, are shown', () => {
  for (const [url, text] of [
    ['mysql://h?insecureAuth=true', 'the value true is not valid'],
    ['redis://h?keyPrefix=session', 'the session has ended'],
    ['postgres://h?sslkey=app.key', 'no file app.key'],
    ['etcds://h?key=tls.key', 'no file tls.key'],
  ]) {
    learn(new URL(url));
    assert.equal(redactForeign(text), text);
    assert.equal(hasPassword(url), false);
  }
  learn(new URL('mysql://h?password1=Zx81-first&passwordSha1=Zx81-hash'));
  assert.equal(redactForeign('Zx81-first, Zx81-hash'), '***, ***');
});

test('a secret or a login is hidden where a long text is cut', () => {
  const learnt = createPassword();
  const unknown = createPassword();
  learn(new URL(`redis://app:${learnt.encoded}@db`));
  const hidesAll = (text, what) => {
    const error = new Error(text);
    const shown = [
      redactForeign(text),
      redactValue(text),
      describeValue(text),
      describeValue(error),
      describeValue({ [text]: 1 }),
      inspect(copyError(error)),
      inspect(new SnowFlakeError('ERR_SNOWFLAKE_STORE', 'it failed', { cause: error })),
    ];
    hides(learnt, shown.join('\n'), what);
    hides(unknown, shown.join('\n'), what);
  };
  const rest = ' y'.repeat(9000);
  // Each password has at least 12 characters.
  const step = gate ? 5 : 1;
  // The ends of what is shown: 60 and 200 characters, and 4000.
  for (const end of [60, 200, 4000]) {
    for (let at = Math.max(0, end - 60); at <= end + 30; at += step) {
      const before = 'x '.repeat(end).slice(0, at);
      hidesAll(`${before}${learnt.raw}${rest}`, `a password at ${at}`);
      hidesAll(`${before}${learnt.encoded}${learnt.encoded}${rest}`, `two at ${at}`);
      hidesAll(`${before} redis://app:${unknown.encoded}@db ${rest}`, `a login at ${at}`);
      const long = 'z'.repeat(9000);
      hidesAll(`${before} redis://app:${unknown.encoded}${long}@db`, `a long login at ${at}`);
      hidesAll(`redis://${'u'.repeat(at)}:${unknown.encoded}${long}@db`, `a login up to ${at}`);
      // Without a scheme, a login is known as one in values only.
      const value = `${'u'.repeat(at)}:${unknown.encoded}${long}@db`;
      hides(unknown, redactValue(value) + describeValue(value), `no scheme, up to ${at}`);
    }
  }
});

describe('the error of a client', () => {
  const secret = 'Zx81-hidden';
  /** What clients attach. */
  const attached = () => ({
    command: { name: 'auth', args: ['app', secret] },
    ...{ sql: `SET PASSWORD = '${secret}'`, parameters: [secret], query: secret },
    ...{ client: { options: { password: secret } }, config: { headers: { token: secret } } },
    ...{ previousErrors: [new Error(secret)], lastNodeError: new Error(secret) },
  });
  const refusalOf = () => {
    const inner = Object.assign(new Error('inner'), attached(), { code: 'NOAUTH' });
    const error = new AggregateError([inner, inner], 'WRONGPASS refused', { cause: inner });
    return Object.assign(error, attached(), { code: 'WRONGPASS', errno: 7 });
  };
  const reject = async () => {
    throw refusalOf();
  };
  const pool = { totalCount: 1, query: reject, connect: reject, options: { type: 'postgres' } };
  const STORES = {
    'redis() with ioredis': () => redis({ eval() {}, call: reject }),
    'redis() with node-redis': () => redis({ eval() {}, sendCommand: reject, isOpen: true }),
    'postgres()': () => postgres(pool),
    'mysql()': () => mysql({ query: reject, getConnection: reject, execute() {} }),
    'typeorm()': () =>
      typeorm({ ...pool, createQueryRunner() {}, driver: { obtainMasterConnection: reject } }),
    'workerNode()': () => workerNode(pool),
  };

  for (const [name, create] of Object.entries(STORES)) {
    test(`of ${name} is a copy of its texts`, async () => {
      const options = { datacenterId: 0, layout: layouts.uid };
      const error = await thrownBy(() => SnowFlake.lease(create(), options));
      assert.equal(error.code, 'ERR_SNOWFLAKE_STORE');
      const { cause } = error;
      assert.equal(cause.message, 'WRONGPASS refused');
      assert.equal(cause.code, 'WRONGPASS');
      assert.match(cause.stack, /^AggregateError: WRONGPASS refused\n {4}at /);
      assert.equal(cause.errors[0].code, 'NOAUTH');
      assert.equal(cause.cause.message, 'inner');
      for (const one of [error, cause, cause.cause, ...cause.errors]) {
        assert.ok(!everythingOf(one).includes(secret), inspect(one, { depth: 9 }));
        assert.ok(!JSON.stringify(one).includes(secret));
      }
    });
  }

  test("of an application's own ioredis shows no password", async () => {
    const server = await refusing('redis');
    server.say('unknown user');
    const { default: Redis } = await import('ioredis');
    const client = new Redis({
      ...{ port: server.port, host: '127.0.0.1', password: secret },
      ...{ lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 },
    });
    client.on('error', () => {});
    const error = await thrownBy(() => SnowFlake.lease(redis(client), { datacenterId: 1 }));
    assert.equal(error.code, 'ERR_SNOWFLAKE_STORE');
    assert.ok(error.cause instanceof Error);
    assert.ok(!everythingOf(error).includes(secret), inspect(error, { depth: 9 }));
    client.disconnect();
    server.close();
  });

  test("is its own in what the application's own code throws", async () => {
    const own = refusalOf();
    const fail = () => {
      throw own;
    };
    const store = { ...memory(), read: fail };
    const error = await thrownBy(() => SnowFlake.lease(store, { datacenterId: 1 }));
    assert.equal(error.cause, own);
    const options = { datacenterId: 1, workerId: 1, scope: 'process', clock: fail };
    assert.equal((await thrownBy(() => new SnowFlake(options).nextId())).cause, own);
    const tls = fail;
    const ofTls = await thrownBy(() =>
      SnowFlake.lease(etcd('https://127.0.0.1:1', { tls }), { datacenterId: 1 }),
    );
    assert.equal(ofTls.cause, own);
  });

  test('is known by its words, even if a password is one of them', async () => {
    const refusalOf = async (engine, password, text) => {
      const server = await refusing(engine);
      server.say(text);
      const url = `${engine}://app:${password}@127.0.0.1:${server.port}`;
      const error = await thrownBy(() =>
        SnowFlake.lease(url, { datacenterId: 1, callTimeout: 60_000 }),
      );
      server.close();
      return error;
    };
    for (const [engine, password, text] of [
      ['redis', 'password', 'invalid password'],
      ['redis', 'index', 'DB index is out of range'],
      ['etcd', 'authentication', 'etcdserver: authentication failed'],
      ['etcd', 'token', 'etcdserver: invalid auth token'],
    ]) {
      const { message, cause } = await refusalOf(engine, password, text);
      const expected = /index/.test(text) ? /has no such database/ : /refused the login/;
      assert.match(message, expected);
      const hidden = text.replace(password, '***');
      assert.ok(message.includes(hidden), message);
      assert.ok(cause.message.includes(hidden), cause.message);
      assert.ok(cause.stack.includes(hidden), cause.stack);
    }
    learn(new URL('redis://app:table@db'));
    const queries = [];
    const client = {
      release() {},
      getTransactionStatus: () => 'I',
      async query({ text }) {
        queries.push(text);
        if (text.startsWith('SELECT CAST')) return { rows: [{ now: String(Date.now()) }] };
        if (text.endsWith(' AS home')) return { rows: [{ home: 'public' }] };
        throw Object.assign(new Error('relation "snowdrift_records" does not exist'), {
          code: '42P01',
        });
      },
    };
    const pool = { totalCount: 1, connect: async () => client };
    await thrownBy(() => SnowFlake.lease(postgres(pool), { datacenterId: 1 }));
    // It creates the table that is missing.
    assert.ok(
      queries.some((query) => query.startsWith('CREATE TABLE')),
      queries.join(),
    );
  });

  test('may be its own cause', async () => {
    const own = new Error('own');
    own.cause = own;
    const fail = async () => {
      throw own;
    };
    const ofStore = await thrownBy(() =>
      SnowFlake.lease({ ...memory(), read: fail }, { datacenterId: 1 }),
    );
    assert.equal(ofStore.cause, own);
    const ofClient = await thrownBy(() =>
      SnowFlake.lease(redis({ eval() {}, call: fail }), { datacenterId: 1 }),
    );
    assert.equal(ofClient.cause.message, 'own');
  });
});

test('a password with half a surrogate pair is hidden, as others are', async () => {
  const password = '\ud800Qhalf-of-a-pair';
  const error = await thrownBy(() =>
    SnowFlake.lease(etcd('http://127.0.0.1:1', { user: 'app', password }), { datacenterId: 1 }),
  );
  assert.equal(error.code, 'ERR_SNOWFLAKE_STORE');
  assert.equal(redactForeign(password), '***');
});
