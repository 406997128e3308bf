'use strict';
// The class of all errors that snowdrift throws. Needs no Node API.

/** The filters of messages and causes. js/messages/secrets.js sets them. */
let filters = { text: (text) => text, cause: (cause) => cause };

function filterErrors(filter) {
  filters = filter;
}

/** The public function that is running, if the stacks of errors must begin with its caller. */
let current;

class SnowFlakeError extends Error {
  constructor(code, message, options) {
    // Without a prototype, so that a polluted Object.prototype adds no options.
    const { cause, retryAfterMs, holders } = { __proto__: null, ...options };
    super(filters.text(message), cause === undefined ? undefined : { cause: filters.cause(cause) });
    this.code = code;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
    if (holders !== undefined) this.holders = holders;
    // Only V8 has captureStackTrace().
    if (current !== undefined) Error.captureStackTrace?.(this, current);
  }

  get name() {
    return 'SnowFlakeError';
  }
}

const { construct } = Reflect;

/**
 * Returns a function that creates errors with this code. It is not in their stacks: V8 begins the stack of an error
 * with the caller of its `new.target`.
 */
function errorsOf(code) {
  function create(message, options) {
    return construct(SnowFlakeError, [code, message, options], create);
  }
  create.prototype = SnowFlakeError.prototype;
  return create;
}

/** Makes an error's stack begin with the caller of `called`, which must be running. */
function fromCaller(failure, called) {
  if (failure instanceof SnowFlakeError) Error.captureStackTrace?.(failure, current ?? called);
  return failure;
}

/** Runs a part of a public function synchronously. The stacks of its errors begin with that function's caller. */
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
