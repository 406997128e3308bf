'use strict';
// The server of `snowdrift serve`, in this process.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const http = require('node:http');
const net = require('node:net');
const { after } = require('node:test');

const { createServer } = require('../../js/server/http.js');
const { limitWait } = require('./limit-wait.js');
const { SnowFlake } = require('./support.js');

const TOKEN = 'Zq-4711-a-token-of-clients';

/** For requests that a busy machine may delay, and that must not end by that. */
const LONG = { headers: 300_000, request: 300_000, idle: 300_000, draw: 300_000 };

const servers = [];
after(() => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
});

/** A server in this process; answers its port, its log, and the instance that it draws from. */
async function serving({
  flake = new SnowFlake({ datacenterId: 3, workerId: 7 }),
  ...options
} = {}) {
  const log = [];
  const server = createServer(flake, {
    complain: (text) => log.push(text),
    limits: LONG,
    ...options,
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { flake, log, server, port: server.address().port };
}

/** A request, with any target and headers. */
async function ask(port, method, path, { headers, body } = {}) {
  const request = http.request({ host: '127.0.0.1', port, method, path, headers, agent: false });
  request.end(body);
  const [response] = await limitWait(
    once(request, 'response'),
    `the response to ${method} ${path}`,
  );
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  const type = response.headers['content-type'];
  return {
    status: response.statusCode,
    headers: response.headers,
    type,
    text,
    body: /json/.test(type) && text !== '' ? JSON.parse(text) : text,
  };
}

/** Sends a text, and answers what comes back until the connection ends. */
async function raw(port, text) {
  const socket = net.connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(text);
  let reply = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    reply += chunk;
  });
  await limitWait(once(socket, 'close'), () => `the end of a connection that said '${reply}'`);
  return reply;
}

/** Asserts a problem, and answers it. */
function refused({ status, type, body }, expected, detail = /./) {
  assert.deepEqual([status, type], [expected, 'application/problem+json']);
  assert.equal(body.status, expected);
  assert.match(body.detail, detail);
  return body;
}

module.exports = { TOKEN, ask, raw, refused, serving };
