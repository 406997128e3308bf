'use strict';
// Reads files that options name: tokens, URLs, certificates, keys. A path may be wrong, so reading has bounds, and
// refuses FIFOs without a writer and devices without an end.

const { constants } = require('node:fs');

const { configError } = require('../messages/errors.js');
const { lackOf } = require('../messages/faults.js');

/** @import { Failure } from '../types.js' */

/** The most bytes of a file. A bundle of all public certificate authorities has a quarter of that. */
const MOST_BYTES = 2 ** 20;
const CHUNK_BYTES = 2 ** 16;

/** Opens a FIFO without blocking. Windows has neither the flag nor FIFOs in its file systems. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

const NOT_REGULAR = 'is no regular file: put its contents into one';

/**
 * The contents of a file, or the reason not to read it, as a text.
 * @param {string | URL} path
 */
async function contentsOf(path) {
  const { open } = require('node:fs/promises');
  const file = await open(path, FLAGS);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) return NOT_REGULAR;
    const chunks = [];
    // Ignores the size of the file, since it may grow, and files in /proc have none.
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
 * @param {string} name the name of the file in errors
 * @param {string | URL} path
 */
async function readOptionFile(name, path) {
  let contents;
  try {
    contents = await contentsOf(path);
  } catch (failure) {
    const { code } = /** @type {Failure} */ (failure);
    // The error for a socket.
    if (code === 'ENXIO') throw configError(`${name} ${NOT_REGULAR}`);
    throw configError(
      `cannot read ${name} (${code}): ${lackOf({ code }) ?? 'check its path and mode'}`,
    );
  }
  if (typeof contents === 'string') throw configError(`${name} ${contents}`);
  return contents;
}

module.exports = { readOptionFile };
