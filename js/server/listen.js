'use strict';
// Starts and stops a server.

/**
 * @import { AddressInfo } from 'node:net'
 * @import { SnowFlake } from '../../index.js'
 * @import { ServerOptions } from './http.js'
 */

const { configError } = require('../messages/errors.js');
const { createServer } = require('./http.js');

/**
 * The most connections that wait to be accepted, as Linux limits them. If 1,000 clients connect at once, Node's default
 * of 511 drops some, and these retry only after seconds.
 */
const BACKLOG = 4096;

/** Time limit of the requests under way when the server stops, ms. */
const STOP_MS = 5000;

/**
 * Serves a generator's IDs.
 * @param {SnowFlake} flake
 * @param {{ port: number, host: string } & ServerOptions} options
 * @returns its URL, and `stop()`, which first finishes the requests under way
 */
async function listen(flake, { port, host, ...options }) {
  const server = createServer(flake, options);
  /** @type {Promise<void>} */
  const opened = new Promise((resolve, reject) => {
    server.once('error', reject).listen({ port, host, backlog: BACKLOG }, resolve);
  });
  await opened.catch(({ message }) => {
    throw configError(`cannot listen: ${message}. Choose another --port or --host`);
  });
  const { address, family, port: bound } = /** @type {AddressInfo} */ (server.address());

  async function stop() {
    const closed = new Promise((resolve) => server.once('close', resolve));
    server.close();
    server.closeIdleConnections?.();
    const late = setTimeout(() => server.closeAllConnections?.(), STOP_MS);
    await closed;
    clearTimeout(late);
  }
  return { url: `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`, stop };
}

module.exports = { listen };
