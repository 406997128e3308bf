'use strict';
// No output shows a password, wherever in a URL it is, and whatever goes wrong.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { after, before, describe, test } = require('node:test');
const { inspect, promisify } = require('node:util');

const { copyError } = require('../../js/messages/causes.js');
const { health, prometheus } = require('../../js/monitoring.js');
const { learn } = require('../../js/messages/secrets.js');
const { etcd } = require('../../js/stores/etcd.js');
const { kubernetes } = require('../../js/stores/kubernetes.js');
const { memory } = require('../../js/stores/memory.js');
const { mongodb } = require('../../js/stores/mongodb.js');
const { mysql } = require('../../js/stores/mysql.js');
const { postgres } = require('../../js/stores/postgres.js');
const { redis } = require('../../js/stores/redis.js');
const { sql } = require('../../js/stores/sql.js');
const { typeorm } = require('../../js/stores/typeorm.js');
const { gcs } = require('../../js/stores/gcs.js');
const { upstash } = require('../../js/stores/upstash.js');
const { workerNode } = require('../../js/stores/worker-node.js');
const { zookeeper } = require('../../js/stores/zookeeper.js');
const { amount, gate, isStorms } = require('../support/amount.js');
const { run } = require('../support/cli.js');
const { refusing } = require('../support/echo.js');
const { createPassword, everythingOf, hides, thrownBy } = require('../support/passwords.js');
const { CachedSnowFlake, SnowFlake, entry } = require('../support/support.js');

const ENGINES = ['postgres', 'mysql', 'redis', 'mongodb', 'etcd', 'zookeeper', 'kubernetes'];

/** What a process prints that runs a script. */
async function outputOf(body, env) {
  const script = `const { SnowFlake } = require(${JSON.stringify(entry)}); ${body}`;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', script], {
    env: { PATH: process.env.PATH, ...env },
  }).catch((ended) => ended);
  return `${stdout}${stderr}`;
}

/** Where a URL has a password: as a careful user writes it, and as a hasty one. */
const POSITIONS = {
  password: (engine, { encoded }, where) => `${engine}://app:${encoded}@${where}`,
  'a password alone': (engine, { encoded }, where) => `${engine}://:${encoded}@${where}`,
  option: (engine, { encoded }, where) => `${engine}://${where}/x?password=${encoded}`,
  'an encoded option': (engine, { encoded }, where) => `${engine}://${where}/x?p%61ss=${encoded}`,
  'options in JSON': (engine, { encoded }, where) =>
    `${engine}://${where}/x?ssl=%7B"passphrase":"${encoded}"%7D`,
  fragment: (engine, { encoded }, where) => `${engine}://${where}/x#${encoded}`,
  'raw password': (engine, { raw }, where) => `${engine}://app:${raw}@${where}/x`,
  'no slashes': (engine, { encoded }, where) => `${engine}:app:${encoded}@${where}`,
  'a bad port': (engine, { encoded }) => `${engine}://app:${encoded}@127.0.0.1:x/x`,
  'no host': (engine, { encoded }) => `${engine}://app:${encoded}@/x`,
  'password in place of the port': (engine, { encoded }) => `${engine}://app:${encoded}`,
  'unknown scheme': (engine, { encoded }, where) => `${engine}ql+ssl://app:${encoded}@${where}/x`,
};

/** Where a user alone is a token. */
const TOKENS = {
  token: (engine, { encoded }, where) => `${engine}://${encoded}@${where}`,
  // A raw ':' would make it a user with a password.
  'raw token': (engine, { raw }, where) => `${engine}://${raw.replaceAll(':', '%3A')}@${where}/x`,
};

const positionsOf = (engine) => ({
  ...POSITIONS,
  ...(['redis', 'etcd', 'kubernetes'].includes(engine) ? TOKENS : {}),
});

/** Collects warnings and messages of all channels. */
function listen() {
  const heard = [];
  const onWarning = (warning) => heard.push(inspect(warning), warning.detail ?? '');
  const onMessage = (message, name) => heard.push(inspect({ name, message }, { depth: 9 }));
  const events = ['taken', 'renewed', 'failing', 'lost', 'released'];
  const channels = ['wait', 'clock-rollback', ...events.map((event) => `lease-${event}`)];
  process.on('warning', onWarning);
  for (const name of channels) subscribe(`snowdrift:${name}`, onMessage);
  return () => {
    process.off('warning', onWarning);
    for (const name of channels) unsubscribe(`snowdrift:${name}`, onMessage);
    return heard.join('\n');
  };
}

/** A store without a free slot. */
const full = (name) => ({ ...memory({ name }), acquire: async () => ({ holders: [] }) });

test('a connection string that is no URL shows no password', () => {
  for (const lease of [
    'host=db password=geheim dbname=app',
    'Server=db;Pwd=geheim;',
    'x.redis.cache.windows.net:6380,password=geheim,ssl=True',
    'PASSWORD = geheim',
  ]) {
    const call = () => new SnowFlake({ datacenterId: 1, lease });
    assert.throws(call, ({ message }) => !message.includes('geheim'));
  }
});

const ROUNDS = amount(2, 8);

for (const engine of ENGINES) {
  describe(engine, () => {
    let server;
    before(async () => {
      server = await refusing(engine);
    });
    after(() => server.close());

    test('no error of SnowFlake.lease() shows the password, wherever it is in the URL', async () => {
      for (let round = 0; round < ROUNDS; round++) {
        for (const [position, urlOf] of Object.entries(positionsOf(engine))) {
          // A new one each time: another position may have made it known.
          const password = createPassword();
          const { raw, encoded } = password;
          server.say(`${engine}://app:${raw}@db, '${raw}' and ${encoded} were refused`);
          const calls = [`127.0.0.1:${server.port}`, '127.0.0.1:1', 'absent.invalid'].map(
            async (where) => {
              const url = urlOf(engine, password, where);
              const options = { datacenterId: 1, callTimeout: 1500 };
              const error = await thrownBy(() => SnowFlake.lease(url, options));
              assert.ok(error !== undefined, url);
              hides(password, everythingOf(error), `${engine}, ${position}, ${where}`);
            },
          );
          await Promise.all(calls);
        }
      }
    });

    test('a wrong use of the URL shows no password', async () => {
      const password = createPassword();
      const uses = {
        state: (url) => new SnowFlake({ datacenterId: 1, workerId: 1, state: url }),
        lease: (url) => new SnowFlake({ datacenterId: 1, lease: url }),
        cached: (url) => new CachedSnowFlake({ datacenterId: 1, lease: new URL(url) }),
        layout: (url) => new SnowFlake({ layout: url }),
        datacenterId: (url) => new SnowFlake({ datacenterId: url }),
        'a list': (url) => SnowFlake.lease([url]),
        'an object': (url) => SnowFlake.lease({ url }),
        'a boxed string': (url) => SnowFlake.lease(Object(url)),
        'an object of options': (url) => new SnowFlake({ state: { url }, datacenterId: 1 }),
        parse: (url) => SnowFlake.parse(url),
        use: (url) => SnowFlake.use({ url }),
        'postgres()': (url) => postgres(url),
        'mysql()': (url) => mysql({ uri: url }),
        'redis()': (url) => redis({ url }),
        'upstash()': (url) => upstash({ url }),
        'gcs()': (url) => gcs({ name: url, file: url }),
        'the prefix of gcs()': (url) =>
          gcs({ name: 'ids', file() {}, getFiles() {} }, { prefix: url }),
        'mongodb()': (url) => mongodb({ url }),
        'the database of mongodb()': (url) => mongodb({ db() {} }, { database: url }),
        'typeorm()': (url) => typeorm({ query() {}, options: { type: url } }),
        'a dialect of sql()': (url) => sql({ dialect: url, query() {} }),
        'a placeholder of sql()': (url) => sql({ dialect: 'mysql', query() {}, placeholder: url }),
        'rows of sql()': (url) =>
          SnowFlake.lease(sql({ dialect: 'mysql', query: () => ({ url, rows: [url] }) })),
        'a row of sql()': (url) =>
          SnowFlake.lease(sql({ dialect: 'mysql', query: () => [{ home: [url], url }] })),
        'workerNode()': (url) => workerNode({ connect() {}, totalCount: 0 }, { host: [url] }),
        'etcd()': (url) => etcd(url),
        'kubernetes()': (url) => kubernetes({ server: url, token: password.raw }),
        'a token of kubernetes()': () =>
          kubernetes({ server: 'https://h', token: [password.raw], kubernetesNamespace: 'ids' }),
        'zookeeper()': (url) => zookeeper(url),
        'a namespace': (url) => redis({ eval() {} }, { namespace: url }),
        'the name of an option': (url) => new SnowFlake({ [url]: 1 }),
        'the name of a store': (url) => SnowFlake.lease(full(url), { datacenterId: 1 }),
        'a client of options': () => redis({ password: password.raw, more: [password.raw] }),
        'an instance of a client': () =>
          postgres(
            new (class Pool {
              password = password.raw;
            })(),
          ),
        'a store of options': () => SnowFlake.lease({ host: 'db', password: password.raw }),
        'a list of passwords': () => new SnowFlake({ layout: [password.raw] }),
        'an option that throws': (url) =>
          new SnowFlake({
            get layout() {
              throw new Error(`no layout at ${url}`);
            },
          }),
      };
      const { encoded } = password;
      for (const url of [
        `${engine}://app:${encoded}@db/x`,
        `${engine}://${encoded}@db/x`,
        `${engine}://db/x?password=${encoded}`,
      ]) {
        for (const [name, use] of Object.entries(uses)) {
          const error = await thrownBy(() => use(url));
          assert.ok(error !== undefined, name);
          hides(password, everythingOf(error), `${name} of ${url}`);
        }
      }
    });

    test('SNOWDRIFT_LEASE at the first static call, and the command, show no password', async () => {
      const own = { datacenterId: '1', SNOWDRIFT_SHARED: process.env.SNOWDRIFT_SHARED };
      /** URLs of a password that nobody has learned yet, and that the server knows. */
      const createUrls = () => {
        const password = createPassword();
        server.say(`${engine}://app:${password.raw}@db and '${password.raw}' were refused`);
        const at = (position) => POSITIONS[position](engine, password, `127.0.0.1:${server.port}`);
        const [good, raw] = [at('password'), at('raw password')];
        return { password, good, raw, bad: at('a bad port'), unknown: at('unknown scheme') };
      };
      const isWhole = engine === 'postgres' || isStorms;
      const { password, ...urls } = createUrls();
      // Of the others, the engine makes no difference.
      for (const url of isWhole || gate === undefined ? Object.values(urls) : [urls.good]) {
        const env = { ...own, SNOWDRIFT_LEASE: url };
        for (const body of ['SnowFlake.nextId()', ...(isStorms ? ['new SnowFlake()'] : [])]) {
          const said = await outputOf(body, env);
          assert.match(said, /ERR_SNOWFLAKE_CONFIG/);
          hides(password, said, `${body} with ${url}`);
        }
      }
      const commands = [
        ({ good }) => ['next', '--lease', good],
        ({ raw }) => ['slots', raw],
        () => ['recover'],
        ({ good }) => ['serve', '--port', '0', '--lease', good],
      ];
      const others = [
        ({ good }) => ['next', `--lesae=${good}`],
        ({ good }) => ['next', good],
        ({ good }) => ['next', '--layout', good],
        ({ good }) => ['next', '--epoch', good],
        ({ bad, password: { encoded } }) => [
          ...['next', '--worker-id', `app:${encoded}@db`, '--epoch', bad],
        ],
        ({ unknown }) => ['slots', unknown],
        ({ bad, good }) => ['slots', bad, good],
        () => ['recover', '--new'],
        ({ good }) => ['serve', good],
        ({ good }) => [good],
      ];
      for (const argsOf of isWhole ? [...commands, ...others] : commands) {
        const given = createUrls();
        const args = argsOf(given);
        const isOfEnvironment = args[0] === 'namespace';
        const env = { ...own, ...(isOfEnvironment && { SNOWDRIFT_LEASE: given.good }) };
        const { said, code } = await run(args, { env });
        assert.notEqual(code, 0, said);
        hides(given.password, said, `snowdrift ${args.join(' ')}`);
      }
    });
  });
}

test("warnings, channels, stats and the lease show no password of an application's own store", async () => {
  const password = createPassword();
  const url = `postgres://app:${password.encoded}@db/x`;
  learn(new URL(url));
  const stored = new Map();
  const records = memory({ stored });
  let isFailing = false;
  const write = (...values) => {
    if (!isFailing) return records.write(...values);
    throw Object.assign(new Error(`no ${password.raw} at ${url}`), { url });
  };
  const stop = listen();
  // Renewals keep no process alive.
  const alive = setInterval(() => {}, 1000);
  for (const name of [url, `host=db password=${password.raw}`, `{"password":"${password.raw}"}`]) {
    const refused = await thrownBy(() =>
      SnowFlake.lease({ ...records, name, write }, { datacenterId: 1 }),
    );
    assert.match(refused.message, /must not contain a login or a password/);
    hides(password, everythingOf(refused), 'a refused name');
  }
  const flake = await SnowFlake.lease(
    { ...records, name: 'own', write },
    // Long enough that it fails before it expires, on a busy machine, too.
    { datacenterId: 1, ttl: 6000, scope: 'process' },
  );
  const seen = [];
  const note = () => {
    const shown = [flake.stats(), flake.lease, health(flake)];
    seen.push(inspect(shown, { depth: 9 }), prometheus(flake));
  };
  const heard = (event) =>
    new Promise((resolve) => {
      const name = `snowdrift:lease-${event}`;
      const listener = () => {
        unsubscribe(name, listener);
        resolve(note());
      };
      subscribe(name, listener);
    });
  isFailing = true;
  await heard('failing');
  stored.clear();
  isFailing = false;
  await heard('lost');
  await heard('taken');
  await new Promise(setImmediate);
  const text = [stop(), ...seen].join('\n');
  await flake.close();
  clearInterval(alive);
  for (const expected of [/SNOWFLAKE_NAMESPACE_LOST/, /lease-failing/, /failure: '/]) {
    assert.match(text, expected);
  }
  hides(password, text, 'the lease');
});

test('users, databases, hosts and paths are shown, and a weak password only hidden as a word', async () => {
  const refusalOf = async (url, text) => {
    const server = await refusing('postgres');
    server.say(text);
    const where = url.replace('HOST', `127.0.0.1:${server.port}`);
    const error = await thrownBy(() =>
      SnowFlake.lease(where, { datacenterId: 1, callTimeout: 60_000 }),
    );
    server.close();
    return error;
  };
  const text = 'user "writer" at db1: database "orders" is away, application "shop"';
  for (const password of [
    'a',
    'auth',
    'admin',
    'redis',
    'writer',
    'orders',
    'fail',
    'XyZ-12!aBc',
  ]) {
    const url = `postgres://writer:${password}@HOST/orders?application_name=shop`;
    const { message } = await refusalOf(url, text);
    assert.match(
      message,
      /^PostgreSQL at 127\.0\.0\.1:\d+ refused the login \(28P01\): check user/,
    );
    assert.ok(message.includes(text), message);
  }
  const { message, cause } = await refusalOf(
    'postgres://writer:postgres@HOST/orders',
    "'postgres' and postgres: /var/lib/postgres/x, ./postgres.sock, postgresql, my-postgres. postgres.",
  );
  const shown =
    "'***' and ***: /var/lib/postgres/x, ./postgres.sock, postgresql, my-postgres. ***.";
  assert.ok(message.includes(shown), message);
  assert.ok(cause.stack.includes(shown), cause.stack);
  const refused = await thrownBy(() => SnowFlake.lease(undefined, { datacenterId: 1 }));
  assert.match(refused.message, /file:\/\/\/var\/lib\/app\/ids or|file:\/\/\/var\/lib\/app\/ids'/);
});

test('the frames of a stack are readable, but for a strong password', () => {
  const { raw: strong } = createPassword();
  learn(new URL(`redis://app:work@db`));
  learn(new URL(`redis://app:${encodeURIComponent(strong)}@db`));
  const error = new Error('work is done\n    at work (/srv/work)');
  error.stack += `\n    at work (/srv/work/${strong}/work.js:1:1)\n    at webpack://_/@work/a?b:1`;
  const { stack } = copyError(error);
  assert.match(stack, /^Error: \*\*\* is done\n {4}at \*\*\* \(\/srv\/work\)\n {4}at /);
  assert.match(stack, /\n {4}at work \(\/srv\/work\/\*\*\*\/work\.js:1:1\)\n/);
  assert.match(stack, /\n {4}at webpack:\/\/_\/@work\/a\?b:1$/);
});
