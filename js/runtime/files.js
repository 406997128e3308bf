'use strict';
// Files that an option names: tokens, URLs, certificates, keys. A path may be wrong, so they are read within bounds: a FIFO
// that nobody writes to and a device without an end are refused.

const { constants } = require('node:fs');

const { configError } = require('../messages/errors.js');
const { lackOf } = require('../messages/faults.js');

/** The most bytes of a file. A bundle of all public certificate authorities has a quarter of them. */
const MOST_BYTES = 2 ** 20;
const CHUNK_BYTES = 2 ** 16;

/** A FIFO opens at once. Windows has no such flag, and no FIFO among its files. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

const NOT_REGULAR = 'is no regular file: put its contents into one';

/** The contents of a file; or, as a text, the reason not to read it. */
async function contentsOf(path) {
  const { open } = require('node:fs/promises');
  const file = await open(path, FLAGS);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) return NOT_REGULAR;
    const chunks = [];
    // Not by its size: it may grow, and files of /proc have none.
    for (let length = 0; length <= MOST_BYTES; ) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES);
      if (bytesRead === 0) return Buffer.concat(chunks);
      chunks.push(buffer.subarray(0, bytesRead));
      length += bytesRead;
    }
    return 'has more than 1 MiB: check its path';
  } finally {
    await file.close();
  }
}

/**
 * Reads the file that an option names.
 * @param name the file in errors
 */
async function readOptionFile(name, path) {
  let contents;
  try {
    contents = await contentsOf(path);
  } catch ({ code }) {
    // A socket.
    if (code === 'ENXIO') throw configError(`${name} ${NOT_REGULAR}`);
    throw configError(
      `cannot read ${name} (${code}): ${lackOf({ code }) ?? 'check its path and mode'}`,
    );
  }
  if (typeof contents === 'string') throw configError(`${name} ${contents}`);
  return contents;
}

module.exports = { readOptionFile };
