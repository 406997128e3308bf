'use strict';
// A store by URL whose client keeps the process alive, and cannot be told not to. So its connections end when no call has
// been under way for a moment, and the next call connects.

const { noteClient } = require('../../messages/causes.js');
const { clearTimeout, setTimeout } = require('../../runtime/time.js');

/** @import { Connection, LeaseStore } from '../types.d.ts' */

/** How long connections outlive the last call, ms: a renewal may have two calls. */
const IDLE_MS = 100;

/**
 * A client that connects at its first call.
 * @typedef {object} Opened
 * @property {LeaseStore} store
 * @property {() => unknown} close
 */

/**
 * @param {(note: (failure: unknown) => void) => Opened} open returns a client. It notes why the client cannot connect, and undefined
 * once it can
 * @returns {Connection}
 */
function whileUsed(open) {
  /** @type {unknown} */
  let lastError;
  let calls = 0;
  /** @type {NodeJS.Timeout | undefined} */
  let idle;
  const start = () => {
    lastError = undefined;
    /** @type {Opened} */
    const own = open((failure) => {
      if (current === own) lastError = failure && noteClient(failure);
    });
    return own;
  };
  /** @type {Opened | undefined} */
  let current = start();
  // It is not connected yet.
  const { store } = current;

  async function end() {
    clearTimeout(idle);
    const ended = current;
    current = undefined;
    await ended?.close();
  }
  const drop = () => void end().catch(() => {});

  /**
   * @template Reply
   * @param {(store: LeaseStore) => Promise<Reply>} send
   */
  async function call(send) {
    clearTimeout(idle);
    calls++;
    current ??= start();
    try {
      return await send(current.store);
    } finally {
      calls--;
      if (calls === 0) idle = setTimeout(drop, IDLE_MS).unref();
    }
  }

  return {
    store: {
      ...store,
      now: (options) => call((one) => one.now(options)),
      read: (key, options) => call((one) => one.read(key, options)),
      write: (key, record, before, options) =>
        call((one) => one.write(key, record, before, options)),
      namespaces: (options) => call(async (one) => one.namespaces?.(options) ?? []),
    },
    causeOf: () => lastError,
    drop,
    end,
  };
}

module.exports = { whileUsed };
