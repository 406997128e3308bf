'use strict';
// From a URL to a store: loads the engine's client, which the application has installed, and connects
// it. The connection is the lease's own and ends with it; it does not keep the process alive (a call
// does, by its time limit).

const { configError, needsPackage, shown } = require('../errors.js');

/** A client's package, as the application has it; or what to install. */
async function load(name, url) {
  try {
    // Spelled out, as in ../native.js.
    switch (name) {
      case 'ioredis':
        return await import('ioredis');
      case 'mysql2':
        return await import('mysql2');
      case 'pg':
        return await import('pg');
      case 'snowdrift-zookeeper':
        return await import('snowdrift-zookeeper');
    }
  } catch (cause) {
    throw needsPackage(`a lease from ${url.protocol}//`, name, cause);
  }
}

/** ?namespace=... is ours, the rest is the client's. */
function split(url) {
  const own = new URL(url);
  const namespace = own.searchParams.get('namespace') ?? undefined;
  own.searchParams.delete('namespace');
  return { own, options: namespace === undefined ? {} : { namespace } };
}

async function connectPostgres(url, { own, options }) {
  const { default: pg } = await load('pg', url);
  const { postgres } = require('./postgres.js');
  const pool = new pg.Pool({ connectionString: own.href, max: 1, allowExitOnIdle: true });
  // A connection that breaks while idle is replaced at the next call.
  pool.on('error', () => {});
  return { ...postgres(pool, options), close: () => pool.end() };
}

async function connectMysql(url, { own, options }) {
  const { default: mysql2 } = await load('mysql2', url);
  const { mysql } = require('./mysql.js');
  own.protocol = 'mysql:';
  const pool = mysql2.createPool({ uri: own.href, connectionLimit: 1 });
  pool.on('connection', ({ stream }) => stream.unref());
  return { ...mysql(pool, options), close: () => pool.promise().end() };
}

async function connectRedis(url, { own, options }) {
  const { default: Redis } = await load('ioredis', url);
  const { redis } = require('./redis.js');
  const client = new Redis(own.href, { maxRetriesPerRequest: 1 });
  client.on('connect', () => client.stream.unref());
  // Each call reports its own failure.
  client.on('error', () => {});
  return { ...redis(client, options), close: () => client.disconnect() };
}

async function connectEtcd(_, { own, options }) {
  const { etcd } = require('./etcd.js');
  // URL lets no other scheme become http, so by hand.
  return etcd(own.href.replace(/^etcd(s?):/, 'http$1:'), options);
}

async function connectZookeeper(url, { own, options }) {
  await load('snowdrift-zookeeper', url);
  const { zookeeper } = require('./zookeeper.js');
  return zookeeper(own.href.slice('zookeeper://'.length), options);
}

const ENGINES = {
  'postgres:': connectPostgres,
  'postgresql:': connectPostgres,
  'mysql:': connectMysql,
  'mariadb:': connectMysql,
  'redis:': connectRedis,
  'rediss:': connectRedis,
  'etcd:': connectEtcd,
  'etcds:': connectEtcd,
  'zookeeper:': connectZookeeper,
};

/** Whether a lease from this URL is from an engine. */
function isEngine(url) {
  return Object.hasOwn(ENGINES, url.protocol);
}

async function connect(url) {
  return ENGINES[url.protocol](url, split(url));
}

const SCHEMES = ['file:', ...Object.keys(ENGINES)].join(', ');

function unknownEngine(url) {
  return configError(`lease knows URLs of ${SCHEMES} and LeaseStores; this is ${shown(url)}`);
}

module.exports = { connect, isEngine, unknownEngine };
