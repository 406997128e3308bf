'use strict';
// The file of a slot in a directory, as src/register/contents.rs describes it.

const { readFileSync } = require('node:fs');

const { readText } = require('./records.js');

const FILE_BYTES = 45_056;
const BLOCKS = [4096, 24_576];

/** The record of a slot's file: its text's fields, the `turn` of its write, and where its block is. */
function readRecord(path) {
  const bytes = readFileSync(path);
  const blocks = BLOCKS.map((at) => {
    const text = bytes.toString('utf8', at + 24, at + 24 + bytes.readUInt32LE(at + 4));
    return { at, turn: bytes.readBigUInt64LE(at + 8), text };
  });
  const { text, ...newest } = blocks[blocks[0].turn > blocks[1].turn ? 0 : 1];
  return { ...readText(text), ...newest };
}

/** The line of the slot whose file it is; undefined if nobody ever held it. */
const readLine = (path) => readRecord(path).slots[0];

module.exports = { BLOCKS, FILE_BYTES, readLine, readRecord };
