'use strict';
// MongoDB by a URL, through `mongodb`.

const { mongodb } = require('../mongodb.js');
const { addressesOf } = require('../url.js');
const { all, oneOf, readFileOf, text } = require('../url-options.js');
const { lacksClient } = require('./client.js');
const { whileUsed } = require('./idle.js');

/** @import { Server } from '../types.d.ts' */

/**
 * What is used of `mongodb`.
 * @typedef {object} Driver
 * @property {new (url: string) => Client} MongoClient
 */

/**
 * @typedef {object} Client
 * @property {unknown} db
 * @property {(event: string, listener: (event: { failure?: unknown }) => void) => void} on
 * @property {(isForced: boolean) => Promise<void>} close
 */

/**
 * The driver's own limits are 30 s. Of finding the primary, most calls have less, and then say only that they took too long. Of a
 * connection's greeting, it keeps the process alive for as long, also after close().
 */
const LIMITS = { serverSelectionTimeoutMS: '2000', connectTimeoutMS: '2000' };

/** Read here first: of one that cannot be read, the driver says only that the server cannot be reached. */
const FILES = ['tlsCAFile', 'tlsCertificateKeyFile', 'tlsCRLFile'];

/** Options of URLs that users copy: of others' calls, and of secondaries, without which a client would not connect. */
const DROPPED = 'w wtimeoutMS journal readConcernLevel readPreference maxStalenessSeconds'.split(
  ' ',
);

const SWITCH = oneOf('true', 'false');

/** @type {Server['options']} */
const options = {
  ...all(SWITCH, 'tls ssl tlsAllowInvalidCertificates tlsAllowInvalidHostnames tlsInsecure'),
  ...all(SWITCH, 'directConnection loadBalanced retryReads retryWrites'),
  ...all(text, 'host replicaSet appName authSource authMechanism authMechanismProperties'),
  ...all(text, `${FILES.join(' ')} tlsCertificateKeyFilePassword`),
  ...all(text, 'connectTimeoutMS socketTimeoutMS serverSelectionTimeoutMS localThresholdMS'),
  ...all(text, 'heartbeatFrequencyMS serverMonitoringMode compressors zlibCompressionLevel'),
  ...all(text, 'proxyHost proxyPort proxyUsername proxyPassword srvServiceName srvMaxHosts'),
  ...all(text, 'maxPoolSize minPoolSize maxConnecting maxIdleTimeMS waitQueueTimeoutMS'),
  ...all(text, DROPPED.join(' ')),
};

/** The URL as the driver takes it: all servers before the path. @param {URL} own */
function toDriver(own) {
  const url = new URL(own);
  const servers = own.protocol === 'mongodb:' ? addressesOf(own).join(',') : own.host;
  for (const name of ['host', ...DROPPED]) url.searchParams.delete(name);
  const { searchParams, username, password, protocol, pathname } = url;
  for (const [name, limit] of Object.entries(LIMITS)) {
    if (!searchParams.has(name)) searchParams.set(name, limit);
  }
  const login = username && `${username}${password && `:${password}`}@`;
  return `${protocol}//${login}${servers}${pathname || '/'}${url.search}`;
}

/** @param {URL} url */
function load(url) {
  try {
    return /** @type {Driver} */ (require('mongodb'));
  } catch (cause) {
    throw lacksClient('mongodb', url, cause);
  }
}

/** @type {Server['connect']} */
async function connect(url, { own, options, server }) {
  const driver = load(url);
  const { MongoClient } = driver;
  for (const name of FILES) {
    if (own.searchParams.has(name)) await readFileOf(name, own.searchParams, server);
  }
  const address = toDriver(own);
  return whileUsed((note) => {
    const client = new MongoClient(address);
    // Of servers that cannot be reached, a call says only that it found no primary.
    client.on('serverHeartbeatFailed', ({ failure }) => note(failure));
    client.on('serverHeartbeatSucceeded', () => note(undefined));
    return { store: mongodb(client, options), close: () => client.close(true) };
  });
}

/** @type {Server} */
module.exports = { tls: "the option is 'tls=true'", options, connect };
