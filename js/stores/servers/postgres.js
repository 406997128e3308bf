'use strict';
// PostgreSQL by a URL, through `pg`.

const { environmentOf } = require('../../runtime/environment.js');
const { configError } = require('../../messages/errors.js');
const { postgres } = require('../postgres.js');
const { guardStream, ignoreErrors } = require('../sockets.js');
const { all, oneOf, readFileOf, text } = require('../url-options.js');
const { KEEP_ALIVE_MS, lacksClient } = require('./client.js');

/** @import { Server, Streaming } from '../types.d.ts' */

/**
 * What is used of `pg`.
 * @typedef {object} Pg
 * @property {new (config: object) => { connection: Streaming }} Client
 * @property {new (options: object) => { connect: unknown, totalCount: number, end(): Promise<void> }} Pool
 */

const SSL_MODES = oneOf('disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify');

/** @type {Server['options']} */
const options = {
  sslmode: SSL_MODES,
  // pg takes 'false' for true.
  ssl: oneOf('true', '1', '0', 'no-verify'),
  sslnegotiation: oneOf('postgres', 'direct'),
  uselibpqcompat: oneOf('true', 'false'),
  ...all(text, 'sslcert sslkey sslrootcert host port user password options'),
  ...all(text, 'application_name fallback_application_name client_encoding'),
  ...all(text, 'statement_timeout lock_timeout idle_in_transaction_session_timeout'),
  ...all(text, 'query_timeout schema'),
};

/**
 * pg lets one option of TLS override another, and takes an unknown PGSSLMODE for 'disable'.
 * @param {string} where
 * @param {URL} url
 */
function check(where, { searchParams }) {
  if (searchParams.has('ssl') && searchParams.has('sslmode')) {
    throw configError(`${where} has both 'ssl' and 'sslmode': remove one`);
  }
  const mode = environmentOf('PGSSLMODE');
  if (searchParams.has('ssl') || searchParams.has('sslmode') || !mode) return;
  if (SSL_MODES(mode)) return;
  throw configError(`PGSSLMODE must be ${SSL_MODES.expected}, or ${where} must have 'sslmode'`);
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

/** @param {URL} url */
function load(url) {
  try {
    return /** @type {Pg} */ (require('pg'));
  } catch (cause) {
    throw lacksClient('pg', url, cause);
  }
}

/** @type {Server['connect']} */
async function connect(url, { own, options, server }) {
  const pg = load(url);
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

/** @type {Server} */
module.exports = { tls: "the option is 'sslmode=verify-full'", options, check, connect };
