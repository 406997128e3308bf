'use strict';
// Hides keys in errors: an application may have passed a key in place of another value.

const { MOST_READ, show } = require('../ids/shown.js');

/**
 * A run of base64 characters, or of their escapes in URLs. Takes linear time, since a run can start at one place only.
 */
const LONG_RUN = /(?<![\w+/%-])[\w+/%-]{43,}=*/g;

/** A text without the parts that have the length of a key in base64. */
const hideKeys = (/** @type {string} */ text) => text.replace(LONG_RUN, '***');

/**
 * A value as text for a message. Hides keys.
 * @param {unknown} value
 */
function showNoKey(value) {
  const text = typeof value === 'symbol' ? String(value) : value;
  const isRead = typeof text === 'string' && text.length <= MOST_READ;
  // Before the text is cut: otherwise the start of a key could remain.
  return show(isRead ? hideKeys(text) : text);
}

/** A key in base64 of either alphabet: 43 characters. The last bits and `=` do not matter here. */
const BASE64_RUN = /(?<![\w+/-])[\w+/-]{43}(?=[^\w+/-]|[_-]?$)/g;
const HEX_RUN = /[\da-f]{43}/i;
const isMixed = (/** @type {string} */ text) => /[a-z]/.test(text) && /[A-Z]/.test(text);

/**
 * Whether a part of a name has the form of a key. Other names have another length, or only one case.
 * @param {string} text
 */
function hasKey(text) {
  return HEX_RUN.test(text) || (text.match(BASE64_RUN) ?? []).some(isMixed);
}

module.exports = { hasKey, hideKeys, showNoKey };
