'use strict';
// Settings of an application's clients and sessions that change what a client sends or returns: a register works with each,
// or names it. On real servers.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');

const { runCheck } = require('../../js/stores/contract-checks.js');
const { mysql } = require('../../js/stores/mysql.js');
const { postgres } = require('../../js/stores/postgres.js');
const { redis } = require('../../js/stores/redis.js');
const { workerNode } = require('../../js/stores/worker-node.js');
const { gate } = require('../support/amount.js');
const { createNamespace } = require('../support/lease/namespaces.js');
const { Server, missing } = require('../support/lease/servers.js');
const { SnowFlake, layouts, rejects } = require('../support/support.js');

/** Those that compare what was written with what is read. */
const CHECKS = [
  'a write creates a record only where there is none',
  'a write replaces only the record whose token is before',
  'exactly one of many writers replaces a record, and nothing is lost',
  'a write that is sent twice is written once',
  'keys are apart',
  'texts of up to 16 KiB come back as they were written',
  'namespaces are apart',
  'its clock runs, in Unix ms',
];

/** Those of a quick run: what changes most of the values of a client, and of what its server sends. */
const QUICK = [
  ...['bytea_output = escape', 'sql_mode = ORACLE'],
  ...['ioredis, stringNumbers', 'redis, RESP 3 and buffers'],
];

const pgPool = (options) => (url) =>
  new (require('pg').Pool)({ connectionString: url, ...options });
const session = (...settings) =>
  pgPool({ options: settings.map((each) => `-c ${each}`).join(' ') });

/** A pool each of whose connections begins with a statement. */
function begun(statement, options) {
  return (url) => {
    const pool = require('mysql2').createPool({ uri: url, connectTimeout: 0, ...options });
    pool.on('connection', (connection) => connection.query(statement));
    return pool;
  };
}
const mysqlPool = (options) => begun('DO 0', options);
const mode = (names) => begun(`SET SESSION sql_mode = '${names}'`);

async function nodeRedis(url, options) {
  const client = require('redis').createClient({ url, ...options });
  client.on('error', () => {});
  await client.connect();
  return client;
}

const ENGINES = {
  postgres: {
    store: postgres,
    end: (pool) => pool.end(),
    settings: {
      'bytea_output = escape': session('bytea_output=escape'),
      'binary: true': pgPool({ binary: true }),
      'binary: true and bytea_output = escape': pgPool({
        binary: true,
        options: '-c bytea_output=escape',
      }),
      'standard_conforming_strings = off': session('standard_conforming_strings=off'),
      'DateStyle, TimeZone and IntervalStyle': session(
        'DateStyle=German,DMY',
        'TimeZone=Asia/Kathmandu',
        'IntervalStyle=sql_standard',
      ),
      'client_encoding = LATIN1': session('client_encoding=LATIN1'),
      'types of its own': pgPool({ types: { getTypeParser: () => () => 'mine' } }),
    },
  },
  mysql: {
    store: mysql,
    end: (pool) => pool.promise().end(),
    settings: {
      'sql_mode = ANSI': mode('ANSI,NO_BACKSLASH_ESCAPES'),
      'sql_mode = ORACLE': mode('ORACLE,EMPTY_STRING_IS_NULL,SIMULTANEOUS_ASSIGNMENT'),
      'no sql_mode': mode(''),
      'sql_mode = PAD_CHAR_TO_FULL_LENGTH': mode('PAD_CHAR_TO_FULL_LENGTH,STRICT_ALL_TABLES'),
      'a time zone': begun("SET time_zone = '-11:00'", { timezone: '+05:45' }),
      'sql_select_limit = 1': begun('SET sql_select_limit = 1'),
      'charset latin1': mysqlPool({ charset: 'LATIN1_SWEDISH_CI' }),
      'big numbers as text': mysqlPool({ supportBigNumbers: true, bigNumberStrings: true }),
      'dateStrings, decimalNumbers and jsonStrings': mysqlPool({
        dateStrings: true,
        decimalNumbers: true,
        jsonStrings: true,
      }),
      rowsAsArray: mysqlPool({ rowsAsArray: true }),
      nestTables: mysqlPool({ nestTables: true }),
      'typeCast: false': mysqlPool({ typeCast: false }),
      'a typeCast of its own': mysqlPool({ typeCast: (field) => field.string() }),
      namedPlaceholders: mysqlPool({ namedPlaceholders: true }),
      'flags without FOUND_ROWS': mysqlPool({ flags: ['-FOUND_ROWS'] }),
      disableEval: mysqlPool({ disableEval: true }),
    },
  },
  redis: {
    store: redis,
    end: (client) => (client.destroy ?? client.disconnect).call(client),
    settings: {
      'ioredis, stringNumbers': async (url) =>
        new (require('ioredis'))(url, { stringNumbers: true, connectTimeout: 0 }),
      'ioredis, keyPrefix': async (url) =>
        new (require('ioredis'))(url, { keyPrefix: 'app:', connectTimeout: 0 }),
      'ioredis, showFriendlyErrorStack': async (url) =>
        new (require('ioredis'))(url, { showFriendlyErrorStack: true, connectTimeout: 0 }),
      'ioredis, enableAutoPipelining': async (url) =>
        new (require('ioredis'))(url, { enableAutoPipelining: true, connectTimeout: 0 }),
      'redis, RESP 3': (url) => nodeRedis(url, { RESP: 3 }),
      'redis, numbers as text': (url) =>
        nodeRedis(url, { commandOptions: { typeMapping: { 58: String } } }),
      'redis, texts as buffers': (url) =>
        nodeRedis(url, { commandOptions: { typeMapping: { 36: Buffer, 43: Buffer } } }),
      'redis, RESP 3 and buffers': (url) =>
        nodeRedis(url, { RESP: 3, commandOptions: { typeMapping: { 36: Buffer, 43: Buffer } } }),
    },
  },
};

test('a client of redis that is not connected is refused with a remedy', async () => {
  const client = require('redis').createClient({ url: 'redis://127.0.0.1:1' });
  const lease = SnowFlake.lease(redis(client), { datacenterId: 1 });
  const { message } = await rejects(lease, 'ERR_SNOWFLAKE_CONFIG');
  assert.equal(message, 'the client of redis is not connected: await client.connect() first');
});

test('a client of redis whose calls return nothing is refused', async () => {
  const client = { isOpen: true, eval() {}, sendCommand() {} };
  const lease = SnowFlake.lease(redis(client), { datacenterId: 1 });
  const { message } = await rejects(lease, 'ERR_SNOWFLAKE_CONFIG');
  assert.match(message, /without legacyMode/);
});

test('an answer to CLIENT INFO without a database is quoted', async () => {
  const client = { eval() {}, call: async () => 'id=7' };
  const lease = SnowFlake.lease(redis(client), { datacenterId: 1 });
  const { message } = await rejects(lease, 'ERR_SNOWFLAKE_STORE');
  assert.match(message, /CLIENT INFO returned 'id=7'/);
});

for (const [engine, { store, end, settings }] of Object.entries(ENGINES)) {
  describe(`on ${engine}`, { skip: missing(engine), concurrency: 1 }, () => {
    let server;
    before(async () => {
      server = await Server.start(engine);
    });
    after(() => server?.stop());

    if (engine === 'postgres') {
      test('a row of WORKER_NODE is found beside one whose number begins with a lower digit', async (t) => {
        const pool = pgPool()(server.url);
        t.after(() => pool.end());
        const layout = { ...layouts.uid, epoch: Date.UTC(2026, 0, 2) };
        const lease = () => SnowFlake.lease(workerNode(pool), { layout, callTimeout: 60_000 });
        await (await lease()).close();
        await pool.query("SELECT setval('worker_node_id_seq', 8)");
        const columns = 'ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE';
        await pool.query(
          `INSERT INTO WORKER_NODE (${columns}) VALUES (10, 'x', 'x', 1, CURRENT_DATE)`,
        );
        const flake = await lease();
        assert.equal(flake.workerId, 9);
        await flake.close();
        // The other tests' rows come after it.
        await pool.query("SELECT setval('worker_node_id_seq', 10)");
      });
    }

    if (engine !== 'redis') {
      test('a lease that creates its namespace beside another schema warns of that', async (t) => {
        const [create, connect] =
          engine === 'postgres' ? ['SCHEMA', pgPool()] : ['DATABASE', mysqlPool()];
        const pool = connect(server.url);
        t.after(() => end(pool));
        const query = (text) => (pool.promise?.() ?? pool).query(text);
        const seen = [];
        const note = ({ code, message }) =>
          code === 'SNOWFLAKE_NAMESPACE_NEW' && seen.push(message);
        process.on('warning', note);
        t.after(() => process.off('warning', note));
        for (const schema of ['ids', 'idz']) {
          await query(`CREATE ${create} ${schema}`);
          const options = { datacenterId: 1, scope: 'process', callTimeout: 60_000 };
          await (await SnowFlake.lease(store(pool, { schema }), options)).close();
        }
        await new Promise(setImmediate);
        assert.match(seen.at(-1), /:idz\/default; its store has others: .*schema ids/);
      });
    }

    for (const [name, connect] of Object.entries(settings)) {
      test(name, { skip: QUICK.includes(name) ? undefined : gate }, async (t) => {
        const client = await connect(server.url);
        t.after(() => end(client));
        const open = async (namespace) => store(client, { namespace });
        for (const check of CHECKS) {
          await runCheck(check, open, { limit: 240_000 }).catch((cause) => {
            throw new Error(`${check}: ${cause.message}`, { cause });
          });
        }
        const namespace = `lease-${Object.keys(settings).indexOf(name)}`;
        const register = store(client, { namespace });
        // On Redis its first holder would wait for ttl.
        await createNamespace(register);
        const options = { datacenterId: 1, scope: 'process', callTimeout: 60_000, ttl: 60_000 };
        const flake = await SnowFlake.lease(register, options);
        assert.equal(typeof flake.nextId(), 'bigint');
        const all = await register.namespaces({ signal: new AbortController().signal });
        assert.ok(all.includes(namespace), `${all}`);
        await flake.close();
        if (engine === 'redis') return;
        const layout = { ...layouts.uid, epoch: Date.UTC(2026, 0, 1) };
        const node = workerNode(client, { host: "it's \\", port: '\\' });
        const assigned = await SnowFlake.lease(node, { layout });
        assert.equal(typeof assigned.nextId(), 'bigint');
        await assigned.close();
      });
    }
  });
}
