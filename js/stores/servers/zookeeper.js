'use strict';
// ZooKeeper by a URL.

const { addressesOf, loginOf } = require('../url.js');
const { FILES, tlsOf } = require('../url-options.js');
const { zookeeper } = require('../zookeeper.js');

/** @import { Server } from '../types.d.ts' */

/** @type {Server['connect']} */
async function connect(_, { own, options }) {
  const tls = tlsOf(own, 'zookeepers:');
  const ensemble = addressesOf(own).join(',') + own.pathname;
  return { store: zookeeper(ensemble, { ...options, ...loginOf(own), ...tls }) };
}

/** @type {Server} */
module.exports = { tls: "the URL begins with 'zookeepers://'", options: FILES, connect };
