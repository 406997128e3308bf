'use strict';
// What the URLs of AWS's services share: their options, and that they have no keys.

const { configError } = require('../../messages/errors.js');

/** @import { Check, Server } from '../types.d.ts' */

/** @type {Check} */
const isEndpoint = (value) => /^https?:\/\/[^\s?#@]+$/.test(value);
isEndpoint.expected = "a URL that begins with 'http://' or 'https://', without login and options";

const keys =
  'The AWS SDK finds the keys: in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, in the profile AWS_PROFILE, or in the role of the function, task, pod or machine';

/** @type {NonNullable<Server['check']>} */
function checkKeys(where, { username, password }) {
  if (!username && !password) return;
  throw configError(`${where} has a login: remove it. ${keys}`);
}

module.exports = {
  checkKeys,
  isEndpoint,
  keys,
  tls: "the option 'endpoint' begins with 'https://', or is left out",
};
