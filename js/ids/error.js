'use strict';
// The class of everything that snowdrift throws. Needs no Node API.

/** What messages and causes pass before they are shown. Set by js/messages/secrets.js. */
let shown = { text: (text) => text, cause: (cause) => cause };

function filterErrors(filter) {
  shown = filter;
}

/** The public function that runs, if the stacks of errors are to begin with its caller. */
let current;

class SnowFlakeError extends Error {
  constructor(code, message, options) {
    // Without a prototype: a property of a polluted Object.prototype is no option.
    const { cause, retryAfterMs, holders } = { __proto__: null, ...options };
    super(shown.text(message), cause === undefined ? undefined : { cause: shown.cause(cause) });
    this.code = code;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
    if (holders !== undefined) this.holders = holders;
    // Of V8, as the stacks without `create`.
    if (current !== undefined) Error.captureStackTrace?.(this, current);
  }

  get name() {
    return 'SnowFlakeError';
  }
}

const { construct } = Reflect;

/**
 * Returns a function that makes errors of a code, and is not in their stacks: V8 begins the stack of an error with the
 * caller of its `new.target`.
 */
function errorsOf(code) {
  function create(message, options) {
    return construct(SnowFlakeError, [code, message, options], create);
  }
  create.prototype = SnowFlakeError.prototype;
  return create;
}

/** Begins an error's stack with the caller of a function, which is running. */
function fromCaller(failure, called) {
  if (failure instanceof SnowFlakeError) Error.captureStackTrace?.(failure, current ?? called);
  return failure;
}

/** Runs a part of a public function, in one turn. The stacks of its errors begin with that function's caller. */
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
