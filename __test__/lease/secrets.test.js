'use strict';
// No output shows a password, wherever in a URL it is, and whatever goes wrong.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { after, before, describe, test } = require('node:test');
const { inspect, promisify } = require('node:util');

const { formatMetrics } = require('../../js/cli/serve-metrics.js');
const { forkWorkers } = require('../../js/cluster.js');
const { learn } = require('../../js/secrets.js');
const { etcd } = require('../../js/stores/etcd.js');
const { memory } = require('../../js/stores/memory.js');
const { mysql } = require('../../js/stores/mysql.js');
const { postgres } = require('../../js/stores/postgres.js');
const { redis } = require('../../js/stores/redis.js');
const { typeorm } = require('../../js/stores/typeorm.js');
const { workerNode } = require('../../js/stores/worker-node.js');
const { zookeeper } = require('../../js/stores/zookeeper.js');
const { amount, isStorms } = require('../support/amount.js');
const { run } = require('../support/cli.js');
const { refusing } = require('../support/echo.js');
const { createPassword, everythingOf, hides, thrownBy } = require('../support/passwords.js');
const { CachedSnowFlake, SnowFlake, entry } = require('../support/support.js');

const ENGINES = ['postgres', 'mysql', 'redis', 'etcd', 'zookeeper'];

/** What a process prints that runs a script. */
async function outputOf(body, env) {
  const script = `const { SnowFlake } = require(${JSON.stringify(entry)}); ${body}`;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', script], {
    env: { PATH: process.env.PATH, ...env },
  }).catch((ended) => ended);
  return `${stdout}${stderr}`;
}

/** URLs with the password at each position: as a careful user writes them, and as a hasty one. */
function urlsWith(engine, { raw, encoded }, where) {
  return {
    user: `${engine}://${encoded}@${where}`,
    'user beside a password': `${engine}://${encoded}:other@${where}`,
    password: `${engine}://app:${encoded}@${where}`,
    path: `${engine}://app:other@${where}/${encoded}`,
    option: `${engine}://${where}/x?password=${encoded}`,
    'another option': `${engine}://app@${where}/x?application_name=${encoded}`,
    fragment: `${engine}://${where}/x#${encoded}`,
    'raw password': `${engine}://app:${raw}@${where}/x`,
    'raw user': `${engine}://${raw}@${where}/x`,
    'no slashes': `${engine}:app:${encoded}@${where}`,
    'a bad port': `${engine}://app:${encoded}@127.0.0.1:x/x`,
    'no host': `${engine}://app:${encoded}@/x`,
    'password in place of the port': `${engine}://app:${encoded}`,
    'unknown scheme': `${engine}ql+ssl://app:${encoded}@${where}/x`,
  };
}

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
        const password = createPassword();
        const { raw, encoded } = password;
        server.say(`${engine}://app:${raw}@db, '${raw}' and ${encoded} were refused`);
        for (const where of [`127.0.0.1:${server.port}`, '127.0.0.1:1', 'absent.invalid']) {
          const urls = urlsWith(engine, password, where);
          const calls = Object.entries(urls).map(async ([position, url]) => {
            const options = { datacenterId: 1, callTimeout: 1500 };
            const error = await thrownBy(() => SnowFlake.lease(url, options));
            assert.ok(error !== undefined, url);
            hides(password, everythingOf(error), `${engine}, ${position}, ${where}`);
          });
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
        'forkWorkers()': (url) => forkWorkers({ datacenterId: 1, lease: [url] }),
        'its environment': (url) => forkWorkers({ datacenterId: 1, env: { url: { url } } }),
        parse: (url) => SnowFlake.parse(url),
        use: (url) => SnowFlake.use({ url }),
        'postgres()': (url) => postgres(url),
        'mysql()': (url) => mysql({ uri: url }),
        'redis()': (url) => redis({ url }),
        'typeorm()': (url) => typeorm({ query() {}, options: { type: url } }),
        'workerNode()': (url) => workerNode({ query() {} }, { host: [url] }),
        'etcd()': (url) => etcd(url),
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
      const password = createPassword();
      server.say(`${engine}://app:${password.raw}@db and '${password.raw}' were refused`);
      const urls = urlsWith(engine, password, `127.0.0.1:${server.port}`);
      const { password: good, 'raw password': raw, 'a bad port': bad } = urls;
      const { encoded } = password;
      const own = { datacenterId: '1', SNOWDRIFT_SHARED: process.env.SNOWDRIFT_SHARED };
      for (const url of [good, raw, bad, urls['unknown scheme']]) {
        const env = { ...own, SNOWDRIFT_LEASE: url };
        for (const body of ['SnowFlake.nextId()', ...(isStorms ? ['new SnowFlake()'] : [])]) {
          const said = await outputOf(body, env);
          assert.match(said, /ERR_SNOWFLAKE_CONFIG/);
          hides(password, said, `${body} with ${url}`);
        }
      }
      const env = { ...own, SNOWDRIFT_LEASE: good };
      const commands = [
        [['next', '--lease', good], own],
        [['slots', raw], own],
        [['recover'], env],
        [['serve', '--port', '0', '--lease', good], own],
      ];
      // Of these, the engine makes no difference.
      const others = [
        [['next', `--lesae=${good}`], own],
        [['next', good], own],
        [['next', '--layout', good], own],
        [['next', '--epoch', good], own],
        [['next', '--worker-id', `app:${encoded}@db`, '--epoch', bad], own],
        [['slots', urls['unknown scheme']], own],
        [['slots', bad, good], own],
        [['create', '--new'], env],
        [['raise', '--ttl', '5000'], env],
        [['reset', good, '--datacenter-id', '1', '--worker-id', '1'], own],
        [['serve', good], own],
        [[good], own],
      ];
      if (engine === 'postgres' || isStorms) commands.push(...others);
      for (const [args, given] of commands) {
        const { said, code } = await run(args, { env: given });
        assert.notEqual(code, 0, said);
        hides(password, said, `snowdrift ${args.join(' ')}`);
      }
    });
  });
}

test("warnings, channels, stats and the lease show no password of an application's own store", async () => {
  const password = createPassword();
  const url = `postgres://app:${password.encoded}@db/x`;
  learn(new URL(url));
  const store = memory({ name: url });
  let next = 'fail';
  const renewals = {
    fail: () => {
      throw Object.assign(new Error(`no ${password.raw} at ${url}`), { url });
    },
    lose: () => ({ isHeld: false, lost: 'missing' }),
  };
  const renew = async (request) => renewals[next]?.(request) ?? store.renew(request);
  const stop = listen();
  // Renewals keep no process alive.
  const alive = setInterval(() => {}, 1000);
  const flake = await SnowFlake.lease(
    { ...store, renew },
    // Long enough that it fails before it expires, on a busy machine, too.
    { datacenterId: 1, ttl: 6000, scope: 'process' },
  );
  const seen = [];
  const note = () =>
    seen.push(inspect([flake.stats(), flake.lease], { depth: 9 }), formatMetrics(flake));
  const heard = (event) =>
    new Promise((resolve) => {
      const name = `snowdrift:lease-${event}`;
      const listener = () => {
        unsubscribe(name, listener);
        resolve(note());
      };
      subscribe(name, listener);
    });
  await heard('failing');
  next = 'lose';
  await heard('lost');
  next = 'renew';
  await heard('taken');
  await new Promise(setImmediate);
  const text = [stop(), ...seen].join('\n');
  await flake.close();
  clearInterval(alive);
  for (const expected of [
    /SNOWFLAKE_NAMESPACE_LOST/,
    /lease-failing/,
    /failure: 'postgres|failure: '/,
  ]) {
    assert.match(text, expected);
  }
  hides(password, text, 'the lease');
});

test('the thread of a lease shows no password', async () => {
  const password = createPassword();
  const server = await refusing('redis');
  server.say(`'${password.raw}' was refused`);
  const url = `redis://app:${password.encoded}@127.0.0.1:${server.port}`;
  const error = await thrownBy(() =>
    SnowFlake.lease(url, { datacenterId: 1, thread: true, callTimeout: 60_000 }),
  );
  assert.match(error.message, /was refused/);
  hides(password, everythingOf(error), 'the thread');
  server.close();
});

test('short and common passwords leave our own words alone', async () => {
  const server = await refusing('postgres');
  server.say('the user app gave app, an apple');
  const url = `postgres://app:app@127.0.0.1:${server.port}/app`;
  const error = await thrownBy(() =>
    SnowFlake.lease(url, { datacenterId: 1, callTimeout: 60_000 }),
  );
  assert.match(error.message, /^PostgreSQL at 127\.0\.0\.1:\d+ refused the login/);
  assert.match(error.message, /the user \*\*\* gave \*\*\*, an apple/);
  const refused = await thrownBy(() => SnowFlake.lease(undefined, { datacenterId: 1 }));
  assert.match(refused.message, /file:\/\/\/var\/lib\/app\/ids/);
  server.close();
});
