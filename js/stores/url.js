'use strict';
// Reads the URL of a lease's store. Opens nothing.

const { checkStray } = require('../messages/checks.js');
const { environmentOf } = require('../runtime/environment.js');
const { configError, describe, fromCaller } = require('../messages/errors.js');
const { SERVER } = require('../messages/secrets.js');

/** @typedef {'PostgreSQL' | 'MySQL' | 'MariaDB' | 'Redis' | 'Upstash' | 'MongoDB' | 'etcd' | 'ZooKeeper' | 'DynamoDB' | 'Kubernetes' | 'S3' | 'Google Cloud Storage'} Product */

/**
 * By scheme: the product's name; its default port, unless the URL names no host; its host where a URL may name none; and the `ttl` of
 * its leases, unless usual.
 * @type {Record<string, { product: Product, port?: number, usual?: string, ttl?: number }>}
 */
const SERVERS = {
  'postgres:': { product: 'PostgreSQL', port: 5432 },
  'postgresql:': { product: 'PostgreSQL', port: 5432 },
  'mysql:': { product: 'MySQL', port: 3306 },
  'mariadb:': { product: 'MariaDB', port: 3306 },
  'redis:': { product: 'Redis', port: 6379 },
  'rediss:': { product: 'Redis', port: 6379 },
  'upstash:': { product: 'Upstash', usual: 'UPSTASH_REDIS_REST_URL' },
  'mongodb:': { product: 'MongoDB', port: 27_017 },
  'mongodb+srv:': { product: 'MongoDB', port: 27_017 },
  'etcd:': { product: 'etcd', port: 2379 },
  'etcds:': { product: 'etcd', port: 2379 },
  'zookeeper:': { product: 'ZooKeeper', port: 2181 },
  'zookeepers:': { product: 'ZooKeeper', port: 2281 },
  'dynamodb:': { product: 'DynamoDB' },
  'kubernetes:': { product: 'Kubernetes', port: 443, usual: 'kubernetes.default.svc' },
  's3:': { product: 'S3', ttl: 180_000 },
  'gs:': { product: 'Google Cloud Storage', ttl: 180_000 },
};

const SCHEMES = ['file:', ...Object.keys(SERVERS)].join(', ');

/** The longest name of a host, in characters. */
const LONGEST_HOST = 253;

/** Those whose URL takes several servers. @type {Set<Product>} */
const LISTED = new Set(['MongoDB', 'etcd', 'ZooKeeper']);
const LIST =
  /^((?:mongodb|rediss?|etcds?|zookeepers?):\/\/(?:[^/?#]*@)?)([^/?#@]*,[^/?#@]*)(.*)$/is;
/** A login before each server: a parser would take all but the last server for the password. */
const LOGINS =
  /^(?:(?:mongodb|etcds?|zookeepers?):\/\/[^/?#]*@|rediss?:\/\/[^/?#]*@[^/?#@]*,)[^/?#]*@/i;
/** Characters. It lists some servers and the files of keys; what is longer is no URL, and takes long to read. */
const MOST_OF_URL = 32_768;
const ADDRESS = /^(\[[\da-f:.]{2,45}\]|[^\s:,[\]]{1,253})(:\d{1,5})?$/i;

/**
 * Whether a text names a server, also by an invalid URL.
 * @param {unknown} text
 * @returns {text is string}
 */
function namesServer(text) {
  return typeof text === 'string' && SERVER.test(text);
}

/** SNOWDRIFT_LEASE if it names a server and SNOWDRIFT_STATE is not set. */
function environmentServer() {
  const lease = environmentOf('SNOWDRIFT_LEASE');
  return namesServer(lease) && environmentOf('SNOWDRIFT_STATE') === undefined ? lease : undefined;
}

/** Whether a URL names a server, and no directory. @param {URL} url */
const isServer = ({ protocol }) => protocol !== 'file:';

/**
 * Refuses a URL that names neither a directory nor a server.
 * @param {string} name
 * @param {URL} url
 */
function checkUrl(name, url) {
  if (!isServer(url)) return;
  if (!Object.hasOwn(SERVERS, url.protocol)) {
    throw configError(`${name} must be a URL of ${SCHEMES}; it is ${describe(url.href)}`);
  }
  const { hostname, pathname, search, hash } = url;
  if (hostname.length > LONGEST_HOST) {
    throw configError(
      `${name} names a host of ${hostname.length} characters, and the name of a host has at most ${LONGEST_HOST}: check the URL`,
    );
  }
  // The host would be looked up, although it may be part of a password.
  if (!SERVER.test(url.href) || `${pathname}${search}${hash}`.includes('@')) {
    throw invalidUrl(name, url.href);
  }
}

/**
 * Parses a URL as URL does, or etcd://h1:2379,h2:2379. The servers after the first one become options: ?host=h2:2379
 * @param {string} text
 * @throws {TypeError} it is no URL
 */
function parseUrl(text) {
  // As by the parser, the text is in no message: it may show a password.
  if (LOGINS.test(text)) throw new TypeError('Invalid URL');
  const [, start, list, rest] = LIST.exec(text) ?? [];
  if (list === undefined) return new URL(text);
  const [first, ...others] = list.split(',');
  /** @param {string} address */
  const isAddress = (address) => ADDRESS.test(address);
  if (![first, ...others].every(isAddress)) throw new TypeError('Invalid URL');
  const url = new URL(`${start}${first}${rest}`);
  // In one step: each append() would write all options anew.
  /** @type {[string, string][]} */
  const hosts = others.map((address) => ['host', address]);
  url.search = String(new URLSearchParams([...url.searchParams, ...hosts]));
  return url;
}

/** The servers of a URL that may have several, as host:port. @param {URL} url */
function addressesOf({ protocol, hostname, port, searchParams }) {
  const defaultPort = SERVERS[protocol].port;
  const others = searchParams.getAll('host').map((text) => {
    const [, host, more = `:${defaultPort}`] = ADDRESS.exec(text) ?? [];
    if (host !== undefined) return host + more;
    throw configError("each option 'host' of the URL must be host or host:port");
  });
  return [`${hostname}:${port || defaultPort}`, ...others];
}

/**
 * User and password of a URL, as far as it has them.
 * @param {URL} url
 * @throws {URIError} they are not percent-encoded
 */
function loginOf({ username, password }) {
  return {
    ...(username && { user: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
  };
}

/**
 * Parses the URL of a server. Returns undefined for a file: URL and for a value that is no URL.
 * @param {string} name the value's name in errors
 * @param {unknown} value
 */
function serverUrl(name, value) {
  if (namesServer(value) && value.length > MOST_OF_URL) {
    throw configError(
      `${name} has ${value.length} characters, and the URL of a server has at most ${MOST_OF_URL}`,
    );
  }
  checkStray(name, value);
  let url;
  try {
    url = parseUrl(/** @type {string} */ (value));
  } catch {
    if (!namesServer(value)) return undefined;
    throw invalidUrl(name, value);
  }
  checkUrl(name, url);
  return isServer(url) ? url : undefined;
}

/**
 * @param {string} name
 * @param {string} value
 */
function invalidUrl(name, value) {
  const error = configError(
    `${name} is not a valid URL: ${describe(value)}. Percent-encode special characters of user and password, as encodeURIComponent() does: '@' is %40`,
  );
  return fromCaller(error, invalidUrl);
}

/** @param {URL} url */
const productOf = ({ protocol }) => SERVERS[protocol].product;

/** The ttl of a lease that names none. @param {URL} url */
const ttlOf = ({ protocol }) => SERVERS[protocol].ttl;

/** Whether a URL may have several servers. @param {URL} url */
const isListed = (url) => LISTED.has(productOf(url)) || url.searchParams.has('cluster');

/** A server's name in errors: 'PostgreSQL at db:5432', 'DynamoDB at eu-central-1/ids'. @param {URL} url */
function serverOf(url) {
  const { product, port, usual } = SERVERS[url.protocol];
  if (port === undefined) {
    // Upstash has no path: what is there may be a token.
    const path = usual === undefined ? url.pathname.replace(/^\/$/, '') : '';
    return `${product} at ${url.host || usual}${path}`;
  }
  if (isListed(url)) return `${product} at ${addressesOf(url).join(',')}`;
  const host = url.hostname || url.searchParams.get('host') || (usual ?? 'localhost');
  return `${product} at ${host}:${url.port || port}`;
}

module.exports = {
  addressesOf,
  environmentServer,
  isListed,
  isServer,
  loginOf,
  namesServer,
  productOf,
  serverOf,
  serverUrl,
  ttlOf,
};
