'use strict';
// Shows values in messages. Needs no Node API.

/**
 * A text without the user, password and options of a URL, valid or not. Takes linear time, since the text may have
 * megabytes.
 * @param {string} text
 */
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
  // If '?' is before '@', either may be part of the password.
  if (options >= 0 && at > options) return `${start}***`;
  const rest = at > slashes ? `***${text.slice(at)}` : text.slice(slashes + 2);
  const end = rest.indexOf('?');
  return start + (end < 0 ? rest : `${rest.slice(0, end)}?***`);
}

/** Characters that control a terminal or break a line of a log. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: V8 takes 0.3 ms to parse a regular expression with \p{}
const CONTROLS = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * A text with escaped control characters, so that it is one line.
 * @param {string} text
 */
function printable(text) {
  return text.replace(CONTROLS, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The most characters that are shown of a text. */
const MOST_OF_TEXT = 60;

/** Only the length of a longer text is shown: it may contain a login or a key anywhere, and may have megabytes. */
const MOST_READ = 1000;

const LARGEST = 10n ** 60n;

/**
 * The beginning of a text, quoted.
 * @param {string} text
 * @param {(text: string) => string} quote adds the quotes
 */
function shortened(text, quote) {
  return quote(text.slice(0, MOST_OF_TEXT)) + (text.length > MOST_OF_TEXT ? '...' : '');
}

/**
 * The text for a bigint of more than 60 digits, which would take long to convert; undefined for any other value.
 * @param {unknown} value
 */
function longBigint(value) {
  if (typeof value !== 'bigint' || (value < LARGEST && value > -LARGEST)) return undefined;
  return 'a bigint of more than 60 digits';
}

/**
 * A value as text for a message. Runs no code of the value.
 * @param {unknown} value
 */
function show(value) {
  if (typeof value === 'string') {
    if (value.length > MOST_READ) return `a text of ${value.length} characters`;
    return shortened(withoutLogin(value), (text) => `'${printable(text)}'`);
  }
  if (Object(value) === value) return typeof value === 'object' ? 'an object' : 'a function';
  return longBigint(value) ?? printable(String(value).slice(0, MOST_OF_TEXT));
}

module.exports = { MOST_READ, longBigint, printable, shortened, show, withoutLogin };
