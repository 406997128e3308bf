'use strict';
// Guards the process against what servers and clients do to a connection. A client parses what a server sends inside
// events of its socket, and may report an error when nobody listens any more: both would end the process.

const { SnowFlakeError } = require('../errors.js');
const { NONE, propertyOf } = require('../ids/properties.js');

/**
 * The most bytes that a server may send within a call. A list of all slots is the longest reply: some 80,000 of them, 40,000
 * from etcd. What is parsed takes several times as much memory.
 */
const MOST_RECEIVED = 2 ** 24;

/** What an element of a list and a row take at least: more than their shortest forms. */
const ELEMENT_BYTES = 16;
const ROW_BYTES = 64;

const ignore = () => {};

/**
 * Keeps errors that a client or a socket emits from ending the process. The calls under way reject, too. Forever: a
 * client may emit more after it was given up.
 */
function ignoreErrors(emitter) {
  // Not each object that has a client's methods emits events.
  const listeners = propertyOf(emitter, 'listeners')?.call(emitter, 'error') ?? [ignore];
  if (!listeners.includes(ignore)) emitter.on('error', ignore);
  return emitter;
}

/** Counts the bytes of a server within a call. */
class Received {
  #server;
  #bytes = 0;
  /** The error of a call in which the server has sent too much. */
  failure;

  /** @param server its name in errors */
  constructor(server) {
    this.#server = server;
  }

  /** A call begins. One that is under way may get some more. */
  begin() {
    this.#bytes = 0;
    this.failure = undefined;
  }

  /** How many bytes a chunk counts for. */
  weigh(chunk) {
    return chunk.length;
  }

  /** @throws the server has sent more than it may */
  add(bytes) {
    this.#bytes += bytes;
    if (this.#bytes <= MOST_RECEIVED) return;
    this.failure ??= new SnowFlakeError(
      'ERR_SNOWFLAKE_STORE',
      `${this.#server} sent more than ${MOST_RECEIVED} bytes in reply to one call: check that it is the right server, and that this is its port`,
    );
    throw this.failure;
  }
}

/** Counts elements of lists as Redis announces them, too: its client allocates a list before it gets it. */
class ReceivedFromRedis extends Received {
  #end = '\n';

  weigh(chunk) {
    const text = this.#end + chunk.toString('latin1');
    // A count may come in two parts, and may then count twice.
    this.#end = text.slice(-16);
    let elements = 0;
    for (const [, count] of text.matchAll(/\n\*(\d+)/g)) elements += Number(count);
    return chunk.length + elements * ELEMENT_BYTES;
  }
}

/** The sockets that are guarded for good. */
const guarded = new WeakSet();

/**
 * Destroys a socket with what its listeners throw, or once its server has sent too much.
 * @returns ends that
 */
function guardSocket(socket, received) {
  ignoreErrors(socket);
  const { emit } = socket;
  socket.emit = (name, ...values) => {
    try {
      if (name === 'data') received.add(received.weigh(values[0]));
      return emit.call(socket, name, ...values);
    } catch (failure) {
      socket.destroy(failure);
      return true;
    }
  };
  return () => {
    socket.emit = emit;
  };
}

/**
 * Runs a call on a connection that nobody else uses meanwhile, one of `pg` or `mysql2/promise`. Its socket is guarded so long:
 * afterwards its listeners are the application's.
 * @param server its name in errors
 */
async function guardCall(server, { connection }, call) {
  const { stream } = connection ?? NONE;
  if (stream === undefined || guarded.has(stream)) return call();
  const received = new Received(server);
  const end = guardSocket(stream, received);
  try {
    return await call();
  } catch (failure) {
    throw received.failure ?? failure;
  } finally {
    end();
  }
}

/**
 * Guards each socket that a client keeps as its `stream`: the one of TCP, and the one of TLS in its place. No client
 * has an event for the moment in between.
 */
function guardStream(client, received) {
  let stream;
  const guard = (next) => {
    if (next && !guarded.has(next)) {
      guardSocket(next, received);
      guarded.add(next);
    }
    stream = next;
  };
  guard(propertyOf(client, 'stream'));
  Object.defineProperty(client, 'stream', {
    __proto__: null,
    configurable: true,
    enumerable: true,
    get: () => stream,
    set: guard,
  });
}

module.exports = {
  MOST_RECEIVED,
  ROW_BYTES,
  Received,
  ReceivedFromRedis,
  guardCall,
  guardStream,
  ignoreErrors,
};
