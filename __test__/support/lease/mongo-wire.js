'use strict';
// A server that speaks MongoDB's protocol, and answers each command as a test wants it.

const { once } = require('node:events');
const net = require('node:net');

// Of mongoose, which a test of ORMs takes.
const { BSON } = require('mongodb');

const OP_QUERY = 2004;
const OP_MSG = 2013;
const HEADER = 16;

/** The reply to the driver's greeting: the primary of a replica set of one member. */
const hello = (port) => ({
  ...{ ok: 1, helloOk: true, isWritablePrimary: true, minWireVersion: 0, maxWireVersion: 21 },
  ...{ setName: 'rs', hosts: [`127.0.0.1:${port}`], me: `127.0.0.1:${port}`, setVersion: 1 },
  ...{ maxBsonObjectSize: 2 ** 24, maxMessageSizeBytes: 48e6, maxWriteBatchSize: 1e5 },
  ...{ logicalSessionTimeoutMinutes: 30, localTime: new Date() },
});

/** The command of a message: its body, with the documents of its sequences. */
function commandOf(message) {
  if (message.readInt32LE(12) === OP_QUERY) {
    const start = message.indexOf(0, HEADER + 4) + 1 + 8;
    return BSON.deserialize(message.subarray(start));
  }
  const command = {};
  for (let at = HEADER + 4; at < message.length; ) {
    const size = message.readInt32LE(at + 1);
    const section = message.subarray(at + 1, at + 1 + size);
    if (message[at] === 0) Object.assign(command, BSON.deserialize(section));
    else {
      const end = section.indexOf(0, 4);
      const documents = [];
      for (let next = end + 1; next < section.length; next += section.readInt32LE(next)) {
        const length = section.readInt32LE(next);
        documents.push(BSON.deserialize(section.subarray(next, next + length)));
      }
      command[section.toString('utf8', 4, end)] = documents;
    }
    at += 1 + size;
  }
  return command;
}

function replyTo(message, document) {
  const body = BSON.serialize(document);
  const isQuery = message.readInt32LE(12) === OP_QUERY;
  const head = Buffer.alloc(isQuery ? HEADER + 20 : HEADER + 5);
  head.writeInt32LE(head.length + body.length, 0);
  head.writeInt32LE(message.readInt32LE(4), 8);
  head.writeInt32LE(isQuery ? 1 : OP_MSG, 12);
  if (isQuery) head.writeInt32LE(1, HEADER + 16);
  return Buffer.concat([head, body]);
}

/** Whether a command is one of the driver's own: its greeting, its monitors' and its farewell. */
const isOwn = ({ ismaster, hello, endSessions, $db = 'admin' }) =>
  ismaster !== undefined || endSessions !== undefined || (hello !== undefined && $db === 'admin');

/** The reply to a greeting from a server outside of a replica set. */
function greet(message) {
  const { hosts, me, setName, setVersion, ...alone } = hello(0);
  return replyTo(message, alone);
}

/** Answers the driver's messages on one connection. */
function converse(socket, answer) {
  let bytes = Buffer.alloc(0);
  socket.on('error', () => {});
  socket.on('data', async (part) => {
    bytes = Buffer.concat([bytes, part]);
    while (bytes.length >= HEADER && bytes.length >= bytes.readInt32LE(0)) {
      const message = bytes.subarray(0, bytes.readInt32LE(0));
      bytes = bytes.subarray(message.length);
      const reply = await answer(commandOf(message));
      if (reply === undefined) continue;
      socket.write(Buffer.isBuffer(reply) ? reply : replyTo(message, reply));
    }
  });
}

/**
 * @param answer of commands but the driver's own: a document, bytes, or undefined for silence
 * @returns its port and URL; `commands`, those that it got
 */
async function speakMongo(answer) {
  const commands = [];
  const sockets = new Set();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    converse(socket, (command) => {
      if (isOwn(command)) return hello(server.address().port);
      commands.push(command);
      return answer(command);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  return {
    ...{ port, commands, url: `mongodb://127.0.0.1:${port}/app` },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

module.exports = { converse, greet, hello, speakMongo };
