'use strict';
// What the URLs of cloud services share. They have no credentials, which the service's client finds.

const { configError } = require('../../messages/errors.js');

/** @import { Check } from '../types.d.ts' */

/** @type {Check} */
const isEndpoint = (value) => /^https?:\/\/[^\s?#@]+$/.test(value);
isEndpoint.expected = "a URL that begins with 'http://' or 'https://', without login and options";

/** Where the AWS SDK finds the keys. */
const AWS_KEYS =
  'The AWS SDK finds the keys: in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, in the profile AWS_PROFILE, or in the role of the function, task, pod or machine';

/**
 * Refuses a login.
 * @param {string} where
 * @param {URL} url
 * @param {string} keys where the client finds its credentials
 */
function checkNoLogin(where, { username, password }, keys) {
  if (!username && !password) return;
  throw configError(`${where} has a login: remove it. ${keys}`);
}

/**
 * Refuses a URL that names no bucket.
 * @param {string} where
 * @param {URL} url
 * @param {string} example
 */
function checkBucket(where, { hostname, port }, example) {
  if (hostname !== '' && port === '') return;
  throw configError(`${where} must name a bucket: ${example}`);
}

/** What the path of a bucket's URL says of the names of objects. @param {URL} own */
const prefixOf = ({ pathname }) =>
  decodeURIComponent(pathname).replace(/^[/]|[/]$/g, '') || undefined;

module.exports = {
  AWS_KEYS,
  checkBucket,
  checkNoLogin,
  isEndpoint,
  prefixOf,
  tls: "the option 'endpoint' begins with 'https://', or is left out",
};
