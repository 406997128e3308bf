'use strict';
// The connections of `snowdrift serve`.
//
// A connection is a newcomer until a request on it is authorised. Newcomers are never refused, since each may send the
// token next; if there are too many, the oldest is closed. A client sends its token as soon as it is connected, so it
// is authorised before it is the oldest. Authorised connections have a limit of their own. So newcomers and authorised
// connections cannot exclude each other. A probe stays a newcomer.

/**
 * @import { Socket } from 'node:net'
 *
 * Logs a text under a code.
 * @typedef {(code: string, text: string) => void} Log
 * @typedef {Partial<typeof BOUNDS>} Bounds
 * @typedef {InstanceType<typeof Connections>} Connected
 */

const BOUNDS = {
  authorised: 1000,
  /** As many clients may come back at once, as after a restart. */
  newcomers: 1024,
};

class Connections {
  #bounds;
  #log;
  /**
   * In the order in which they came.
   * @type {Set<Socket>}
   */
  #newcomers = new Set();
  /** @type {Set<Socket>} */
  #authorised = new Set();

  /** @param {{ bounds?: Bounds, log: Log }} options `bounds` replaces some of BOUNDS */
  constructor({ bounds, log }) {
    this.#bounds = { ...BOUNDS, ...bounds };
    this.#log = log;
  }

  /** @param {Socket} socket */
  add(socket) {
    if (this.#newcomers.size >= this.#bounds.newcomers) this.#closeOldest(socket);
    this.#newcomers.add(socket);
    socket.once('close', () => {
      this.#newcomers.delete(socket);
      this.#authorised.delete(socket);
    });
  }

  /** @param {Socket} socket */
  isAuthorised(socket) {
    return this.#authorised.has(socket);
  }

  /**
   * Returns whether it is authorised now: not where there are too many.
   * @param {Socket} socket
   */
  authorise(socket) {
    if (this.#authorised.has(socket)) return true;
    if (this.#authorised.size >= this.#bounds.authorised) return false;
    this.#newcomers.delete(socket);
    this.#authorised.add(socket);
    return true;
  }

  /** @param {Socket} latest */
  #closeOldest({ remoteAddress }) {
    const [oldest] = this.#newcomers;
    if (oldest === undefined) return;
    this.#newcomers.delete(oldest);
    // Not resetAndDestroy(): of thousands whose clients closed, too, one kept its descriptor (Node 20).
    oldest.destroy();
    const latest = `the latest is from ${remoteAddress}`;
    this.#log(
      'newcomers',
      `too many connections without an authorised request, ${latest}: closed the oldest`,
    );
  }
}

module.exports = { Connections };
