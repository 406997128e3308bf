'use strict';
// A TCP link between a process and its store, with the faults of a network: `cut()` loses everything
// until `mend()`; `halfOpen()` stalls the connections of now for ever; `silent()` accepts new ones and
// never answers them. Nobody gets a FIN or RST from the last two, as where packets vanish. Together they
// are a server that hangs.

const { once } = require('node:events');
const net = require('node:net');

class Link {
  #server;
  #sockets = new Set();
  /** Sockets whose packets vanish, both ways, until the link closes. */
  #stalled = new Set();
  #isCut = false;
  #isSilent = false;
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

  #join(client, port) {
    this.connections++;
    if (this.#isSilent) {
      this.#add(client);
      this.#stalled.add(client);
      client.resume();
      return;
    }
    const server = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ]) {
      this.#add(from);
      // What is lost is lost: nobody gets a reset.
      from.on('data', (chunk) => {
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

  #add(socket) {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
  }

  /** From now on nothing gets through, in silence. */
  cut() {
    this.#isCut = true;
  }

  /** Connections of now stall for ever, without FIN or RST at either end. New ones work. */
  halfOpen() {
    for (const socket of this.#sockets) this.#stalled.add(socket);
  }

  /** New connections are accepted and never answered, even after `mend()`. Those of now go on. */
  silent() {
    this.#isSilent = true;
  }

  /** New connections work. Those that were cut are reset; stalled ones stay stalled. */
  mend() {
    const wasCut = this.#isCut;
    this.#isCut = false;
    this.#isSilent = false;
    if (!wasCut) return;
    for (const socket of this.#sockets) if (!this.#stalled.has(socket)) socket.destroy();
  }

  close() {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

module.exports = { Link };
