'use strict';
// etcd by a URL.

const { etcd } = require('../etcd.js');
const { addressesOf, loginOf } = require('../url.js');
const { FILES, tlsOf } = require('../url-options.js');

/** @import { Server } from '../types.d.ts' */

/** @type {Server['connect']} */
async function connect(_, { own, options }) {
  const tls = tlsOf(own, 'etcds:');
  const scheme = tls === undefined ? 'http' : 'https';
  const endpoints = addressesOf(own).map((address) => `${scheme}://${address}`);
  return { store: etcd(endpoints, { ...options, ...loginOf(own), ...tls }) };
}

/** @type {Server} */
module.exports = { tls: "the URL begins with 'etcds://'", options: FILES, connect };
