'use strict';
// One AES-256 block: the 8 bytes of an ID, and the 8-byte tag of its kind.

const { createCipheriv, createDecipheriv, createHmac } = require('node:crypto');

const { SnowFlakeError } = require('../ids/error.js');
const { HIGH, LOW, halves, whole } = require('../ids/halves.js');

const BLOCK_LENGTH = 16;
const HALF_BITS = 32;

/** A block as four 32-bit numbers, the highest first. */
const words = new Uint32Array(4);

/**
 * A cipher for single blocks. Callers keep it, since creating one takes longer than encrypting 10 blocks.
 * @param {typeof createCipheriv | typeof createDecipheriv} create
 * @param {Uint8Array} key
 */
function kept(create, key) {
  try {
    return create('aes-256-ecb', key, null).setAutoPadding(false);
  } catch (cause) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (cause);
    const message = `node:crypto of this runtime has no AES-256-ECB (${code}): run it with a build of Node, Bun, Deno or Workers that has it`;
    throw new SnowFlakeError('ERR_SNOWFLAKE_CONFIG', message, { cause });
  }
}

/**
 * The first 8 bytes of HMAC-SHA-256, so that finding two kinds with one tag needs the key.
 * @param {Uint8Array} key
 * @param {string} kind
 */
const tagOf = (key, kind) => createHmac('sha256', key).update(kind, 'utf8').digest().subarray(0, 8);

class BlockCipher {
  #encryptor;
  #decryptor;
  #tagHigh;
  #tagLow;
  #input = new DataView(new ArrayBuffer(BLOCK_LENGTH));

  /**
   * @param {Uint8Array} key 32 bytes
   * @param {string} kind
   */
  constructor(key, kind) {
    const tag = tagOf(key, kind);
    this.#tagHigh = tag.readUInt32BE(0);
    this.#tagLow = tag.readUInt32BE(4);
    this.#encryptor = kept(createCipheriv, key);
    this.#decryptor = kept(createDecipheriv, key);
  }

  /**
   * Encrypts an ID of 0 to 2^63 - 1 into `words`.
   * @param {bigint} id
   */
  encrypt(id) {
    whole[0] = id;
    const input = this.#input;
    input.setUint32(0, halves[HIGH]);
    input.setUint32(4, halves[LOW]);
    input.setUint32(8, this.#tagHigh);
    input.setUint32(12, this.#tagLow);
    const output = this.#encryptor.update(input);
    for (let n = 0; n < 4; n++) words[n] = wordOf(output, n);
  }

  /** Decrypts the ID of the block in `words`; undefined if its kind or key differs. */
  decrypt() {
    const input = this.#input;
    for (let n = 0; n < 4; n++) input.setUint32(4 * n, words[n]);
    const output = this.#decryptor.update(input);
    const high = wordOf(output, 0);
    // Compares all bits at once, so that the time does not show how many bits of the tag match.
    const isOther = (wordOf(output, 2) ^ this.#tagHigh) | (wordOf(output, 3) ^ this.#tagLow);
    if ((isOther | (high >>> (HALF_BITS - 1))) !== 0) return undefined;
    halves[HIGH] = high;
    halves[LOW] = wordOf(output, 1);
    return whole[0];
  }
}

/**
 * The 32-bit number at an index.
 * @param {Uint8Array} bytes
 * @param {number} n
 */
function wordOf(bytes, n) {
  const at = 4 * n;
  return (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
}

module.exports = { BlockCipher, words };
