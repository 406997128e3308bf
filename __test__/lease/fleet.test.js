'use strict';
// What leases from a real engine are for: many processes at once, main loops that are busy, processes
// that end. On Redis, since it starts fastest, and PostgreSQL.

const assert = require('node:assert/strict');
const { hostname } = require('node:os');
const { after, before, describe, test } = require('node:test');
const { spawn } = require('node:child_process');
const { once } = require('node:events');

const { isStorms, storm } = require('../support/amount.js');
const { createNamespace, slotsOf } = require('../support/lease/namespaces.js');
const { inRounds } = require('../support/lease/rounds.js');
const { Server, missing } = require('../support/lease/servers.js');
const { SnowFlake, countDuplicates, entry, runScript, until } = require('../support/support.js');

const NAMESPACES = require.resolve('../support/lease/namespaces.js');

const PRELUDE = `
  const { SnowFlake } = require(${JSON.stringify(entry)});
  const countDuplicates = (ids) => ids.length - new Set(ids).size;
  // A namespace that is new on Redis starts after ttl and maxClockSkew.
  const soon = { datacenterId: 1, ttl: 1000, maxClockSkew: 100, callTimeout: 60_000 };
  // In a namespace that was created ahead.
  const calm = { ...soon, ttl: 60_000 };
  const print = (what) => console.log(JSON.stringify(what));`;

/** A release that takes longer than two seconds is given up, as when a busy machine stops the server. */
const FREED = 'the slot is freed';

/** Starts a process. `said()` is what it has printed, once it has printed something. */
function start(body) {
  const child = spawn(process.execPath, ['-e', `${PRELUDE}${body}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  return {
    ended: once(child, 'close'),
    kill: (signal) => child.kill(signal),
    async said() {
      await until(() => output !== '' || child.exitCode !== null);
      return output;
    },
  };
}

/** What the body of an async function prints, as JSON. */
async function run(body, env = {}) {
  const script = `${PRELUDE}\n(async () => {${body}})().catch(({ code, message }) => print({ code, message }));`;
  const { stdout, stderr, code, signal } = await runScript(script, { env });
  assert.notEqual(stdout, '', `${signal ?? code} ${stderr}`);
  return JSON.parse(stdout);
}

describe('on PostgreSQL', { skip: missing('postgres') }, () => {
  let server;
  before(async () => {
    server = await Server.start('postgres');
  });
  after(() => server.stop());

  /** They share all slots. */
  const PROCESSES = isStorms ? 32 : 16;

  test(`256 holders of ${PROCESSES} processes with a slot each, all at once, get 256 slots, and the next one none`, {
    skip: storm,
  }, async () => {
    const start = Date.now() + 8000;
    const body = (datacenterId) => `
      const pg = require('pg');
      const { postgres } = require('snowdrift/lease/postgres');
      const pool = new pg.Pool({ connectionString: ${JSON.stringify(server.url)}, max: 2 });
      const store = postgres(pool, { namespace: 'fleet' });
      const options = { datacenterId: ${datacenterId}, scope: 'process', callTimeout: 60_000, ttl: 3_600_000 };
      await new Promise((resolve) => setTimeout(resolve, ${start} - Date.now()));
      const flakes = await Promise.all(Array.from({ length: ${256 / PROCESSES} }, () => SnowFlake.lease(store, options)));
      print(flakes.map((flake) => String(flake.nextId() >> 14n & 255n)));
      process.exit();`;
    const processes = Array.from({ length: PROCESSES }, (_, n) => run(body(n % 8)));
    const slots = (await Promise.all(processes)).flat();
    assert.equal(slots.length, 256, JSON.stringify(slots));
    assert.equal(countDuplicates(slots), 0);
    const { code, message } = await run(`
      await SnowFlake.lease('${server.url}?namespace=fleet', { datacenterId: 3, callTimeout: 60_000 });`);
    assert.equal(code, 'ERR_SNOWFLAKE_NO_SLOT');
    assert.match(message, /workerId 31: process \d+ on/);
  });

  test('the tables may come from a migration', async () => {
    const pg = require('pg');
    const { postgres, sql } = require('../../js/stores/postgres.js');
    const admin = new pg.Pool({ connectionString: server.url });
    await admin.query('CREATE DATABASE migrated');
    await admin.end();
    const url = server.url.replace(/postgres$/, 'migrated');
    const pool = new pg.Pool({ connectionString: url });
    await pool.query(sql('postgres'));
    await pool.query(
      'CREATE ROLE app2 LOGIN; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO app2',
    );
    const poor = new pg.Pool({ connectionString: url.replace('app@', 'app2@') });
    const options = { datacenterId: 7, ttl: 60_000, callTimeout: 60_000 };
    const flake = await SnowFlake.lease(postgres(poor), options);
    assert.equal(flake.lease.state, 'held');
    await flake.close();
    await Promise.all([pool.end(), poor.end()]);
  });
});

describe('on ZooKeeper', { skip: missing('zookeeper') ?? storm }, () => {
  test('a slot shows its holder and its state', async () => {
    const server = await Server.start('zookeeper');
    try {
      const { pid, during } = await run(`
        const { zookeeper } = require('snowdrift/lease/zookeeper');
        const { slotsOf } = require(${JSON.stringify(NAMESPACES)});
        const store = zookeeper('127.0.0.1:${server.port}', { namespace: 'seen' });
        const layout = { ...require('snowdrift').layouts.node, workerBits: 0 };
        const flake = await SnowFlake.lease(store, { datacenterId: 1, layout, ttl: 60_000, callTimeout: 60_000 });
        const during = await slotsOf(store);
        await flake.close();
        print({ pid: process.pid, during });
        process.exit();`);
      const shown = ({ datacenterId, workerId, isHeld }) => [datacenterId, workerId, isHeld];
      assert.deepEqual(during.map(shown), [[1, 0, true]]);
      const [{ host, pid: holder, ceiling }] = during;
      assert.deepEqual([holder, host], [pid, hostname()]);
      assert.ok(ceiling > 0);
      const afterwards = await slotsOf(`${server.url}?namespace=seen`);
      assert.deepEqual(afterwards.map(shown), [[1, 0, false]]);
    } finally {
      await server.stop();
    }
  });
});

describe('on Redis', { skip: missing('redis') }, () => {
  let server;
  before(async () => {
    server = await Server.start('redis');
  });
  after(() => server.stop());
  const url = (namespace) => JSON.stringify(`${server.url}?namespace=${namespace}`);

  /** Creates a namespace as an operator does, so that its first holder does not wait, whatever the ttl. */
  const create = (namespace) => createNamespace(`${server.url}?namespace=${namespace}`);

  /** How many slots of a namespace are held, as the engine has it. */
  const held = async (namespace) => {
    const slots = await slotsOf(`${server.url}?namespace=${namespace}`);
    return slots.filter(({ isHeld }) => isHeld).length;
  };

  const SECONDS = isStorms ? 8 : 4;

  /** A main loop that draws without a pause. */
  const busy = (options) => `
    const { subscribe } = require('node:diagnostics_channel');
    const told = { taken: 0, renewed: 0, released: 0 };
    for (const what in told) subscribe('snowdrift:lease-' + what, () => told[what]++);
    const flake = await SnowFlake.lease(${options.url}, { datacenterId: 1, ttl: ${options.ttl}, maxClockSkew: 100, callTimeout: 60_000 });
    const ids = [];
    let refused = 0;
    const end = Date.now() + ${SECONDS * 1000};
    while (Date.now() < end) {
      try { for (let n = 0; n < 100; n++) ids.push(flake.nextId()); }
      catch { refused++; }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
    const { state } = flake.lease;
    await new Promise((resolve) => setTimeout(resolve, 100));
    const { lease } = flake;
    await flake.close();
    print({ ids: ids.length, duplicates: countDuplicates(ids), refused, state, lease, after: flake.lease.state, told });`;

  test('a busy main loop stops at its ceiling and repeats nothing; a higher ttl carries it on', {
    skip: storm,
  }, async () => {
    const short = await run(busy({ url: url('busy'), ttl: 2000 }));
    assert.ok(short.refused > 0);
    assert.equal(short.duplicates, 0);
    await inRounds('it does not stop', async (round) => {
      const long = await run(busy({ url: url(`busy-${round}`), ttl: 60_000 }));
      assert.deepEqual([long.duplicates, long.after], [0, 'released']);
      return long.refused === 0 && long.state === 'held' && long.ids > 50_000;
    });
  });

  test('a process that ends by itself frees its slot', { skip: storm }, async () => {
    await inRounds(FREED, async (round) => {
      const namespace = `ends-${round}`;
      await create(namespace);
      const drawn = await run(
        `print(typeof (await SnowFlake.lease(${url(namespace)}, calm)).nextId())`,
      );
      assert.equal(drawn, 'bigint');
      return (await held(namespace)) === 0;
    });
  });

  test('SIGTERM frees its slot, and ends it as usual', { skip: storm }, async () => {
    await inRounds(FREED, async (round) => {
      const namespace = `term-${round}`;
      await create(namespace);
      const child = start(`
        SnowFlake.lease(${url(namespace)}, calm).then(() => print('ready'));
        setInterval(() => {}, 1000);`);
      assert.equal(await child.said(), '"ready"\n');
      assert.equal(await held(namespace), 1);
      child.kill('SIGTERM');
      const [, signal] = await child.ended;
      assert.equal(signal, 'SIGTERM');
      return (await held(namespace)) === 0;
    });
  });

  test('SIGTERM is left to an application that listens to it', { skip: storm }, async () => {
    await inRounds(FREED, async (round) => {
      await create(`own-${round}`);
      const child = start(`
        SnowFlake.lease(${url(`own-${round}`)}, calm).then((flake) => {
          process.once('SIGTERM', () => setTimeout(() => {
            print(typeof flake.nextId());
            clearInterval(timer);
          }, 50));
          print('ready');
        });
        const timer = setInterval(() => {}, 1000);`);
      assert.equal(await child.said(), '"ready"\n');
      child.kill('SIGTERM');
      const [code] = await child.ended;
      assert.deepEqual([await child.said(), code], ['"ready"\n"bigint"\n', 0]);
      return (await held(`own-${round}`)) === 0;
    });
  });

  test('SNOWDRIFT_LEASE names the store; a missing client is named', async () => {
    const env = { SNOWDRIFT_LEASE: `${server.url}?namespace=env`, datacenterId: '5' };
    const { slot, store } = await run(
      'print((await SnowFlake.lease(undefined, { ttl: 1000, maxClockSkew: 100, callTimeout: 60_000 })).lease)',
      env,
    );
    assert.deepEqual([slot.datacenterId, store], [5, 'redis:env']);
    const { code, message } = await run('SnowFlake.nextId()', env);
    assert.equal(code, 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /SNOWDRIFT_LEASE names a server, 'redis:.*await SnowFlake\.ready\(\)/);
  });
});
