'use strict';
// Shows values in messages. Needs no Node API.

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

/** The same of a text with one of these: in a URL it has a login, or options. */
const LOGIN = /[@?]/;

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
    if (value.length > MOST_READ || LOGIN.test(value))
      return `a text of ${value.length} characters`;
    return shortened(value, (text) => `'${printable(text)}'`);
  }
  if (Object(value) === value) return typeof value === 'object' ? 'an object' : 'a function';
  return longBigint(value) ?? printable(String(value).slice(0, MOST_OF_TEXT));
}

module.exports = { MOST_READ, longBigint, printable, shortened, show };
