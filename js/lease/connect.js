'use strict';
// From a URL to a store: loads the client, which the application has installed, and connects it. The
// connection is the lease's own. It does not keep the process alive (a call does, by its time limit), and
// a call that is given up takes it along, so that the next call makes another one. A half-open
// connection, whose packets vanish, would otherwise fail all calls that follow.

const net = require('node:net');

const { SnowFlakeError, configError, needsPackage, shown } = require('../errors.js');
const { clearTimeout, setTimeout } = require('../time.js');
const { NoAnswer, storeFailure } = require('./failures.js');

/** How long a server has to answer a call without a time limit of its own, ms. */
const LIMIT_MS = 10_000;

/** How long a server has to answer the end of a connection, ms. */
const GOODBYE_MS = 500;

/** When TCP asks an idle connection's other end for a sign of life, ms. */
const KEEP_ALIVE_MS = 10_000;

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
  const clients = new Set();
  class Client extends pg.Client {
    constructor(config) {
      super(config);
      clients.add(this);
      this.once('end', () => clients.delete(this));
    }
  }
  const pool = new pg.Pool({
    connectionString: own.href,
    max: 1,
    allowExitOnIdle: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    Client,
  });
  // A connection that breaks while idle is replaced at the next call.
  pool.on('error', () => {});
  return {
    store: postgres(pool, options),
    drop: () => {
      for (const { connection } of clients) connection.stream.destroy();
    },
    end: () => pool.end(),
  };
}

async function connectMysql(url, { own, options }) {
  const { default: mysql2 } = await load('mysql2', url);
  const { mysql } = require('./mysql.js');
  own.protocol = 'mysql:';
  const sockets = new Set();
  const stream = ({ config: { host, port, socketPath } }) => {
    const socket = net.connect(
      socketPath
        ? { path: socketPath }
        : { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS },
    );
    sockets.add(socket);
    return socket.once('close', () => sockets.delete(socket)).unref();
  };
  // Each call has a time limit, which includes that of connecting.
  const pool = mysql2.createPool({ uri: own.href, connectionLimit: 1, connectTimeout: 0, stream });
  return {
    store: mysql(pool, options),
    drop: () => {
      for (const socket of sockets) socket.destroy();
    },
    end: () => pool.promise().end(),
  };
}

async function connectRedis(url, { own, options }) {
  const { default: Redis } = await load('ioredis', url);
  const { redis } = require('./redis.js');
  // Connected by the calls: a timer of the client that does so would keep the process alive.
  const client = new Redis(own.href, {
    lazyConnect: true,
    retryStrategy: null,
    connectTimeout: 0,
    keepAlive: KEEP_ALIVE_MS,
  });
  client.on('connect', () => client.stream.unref());
  let fault;
  client.on('error', (error) => {
    fault = error;
  });
  let connecting;
  const connected = async () => {
    if (client.status === 'ready') return;
    fault = undefined;
    connecting ??= client.connect().finally(() => {
      connecting = undefined;
    });
    await connecting;
    // The client goes on without the database that it was to select.
    if (fault !== undefined) {
      client.disconnect();
      throw fault;
    }
  };
  const drop = () => {
    if (client.status !== 'end') client.disconnect();
    client.stream?.destroy();
  };
  return {
    store: redis(client, options),
    connected,
    // The client's error for a call is that there is no connection; this is why.
    why: (failure) => fault ?? failure,
    drop,
    end: async () => client.status === 'ready' && client.quit(),
  };
}

async function connectEtcd(_, { own, options }) {
  const { etcd } = require('./etcd.js');
  if (own.username !== '' || own.password !== '') {
    throw configError(
      `etcd at ${hostOf(own)} is used without a login: leave user and password out of the URL`,
    );
  }
  // URL lets no other scheme become http, so by hand.
  return { store: etcd(own.href.replace(/^etcd(s?):/, 'http$1:'), options) };
}

async function connectZookeeper(url, { own, options }) {
  await load('snowdrift-zookeeper', url);
  const { zookeeper } = require('./zookeeper.js');
  return { store: zookeeper(own.href.slice('zookeeper://'.length), options) };
}

/** By scheme: what people call the store, its usual port, and how it is connected. */
const STORES = {
  'postgres:': ['PostgreSQL', 5432, connectPostgres],
  'postgresql:': ['PostgreSQL', 5432, connectPostgres],
  'mysql:': ['MySQL', 3306, connectMysql],
  'mariadb:': ['MariaDB', 3306, connectMysql],
  'redis:': ['Redis', 6379, connectRedis],
  'rediss:': ['Redis', 6379, connectRedis],
  'etcd:': ['etcd', 2379, connectEtcd],
  'etcds:': ['etcd', 2379, connectEtcd],
  'zookeeper:': ['ZooKeeper', 2181, connectZookeeper],
};

/** Whether a lease from this URL is from a server. */
function isEngine(url) {
  return Object.hasOwn(STORES, url.protocol);
}

function hostOf(url) {
  const host = url.hostname || url.searchParams.get('host') || 'localhost';
  // Of an ensemble, a URL takes only the last port for one.
  return `${host}:${url.port || STORES[url.protocol][1]}`;
}

/** The LeaseStore behind a URL. All its calls end, whatever the server does. */
async function connect(url) {
  const [product, , open] = STORES[url.protocol];
  const parts = split(url);
  const server = `${product} at ${hostOf(parts.own)}`;
  let connection;
  try {
    connection = await open(url, parts);
  } catch (failure) {
    if (failure instanceof SnowFlakeError) throw failure;
    // Its message may show the URL.
    throw configError(
      `the URL of ${server} is not one that its client can use: percent-encode what is special in user, password and database, and check the options behind '?'`,
    );
  }
  return bounded(connection, { server, passwords: passwordsOf(parts.own) });
}

function bounded(connection, { server, passwords }) {
  const { store, connected, why = (failure) => failure, drop, end } = connection;

  /** One call. Its signal, or else the limit here, gives it up. */
  async function call(name, request) {
    const limit = new AbortController();
    const { signal = limit.signal } = request;
    let timer;
    const givenUp = new Promise((_, reject) => {
      if (request.signal !== undefined) return;
      timer = setTimeout(() => {
        limit.abort();
        reject(new NoAnswer(LIMIT_MS));
      }, LIMIT_MS);
    });
    const dropped = () => drop?.();
    signal.addEventListener('abort', dropped);
    const answer = async () => {
      await connected?.();
      signal.throwIfAborted();
      return store[name]({ ...request, signal });
    };
    try {
      return await Promise.race([answer(), givenUp]);
    } catch (failure) {
      if (failure instanceof SnowFlakeError) throw failure;
      throw withoutPasswords(storeFailure(server, name, why(failure)), passwords);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', dropped);
    }
  }

  let closing;
  const calls = Object.keys(store).filter(
    (name) => typeof store[name] === 'function' && name !== 'close',
  );
  return {
    ...store,
    ...Object.fromEntries(calls.map((name) => [name, (request = {}) => call(name, request)])),
    server,
    close() {
      closing ??= goodbye(end ?? (async () => store.close?.()), drop).finally(() => {
        // A later call connects anew, and needs an end of its own.
        closing = undefined;
      });
      return closing;
    },
  };
}

/** Ends a connection: in good order if the server answers that, but in any case. */
async function goodbye(end, drop) {
  let timer;
  const limit = new Promise((resolve) => {
    timer = setTimeout(resolve, GOODBYE_MS);
  });
  try {
    await Promise.race([end(), limit]);
  } catch {
    // There was none.
  } finally {
    clearTimeout(timer);
    drop?.();
  }
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The passwords of a URL, in every form in which a client may show them. */
function passwordsOf({ password, searchParams }) {
  const all = [password, decoded(password), searchParams.get('password') ?? ''];
  return all.filter((text) => text !== '');
}

/** An error whose text and cause hide passwords: ioredis has the AUTH command in its errors. */
function withoutPasswords(error, passwords) {
  if (passwords.length === 0) return error;
  const hide = (text) => passwords.reduce((all, one) => all.replaceAll(one, '***'), String(text));
  const { name, message, code } = error.cause ?? {};
  const cause = new Error(hide(message));
  Object.defineProperty(cause, 'name', { value: name });
  if (code !== undefined) cause.code = code;
  return new SnowFlakeError(error.code, hide(error.message), { cause });
}

const SCHEMES = ['file:', ...Object.keys(STORES)].join(', ');

function unknownEngine(url) {
  // Without its user and password.
  const { protocol, host } = new URL(url);
  return configError(
    `lease knows URLs of ${SCHEMES} and LeaseStores; this is ${shown(`${protocol}//${host}`)}`,
  );
}

module.exports = { connect, isEngine, unknownEngine };
