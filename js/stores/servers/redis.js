'use strict';
// Redis by a URL, through `ioredis`.

const { noteClient } = require('../../messages/causes.js');
const { redis } = require('../redis.js');
const { guardStream } = require('../sockets.js');
const { all, oneOf, text } = require('../url-options.js');
const { KEEP_ALIVE_MS, lacksClient } = require('./client.js');

/** @import { LeaseStore, Server, Socket, StoreOptions } from '../types.d.ts' */

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

/** What it exports. @typedef {new (url: string, options: object) => IORedis} Client */

/**
 * As an application's, but with a client that no application has.
 * @type {(client: IORedis, options: StoreOptions, isOurs: true) => LeaseStore}
 */
const ownRedis = redis;

/** @type {Server['options']} */
const options = {
  // Any other text turns TLS on, even 'false', and an empty one turns it off.
  tls: oneOf('RedisCloudFixed', 'RedisCloudFlexible'),
  family: oneOf('0', '4', '6'),
  ...all(text, 'username password db path keyPrefix connectionName clientInfoTag'),
};

/** @param {URL} url */
function load(url) {
  try {
    return /** @type {Client} */ (/** @type {unknown} */ (require('ioredis')));
  } catch (cause) {
    throw lacksClient('ioredis', url, cause);
  }
}

/** @type {Server['connect']} */
async function connect(url, { own, options }) {
  const Redis = load(url);
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
module.exports = { tls: "the URL begins with 'rediss://'", options, connect };
