'use strict';
// Each store held to the contract, on a real server: by an application's client, and by a URL. And leases by URLs, on each.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { describe, test } = require('node:test');

const { connect } = require('../../js/stores/connect.js');
const { registerContract } = require('../../js/stores/contract.js');
const { createRegister } = require('../../js/stores/register.js');
const { gate, storm } = require('../support/amount.js');
const { clientsOf, missingPackages } = require('../support/installed.js');
const { ofClient } = require('../support/lease/clients.js');
const { linkedServer } = require('../support/lease/link.js');
const { createNamespace } = require('../support/lease/namespaces.js');
const { Server, addressOf, missing, noLeases } = require('../support/lease/servers.js');
const { SnowFlake, layouts, runScript, until } = require('../support/support.js');

const ignore = () => {};

/** Those whose clock has whole seconds. */
const SECONDS = ['etcd', 'dynamodb', 's3', 'gcs'];

const record = (text) => ({ token: randomBytes(8).toString('hex'), text });

/**
 * Writes through a link that loses the replies, and then its connections. A client may send a write again.
 * @param direct a register of the same namespace that does not use the link
 * @param passing how many bytes the server sends before it writes
 * @param isTried whether a store is tried by the first write
 */
async function loseReplies(linked, direct, link, { passing, isTried }) {
  const { signal } = new AbortController();
  let present = record('first');
  await direct.write('a', present, undefined, { signal });
  for (let n = 0; n < 4; n++) {
    // Then it has a connection, and a SQL register knows its table.
    await linked.read('a', { signal });
    if (isTried) await linked.write('b', record('b'), undefined, { signal });
    const written = record(`lost ${n}`);
    link.loseReplies(passing);
    const abort = new AbortController();
    const call = linked
      .write('a', written, present.token, { signal: abort.signal })
      .catch((failure) => ({ failure }));
    const see = async () => (await direct.read('a', { signal })).record;
    await until(async () => (await see()).token === written.token);
    link.reset();
    if (n % 2 === 0) abort.abort();
    const { isWritten, failure } = await call;
    assert.ok(isWritten || failure instanceof Error, 'a write that was done is never refused');
    assert.deepEqual(await see(), written);
    const again = await direct.write('a', written, present.token, { signal });
    assert.equal(again.isWritten, true, 'it may be sent again');
    present = written;
  }
}

/**
 * The suites of an engine, whose server runs meanwhile.
 * @param adapters by name: opens a register, `open(url, namespace)`
 * @param spoil replaces a record by another value: `spoil(url, namespace, key)`
 * @param passing how many bytes the server sends before a write
 */
function onServer(engine, adapters, { spoil, passing = 0, isTried, skip = missing(engine) }) {
  // One client after the other: the checks of one take 64 connections at most, and PostgreSQL permits 100.
  describe(`on ${engine}`, { skip, concurrency: 1 }, () => {
    const own = linkedServer(engine);
    for (const [name, open] of Object.entries({ ...adapters, 'a URL': byUrl })) {
      describe(name, { skip: QUICK.includes(name) ? undefined : gate }, () => {
        registerContract(name, (namespace) => open(own.server.url, namespace), {
          // A busy machine may stop a process for long.
          limit: 240_000,
          spoil: (namespace, key) => spoil(own.server.url, namespace, key),
          async openSilent() {
            const { url, link } = await own.linked();
            const register = await open(url, 'silent');
            await register.now({ signal: new AbortController().signal });
            link.halfOpen();
            link.silent();
            if (!register.isOfClient) return register;
            return {
              ...register,
              // A pool has no end while it connects.
              close() {
                link.close();
                return register.close();
              },
            };
          },
        });
        test(`${name}: a read tells what became of a write whose reply was lost`, async () => {
          const { url, link } = await own.linked();
          const namespace = `lost-${randomBytes(4).toString('hex')}`;
          const registers = [await open(url, namespace), await open(own.server.url, namespace)];
          try {
            await loseReplies(...registers, link, { passing, isTried });
          } finally {
            link.close();
            await Promise.all(registers.map((register) => register.close()));
          }
        });
      });
    }

    test('a lease from its URL does not keep the process alive, and ends with it', {
      skip: storm,
    }, async () => {
      const layout = { ...layouts.node, workerBits: 0 };
      const limits = { ttl: 30_000, callTimeout: 60_000 };
      const script = `
        const options = ${JSON.stringify({ datacenterId: 1, scope: 'process', layout, ...limits })};
        require('../..').SnowFlake.lease(process.env.URL_OF_SERVER, options)
          .then((flake) => console.log(typeof flake.nextId()), ({ message }) => console.log(message));`;
      const url = named(own.server.url, 'ends');
      await createNamespace(url, { layout, ...limits });
      // The second one needs the slot of the first one.
      for (let n = 0; n < 2; n++) {
        const { stdout, code } = await runScript(script, { env: { URL_OF_SERVER: url } });
        assert.deepEqual([stdout, code], ['bigint\n', 0]);
      }
    });

    test('the time of connecting is not clock skew', {
      skip: SECONDS.includes(engine) ? gate : undefined,
    }, async () => {
      await createNamespace(named(own.server.url, 'far'));
      const { url, link } = await own.linked();
      link.delay = SECONDS.includes(engine) ? 250 : 20;
      const flake = await SnowFlake.lease(named(url, 'far'), {
        ...{ datacenterId: 1, ttl: 60_000, callTimeout: 60_000 },
        maxClockSkew: SECONDS.includes(engine) ? 600 : 10,
      });
      assert.equal(flake.lease.clockSkew, undefined);
      await flake.close();
    });
  });
}

/** A URL with a namespace. */
const named = (url, namespace) => `${url}${url.includes('?') ? '&' : '?'}namespace=${namespace}`;

/** The store of a lease from a URL. */
const byUrl = (url, namespace) => connect(new URL(named(url, namespace)));

/** The clients of a quick run. The others come to a connection in another way, and send the same over it. */
const QUICK = [
  ...['ioredis', 'redis', 'a Pool of pg', 'a pool of mysql2', 'its JSON gateway'],
  ...['sql() of pg', 'sql() of mysql2'],
];

const silence = () => new Promise(() => {});

function withIoredis(url) {
  const client = new (require('ioredis'))(url, { connectTimeout: 0 });
  client.on('error', ignore);
  return client;
}

async function spoilRedis(url, namespace, key) {
  const client = withIoredis(url);
  await client.hset(`snowdrift:${namespace}:records`, key, 'nonsense');
  client.disconnect();
}

const REDIS = {
  ioredis(url, namespace) {
    const { redis } = require('../../js/stores/redis.js');
    const client = withIoredis(url);
    return ofClient(redis(client, { namespace }), async () => client.disconnect());
  },

  async redis(url, namespace) {
    const { redis } = require('../../js/stores/redis.js');
    const client = require('redis').createClient({ url, socket: { connectTimeout: 0 } });
    client.on('error', ignore);
    await client.connect();
    return ofClient(redis(client, { namespace }), async () =>
      (client.destroy ?? client.disconnect).call(client),
    );
  },
};

const VALKEY = {
  ...REDIS,
  iovalkey(url, namespace) {
    const { redis } = require('../../js/stores/redis.js');
    const client = new (require(`${clientsOf('valkey')}/node_modules/iovalkey`))(url);
    client.on('error', ignore);
    return ofClient(redis(client, { namespace }), async () => client.disconnect());
  },
};

const MONGODB = {
  async 'a MongoClient'(url, namespace) {
    const { mongodb } = require('../../js/stores/mongodb.js');
    const client = new (require('mongodb').MongoClient)(url);
    await client.connect();
    return ofClient(mongodb(client, { namespace }), () => client.close(true));
  },
};

async function spoilMongo(url, namespace, key) {
  const client = new (require('mongodb').MongoClient)(url);
  const records = client.db().collection('snowdrift_records');
  await records.updateOne({ _id: `${namespace}:${key}` }, { $set: { token: 'nonsense' } });
  await client.close();
}

const withTypeorm = (type) => async (url, namespace) => {
  const { DataSource } = require('typeorm');
  const { typeorm } = require('../../js/stores/typeorm.js');
  const source = new DataSource({ type, url, connectTimeout: 0, poolSize: 4 });
  await source.initialize();
  return ofClient(typeorm(source, { namespace }), () => source.destroy());
};

const POSTGRES = {
  'a Pool of pg'(url, namespace) {
    const { postgres } = require('../../js/stores/postgres.js');
    const pool = new (require('pg').Pool)({ connectionString: url, max: 4 });
    pool.on('error', ignore);
    return ofClient(postgres(pool, { namespace }), () => pool.end());
  },

  typeorm: withTypeorm('postgres'),

  'sql() of pg'(url, namespace) {
    const { sql } = require('../../js/stores/sql.js');
    const pool = new (require('pg').Pool)({ connectionString: url, max: 4 });
    pool.on('error', ignore);
    const query = async (text, values) => (await pool.query(text, values)).rows;
    return ofClient(sql({ dialect: 'postgres', query }, { namespace }), () => pool.end());
  },
};

const MYSQL = {
  'a pool of mysql2'(url, namespace) {
    const { mysql } = require('../../js/stores/mysql.js');
    const options = { uri: url, connectionLimit: 4, connectTimeout: 0 };
    const pool = require('mysql2').createPool(options);
    return ofClient(mysql(pool, { namespace }), () => pool.promise().end());
  },

  typeorm: withTypeorm('mariadb'),

  'sql() of mysql2'(url, namespace) {
    const { sql } = require('../../js/stores/sql.js');
    const options = { uri: url, connectionLimit: 4, connectTimeout: 0 };
    const pool = require('mysql2/promise').createPool(options);
    const query = async (text, values) => (await pool.query(text, values))[0];
    return ofClient(sql({ dialect: 'mysql', query }, { namespace }), () => pool.end());
  },
};

/** A statement that replaces a token, for the clients of each database. */
const SPOIL = "UPDATE snowdrift_records SET token = 'nonsense' WHERE namespace =";

async function spoilPostgres(url, namespace, key) {
  const client = new (require('pg').Client)({ connectionString: url });
  await client.connect();
  await client.query(`${SPOIL} $1 AND name = $2`, [namespace, key]);
  await client.end();
}

async function spoilMysql(url, namespace, key) {
  const options = { uri: url, connectTimeout: 0 };
  const connection = await require('mysql2/promise').createConnection(options);
  await connection.query(`${SPOIL} ? AND name = ?`, [namespace, key]);
  await connection.end();
}

/** The rows of a statement of sql.js. */
function rowsIn(database, text, values) {
  const statement = database.prepare(text, values);
  const rows = [];
  while (statement.step()) rows.push(statement.getAsObject());
  statement.free();
  return rows;
}

const toBase64 = (text) => Buffer.from(text).toString('base64');

const ETCD = {
  'its JSON gateway'(url, namespace) {
    const { etcd } = require('../../js/stores/etcd.js');
    return etcd(url.replace('etcd:', 'http:'), { namespace });
  },
};

const ZOOKEEPER = {
  'the addon'(url, namespace) {
    const { zookeeper } = require('../../js/stores/zookeeper.js');
    return zookeeper(new URL(url).host, { namespace });
  },
};

function withDynamoDB(url) {
  const { DynamoDBClient } = require('@aws-sdk/client-dynamodb');
  const { hostname: region } = new URL(url);
  return new DynamoDBClient({ region, endpoint: addressOf(url).origin });
}

const DYNAMODB = {
  'a DynamoDBClient'(url, namespace) {
    const { dynamodb } = require('../../js/stores/dynamodb.js');
    const client = withDynamoDB(url);
    const options = { namespace, table: new URL(url).pathname.slice(1) };
    return ofClient(dynamodb(client, options), async () => client.destroy());
  },
};

async function spoilDynamoDB(url, namespace, key) {
  const { PutItemCommand } = require('@aws-sdk/client-dynamodb');
  const Item = { id: { S: `${namespace}#${key}` }, token: { S: 'nonsense' }, text: { S: '' } };
  const TableName = new URL(url).pathname.slice(1);
  await withDynamoDB(url).send(new PutItemCommand({ TableName, Item }));
}

function withS3(url) {
  const { S3Client } = require('@aws-sdk/client-s3');
  const region = 'eu-central-1';
  return new S3Client({ region, endpoint: addressOf(url).origin, forcePathStyle: true });
}

const S3 = {
  'an S3Client'(url, namespace) {
    const { s3 } = require('../../js/stores/s3.js');
    const client = withS3(url);
    const options = { namespace, bucket: 'ids', prefix: 'app' };
    return ofClient(s3(client, options), async () => client.destroy());
  },
};

async function spoilS3(url, namespace, key) {
  const { PutObjectCommand } = require('@aws-sdk/client-s3');
  const Key = `app/${namespace}/${key}`;
  await withS3(url).send(new PutObjectCommand({ Bucket: 'ids', Key, Body: 'nonsense' }));
}

const bucketOf = (url) => {
  const { Storage } = require('@google-cloud/storage');
  return new Storage({ apiEndpoint: addressOf(url).origin }).bucket('ids');
};

const GCS = {
  'a Bucket'(url, namespace) {
    const { gcs } = require('../../js/stores/gcs.js');
    return ofClient(gcs(bucketOf(url), { namespace, prefix: 'app' }), async () => {});
  },
};

const spoilGcs = (url, namespace, key) =>
  bucketOf(url)
    .file(`app/${namespace}/${key}`)
    .save('nonsense', { resumable: false, validation: false });

/** A register as an application may write it. */
function ownRegister(records) {
  const stored = (key) => records.get(key);
  return {
    name: 'own',
    async read(key, { signal }) {
      signal.throwIfAborted();
      return { record: stored(key) };
    },
    async write(key, written, before, { signal }) {
      signal.throwIfAborted();
      const found = stored(key);
      if (found?.token === written.token) return { isWritten: true };
      if (found?.token !== before) return { isWritten: false, found };
      records.set(key, written);
      return { isWritten: true };
    },
    async now({ signal }) {
      signal.throwIfAborted();
      return Date.now();
    },
  };
}

// Side by side: they mostly wait for servers.
describe('registers', { concurrency: 4 }, () => {
  // First, since its server takes longest to start.
  onServer('etcd', ETCD, {
    async spoil(url, namespace, key) {
      const { createClient } = require('../../js/stores/etcd-client.js');
      const { post, close } = createClient(url.replace('etcd:', 'http:'), {});
      const path = `snowdrift/${namespace}/records/${key}`;
      await post('/v3/kv/put', { key: toBase64(path), value: toBase64('nonsense') });
      close();
    },
  });

  describe('memory', () => {
    const { memory } = require('../../js/stores/memory.js');
    const stored = new Map();
    registerContract('memory', (namespace) => memory({ namespace, stored }), {
      spoil: (namespace, key) => stored.set(`${namespace}/${key}`, 'nonsense'),
      openSilent: () => createRegister({ read: silence, write: silence, now: silence }),
    });
  });

  describe('sql() of sql.js', () => {
    const { sql } = require('../../js/stores/sql.js');
    const opened = require('sql.js')().then(({ Database }) => new Database());
    const query = async (text, values) => rowsIn(await opened, text, values);
    registerContract(
      'sql() of sql.js',
      (namespace) => sql({ dialect: 'sqlite', query }, { namespace }),
      {
        spoil: (namespace, key) => query(`${SPOIL} ? AND name = ?`, [namespace, key]),
        openSilent: () => sql({ dialect: 'sqlite', query: silence }),
      },
    );
  });

  describe('an application’s own', () => {
    const stores = new Map();
    registerContract('an application’s own', (namespace) => {
      if (!stores.has(namespace)) stores.set(namespace, new Map());
      return ownRegister(stores.get(namespace));
    });
  });

  onServer('redis', REDIS, { spoil: spoilRedis });
  // With the clients of Redis, and with iovalkey, which is ioredis of another origin.
  onServer('valkey', VALKEY, {
    skip: missing('valkey') ?? missingPackages(clientsOf('valkey'), '--clients'),
    spoil: spoilRedis,
  });
  onServer('postgres', POSTGRES, { spoil: spoilPostgres });
  // The reply to DO 0 has 11 bytes.
  onServer('mysql', MYSQL, { spoil: spoilMysql, passing: 11 });

  onServer('dynamodb', DYNAMODB, { spoil: spoilDynamoDB });
  // SecantusDB, as a rule.
  onServer('mongodb', MONGODB, {
    skip: noLeases('mongodb') ?? missing('mongodb') ?? storm,
    spoil: spoilMongo,
  });
  onServer('s3', S3, { spoil: spoilS3 });
  // Of a read, and some of the upload.
  onServer('gcs', GCS, { spoil: spoilGcs, passing: 300, isTried: true });

  // A session ends after 10 s without a word.
  onServer('zookeeper', ZOOKEEPER, {
    skip: missing('zookeeper') ?? storm,
    async spoil(url, namespace, key) {
      const { createClient } = require('../../js/stores/zookeeper-client.js');
      const { session, close } = createClient(new URL(url).host, {});
      const zk = await session();
      const path = `/snowdrift/${namespace}/records/${key.replace('/', '-')}`;
      const [token] = await zk.children(path);
      await zk.change([
        { kind: 'delete', path: `${path}/${token}` },
        { kind: 'create', path: `${path}/nonsense` },
        { kind: 'set', path, data: 'nonsense' },
      ]);
      await close();
    },
  });

  test('a namespace that Redis has lost assigns no slot below what its holders may issue', {
    skip: missing('redis'),
  }, async () => {
    const server = await Server.start('redis');
    const client = withIoredis(server.url);
    const lease = () =>
      SnowFlake.lease(server.url, {
        // A worker ID of the other tests' begins above what this host has issued.
        ...{ datacenterId: 2, scope: 'process', callTimeout: 60_000 },
        ...{ ttl: 1000, maxClockSkew: 500 },
      });
    await createNamespace(server.url, { ttl: 1000, maxClockSkew: 500 });
    const flakes = [await lease()];
    try {
      assert.equal(flakes[0].lease.floor, null, 'it is the first one');
      // In whatever way: it is one key, so it is lost as a whole.
      for (const lose of [
        () => client.flushall(),
        async () => client.del(await client.keys('*')),
      ]) {
        const { ceiling } = flakes.at(-1).lease;
        await lose();
        flakes.push(await lease());
        const { floor } = flakes.at(-1).lease;
        assert.ok(floor >= ceiling, `${floor} >= ${ceiling}`);
      }
    } finally {
      await Promise.all(flakes.map((flake) => flake.close()));
      client.disconnect();
      await server.stop();
    }
  });
});
