'use strict';
// Servers that answer as a client may not expect: one announces more names of children than it sends, as no server of ZooKeeper
// does; one answers a login before the session that it is for, as those with Netty do.

const { once } = require('node:events');
const net = require('node:net');

const { int, text } = require('../../../../__test__/support/lease/liar.js');

const frame = (...parts) => {
  const body = Buffer.concat(parts);
  return Buffer.concat([int(body.length), body]);
};

const SESSION = frame(
  int(0),
  // It does not expire: in ms.
  int(3_600_000),
  Buffer.alloc(8, 1),
  text('0123456789abcdef'),
  Buffer.alloc(1),
);

/** The requests, by their numbers. The first one of a connection has none: it is for a session. */
const KINDS = { 8: 'children', 9: 'sync', 11: 'ping', 100: 'login', [-11]: 'close' };

/** A reply to a request, of which it repeats the number. */
const replyTo = (request, body = Buffer.alloc(0), code = 0) =>
  frame(request.subarray(0, 4), Buffer.alloc(8), int(code), body);

/** @param begin is called with each socket, and returns what is called with each of its requests, and its kind */
async function listen(begin) {
  const server = net.createServer((socket) => {
    let received = Buffer.alloc(0);
    let hasSession = false;
    const take = begin(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 4 && received.length >= 4 + received.readInt32BE()) {
        const end = 4 + received.readInt32BE();
        const request = received.subarray(4, end);
        take(request, hasSession ? KINDS[request.readInt32BE(4)] : 'session');
        hasSession = true;
        received = received.subarray(end);
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: server.address().port, close: () => server.close() };
}

/**
 * @param names how many it announces
 * @returns its port, and how often it did
 */
async function lieAboutChildren(names) {
  let lies = 0;
  const bodies = { sync: text('/'), children: int(names) };
  const server = await listen((socket) => (request, kind) => {
    if (kind === 'children') lies += 1;
    socket.write(kind === 'session' ? SESSION : replyTo(request, bodies[kind]));
  });
  return { ...server, lies: () => lies };
}

/** So long it takes to open a session, ms: a login that comes along arrives meanwhile. */
const OPENING_MS = 50;
/** The error of a server that needs a login. */
const NEEDS_LOGIN = -124;

/**
 * @param overtaken how many logins it answers before their sessions
 * @param needsLogin whether it refuses all that comes before a login
 * @returns its port, the kinds of requests by connection, and what ends its connections and leaves the next ones unanswered
 */
async function answerLoginsFirst({ overtaken = Infinity, needsLogin = false }) {
  const connections = [];
  const sockets = [];
  let isSilent = false;
  const server = await listen((socket) => {
    const kinds = [];
    connections.push(kinds);
    sockets.push(socket);
    let isOpen = false;
    let isLoggedIn = false;
    const open = () => {
      if (!isOpen) socket.write(SESSION);
      isOpen = true;
    };
    return (request, kind) => {
      kinds.push(kind);
      if (isSilent) return;
      if (kind === 'session') {
        setTimeout(open, OPENING_MS);
        return;
      }
      if (kind === 'login') {
        isLoggedIn = true;
        if (!isOpen && overtaken-- <= 0) open();
      } else if (needsLogin && !isLoggedIn) {
        socket.end(replyTo(request, undefined, NEEDS_LOGIN));
        return;
      }
      socket.write(replyTo(request, kind === 'sync' ? text('/') : undefined));
    };
  });
  const cut = () => {
    isSilent = true;
    for (const socket of sockets) socket.destroy();
  };
  const close = () => {
    cut();
    server.close();
  };
  return { port: server.port, connections, cut, close };
}

module.exports = { answerLoginsFirst, lieAboutChildren };
