'use strict';
// Google Cloud Storage by a URL, `gs://BUCKET/PREFIX`, through `@google-cloud/storage`.

const { gcs } = require('../gcs.js');
const { lacksClient } = require('./client.js');
const { checkBucket, checkNoLogin, isEndpoint, prefixOf, tls } = require('./cloud.js');

/** @import { Server } from '../types.d.ts' */

/**
 * What is used of the package.
 * @typedef {{ Storage: new (options: object) => { bucket(name: string): { name: string, file: unknown, getFiles: unknown } } }} Client
 */

/** Of a silent server's request, which the client cannot give up: it keeps the process alive for as long. */
const TIMEOUT_MS = 10_000;

const keys =
  'The client finds the credentials: in the file of GOOGLE_APPLICATION_CREDENTIALS, or in the service account of the function, pod or machine';

/** @param {URL} url */
function load(url) {
  try {
    return /** @type {Client} */ (require('@google-cloud/storage'));
  } catch (cause) {
    throw lacksClient('@google-cloud/storage', url, cause);
  }
}

/** @type {NonNullable<Server['check']>} */
function check(where, url) {
  checkNoLogin(where, url, keys);
  checkBucket(where, url, 'gs://BUCKET/PREFIX');
}

/** @type {Server['connect']} */
async function connect(url, { own, options }) {
  const { Storage } = load(url);
  const apiEndpoint = own.searchParams.get('endpoint') ?? undefined;
  // The lease tries again by itself.
  const client = new Storage({
    ...{ apiEndpoint, timeout: TIMEOUT_MS, retryOptions: { autoRetry: false, maxRetries: 0 } },
  });
  return { store: gcs(client.bucket(own.hostname), { ...options, prefix: prefixOf(own) }) };
}

/** @type {Server} */
module.exports = {
  keys,
  tls,
  options: { endpoint: isEndpoint },
  check,
  connect,
};
