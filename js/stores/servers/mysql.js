'use strict';
// MySQL and MariaDB by a URL, through `mysql2`.

const { promisify } = require('node:util');

const { propertyOf } = require('../../ids/properties.js');
const { guardStream, ignoreErrors } = require('../sockets.js');
const { promised, runMysql } = require('../sql-clients.js');
const { sqlRegister } = require('../sql-register.js');
const { all, text } = require('../url-options.js');
const { KEEP_ALIVE_MS, lacksClient } = require('./client.js');

/**
 * @import { Socket as NodeSocket } from 'node:net'
 * @import { MysqlCallbacks, MysqlConnection, Server } from '../types.d.ts'
 */

/**
 * What is used of `mysql2`.
 * @typedef {object} Mysql2
 * @property {new (options: object) => object} ConnectionConfig
 * @property {new (options: object) => MysqlCallbacks & Record<'connect' | 'end', (settle: (failure: Error | null) => void) => void>} Connection
 */

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

/** @type {Server['options']} */
const options = {
  ssl: isMysqlSsl,
  ...all(text, 'charset charsetNumber compress connectAttributes connectTimeout flags'),
  ...all(text, 'enableCleartextPlugin insecureAuth socketPath timezone trace'),
  ...all(text, 'password1 password2 password3 passwordSha1 disableEval jsonStrings'),
  ...all(text, 'bigNumberStrings dateStrings decimalNumbers supportBigNumbers schema'),
  // Of pools. A URL has none, so they are without effect; URLs that users copy have them.
  ...all(text, 'connectionLimit enableKeepAlive gracefulEnd idleTimeout keepAliveInitialDelay'),
  ...all(text, 'maxIdle maxPreparedStatements queueLimit resetOnRelease waitForConnections'),
};

/** @param {URL} url */
function load(url) {
  try {
    return /** @type {Mysql2} */ (/** @type {unknown} */ (require('mysql2')));
  } catch (cause) {
    throw lacksClient('mysql2', url, cause);
  }
}

/** @type {Server['connect']} */
async function connect(url, { own, options }) {
  const mysql2 = load(url);
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

/** @type {Server} */
module.exports = { tls: `the option is 'ssl={"verifyIdentity":true}'`, options, connect };
