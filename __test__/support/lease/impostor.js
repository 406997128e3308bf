'use strict';
// Servers that are none: each notes what its clients send, plays its engine's protocol up to the password, and can
// flood them.

const { once } = require('node:events');
const net = require('node:net');

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
  etcd: () =>
    'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"token":"t"}',
  zookeeper: () => undefined,
};

/** PostgreSQL's messages after a login. */
const READY = Buffer.from('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I', 'latin1');

/**
 * By engine: a reply that does not end, as its start and what is repeated; and what is sent before a client's second
 * message, if the flood begins with that.
 */
const FLOODS = {
  postgres: {
    long: [Buffer.from([0x52, 0x7f, 0xff, 0xff, 0xff]), Buffer.alloc(65_536)],
    notices: ['', Buffer.from('N\0\0\0\x05\0'.repeat(10_000), 'latin1')],
    value: [Buffer.from('D\x7f\xff\xff\xff', 'latin1'), Buffer.alloc(65_536), READY],
    // Rows without columns.
    rows: [
      Buffer.from('T\0\0\0\x06\0\0', 'latin1'),
      Buffer.from('D\0\0\0\x06\0\0'.repeat(10_000), 'latin1'),
      READY,
    ],
  },
  mysql: {
    long: ['', Buffer.concat([Buffer.from([0xff, 0xff, 0xff, 0]), Buffer.alloc(2 ** 24 - 1)])],
  },
  redis: {
    long: ['$2000000000\r\n', Buffer.alloc(65_536, 'x')],
    many: ['*900000\r\n', Buffer.from('*0\r\n'.repeat(10_000))],
    announced: ['*1000000000\r\n', Buffer.from('*0\r\n'.repeat(10_000))],
    nested: ['', Buffer.from('*300000\r\n'.repeat(10_000))],
    deep: ['', Buffer.from('*1\r\n'.repeat(10_000))],
  },
  etcd: {
    long: ['HTTP/1.1 200 OK\r\nContent-Length: 9000000000\r\n\r\n"', Buffer.alloc(65_536, 'x')],
    many: [
      'HTTP/1.1 200 OK\r\nContent-Length: 9000000000\r\n\r\n[',
      Buffer.from('{},'.repeat(20_000)),
    ],
  },
};

/** Writes without an end, as fast as the client reads. */
function flood(socket, [start, repeated]) {
  socket.write(start);
  const more = () => {
    while (!socket.destroyed && socket.write(repeated));
  };
  socket.on('drain', more);
  more();
}

/**
 * @param kind of a flood, instead of answers to the clients
 * @param isEnough whether a client has sent what the test looks at: its connection ends
 * @returns its port; `said`, what each client sent; `sent()`, how many bytes clients took at most
 */
async function impersonate(engine, { kind, isEnough = () => false } = {}) {
  const said = [];
  const sockets = new Set();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    const n = said.push(Buffer.alloc(0)) - 1;
    if (engine === 'mysql' && kind === undefined) socket.write(GREETING);
    const floods = kind === undefined ? [] : FLOODS[engine][kind];
    const isLate = floods.length > 2;
    if (kind !== undefined && !isLate) flood(socket, floods);
    let messages = 0;
    socket.on('data', (bytes) => {
      said[n] = Buffer.concat([said[n], bytes]);
      if (isEnough(said[n])) {
        socket.destroy();
        return;
      }
      messages++;
      if (isLate && messages === 1) socket.write(floods[2]);
      if (isLate && messages === 2) flood(socket, floods);
      const answer = kind === undefined ? ANSWERS[engine](bytes) : undefined;
      if (answer !== undefined) socket.write(answer);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: server.address().port,
    said,
    sent: () => Math.max(0, ...[...sockets].map(({ bytesWritten }) => bytesWritten)),
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

module.exports = { FLOODS, impersonate };
