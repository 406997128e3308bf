'use strict';
// Keys in the place of another value: what such a text looks like, and how errors show it.

const { MOST_READ, show } = require('../ids/shown.js');

/** Linear: a run has one place to start. With %, as in URLs. */
const LONG_RUN = /(?<![\w+/%-])[\w+/%-]{43,}=*/g;

/** A text without each part that is as long as a key is in base64. */
const hideKeys = (text) => text.replace(LONG_RUN, '***');

/** A value in a message: a key may be in its place. */
function showNoKey(value) {
  const text = typeof value === 'symbol' ? String(value) : value;
  const isRead = typeof text === 'string' && text.length <= MOST_READ;
  // Before it is cut: the start of a key may be left.
  return show(isRead ? hideKeys(text) : text);
}

/** In base64 of either alphabet: 43 characters, of which the last bits and `=` do not matter here. */
const BASE64_RUN = /(?<![\w+/-])[\w+/-]{43}(?=[^\w+/-]|[_-]?$)/g;
const HEX_RUN = /[\da-f]{43}/i;
const isMixed = (text) => /[a-z]/.test(text) && /[A-Z]/.test(text);

/** Whether a part of a name is spelt as a key is. Names have other lengths, or one case. */
function hasKey(text) {
  return HEX_RUN.test(text) || (text.match(BASE64_RUN) ?? []).some(isMixed);
}

module.exports = { hasKey, hideKeys, showNoKey };
