'use strict';
// The class of everything that snowdrift throws. Needs no Node API.

/** What messages and causes pass before they are shown. Set by js/secrets.js. */
let shown = { text: (text) => text, cause: (cause) => cause };

function filterErrors(filter) {
  shown = filter;
}

class SnowFlakeError extends Error {
  constructor(code, message, options) {
    // Without a prototype: a property of a polluted Object.prototype is no option.
    const { cause, retryAfterMs, holders } = { __proto__: null, ...options };
    super(shown.text(message), cause === undefined ? undefined : { cause: shown.cause(cause) });
    this.code = code;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
    if (holders !== undefined) this.holders = holders;
  }

  get name() {
    return 'SnowFlakeError';
  }
}

module.exports = { SnowFlakeError, filterErrors };
