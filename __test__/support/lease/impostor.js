'use strict';
// Servers that are none: each notes what its clients send, and plays its engine's protocol up to the password.

const { once } = require('node:events');
const net = require('node:net');

const { greet } = require('./mongo-wire.js');

/** A packet of MySQL. */
function packet(sequence, ...parts) {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([Buffer.from([body.length & 255, body.length >> 8, 0, sequence]), body]);
}

/** A greeting of MySQL that offers TLS and the password in clear text. */
const GREETING = packet(
  0,
  [10],
  '8.0.36\0',
  [1, 0, 0, 0],
  'abcdefgh\0',
  // Capabilities: all but compression, and that of deprecated EOF.
  [0xdf, 0xff, 45, 2, 0, 0x0f, 0x00, 21],
  Buffer.alloc(10),
  'ijklmnopqrst\0',
  'mysql_native_password\0',
);

/** By engine: what is answered to the first and to the later bytes of a client. A text or bytes. */
const ANSWERS = {
  // To a request of TLS, yes; to a start, the wish for the password in clear text.
  postgres: (bytes) =>
    bytes.length === 8 && bytes.readInt32BE(4) === 80877103
      ? 'S'
      : Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]),
  mysql: () => undefined,
  redis: () => '+OK\r\n',
  // The second greeting has the user.
  mongodb: greet,
  etcd: () =>
    'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"token":"t"}',
  zookeeper: () => undefined,
};

/**
 * @param isEnough whether a client has sent what the test looks at: its connection ends
 * @returns its port; `said`, what each client sent
 */
async function impersonate(engine, { isEnough }) {
  const said = [];
  const sockets = new Set();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    const n = said.push(Buffer.alloc(0)) - 1;
    if (engine === 'mysql') socket.write(GREETING);
    socket.on('data', (bytes) => {
      said[n] = Buffer.concat([said[n], bytes]);
      if (isEnough(said[n])) {
        socket.destroy();
        return;
      }
      const answer = ANSWERS[engine](bytes);
      if (answer !== undefined) socket.write(answer);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: server.address().port,
    said,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

module.exports = { impersonate };
