'use strict';
// The class of everything that snowdrift throws, and filters for texts in its messages. Needs no Node API.

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

/** A text without the user, password and options of a URL, valid or not. Linear: it may have megabytes. */
function withoutLogin(text) {
  const at = text.lastIndexOf('@');
  const slashes = text.indexOf('//');
  if (slashes < 0) {
    const user = text.slice(0, Math.max(0, text.indexOf(':')));
    const isLogin = at > text.indexOf(':') && text.includes(':') && !/[/\s]/.test(user);
    return isLogin ? `***${text.slice(at)}` : text;
  }
  const start = text.slice(0, slashes + 2);
  const options = text.indexOf('?');
  // With '?' before '@', either may be part of the password.
  if (options >= 0 && at > options) return `${start}***`;
  const rest = at > slashes ? `***${text.slice(at)}` : text.slice(slashes + 2);
  const end = rest.indexOf('?');
  return start + (end < 0 ? rest : `${rest.slice(0, end)}?***`);
}

/** What a terminal or a log would act on. */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** A text whose control characters are escaped, so that it is one line. */
function printable(text) {
  return text.replace(CONTROLS, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const LARGEST = 10n ** 60n;

/** A value in a message, without running code of its own. */
function show(value) {
  if (typeof value === 'string') return `'${printable(withoutLogin(value).slice(0, 60))}'`;
  // To spell a million digits takes long.
  if (typeof value === 'bigint' && (value > LARGEST || value < -LARGEST)) return 'a larger bigint';
  if (Object(value) !== value) return printable(String(value).slice(0, 60));
  return typeof value === 'object' ? 'an object' : 'a function';
}

module.exports = { SnowFlakeError, filterErrors, printable, show, withoutLogin };
