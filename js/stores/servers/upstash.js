'use strict';
// Upstash by a URL, through `@upstash/redis`: `upstash://:TOKEN@HOST`, or `upstash:///` with both from the environment.

const { environmentOf } = require('../../runtime/environment.js');
const { configError } = require('../../messages/errors.js');
const { learnPassword } = require('../../messages/secrets.js');
const { upstash } = require('../upstash.js');
const { loginOf } = require('../url.js');
const { lacksClient } = require('./client.js');

/** @import { Server } from '../types.d.ts' */

/**
 * What is used of the package.
 * @typedef {{ Redis: new (options: object) => { eval: unknown, time: unknown } }} Client
 */

const [URL_NAME, TOKEN_NAME] = ['UPSTASH_REDIS_REST_URL', 'UPSTASH_REDIS_REST_TOKEN'];

/** @param {URL} url */
function load(url) {
  try {
    return /** @type {Client} */ (require('@upstash/redis'));
  } catch (cause) {
    throw lacksClient('@upstash/redis', url, cause);
  }
}

/** @type {NonNullable<Server['check']>} */
function check(where, { pathname }) {
  if (pathname.length > 1) {
    throw configError(
      `${where} has a path: remove it. The token comes first, upstash://:TOKEN@host`,
    );
  }
}

/** @type {Server['connect']} */
async function connect(url, { own, options, server }) {
  const { Redis } = load(url);
  const { user, password = user } = loginOf(own);
  const address = own.host ? `https://${own.host}` : environmentOf(URL_NAME);
  const token = password ?? environmentOf(TOKEN_NAME);
  if (!address) throw configError(`${server} needs ${URL_NAME} in the environment, or a host`);
  if (!token) throw configError(`${server} needs ${TOKEN_NAME} in the environment, or a token`);
  learnPassword(token);
  let life = new AbortController();
  // The lease tries again by itself.
  const client = new Redis({
    ...{ url: address, token, retry: false, enableTelemetry: false },
    signal: () => life.signal,
  });
  return {
    store: upstash(client, options),
    drop() {
      life.abort();
      life = new AbortController();
    },
  };
}

/** @type {Server} */
module.exports = { tls: 'it always uses TLS', options: {}, check, connect };
