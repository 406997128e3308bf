'use strict';
// A server that announces more names of children than it sends, as no server of ZooKeeper does.

const { once } = require('node:events');
const net = require('node:net');

const { int, text } = require('../../../../__test__/support/lease/liar.js');

const frame = (...parts) => {
  const body = Buffer.concat(parts);
  return Buffer.concat([int(body.length), body]);
};

const SESSION = [
  int(0),
  int(10_000),
  Buffer.alloc(8, 1),
  text('0123456789abcdef'),
  Buffer.alloc(1),
];

/** The requests, by their numbers: `sync`, whose reply is a path, and the one for children. */
const SYNC = 9;
const CHILDREN = 8;

/**
 * @param names how many it announces
 * @returns its port, and how often it did
 */
async function lieAboutChildren(names) {
  let lies = 0;
  const server = net.createServer((socket) => {
    let received = Buffer.alloc(0);
    let hasSession = false;
    const answer = (request) => {
      if (!hasSession) {
        hasSession = true;
        return frame(...SESSION);
      }
      const kind = request.readInt32BE(4);
      if (kind === CHILDREN) lies += 1;
      const replies = { [SYNC]: text('/'), [CHILDREN]: int(names) };
      return frame(request.subarray(0, 4), Buffer.alloc(12), replies[kind] ?? Buffer.alloc(0));
    };
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 4 && received.length >= 4 + received.readInt32BE()) {
        const end = 4 + received.readInt32BE();
        socket.write(answer(received.subarray(4, end)));
        received = received.subarray(end);
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: server.address().port, lies: () => lies, close: () => server.close() };
}

module.exports = { lieAboutChildren };
