'use strict';
// Redis by a URL, through `ioredis`.

const { noteClient } = require('../../messages/causes.js');
const { configError } = require('../../messages/errors.js');
const { redis } = require('../redis.js');
const { guardStream } = require('../sockets.js');
const { addressesOf, loginOf } = require('../url.js');
const { all, oneOf, text } = require('../url-options.js');
const { KEEP_ALIVE_MS, lacksClient } = require('./client.js');
const { whileUsed } = require('./idle.js');

/** @import { LeaseStore, Server, Socket, StoreOptions, Streaming } from '../types.d.ts' */

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
 * What is used of its Cluster.
 * @typedef {object} Cluster
 * @property {unknown} eval
 * @property {{ (event: '+node', listener: (node: Streaming) => void): void, (event: 'node error', listener: (error: Error) => void): void, (event: 'ready', listener: () => void): void }} on
 * @property {(role: 'all') => { stream?: Socket | null }[]} nodes
 * @property {() => void} disconnect
 */

/**
 * @typedef {(new (url: string, options: object) => IORedis) & {
 *   Cluster: new (nodes: string[], options: object) => Cluster,
 * }} IORedisModule
 */

/**
 * Limits of connections to nodes, ms. A call has its own limit; after that, these end the process late.
 */
const NODE_MS = 2000;
const DISCONNECT_MS = 500;

/**
 * As an application's, but with a client that no application has.
 * @type {(client: { eval: unknown }, options: StoreOptions, isOurs: true) => LeaseStore}
 */
const ownRedis = redis;

/** @type {Server['options']} */
const options = {
  // Any other text turns TLS on, even 'false', and an empty one turns it off.
  tls: oneOf('RedisCloudFixed', 'RedisCloudFlexible'),
  family: oneOf('0', '4', '6'),
  ...all(text, 'username password db path keyPrefix connectionName clientInfoTag'),
  // Our own.
  cluster: oneOf('true'),
  host: text,
};

/** What a cluster has not. */
const OF_ONE = ['tls', 'db', 'path', 'clientInfoTag'];

/** @type {NonNullable<Server['check']>} */
function check(where, { pathname, searchParams }) {
  if (!searchParams.has('cluster')) {
    if (!searchParams.has('host')) return;
    throw configError(
      `${where} has the option 'host': add ?cluster=true for several nodes of Redis Cluster, or name one server`,
    );
  }
  const own = OF_ONE.find((name) => searchParams.has(name)) ?? (pathname.length > 1 && pathname);
  if (own) throw configError(`${where} is of a cluster, which has no '${own}': remove it`);
}

/**
 * @param {new (nodes: string[], options: object) => Cluster} Cluster
 * @param {URL} own
 * @param {StoreOptions} options
 */
function connectCluster(Cluster, own, options) {
  const { protocol, searchParams } = own;
  /** @param {string} name */
  const given = (name) => searchParams.get(name) ?? undefined;
  const { user = given('username'), password = given('password') } = loginOf(own);
  const redisOptions = {
    ...{ username: user, password, keepAlive: KEEP_ALIVE_MS, enableReadyCheck: false },
    ...{ connectTimeout: NODE_MS, disconnectTimeout: DISCONNECT_MS },
    ...{ connectionName: given('connectionName'), family: Number(given('family') ?? 0) },
    ...(protocol === 'rediss:' && { tls: {} }),
  };
  const nodes = addressesOf(own).map((address) => `${protocol}//${address}`);
  return whileUsed((note) => {
    const client = new Cluster(nodes, {
      redisOptions,
      keyPrefix: given('keyPrefix'),
      lazyConnect: true,
      clusterRetryStrategy: null,
      slotsRefreshTimeout: NODE_MS,
      // It needs a right. A node that is not ready refuses, and the call is made again.
      enableReadyCheck: false,
      // A certificate has names.
      ...(protocol === 'rediss:' && { dnsLookup: keepName }),
    });
    client.on('+node', guardStream);
    client.on('node error', note);
    client.on('ready', () => note(undefined));
    return {
      store: ownRedis(client, options, true),
      close() {
        for (const { stream } of client.nodes('all')) stream?.destroy();
        client.disconnect();
      },
    };
  });
}

/** @param {string} host @param {(failure: null, host: string) => void} done */
const keepName = (host, done) => done(null, host);

/** @param {URL} url */
function load(url) {
  try {
    return /** @type {IORedisModule} */ (/** @type {unknown} */ (require('ioredis')));
  } catch (cause) {
    throw lacksClient('ioredis', url, cause);
  }
}

/** @type {Server['connect']} */
async function connect(url, { own, options }) {
  const Redis = load(url);
  if (own.searchParams.has('cluster')) return connectCluster(Redis.Cluster, own, options);
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

/** @type {Server} */
module.exports = { tls: "the URL begins with 'rediss://'", options, check, connect };
