'use strict';
// S3 by a URL, `s3://BUCKET/PREFIX?region=...`, through `@aws-sdk/client-s3`.

const { ownOf } = require('../../ids/properties.js');
const { loadS3 } = require('../aws.js');
const { s3 } = require('../s3.js');
const { all, text } = require('../url-options.js');
const { AWS_KEYS, checkBucket, checkNoLogin, isEndpoint, prefixOf, tls } = require('./cloud.js');

/** @import { Server } from '../types.d.ts' */

/**
 * What is used of the package.
 * @typedef {{ S3Client: new (options: object) => { send: unknown, destroy(): void } }} Sdk
 */

/** What services of the protocol often lack. */
const PLAIN = {
  forcePathStyle: true,
  requestChecksumCalculation: 'WHEN_REQUIRED',
  responseChecksumValidation: 'WHEN_REQUIRED',
};

/** @type {NonNullable<Server['check']>} */
function check(where, url) {
  checkNoLogin(where, url, AWS_KEYS);
  checkBucket(where, url, 's3://BUCKET/PREFIX?region=eu-central-1');
}

/** @type {Server['connect']} */
async function connect(_, { own, options }) {
  const { S3Client } = /** @type {Sdk} */ (loadS3());
  const { region, endpoint } = ownOf(Object.fromEntries(own.searchParams));
  const client = new S3Client({ region, endpoint, ...(endpoint !== undefined && PLAIN) });
  const store = s3(client, { ...options, bucket: own.hostname, prefix: prefixOf(own) });
  return { store, end: async () => client.destroy() };
}

/** @type {Server} */
module.exports = {
  keys: AWS_KEYS,
  tls,
  options: { ...all(text, 'region'), endpoint: isEndpoint },
  check,
  connect,
};
