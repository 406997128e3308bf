'use strict';
// Checks the arguments that stores take: the client, { namespace }, and of SQL databases { schema }.

const { configError, describe } = require('../messages/errors.js');
const { memberType, optionsOf } = require('../messages/checks.js');
const { NONE } = require('../ids/properties.js');
const { learnPassword, printable } = require('../messages/secrets.js');
const { ignoreErrors } = require('./sockets.js');

/** @import { SqlStoreOptions } from './store.d.ts' */

/** Characters of a user or a password: a token has some 2,000. */
const MOST_OF_LOGIN = 16_384;

/** PostgreSQL cuts a longer name, which then is another one. */
const MOST_OF_SCHEMA = 63;

/**
 * The options of a store, each read once: its namespace, 'default' if there is none, and others.
 * @template {SqlStoreOptions} Options
 * @param {Options} [options]
 * @param {string[]} [names] of all options
 * @param {string} [what]
 * @returns {Options & { namespace: string }}
 */
function readOptions(options, names = ['namespace'], what = 'options of the store') {
  const given = optionsOf(options === undefined ? NONE : options, what, names);
  const { namespace = 'default', schema } = given;
  if (typeof namespace !== 'string' || !/^[A-Za-z0-9_.-]{1,64}$/.test(namespace)) {
    throw configError(
      `namespace must be 1 to 64 letters, digits, '_', '.' or '-'; it is ${describe(namespace)}`,
    );
  }
  const bytes = typeof schema === 'string' ? Buffer.byteLength(schema) : 0;
  // The clients take '?' for a parameter.
  if (
    schema !== undefined &&
    (bytes === 0 ||
      bytes > MOST_OF_SCHEMA ||
      String(schema).includes('?') ||
      printable(String(schema)) !== schema)
  ) {
    throw configError(
      `schema must be a name of 1 to ${MOST_OF_SCHEMA} bytes, without '?' and control characters; it is ${describe(schema)}`,
    );
  }
  /** @type {unknown} */
  const own = { __proto__: null, ...given, namespace };
  return /** @type {Options & { namespace: string }} */ (own);
}

/**
 * A store's name: its kind, the schema that it was given, and its namespace or table.
 * @param {string} kind
 * @param {string | undefined} schema
 * @param {string} rest
 */
const nameOf = (kind, schema, rest) => `${kind}:${schema === undefined ? '' : `${schema}/`}${rest}`;

/**
 * @param {unknown} text
 * @returns {text is string}
 */
const isLogin = (text) => typeof text === 'string' && text !== '' && text.length <= MOST_OF_LOGIN;

/**
 * Checks that there are both user and password, or neither.
 * @param {string} name whose options they are, in errors
 * @param {{ user?: unknown, password?: unknown }} options
 * @returns {{ user?: undefined, password?: undefined } | { user: string, password: string }}
 */
function readLogin(name, { user, password }) {
  if (user === undefined && password === undefined) return {};
  if (!isLogin(user) || !isLogin(password)) {
    throw configError(
      `${name} needs both user and password as text of at most ${MOST_OF_LOGIN} characters, or neither`,
    );
  }
  learnPassword(password);
  return { user, password };
}

/**
 * Checks a client of the application. From here on, errors that it emits do not end the process.
 * @param {object} client
 * @param {Record<string, string>} members types of some of its members
 * @param {string} expected begins the error: 'mysql() takes a pool of mysql2'
 */
function checkClient(client, members, expected) {
  /** @param {[string, string]} member */
  const isRight = ([name, type]) => memberType(client, name) === type;
  if (client === null || typeof client !== 'object' || !Object.entries(members).every(isRight)) {
    throw configError(`${expected}; this is ${describe(client)}`);
  }
  ignoreErrors(client);
}

module.exports = { checkClient, nameOf, readLogin, readOptions };
