'use strict';
// What registers in stores of objects share: a record is an object `TOKEN TEXT` under `PREFIX/NAMESPACE/KEY`.
//
// A write first reads the object and compares its token. Then it puts the new one if the version is still the one of that reply,
// or, where there was none, if there still is none. A store may ignore that: before its first write, a register tries it.

const { configError, describe } = require('../messages/errors.js');
const { createRegister, decode, encode } = require('./register.js');
const { neededTime } = require('./reply-time.js');

/** @import { Register } from './types.d.ts' */

/**
 * A store of objects. `now`: its clock, Unix ms.
 * @typedef {object} Objects
 * @property {string} name
 * @property {string} root what the names of its objects begin with
 * @property {string} versionName what it calls the version of an object
 * @property {string} noVersion a version that no object has
 * @property {(version: unknown) => boolean} isVersion whether it is a text that makes a condition
 * @property {() => Error} lacksConditions the error of a store that ignores conditions
 * @property {(path: string, signal: AbortSignal) => Promise<Found>} get
 * @property {(path: string, text: string, version: string | undefined, signal: AbortSignal) => Promise<Put>} put writes if the
 *   object has this version, or if there is none
 * @property {(signal: AbortSignal) => Promise<string[]>} namespaces
 */

/** An object, from one reply. @typedef {{ text?: string | undefined, version?: unknown, now: number | undefined }} Found */
/** `refusal`: the condition was not met, or another write was under way, which may fail. @typedef {{ refusal?: 'unmet' | 'busy' | undefined, now?: number | undefined }} Put */

/** @param {unknown} prefix */
function checkPrefix(prefix) {
  if (typeof prefix === 'string' && prefix.length <= 300) {
    if (/^[\w.-]+([/][\w.-]+)*$/.test(prefix)) return;
  }
  throw configError(
    `prefix must be letters, digits, '_', '.', '-' and '/' between them, 1 to 300 characters; it is ${describe(prefix)}`,
  );
}

/**
 * The namespaces of what a store lists below a prefix: `PREFIX/NAMESPACE/`.
 * @param {unknown[]} prefixes
 */
const namespacesOf = (prefixes) =>
  prefixes.map((text) => /** @type {string} */ (String(text).split('/').at(-2)));

/**
 * @param {Objects} objects
 * @returns {Register}
 */
function createObjects(objects) {
  const { name, root, versionName, noVersion, isVersion, lacksConditions, get, put } = objects;
  let isProbed = false;

  /**
   * @param {string} key
   * @param {AbortSignal} signal
   */
  async function find(key, signal) {
    const { text, version, now } = await get(`${root}/${key}`, signal);
    return { record: decode(name, key, text), version, now };
  }

  /** Refuses a store that ignores conditions. @param {AbortSignal} signal */
  async function probe(signal) {
    /** @param {string} [version] */
    const isDone = async (version) =>
      (await put(`${root}/probe`, 'snowdrift', version, signal)).refusal === undefined;
    // The object of an earlier probe may be there.
    const isCreatedTwice = (await isDone()) && (await isDone());
    if (isCreatedTwice || (await isDone(noVersion))) throw lacksConditions();
    isProbed = true;
  }

  return createRegister({
    name,
    // A bucket may keep every version, and a call takes long.
    bucketSize: 8,
    // Each write has its price, whatever its size.
    ttl: 180_000,

    async now(signal) {
      return neededTime((await find('namespace', signal)).now);
    },

    async read(key, signal) {
      const { record, now } = await find(key, signal);
      return { record, now };
    },

    async write(key, record, before, signal) {
      if (!isProbed) await probe(signal);
      /** @type {{ version: unknown } | undefined} */
      let refused;
      for (;;) {
        const { record: found, version, now } = await find(key, signal);
        if (found?.token !== before) return { isWritten: false, found, now };
        if (found !== undefined && !isVersion(version)) {
          throw new Error(`it returned an object with the ${versionName} ${describe(version)}`);
        }
        if (refused !== undefined && refused.version === version) {
          throw new Error(
            `it refused to replace what it has, by the ${versionName} ${describe(version)}`,
          );
        }
        const condition = isVersion(version) ? String(version) : undefined;
        const answer = await put(`${root}/${key}`, encode(record), condition, signal);
        if (answer.refusal === undefined) return { isWritten: true, now: answer.now ?? now };
        refused = answer.refusal === 'busy' ? undefined : { version };
      }
    },

    namespaces: objects.namespaces,
  });
}

module.exports = { checkPrefix, createObjects, namespacesOf };
