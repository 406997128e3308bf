'use strict';
// A TCP link that can be cut: what stands between a process and its engine on a bad day.

const { once } = require('node:events');
const net = require('node:net');

class Link {
  #server;
  #sockets = new Set();
  #isCut = false;

  static async to(port) {
    const link = new Link();
    link.#server = net.createServer((client) => link.#join(client, port));
    link.#server.listen(0, '127.0.0.1');
    await once(link.#server, 'listening');
    return link;
  }

  get port() {
    return this.#server.address().port;
  }

  #join(client, port) {
    const server = net.connect(port, '127.0.0.1');
    for (const [from, to] of [
      [client, server],
      [server, client],
    ]) {
      this.#sockets.add(from);
      from.on('data', (chunk) => {
        // What is lost is lost: nobody is told.
        if (!this.#isCut) to.write(chunk);
      });
      from.on('error', () => {});
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
  }

  /** From now on nothing gets through, in silence. */
  cut() {
    this.#isCut = true;
  }

  /** Connections of the time before are dead, new ones work. */
  mend() {
    this.#isCut = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  close() {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

module.exports = { Link };
