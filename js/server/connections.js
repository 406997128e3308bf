'use strict';
// The connections of `snowdrift serve`.
//
// A connection is a newcomer until a request on it may draw. Newcomers are never refused, since one may bring the token next:
// of too many, the oldest is closed. A client sends its token as soon as it is connected, so it leaves before its turn.
// Authorised connections have a limit of their own. So neither kind can keep the other out, nor a probe, which stays a newcomer.

const BOUNDS = {
  authorised: 1000,
  /** In all. As many clients may come back at once, as after a restart. */
  newcomers: 1024,
  /** Half, so that one address cannot close the connections of others. A proxy with many clients is one address. */
  newcomersOfAddress: 512,
};

/** The network of an address: for IPv6 its /64, which one client may own. */
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
  /** The network of each, in the order in which they came. */
  #newcomers = new Map();
  /** By network. */
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

  /** Returns whether it is authorised now: not where there are too many. */
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
    // Not resetAndDestroy(): of thousands whose clients closed, too, one kept its descriptor (Node 20).
    oldest.destroy();
    const latest = `the latest is from ${remoteAddress}`;
    this.#log(
      'newcomers',
      `too many connections without an authorised request, ${latest}: closed the oldest`,
    );
  }
}

module.exports = { BOUNDS, Connections, networkOf };
