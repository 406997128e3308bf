'use strict';
// Guards the process against what servers and clients do to a connection. A client parses what a server sends inside
// events of its socket, and may report an error when nobody listens any more: both would end the process.

const { NONE, ownOf, propertyOf } = require('../ids/properties.js');

/**
 * @import { EventEmitter } from 'node:events'
 * @import { Socket, Streaming } from './types.d.ts'
 */

const ignore = () => {};

/**
 * Keeps errors that a client or a socket emits from ending the process. The calls under way reject, too. Forever: a
 * client may emit more after it was given up.
 * @template {object} Emitter
 * @param {Emitter} emitter which may be one
 */
function ignoreErrors(emitter) {
  // Not each object that has a client's methods emits events.
  const own = /** @type {EventEmitter} */ (emitter);
  const listeners = propertyOf(own, 'listeners')?.call(own, 'error') ?? [ignore];
  if (!listeners.includes(ignore)) own.on('error', ignore);
  return emitter;
}

/**
 * Destroys a socket with what its listeners throw.
 * @param {Socket} socket
 * @returns ends that
 */
function guardSocket(socket) {
  ignoreErrors(socket);
  const { emit } = socket;
  socket.emit = (...event) => {
    try {
      return emit.apply(socket, event);
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
 * @template T
 * @param {{ connection?: Streaming | null }} client
 * @param {() => Promise<T>} call
 */
async function guardCall({ connection }, call) {
  const { stream } = connection ?? NONE;
  const end = stream && guardSocket(stream);
  try {
    return await call();
  } finally {
    end?.();
  }
}

/**
 * Guards each socket that a client keeps as its `stream`: the one of TCP, and the one of TLS in its place. No client
 * has an event for the moment in between.
 * @param {Streaming} client
 */
function guardStream(client) {
  /** @type {Streaming['stream']} */
  let stream;
  /** @param {Streaming['stream']} next */
  const guard = (next) => {
    if (next) guardSocket(next);
    stream = next;
  };
  guard(propertyOf(client, 'stream'));
  const property = { configurable: true, enumerable: true, get: () => stream, set: guard };
  Object.defineProperty(client, 'stream', ownOf(property));
}

module.exports = { guardCall, guardStream, ignoreErrors };
