'use strict';
// The connections of `snowdrift serve`.
//
// A connection is a newcomer until a request on it is authorised. Newcomers are never refused, since each may send the
// token next; if there are too many, the oldest is closed. A client sends its token as soon as it is connected, so it
// is authorised before it is the oldest. Authorised connections have a limit of their own. So newcomers and authorised
// connections cannot exclude each other. A probe stays a newcomer.

const BOUNDS = {
  authorised: 1000,
  /** The most newcomers in all. After a restart, this many clients may come back at once. */
  newcomers: 1024,
  /**
   * The most newcomers of one network: half, so that one address cannot close the newcomers of all others. A proxy with
   * many clients is one address.
   */
  newcomersOfAddress: 512,
};

/** The network of an address: for IPv6 the /64, which one client may own. */
function networkOf(address) {
  const [text, mapped] = /^(?:::ffff:)?(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  if (text !== undefined) return mapped;
  const [head, tail] = String(address)
    .split('::')
    .map((part) => part.split(':').filter(Boolean));
  const zeros = tail === undefined ? [] : Array(8 - head.length - tail.length).fill('0');
  return [...head, ...zeros, ...(tail ?? [])].slice(0, 4).join(':');
}

class Connections {
  #bounds;
  #log;
  /** The network of each newcomer, in the order of arrival. */
  #newcomers = new Map();
  /** The newcomers of each network. */
  #newcomersOf = new Map();
  #authorised = new Set();

  /** @param options `bounds` replaces some of BOUNDS; `log` logs a text under a code */
  constructor({ bounds, log }) {
    this.#bounds = { ...BOUNDS, ...bounds };
    this.#log = log;
  }

  add(socket) {
    const network = networkOf(socket.remoteAddress);
    const { newcomers, newcomersOfAddress } = this.#bounds;
    const own = this.#newcomersOf.get(network);
    if (own?.size >= newcomersOfAddress) this.#closeOldest(own, socket);
    else if (this.#newcomers.size >= newcomers) this.#closeOldest(this.#newcomers, socket);
    this.#newcomers.set(socket, network);
    if (!this.#newcomersOf.has(network)) this.#newcomersOf.set(network, new Set());
    this.#newcomersOf.get(network).add(socket);
    socket.once('close', () => {
      this.#removeNewcomer(socket);
      this.#authorised.delete(socket);
    });
  }

  isAuthorised(socket) {
    return this.#authorised.has(socket);
  }

  /** Authorises a connection, unless there are too many. Returns whether it did. */
  authorise(socket) {
    if (this.#authorised.has(socket)) return true;
    if (this.#authorised.size >= this.#bounds.authorised) return false;
    this.#removeNewcomer(socket);
    this.#authorised.add(socket);
    return true;
  }

  #removeNewcomer(socket) {
    const network = this.#newcomers.get(socket);
    if (network === undefined) return;
    this.#newcomers.delete(socket);
    const own = this.#newcomersOf.get(network);
    own.delete(socket);
    if (own.size === 0) this.#newcomersOf.delete(network);
  }

  #closeOldest(newcomers, { remoteAddress }) {
    const [oldest] = newcomers.keys();
    this.#removeNewcomer(oldest);
    // Not resetAndDestroy(): among thousands of connections that their clients closed, too, it leaked a descriptor
    // (Node 20).
    oldest.destroy();
    const latest = `the latest is from ${remoteAddress}`;
    this.#log(
      'newcomers',
      `too many connections without an authorised request, ${latest}: closed the oldest`,
    );
  }
}

module.exports = { BOUNDS, Connections, networkOf };
