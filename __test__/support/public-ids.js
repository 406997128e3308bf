'use strict';
// Keys of public IDs for tests, and the published vectors, whose keys publicIds() refuses.

const assert = require('node:assert/strict');

const { BlockCipher, words } = require('../../js/public/block.js');
const { createKey } = require('../../js/public/key.js');
const { createSpeller, readText } = require('../../js/public/text.js');
const { vectors } = require('../public/public-vectors.json');

const toHex = (base64) => Buffer.from(base64, 'base64').toString('hex');
const toBase64 = (hex) => Buffer.from(hex, 'hex').toString('base64');

/** Two keys in hex, others at each run. */
const [KEY, OTHER_KEY] = [toHex(createKey()), toHex(createKey())];

/** The text of an ID, by a key in hex, published or not. */
function textOf({ key, kind, prefix, id }) {
  new BlockCipher(Buffer.from(key, 'hex'), kind).encrypt(BigInt(id));
  return createSpeller(prefix)(words);
}

/** The ID of a text, by a key in hex; undefined for other texts. */
function idOf({ key, kind, prefix, text }) {
  assert.ok(readText(text, prefix.length, words), text);
  return new BlockCipher(Buffer.from(key, 'hex'), kind).decrypt();
}

/** A page's code with the texts of its published key as they are by `KEY`. */
function withOwnKey(code) {
  return code.replace(/\b([a-z]+_)[0-7][0-9a-hjkmnp-tv-z]{25}\b/g, (text, prefix) => {
    const of = { kind: prefix.slice(0, -1), prefix };
    const id = idOf({ ...of, key: vectors[0].key, text });
    assert.ok(id !== undefined, `the published key did not make ${text}`);
    return textOf({ ...of, key: KEY, id });
  });
}

module.exports = { KEY, OTHER_KEY, idOf, textOf, toBase64, vectors, withOwnKey };
