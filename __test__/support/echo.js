'use strict';
// Servers that refuse every client with a text, each in its engine's protocol.

const { once } = require('node:events');
const net = require('node:net');

const { converse, hello } = require('./lease/mongo-wire.js');

/** A packet of MySQL: an error before the handshake. */
function mysqlError(text) {
  const body = Buffer.concat([Buffer.from([0xff, 0x15, 0x04]), Buffer.from(`#28000${text}`)]);
  const head = Buffer.alloc(4);
  head.writeUIntLE(body.length, 0, 3);
  return Buffer.concat([head, body]);
}

function postgresError(text) {
  const fields = Buffer.from(`SFATAL\0C28P01\0M${text}\0Dthe detail: ${text}\0\0`);
  const head = Buffer.from('E\0\0\0\0');
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

function etcdError(text) {
  const body = JSON.stringify({ error: text, code: 16, message: text });
  return `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** MongoDB refuses a login, which the driver begins with its greeting, and whatever comes without one. */
function answerAsMongo(socket, text) {
  converse(socket, (command) =>
    command.hello || command.ismaster
      ? hello(socket.localPort)
      : { ok: 0, code: 18, codeName: 'AuthenticationFailed', errmsg: text },
  );
}

const ANSWERS = {
  postgres: (socket, text) => socket.once('data', () => socket.end(postgresError(text))),
  mysql: (socket, text) => socket.end(mysqlError(text)),
  redis: (socket, text) => socket.on('data', () => socket.write(`-ERR ${text}\r\n`)),
  mongodb: answerAsMongo,
  etcd: (socket, text) => socket.once('data', () => socket.end(etcdError(text))),
  zookeeper: (socket) => socket.destroy(),
  // It speaks TLS: kubernetes.test.js has one that does.
  kubernetes: (socket) => socket.destroy(),
};

/** A server of an engine. `say(text)` sets what it says to each client. */
async function refusing(engine) {
  let text = '';
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    ANSWERS[engine](socket, text);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const say = (said) => {
    text = said;
  };
  return { port: server.address().port, say, close: () => server.close() };
}

module.exports = { refusing };
