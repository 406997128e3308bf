'use strict';
// Opens the store of a URL: loads the client that the application has installed, and connects it. The
// connection belongs to the lease. It does not keep the process alive; a call does, until its time limit. A call
// that is abandoned destroys its connection, and the next call opens another one. Otherwise a half-open
// connection would fail all later calls.

const { noteClient } = require('../messages/causes.js');
const { directoryOf } = require('../messages/checks.js');
const { SnowFlakeError, configError } = require('../messages/errors.js');
const { learn } = require('../messages/secrets.js');
const { runWithin, untilAborted } = require('../runtime/limits.js');
const { ownOf } = require('../ids/properties.js');
const { directory } = require('./directory.js');
const { storeFailure } = require('./failures.js');
const { isServer, productOf, serverOf } = require('./url.js');
const { checkOptions } = require('./url-options.js');

/**
 * @import { Connection, FileRecord, Register, Server } from './types.d.ts'
 * @import { Product } from './url.js'
 */

/** Time limit of an orderly disconnect, ms. */
const DISCONNECT_MS = 500;

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

/**
 * By product, what knows its URLs. Loads on first use.
 * @type {Record<Product, () => Server>}
 */
const BY_PRODUCT = {
  PostgreSQL: () => require('./servers/postgres.js'),
  MySQL: () => require('./servers/mysql.js'),
  MariaDB: () => require('./servers/mysql.js'),
  Redis: () => require('./servers/redis.js'),
  Upstash: () => require('./servers/upstash.js'),
  MongoDB: () => require('./servers/mongodb.js'),
  etcd: () => require('./servers/etcd.js'),
  ZooKeeper: () => require('./servers/zookeeper.js'),
  DynamoDB: () => require('./servers/dynamodb.js'),
  Kubernetes: () => require('./servers/kubernetes.js'),
  S3: () => require('./servers/s3.js'),
  'Google Cloud Storage': () => require('./servers/gcs.js'),
};

/**
 * The register of a URL.
 * @param {URL} url
 * @returns {Promise<Register | Register<FileRecord>>}
 */
async function connect(url) {
  if (!isServer(url)) return directory(directoryOf('the URL', url.href, { urlOnly: true }));
  learn(url);
  const known = BY_PRODUCT[productOf(url)]();
  checkOptions(url, known);
  const server = serverOf(url);
  let connection;
  try {
    connection = await known.connect(url, { ...splitUrl(url), server });
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
