'use strict';
// A registry of npm packages, for what `npm publish` brings to it. Of all other packages it sends the
// asker on to another registry.

const { once } = require('node:events');
const { createServer } = require('node:http');
const { json } = require('node:stream/consumers');

class Registry {
  /** Names that start so are its own. */
  #prefix;
  #upstream;
  #server;
  #packages = new Map();
  #tarballs = new Map();

  static async start(prefix, upstream) {
    const registry = new Registry();
    registry.#prefix = prefix;
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
    const path = request.url.slice(1).split('?')[0];
    if (!path.startsWith(this.#prefix)) {
      response.writeHead(302, { location: new URL(path, this.#upstream).href }).end();
    } else if (request.method === 'PUT') {
      this.#publish(await json(request));
      response.writeHead(201, { 'content-type': 'application/json' }).end('{}');
    } else {
      const found = this.#tarballs.get(path.split('/').at(-1)) ?? this.#packages.get(path);
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
