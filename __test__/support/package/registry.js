'use strict';
// A registry of npm packages: it stores what `npm publish` sends, and redirects requests for all other packages
// to another registry.

const { once } = require('node:events');
const { createServer } = require('node:http');
const { json } = require('node:stream/consumers');

class Registry {
  /** Matches the names of the packages that it stores. */
  #isOwn;
  #upstream;
  #server;
  #packages = new Map();
  #tarballs = new Map();

  static async start(isOwn, upstream) {
    const registry = new Registry();
    registry.#isOwn = isOwn;
    registry.#upstream = upstream;
    registry.#server = createServer((request, response) =>
      registry.#answer(request, response).catch((failure) => response.destroy(failure)),
    );
    registry.#server.listen(0, '127.0.0.1');
    await once(registry.#server, 'listening');
    return registry;
  }

  get url() {
    return `http://127.0.0.1:${this.#server.address().port}/`;
  }

  /** What npm is to have in its environment to use it. */
  get env() {
    return {
      npm_config_registry: this.url,
      [`npm_config_${this.url.replace('http:', '')}:_authToken`]: 'anyone',
    };
  }

  stop() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request, response) {
    const path = decodeURIComponent(request.url.slice(1).split('?')[0]);
    if (!this.#isOwn.test(path)) {
      response.writeHead(302, { location: new URL(path, this.#upstream).href }).end();
    } else if (request.method === 'PUT') {
      this.#publish(await json(request));
      response.writeHead(201, { 'content-type': 'application/json' }).end('{}');
    } else {
      const found = this.#tarballs.get(path.split('/-/')[1]) ?? this.#packages.get(path);
      response.writeHead(found === undefined ? 404 : 200).end(found ?? '{}');
    }
  }

  #publish({ _attachments: attached, ...packument }) {
    this.#packages.set(packument.name, JSON.stringify(packument));
    for (const [file, { data }] of Object.entries(attached)) {
      this.#tarballs.set(file, Buffer.from(data, 'base64'));
    }
  }
}

module.exports = { Registry };
