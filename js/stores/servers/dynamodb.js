'use strict';
// DynamoDB by a URL, `dynamodb://REGION/TABLE`, through `@aws-sdk/client-dynamodb`.

const { configError } = require('../../messages/errors.js');
const { loadDynamoDB } = require('../aws.js');
const { dynamodb } = require('../dynamodb.js');
const { AWS_KEYS, checkNoLogin, isEndpoint, tls } = require('./cloud.js');

/** @import { Server } from '../types.d.ts' */

/**
 * What is used of the package.
 * @typedef {{ DynamoDBClient: new (options: object) => { send: unknown, destroy(): void } }} Sdk
 */

/** @type {NonNullable<Server['check']>} */
function check(where, url) {
  checkNoLogin(where, url, AWS_KEYS);
  if (/^[a-z\d-]+$/.test(url.hostname) && url.port === '') return;
  throw configError(`${where} must name a Region and a table: dynamodb://eu-central-1/TABLE`);
}

/** @type {Server['connect']} */
async function connect(_, { own, options }) {
  const { DynamoDBClient } = /** @type {Sdk} */ (loadDynamoDB());
  const endpoint = own.searchParams.get('endpoint') ?? undefined;
  const client = new DynamoDBClient({ region: own.hostname, endpoint });
  const table = decodeURIComponent(own.pathname.slice(1)) || undefined;
  return { store: dynamodb(client, { ...options, table }), end: async () => client.destroy() };
}

/** @type {Server} */
module.exports = { keys: AWS_KEYS, tls, options: { endpoint: isEndpoint }, check, connect };
