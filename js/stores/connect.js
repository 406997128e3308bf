'use strict';
// Opens the store of a URL: loads the client that the application has installed, and connects it. The
// connection belongs to the lease. It does not keep the process alive; a call does, until its time limit. A call
// that is abandoned destroys its connection, and the next call opens another one. Otherwise a half-open
// connection would fail all later calls.

const { promisify } = require('node:util');

const { noteClient } = require('../messages/causes.js');
const { directoryOf } = require('../messages/checks.js');
const { SnowFlakeError, configError, needsPackage } = require('../messages/errors.js');
const { learn } = require('../messages/secrets.js');
const { runWithin, untilAborted } = require('../runtime/limits.js');
const { ownOf, propertyOf } = require('../ids/properties.js');
const { directory } = require('./directory.js');
const { etcd } = require('./etcd.js');
const { storeFailure } = require('./failures.js');
const { postgres } = require('./postgres.js');
const { redis } = require('./redis.js');
const { guardStream, ignoreErrors } = require('./sockets.js');
const { promised, runMysql } = require('./sql-clients.js');
const { sqlRegister } = require('./sql.js');
const { addressesOf, isServer, loginOf, productOf, serverOf } = require('./url.js');
const { checkFilesOfPg, checkOptions, tlsOf } = require('./url-options.js');
const { zookeeper } = require('./zookeeper.js');

/**
 * @import { Socket as NodeSocket } from 'node:net'
 * @import { LeaseStore, SqlStoreOptions, StoreOptions } from './store.d.ts'
 * @import { FileRecord, MysqlCallbacks, MysqlConnection, Register, Socket, Streaming } from './types.d.ts'
 * @import { Product } from './url.js'
 */

/**
 * The parts of a URL: that of the client, the options of the store, and the server's name in errors.
 * @typedef {{ own: URL, options: SqlStoreOptions, server: string }} Parts
 */

/**
 * A store and its connection.
 * @typedef {object} Connection
 * @property {LeaseStore} store
 * @property {() => Promise<void>} [connected] connects, unless it is connected
 * @property {() => unknown} [causeOf] the cause of a failed call, if it says more than the call's
 * @property {() => void} [drop] destroys the connection
 * @property {() => Promise<unknown>} [end] ends it
 */

/**
 * What is used of `pg`.
 * @typedef {object} Pg
 * @property {new (config: object) => { connection: Streaming }} Client
 * @property {new (options: object) => { connect: unknown, totalCount: number, end(): Promise<void> }} Pool
 */

/**
 * What is used of `mysql2`.
 * @typedef {object} Mysql2
 * @property {new (options: object) => object} ConnectionConfig
 * @property {new (options: object) => MysqlCallbacks & Record<'connect' | 'end', (settle: (failure: Error | null) => void) => void>} Connection
 */

/**
 * What is used of a client of `ioredis`.
 * @typedef {object} IORedis
 * @property {unknown} eval
 * @property {string} status
 * @property {(Socket & { unref(): void }) | null} [stream]
 * @property {{ (event: 'connect', listener: () => void): void, (event: 'error', listener: (error: Error) => void): void }} on
 * @property {() => Promise<void>} connect
 * @property {() => void} disconnect
 * @property {() => Promise<unknown>} quit
 */

/**
 * As an application's, but with a client that no application has.
 * @type {(client: IORedis, options: StoreOptions, isOurs: true) => LeaseStore}
 */
const ownRedis = redis;

/** Time limit of an orderly disconnect, ms. */
const DISCONNECT_MS = 500;

/** Idle time before the first TCP keep-alive probe, ms. */
const KEEP_ALIVE_MS = 10_000;

/**
 * Loads a client's package. As js/runtime/native.js: literal names, in a `try`. jest's VM has no `import()`.
 * @param {'ioredis' | 'mysql2' | 'pg'} name
 * @param {URL} url
 * @returns {unknown}
 */
function loadClient(name, { protocol }) {
  try {
    switch (name) {
      case 'ioredis':
        return require('ioredis');
      case 'mysql2':
        return require('mysql2');
      case 'pg':
        return require('pg');
    }
  } catch (cause) {
    throw needsPackage(`a lease from ${protocol}//`, name, cause);
  }
}

/** Options of a URL that are a store's own, and not its client's. */
const OWN = ['namespace', 'schema'];

/** Splits a URL into the store's options and the client's own URL. @param {URL} url */
function splitUrl(url) {
  const own = new URL(url);
  const given = OWN.filter((name) => own.searchParams.has(name));
  const options = Object.fromEntries(given.map((name) => [name, own.searchParams.get(name)]));
  for (const name of given) own.searchParams.delete(name);
  return { own, options };
}

/** @type {typeof CONNECT[Product]} */
async function connectPostgres(url, { own, options, server }) {
  const pg = /** @type {Pg} */ (loadClient('pg', url));
  await checkFilesOfPg(own, server);
  /** @type {Streaming | undefined} */
  let connection;
  class Client extends pg.Client {
    /** @param {object} config */
    constructor(config) {
      super(config);
      connection = this.connection;
      // The pool handles errors of an idle client, and the first error of a query.
      ignoreErrors(this);
      guardStream(connection);
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
  return {
    // The next call replaces a connection that broke while idle.
    store: postgres(ignoreErrors(pool), options),
    drop: () => connection?.stream?.destroy(),
    end: () => pool.end(),
  };
}

/** @type {typeof CONNECT[Product]} */
async function connectMysql(url, { own, options }) {
  const mysql2 = /** @type {Mysql2} */ (loadClient('mysql2', url));
  const net = require('node:net');
  own.protocol = 'mysql:';
  /** @type {NodeSocket | undefined} */
  let socket;
  /** @param {{ config: { host: string, port: number, socketPath?: string } }} options */
  const stream = ({ config: { host, port, socketPath: path } }) => {
    const keptAlive = { keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS };
    socket = net.connect({ path, host, port, noDelay: true, ...keptAlive });
    return socket.unref();
  };
  // The time limit of each call includes connecting.
  const config = new mysql2.ConnectionConfig({ uri: own.href, connectTimeout: 0, stream });

  async function open() {
    const connection = new mysql2.Connection({ config });
    const own = socket;
    guardStream(ignoreErrors(connection));
    await promisify(connection.connect)
      .call(connection)
      .catch((failure) => {
        own?.destroy();
        throw failure;
      });
    return promised(connection);
  }

  // Not a pool: that shows nobody a connection before it is open, and leaves its later errors to nobody.
  /** @type {ReturnType<typeof open>} */
  let opening;
  /** @type {MysqlConnection['query']} */
  const query = async (statement) => {
    if (socket === undefined || socket.destroyed) opening = open();
    const own = socket;
    try {
      return await (await opening).query(statement);
    } catch (failure) {
      // And not the one that has taken its place, if another call has dropped it.
      if (propertyOf(/** @type {object} */ (failure), 'fatal')) own?.destroy();
      throw failure;
    }
  };
  return {
    store: sqlRegister(
      'mysql',
      'mysql',
      options,
      (name) => (text, values) => runMysql(name, { query }, text, values),
    ),
    drop: () => socket?.destroy(),
    end: async () => {
      if (socket?.destroyed !== false) return;
      const { connection } = await opening;
      await promisify(connection.end).call(connection);
    },
  };
}

/** @type {typeof CONNECT[Product]} */
async function connectRedis(url, { own, options }) {
  const Redis = /** @type {new (url: string, options: object) => IORedis} */ (
    loadClient('ioredis', url)
  );
  // The calls connect, since the client's own retry timer would keep the process alive.
  const client = new Redis(own.href, {
    lazyConnect: true,
    retryStrategy: null,
    connectTimeout: 0,
    keepAlive: KEEP_ALIVE_MS,
  });
  guardStream(client);
  client.on('connect', () => client.stream?.unref());
  /** @type {unknown} */
  let lastError;
  client.on('error', (error) => {
    lastError = noteClient(error);
  });
  /** @type {Promise<void> | undefined} */
  let connecting;
  const connected = async () => {
    if (client.status === 'ready') return;
    lastError = undefined;
    connecting ??= client.connect().finally(() => {
      connecting = undefined;
    });
    await connecting;
    // Without this, the client would continue in a database other than the requested one.
    if (lastError !== undefined) {
      client.disconnect();
      throw lastError;
    }
  };
  const drop = () => {
    if (client.status !== 'end') client.disconnect();
    client.stream?.destroy();
  };
  return {
    store: ownRedis(client, options, true),
    connected,
    // The client's error for a call says only that there is no connection.
    causeOf: () => lastError,
    drop,
    end: async () => client.status === 'ready' && client.quit(),
  };
}

/** @type {typeof CONNECT[Product]} */
async function connectEtcd(_, { own, options }) {
  const tls = tlsOf(own, 'etcds:');
  const scheme = tls === undefined ? 'http' : 'https';
  const endpoints = addressesOf(own).map((address) => `${scheme}://${address}`);
  return { store: etcd(endpoints, { ...options, ...loginOf(own), ...tls }) };
}

/** @type {typeof CONNECT[Product]} */
async function connectZookeeper(_, { own, options }) {
  const tls = tlsOf(own, 'zookeepers:');
  const ensemble = addressesOf(own).join(',') + own.pathname;
  return { store: zookeeper(ensemble, { ...options, ...loginOf(own), ...tls }) };
}

/**
 * By product.
 * @type {Record<Product, (url: URL, parts: Parts) => Promise<Connection>>}
 */
const CONNECT = {
  PostgreSQL: connectPostgres,
  MySQL: connectMysql,
  MariaDB: connectMysql,
  Redis: connectRedis,
  etcd: connectEtcd,
  ZooKeeper: connectZookeeper,
};

/**
 * The register of a URL.
 * @param {URL} url
 * @returns {Promise<Register | Register<FileRecord>>}
 */
async function connect(url) {
  if (!isServer(url)) return directory(directoryOf('the URL', url.href, { urlOnly: true }));
  learn(url);
  checkOptions(url);
  const server = serverOf(url);
  let connection;
  try {
    connection = await CONNECT[productOf(url)](url, { ...splitUrl(url), server });
  } catch (failure) {
    if (failure instanceof SnowFlakeError) throw failure;
    // Not the failure's message, which may show the URL.
    throw configError(
      `the client of ${server} cannot use this URL: percent-encode special characters in user, password and database, and check the options after '?'`,
    );
  }
  return guardCalls(connection, server);
}

/**
 * A register whose calls drop the connection when their signal aborts, and end when it closes.
 * @param {Connection} connection
 * @param {string} server
 * @returns {Register}
 */
function guardCalls(connection, server) {
  const { store, connected, causeOf, drop, end } = ownOf(connection);
  /** Until the next close. */
  let life = new AbortController();

  /**
   * @template Reply
   * @param {string} name
   * @param {AbortSignal} signal
   * @param {() => Promise<Reply>} send
   */
  async function call(name, signal, send) {
    const onAbort = () => drop?.();
    signal.addEventListener('abort', onAbort);
    try {
      // A pool that has ended never serves those that wait for a connection.
      return await untilAborted(life.signal, async () => {
        signal.throwIfAborted();
        await connected?.();
        return send();
      });
    } catch (failure) {
      if (failure instanceof SnowFlakeError) throw failure;
      const cause = causeOf?.() ?? failure;
      throw storeFailure(server, name, noteClient(cause));
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** @type {Promise<void> | undefined} */
  let closing;
  return {
    ...store,
    server,
    now: async (options) => call('now', options.signal, () => store.now(options)),
    read: async (key, options) => call('read', options.signal, () => store.read(key, options)),
    write: async (key, record, before, options) =>
      call('write', options.signal, () => store.write(key, record, before, options)),
    close() {
      closing ??= disconnect(end ?? (async () => store.close?.()), drop).finally(() => {
        // A later call connects again, so a later close() must disconnect again.
        life.abort(new Error('the store was closed'));
        life = new AbortController();
        closing = undefined;
      });
      return closing;
    },
  };
}

/**
 * Ends a connection: in an orderly way if the server replies in time, else by force.
 * @param {() => Promise<unknown>} end
 * @param {() => void} [drop]
 */
async function disconnect(end, drop) {
  try {
    await runWithin(DISCONNECT_MS, end);
  } catch {
    // There was no connection, or it does not answer.
  } finally {
    drop?.();
  }
}

module.exports = { connect };
