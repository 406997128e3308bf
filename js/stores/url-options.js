'use strict';
// Checks the options of a server's URL. Clients ignore options that they do not know, and connect without TLS where one
// of TLS is misspelt: the password would cross the network in clear text.

const { environmentOf } = require('../runtime/environment.js');
const { configError } = require('../messages/errors.js');
const { readOptionFile } = require('../runtime/files.js');
const { isSecretOption } = require('../messages/secrets.js');
const { productOf, serverOf } = require('./url.js');

/** @typedef {((value: string) => boolean) & { expected?: string }} Check whether an option may have a value */

/** @type {Check} */
const text = () => true;
/** @param {string[]} values */
const oneOf = (...values) => {
  /** @param {string} value */
  const check = (value) => values.includes(value);
  return Object.assign(check, {
    expected: `one of ${values.map((value) => `'${value}'`).join(', ')}`,
  });
};
/**
 * @param {Check} check
 * @param {string} names
 */
const all = (check, names) => Object.fromEntries(names.split(' ').map((name) => [name, check]));

const SSL_MODES = oneOf('disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify');

/** Options of mysql2's `ssl`: its own two are switches, the others are those of node:tls. */
const SSL_SWITCHES = ['rejectUnauthorized', 'verifyIdentity'];
const SSL_TEXTS = ['ca', 'cert', 'ciphers', 'key', 'maxVersion', 'minVersion', 'passphrase'];

/** mysql2 takes the values as JSON, and as text what is none. @param {string} value */
function isMysqlSsl(value) {
  if (value === 'Amazon RDS') return true;
  let ssl;
  try {
    ssl = JSON.parse(value);
  } catch {
    return false;
  }
  if (ssl === null || typeof ssl !== 'object' || Array.isArray(ssl)) return ssl === false;
  return Object.entries(ssl).every(([name, each]) =>
    SSL_SWITCHES.includes(name) ? typeof each === 'boolean' : SSL_TEXTS.includes(name),
  );
}
isMysqlSsl.expected = `false, 'Amazon RDS' or an object of ${[...SSL_SWITCHES, ...SSL_TEXTS].join(', ')}`;

const TLS_FILES = ['ca', 'cert', 'key'];
const FILES = all(text, ['host', ...TLS_FILES].join(' '));

/**
 * By product: how to turn TLS on, and the options that its client knows.
 * @type {Record<string, { tls: string, options: Record<string, Check> }>}
 */
const CLIENTS = {
  PostgreSQL: {
    tls: "the option is 'sslmode=verify-full'",
    options: {
      sslmode: SSL_MODES,
      // pg takes 'false' for true.
      ssl: oneOf('true', '1', '0', 'no-verify'),
      sslnegotiation: oneOf('postgres', 'direct'),
      uselibpqcompat: oneOf('true', 'false'),
      ...all(text, 'sslcert sslkey sslrootcert host port user password options'),
      ...all(text, 'application_name fallback_application_name client_encoding'),
      ...all(text, 'statement_timeout lock_timeout idle_in_transaction_session_timeout'),
      ...all(text, 'query_timeout schema'),
    },
  },
  MySQL: {
    tls: `the option is 'ssl={"verifyIdentity":true}'`,
    options: {
      ssl: isMysqlSsl,
      ...all(text, 'charset charsetNumber compress connectAttributes connectTimeout flags'),
      ...all(text, 'enableCleartextPlugin insecureAuth socketPath timezone trace'),
      ...all(text, 'password1 password2 password3 passwordSha1 disableEval jsonStrings'),
      ...all(text, 'bigNumberStrings dateStrings decimalNumbers supportBigNumbers schema'),
      // Of pools. A URL has none, so they are without effect; URLs that users copy have them.
      ...all(text, 'connectionLimit enableKeepAlive gracefulEnd idleTimeout keepAliveInitialDelay'),
      ...all(text, 'maxIdle maxPreparedStatements queueLimit resetOnRelease waitForConnections'),
    },
  },
  Redis: {
    tls: "the URL begins with 'rediss://'",
    options: {
      // Any other text turns TLS on, even 'false', and an empty one turns it off.
      tls: oneOf('RedisCloudFixed', 'RedisCloudFlexible'),
      family: oneOf('0', '4', '6'),
      ...all(text, 'username password db path keyPrefix connectionName clientInfoTag'),
    },
  },
  etcd: { tls: "the URL begins with 'etcds://'", options: FILES },
  ZooKeeper: { tls: "the URL begins with 'zookeepers://'", options: FILES },
};

CLIENTS.MariaDB = CLIENTS.MySQL;

/**
 * Parts of a URL that an option may repeat: a client uses one of them.
 * @type {Record<string, 'port' | 'username' | 'password'>}
 */
const PARTS = { port: 'port', user: 'username', username: 'username', password: 'password' };
const OF_TLS = /ssl|tls|secure|cert|ca$|^key|verif|encrypt/i;

/** Checks that each option of a URL is our own or one that its client knows, and has one value. @param {URL} url */
function checkOptions(url) {
  const { pathname, hash, searchParams } = url;
  const product = productOf(url);
  const { tls, options: ofClient } = CLIENTS[product];
  /** @type {Record<string, Check>} */
  const options = { namespace: text, ...ofClient };
  const where = `the URL of ${serverOf(url)}`;
  if (hash !== '' || /[&=]/.test(pathname)) {
    throw configError(
      `${where} has options where no client reads them: they begin with '?'. Percent-encode other '#', '&' and '=' as %23, %26 and %3D`,
    );
  }
  const names = [...searchParams.keys()];
  for (const name of new Set(names)) {
    const check = Object.hasOwn(options, name) ? options[name] : undefined;
    const remedy = OF_TLS.test(name) ? `. For TLS, ${tls}` : '';
    if (check === undefined) {
      // What follows the '&' of a password is no name.
      const quoted = names.some(isSecretOption) ? 'an option' : `the option '${name}'`;
      throw configError(
        `${where} has ${quoted}, which its client does not know${remedy}. It knows ${Object.keys(options).join(', ')}; case matters`,
      );
    }
    const values = searchParams.getAll(name);
    const isList = ofClient === FILES && name === 'host';
    if (values.length > 1 && !isList) throw configError(`${where} has the option '${name}' twice`);
    if (Object.hasOwn(PARTS, name) && url[PARTS[name]])
      throw configError(`${where} has the option '${name}' and a ${name}: remove one`);
    if (values.includes('') || !values.every(check)) {
      throw configError(
        `the option '${name}' of ${where} must be ${check.expected ?? 'a text that is not empty'}${remedy}`,
      );
    }
  }
  if (product === 'PostgreSQL') checkSslMode(where, searchParams);
}

/**
 * pg lets one option of TLS override another, and takes an unknown PGSSLMODE for 'disable'.
 * @param {string} where
 * @param {URLSearchParams} searchParams
 */
function checkSslMode(where, searchParams) {
  if (searchParams.has('ssl') && searchParams.has('sslmode')) {
    throw configError(`${where} has both 'ssl' and 'sslmode': remove one`);
  }
  const mode = environmentOf('PGSSLMODE');
  if (searchParams.has('ssl') || searchParams.has('sslmode') || !mode) return;
  if (SSL_MODES(mode)) return;
  throw configError(`PGSSLMODE must be ${SSL_MODES.expected}, or ${where} must have 'sslmode'`);
}

/**
 * A store's option `tls`, by the URL's options ca, cert and key.
 * @param {URL} own
 * @param {string} scheme of URLs with TLS
 * @returns an object with it; undefined without TLS
 */
function tlsOf(own, scheme) {
  const { searchParams } = own;
  const server = serverOf(own);
  const files = TLS_FILES.filter((name) => searchParams.has(name));
  if (own.protocol !== scheme) {
    if (files.length > 0) throw configError(`${files[0]} of a URL needs ${scheme}//`);
    return undefined;
  }
  /** @type {(name: string) => Promise<[string, Buffer]>} */
  const readTls = async (name) => [name, await readFileOf(name, searchParams, server)];
  // Read for each request, so that renewed certificates are used.
  return { tls: async () => Object.fromEntries(await Promise.all(files.map(readTls))) };
}

/**
 * The file that an option of a URL names.
 * @param {string} name
 * @param {URLSearchParams} searchParams which have that option
 * @param {string} server
 */
function readFileOf(name, searchParams, server) {
  const path = /** @type {string} */ (searchParams.get(name));
  return readOptionFile(`the file of the option ${name} of ${server}`, path);
}

/**
 * Checks the files of TLS that pg reads by itself, whatever they are, and blocks the thread for it.
 * @param {URL} own
 * @param {string} server
 */
async function checkFilesOfPg({ searchParams }, server) {
  for (const name of ['sslcert', 'sslkey', 'sslrootcert']) {
    if (searchParams.has(name)) await readFileOf(name, searchParams, server);
  }
}

module.exports = { checkFilesOfPg, checkOptions, tlsOf };
