'use strict';
// A block of 128 bits as 26 characters of base32: Crockford's alphabet in lower case, high bits first. 26 characters
// have two bits more than a block. These bits are 0, so that a block has only one text.

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const TEXT_LENGTH = 26;

const codes = Uint8Array.from(ALPHABET, (one) => one.charCodeAt(0));

/** The 5 bits of each character code; -1 for other characters. */
const values = new Int8Array(128).fill(-1);
for (const [value, code] of codes.entries()) values[code] = value;

/**
 * @param {string} prefix ASCII
 * @returns {(words: Uint32Array) => string} returns a block's text as one flat string, since a concatenated string is slow to store
 */
function createSpeller(prefix) {
  const text = Buffer.alloc(prefix.length + TEXT_LENGTH);
  text.write(prefix, 'latin1');
  return (words) => {
    // Not destructured, since the array's iterator is slow.
    let a = words[0];
    let b = words[1];
    let c = words[2];
    let d = words[3];
    for (let at = text.length - 1; at >= prefix.length; at--) {
      text[at] = codes[d & 31];
      d = (d >>> 5) | (c << 27);
      c = (c >>> 5) | (b << 27);
      b = (b >>> 5) | (a << 27);
      a >>>= 5;
    }
    return text.toString('latin1');
  };
}

/**
 * Reads the 26 characters of a text from `start` on. Returns whether they spell a block.
 * @param {string} text
 * @param {number} start
 * @param {Uint32Array} words receives the block as four 32-bit numbers
 */
function readText(text, start, words) {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  let all = 0;
  for (let at = start; at < start + TEXT_LENGTH; at++) {
    const value = values[text.charCodeAt(at)] ?? -1;
    all |= value;
    a = (a << 5) | (b >>> 27);
    b = (b << 5) | (c >>> 27);
    c = (c << 5) | (d >>> 27);
    d = (d << 5) | value;
  }
  words[0] = a;
  words[1] = b;
  words[2] = c;
  words[3] = d;
  return all >= 0 && text[start] < '8';
}

module.exports = { TEXT_LENGTH, createSpeller, readText };
