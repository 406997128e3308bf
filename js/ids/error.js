'use strict';
// The class of everything that snowdrift throws, and a filter for texts in its messages. Needs no Node API.

/** What messages and causes pass before they are shown. Set by js/secrets.js. */
let shown = { text: (text) => text, cause: (cause) => cause };

function filterErrors(filter) {
  shown = filter;
}

class SnowFlakeError extends Error {
  constructor(code, message, { cause, retryAfterMs, holders } = {}) {
    super(shown.text(message), cause === undefined ? undefined : { cause: shown.cause(cause) });
    this.code = code;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
    if (holders !== undefined) this.holders = holders;
  }

  get name() {
    return 'SnowFlakeError';
  }
}

/** A text without the user, password and options of a URL, valid or not. */
function withoutLogin(text) {
  if (!text.includes('//')) return text.replace(/^[^/\s]*:.*@/s, '***@');
  // With '?' before '@', either may be part of the password.
  if (/\?.*@/s.test(text)) return text.replace(/\/\/.*/s, '//***');
  return text.replace(/\/\/.*@/s, '//***@').replace(/(\/\/[^?]*\?).*/s, '$1***');
}

module.exports = { SnowFlakeError, filterErrors, withoutLogin };
