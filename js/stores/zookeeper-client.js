'use strict';
// Sessions of ZooKeeper: its addon, the addresses of the ensemble, login and certificates.

const { loadAddon } = require('../runtime/addon.js');
const { environmentOf } = require('../runtime/environment.js');
const { configError, describe, needsPackage } = require('../messages/errors.js');
const { readOptionFile } = require('../runtime/files.js');
const { ownOf } = require('../ids/properties.js');
const { SERVER } = require('../messages/secrets.js');
const { readLogin } = require('./options.js');

/** @import { ZooKeeperOptions, ZooKeeperTlsOptions } from './zookeeper.d.ts' */

/**
 * @import { Change, Session, Tls } from '../../packages/zookeeper/addon-types.d.ts'
 * @typedef {typeof import('../../packages/zookeeper/addon-types.d.ts')} Addon
 */

/** After so long without a word the ensemble ends a session, ms. */
const SESSION_MS = 10_000;

const ENSEMBLE = /^[^/,:@\s]+:\d+(,[^/,:@\s]+:\d+)*(\/\S*)?$/;

function load() {
  let found;
  try {
    found = require('snowdrift-zookeeper');
  } catch (cause) {
    throw needsPackage('a lease from ZooKeeper', 'snowdrift-zookeeper', cause);
  }
  const addon = loadAddon('snowdrift-zookeeper', found.directory, found.load);
  return /** @type {Addon} */ (addon);
}

/** @param {unknown} ensemble */
function checkEnsemble(ensemble) {
  if (typeof ensemble === 'string' && ENSEMBLE.test(ensemble)) return;
  // As a URL, since it may have a login.
  const isText = typeof ensemble === 'string' && !SERVER.test(ensemble);
  throw configError(
    `zookeeper() takes the addresses of an ensemble, such as 'zk1:2181,zk2:2181'; this is ${describe(isText ? `zookeeper://${ensemble}` : ensemble)}`,
  );
}

/** What Node trusts, once it was asked for. @type {Promise<string> | undefined} */
let trusted;

/** Node's own CAs and those of NODE_EXTRA_CA_CERTS. */
async function trustedByNode() {
  /** @type {typeof import('node:tls') & { getCACertificates?(kind: 'default'): string[] }} */
  const tls = require('node:tls');
  // Since Node 22.15.
  if (tls.getCACertificates !== undefined) return tls.getCACertificates('default').join('\n');
  let extra = '';
  try {
    const path = environmentOf('NODE_EXTRA_CA_CERTS');
    if (path !== undefined) extra = String(await readOptionFile('NODE_EXTRA_CA_CERTS', path));
  } catch {
    // Of a file that cannot be read, Node has warned.
  }
  return [...tls.rootCertificates, extra].join('\n');
}

/** A certificate or key as text. @param {unknown} value */
function readPem(value) {
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  if (value === undefined || typeof value === 'string') return value;
  throw new TypeError('not PEM');
}

/**
 * The certificates and the key of an option `tls`, as text. No error has their values.
 * @param {ZooKeeperTlsOptions} tls
 */
function readTls(tls) {
  try {
    if (Object.prototype.toString.call(tls) !== '[object Object]') throw new TypeError('no object');
    const { ca, cert, key, ...others } = tls;
    if (Object.keys(others).length > 0 || (cert === undefined) !== (key === undefined)) {
      throw new TypeError('other options');
    }
    return { ca: readPem(ca), cert: readPem(cert), key: readPem(key) };
  } catch {
    throw configError(
      'zookeeper(): tls must be an object with ca, and with both cert and key or neither, each in PEM; or a function that returns it. It takes no other options',
    );
  }
}

/**
 * A client of an ensemble, with one session.
 * @param {string} ensemble
 * @param {Pick<ZooKeeperOptions, 'user' | 'password' | 'tls'>} options
 * @param {() => Addon} [loadClient] returns the addon
 */
function createClient(ensemble, options, loadClient = load) {
  const { tls, ...login } = ownOf(options);
  const { user, password } = ownOf(readLogin('zookeeper()', ownOf(login)));
  if (user?.includes(':')) throw configError("zookeeper(): user must not contain ':'");
  checkEnsemble(ensemble);
  const given = tls === undefined || typeof tls === 'function' ? undefined : readTls(tls);
  const addon = loadClient();
  if (tls !== undefined && !addon.HAS_TLS) {
    throw configError(
      'this build of snowdrift-zookeeper has no TLS: build it for this platform with the feature tls, or reach the ensemble without TLS',
    );
  }
  /** @returns {Promise<Tls | undefined>} */
  const certificates = async () => {
    const own = typeof tls === 'function' ? readTls(await tls()) : given;
    if (own === undefined) return undefined;
    const { ca } = own;
    if (ca !== undefined) return { ...own, ca };
    trusted ??= trustedByNode();
    return { ...own, ca: await trusted };
  };
  /** @param {Tls | undefined} current */
  const connect = (current) =>
    addon.connect(ensemble, SESSION_MS, user && `${user}:${password}`, current);
  /** @type {Promise<Session> | undefined} */
  let connecting;

  return {
    /** The open session, or a new one. @param {AbortSignal} [signal] */
    async session(signal) {
      signal?.throwIfAborted();
      const before = connecting;
      let open = await before?.catch(() => undefined);
      if (open === undefined || open.hasEnded()) {
        const current = await certificates();
        signal?.throwIfAborted();
        // Its client may reconnect.
        open?.close();
        // Unless another call has begun a new one.
        if (connecting === before) connecting = undefined;
        connecting ??= connect(current);
        open = await connecting;
      }
      signal?.throwIfAborted();
      return open;
    },

    /** Ends the session, and with it its ephemeral nodes. */
    async close() {
      const last = connecting;
      connecting = undefined;
      const open = await last?.catch(() => undefined);
      open?.close();
    },
  };
}

module.exports = { createClient };
