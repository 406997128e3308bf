'use strict';
// Servers whose replies no server sends: of PostgreSQL, one whose bytes have an escape that is none; of PostgreSQL and Redis,
// those that their clients throw at.

const { once } = require('node:events');
const net = require('node:net');

/** A number and a text as PostgreSQL and ZooKeeper send them: 32 bits, and the bytes behind their length. */
const int = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
const text = (value) => Buffer.concat([int(value.length), Buffer.from(value)]);

const message = (type, ...parts) => {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(type), int(4 + body.length), body]);
};
const short = (value) => int(value).subarray(2);

const READY = message('Z', Buffer.from('I'));
const BYTEA = 17;
const COLUMN = [Buffer.from('home\0'), int(0), short(0), int(BYTEA), short(-1), int(-1), short(0)];
const ROW = Buffer.concat([
  message('T', short(1), ...COLUMN),
  message('D', short(1), text('\\z')),
  message('C', Buffer.from('SELECT 1\0')),
  READY,
]);

/** Of an authentication that there is not. */
const UNKNOWN = message('R', int(99));

/** Lists within lists: too many to parse each within the last. */
const DEEP = Buffer.from('*1\r\n'.repeat(20_000));

/**
 * A server of PostgreSQL or Redis.
 * @param replies to the first part that a client sends, the second, and so on: then it ends the connection
 */
async function sayInTurn(...replies) {
  const server = net.createServer((socket) => {
    const left = [...replies];
    socket.on('error', () => {});
    socket.on('data', () => {
      if (left.length > 0) socket.write(left.shift());
      if (left.length === 0) socket.end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: server.address().port, close: () => server.close() };
}

const LOGIN = Buffer.concat([message('R', int(0)), READY]);
/** The reply to each query is a value of bytes with an escape that is none. */
const lieAboutBytes = () => sayInTurn(LOGIN, ROW);
/** By engine: what its client throws while it parses. */
const unparsable = {
  postgres: () => sayInTurn(LOGIN, UNKNOWN),
  redis: () => sayInTurn(DEEP),
};

module.exports = { int, lieAboutBytes, text, unparsable };
