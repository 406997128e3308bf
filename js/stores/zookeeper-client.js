'use strict';
// Sessions of ZooKeeper: its addon, the addresses of the ensemble, login and certificates.

const { loadAddon } = require('../runtime/addon.js');
const { environmentOf } = require('../runtime/environment.js');
const { configError, describe, needsPackage } = require('../messages/errors.js');
const { readOptionFile } = require('../runtime/files.js');
const { ownOf } = require('../ids/properties.js');
const { SERVER } = require('../messages/secrets.js');
const { readLogin } = require('./options.js');

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
  return loadAddon('snowdrift-zookeeper', found.directory, found.load);
}

function checkEnsemble(ensemble) {
  if (typeof ensemble === 'string' && ENSEMBLE.test(ensemble)) return;
  // As a URL, since it may have a login.
  const isText = typeof ensemble === 'string' && !SERVER.test(ensemble);
  throw configError(
    `zookeeper() takes the addresses of an ensemble, such as 'zk1:2181,zk2:2181'; this is ${describe(isText ? `zookeeper://${ensemble}` : ensemble)}`,
  );
}

/** What Node trusts, once it was asked for. */
let trusted;

/** Node's own CAs and those of NODE_EXTRA_CA_CERTS. */
async function trustedByNode() {
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

/** A certificate or key as text. */
function readPem(value) {
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  if (value === undefined || typeof value === 'string') return value;
  throw new TypeError('not PEM');
}

/** The certificates and the key of an option `tls`, as text. No error has their values. */
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
 * @param options user, password and tls, as in zookeeper.d.ts
 * @param loadClient returns the addon
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
  const certificates = async () => {
    const own = typeof tls === 'function' ? readTls(await tls()) : given;
    if (own === undefined || own.ca !== undefined) return own;
    trusted ??= trustedByNode();
    return { ...own, ca: await trusted };
  };
  const connect = (current) =>
    addon.connect(ensemble, SESSION_MS, user && `${user}:${password}`, current);
  let connecting;

  return {
    /** The open session, or a new one. */
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
