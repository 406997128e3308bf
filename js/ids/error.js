'use strict';
// The class of all errors that snowdrift throws. Needs no Node API.

/** @import { ErrorDetails, SnowFlakeErrorCode } from '../types.js' */

/**
 * The filters of messages and causes. js/messages/secrets.js sets them.
 * @type {{ text: (text: string) => string, cause: (cause: unknown) => unknown }}
 */
let filters = { text: (text) => text, cause: (cause) => cause };

/** @param {typeof filters} filter */
function filterErrors(filter) {
  filters = filter;
}

/**
 * The public function that is running, if the stacks of errors must begin with its caller.
 * @type {Function | undefined}
 */
let current;

class SnowFlakeError extends Error {
  /**
   * @param {SnowFlakeErrorCode} code
   * @param {string} message
   * @param {ErrorDetails} [options]
   */
  constructor(code, message, options) {
    // Without a prototype, so that a polluted Object.prototype adds no options.
    /** @type {ErrorDetails} */
    const { cause, retryAfterMs, holders } = { __proto__: null, ...options };
    super(filters.text(message), cause === undefined ? undefined : { cause: filters.cause(cause) });
    this.code = code;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
    if (holders !== undefined) this.holders = holders;
    // Only V8 has captureStackTrace().
    if (current !== undefined) Error.captureStackTrace?.(this, current);
  }

  get name() {
    return /** @type {const} */ ('SnowFlakeError');
  }
}

const { construct } = Reflect;

/**
 * Returns a function that creates errors with this code. It is not in their stacks: V8 begins the stack of an error
 * with the caller of its `new.target`.
 * @param {SnowFlakeErrorCode} code
 * @returns {(message: string, options?: ErrorDetails) => SnowFlakeError}
 */
function errorsOf(code) {
  /**
   * @param {string} message
   * @param {ErrorDetails} [options]
   * @returns {SnowFlakeError}
   */
  function create(message, options) {
    return construct(SnowFlakeError, [code, message, options], create);
  }
  create.prototype = SnowFlakeError.prototype;
  return create;
}

/**
 * Makes an error's stack begin with the caller of `called`, which must be running.
 * @template T
 * @param {T} failure
 * @param {Function} called
 */
function fromCaller(failure, called) {
  if (failure instanceof SnowFlakeError) Error.captureStackTrace?.(failure, current ?? called);
  return failure;
}

/**
 * Runs a part of a public function synchronously. The stacks of its errors begin with that function's caller.
 * @template T
 * @param {Function} called
 * @param {() => T} run
 */
function inCall(called, run) {
  const before = current;
  current = called;
  try {
    return run();
  } finally {
    current = before;
  }
}

module.exports = { SnowFlakeError, errorsOf, filterErrors, fromCaller, inCall };
