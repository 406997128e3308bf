'use strict';
// A TCP link between a process and its store, with the faults of a network: `cut()` loses everything
// until `mend()`; `halfOpen()` stalls the connections of now for ever; `silent()` accepts new ones and
// never answers them. Nobody gets a FIN or RST from the last two, as where packets vanish. Together they
// are a server that hangs. `breakAfter()` breaks each new connection after so many bytes of the server.

const { once } = require('node:events');
const net = require('node:net');
const { after, before } = require('node:test');

const { seed = 27 } = require('../amount.js');
const { seeded } = require('../support.js');
const { Server, addressOf } = require('./servers.js');

/** How a connection breaks: what becomes of the client's end. */
const BREAKS = {
  stall: () => {},
  reset: (client) => client.resetAndDestroy(),
  end: (client) => client.end(),
  garbage(client, bytes) {
    const random = seeded(seed + bytes);
    client.write(Buffer.from(Array.from({ length: 2000 }, () => random() * 256)));
  },
};

class Link {
  #server;
  #sockets = new Set();
  /** Those of them at the server's end. */
  #servers = new Set();
  /** Sockets whose packets vanish, both ways, until the link closes. */
  #stalled = new Set();
  /** By socket of a server: how many of its bytes still pass. */
  #allowed = new Map();
  #isCut = false;
  #isSilent = false;
  #break;
  /** How long each packet takes, ms. */
  delay = 0;
  /** How many connections were made, of all modes. */
  connections = 0;

  static async to(port) {
    const link = new Link();
    // A stalled connection must not answer a FIN with its own.
    const options = { allowHalfOpen: true };
    link.#server = net.createServer(options, (client) => link.#join(client, port));
    link.#server.listen(0, '127.0.0.1');
    await once(link.#server, 'listening');
    return link;
  }

  get port() {
    return this.#server.address().port;
  }

  /** The URL of the server through this link. */
  urlOf(server) {
    const url = new URL(server.url);
    const own = addressOf(url);
    own.port = this.port;
    if (own.protocol === url.protocol) return own;
    url.searchParams.set('endpoint', own.origin);
    return url;
  }

  #join(client, port) {
    this.connections++;
    if (this.#isSilent) {
      this.#add(client);
      this.#stalled.add(client);
      client.resume();
      return;
    }
    const server = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    this.#servers.add(server);
    server.on('close', () => this.#servers.delete(server));
    if (this.#break !== undefined) {
      this.#joinUntil(this.#break, client, server);
      return;
    }
    for (const [from, to] of [
      [client, server],
      [server, client],
    ]) {
      this.#add(from);
      // What is lost is lost: nobody gets a reset.
      from.on('data', (data) => {
        const allowed = this.#allowed.get(from) ?? data.length;
        const chunk = data.subarray(0, allowed);
        if (this.#allowed.has(from)) this.#allowed.set(from, allowed - chunk.length);
        const pass = () => {
          if (!this.#isCut && !this.#stalled.has(from)) to.write(chunk);
        };
        if (this.delay === 0) pass();
        else setTimeout(pass, this.delay);
      });
      from.on('end', () => {
        if (!this.#stalled.has(from)) to.end();
      });
      from.on('close', () => {
        if (!this.#stalled.has(from)) to.destroy();
      });
    }
  }

  /** Passes on so many bytes of the server, and then breaks the client's end. */
  #joinUntil({ bytes, how }, client, server) {
    this.#add(client);
    this.#add(server);
    let left = bytes;
    const breakOff = () => {
      this.#stalled.add(client);
      server.destroy();
      if (!client.destroyed) BREAKS[how](client, bytes);
    };
    server.on('data', (chunk) => {
      if (left === 0) return;
      client.write(chunk.subarray(0, left));
      left -= Math.min(left, chunk.length);
      if (left === 0) breakOff();
    });
    client.on('data', (chunk) => left > 0 && server.write(chunk));
    server.on('close', () => left > 0 && client.destroy());
    client.on('end', () => server.end());
    client.on('close', () => server.destroy());
    if (left === 0) breakOff();
  }

  #add(socket) {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
  }

  /** From now on nothing gets through, in silence. */
  cut() {
    this.#isCut = true;
  }

  /** Of the replies on connections of now, so many bytes pass, and the rest is lost. Requests pass. */
  loseReplies(bytes) {
    for (const server of this.#servers) this.#allowed.set(server, bytes);
  }

  /** Resets the connections of now. */
  reset() {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Connections of now stall for ever, without FIN or RST at either end. New ones work. */
  halfOpen() {
    for (const socket of this.#sockets) this.#stalled.add(socket);
  }

  /** New connections are accepted and never answered, even after `mend()`. Those of now go on. */
  silent() {
    this.#isSilent = true;
  }

  /**
   * New connections break after so many bytes of the server.
   * @param how 'stall', 'reset', 'end', or 'garbage' after these
   */
  breakAfter(bytes, how) {
    this.#break = { bytes, how };
  }

  /** New connections work. Those that were cut are reset; stalled ones stay stalled. */
  mend() {
    const wasCut = this.#isCut;
    this.#isCut = false;
    this.#isSilent = false;
    this.#break = undefined;
    if (!wasCut) return;
    for (const socket of this.#sockets) if (!this.#stalled.has(socket)) socket.destroy();
  }

  close() {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/**
 * A server for the tests of a describe(), which ends after them, as do its links.
 * @returns `server`, and `linked(namespace)`: a URL of it through a new link, and that link
 */
function linkedServer(engine) {
  const links = [];
  const own = {
    server: undefined,
    async linked(namespace) {
      const link = await Link.to(own.server.port);
      links.push(link);
      const url = link.urlOf(own.server);
      if (namespace !== undefined) url.searchParams.set('namespace', namespace);
      return { link, url: url.href };
    },
  };
  before(async () => {
    own.server = await Server.start(engine);
  });
  after(async () => {
    for (const link of links) link.close();
    await own.server?.stop();
  });
  return own;
}

module.exports = { Link, linkedServer };
