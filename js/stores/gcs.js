'use strict';
// A register in Google Cloud Storage, through `@google-cloud/storage`, as objects.js says. The version is the generation, which comes
// with the content in one reply.
//
// A write is one request. `save()` would send it again where its reply is lost: that is refused, and where another write came in
// between, this one would count as not written.

const { pipeline } = require('node:stream/promises');

const { configError, describe } = require('../messages/errors.js');
const { NONE, ownOf, propertyOf } = require('../ids/properties.js');
const { learnPassword } = require('../messages/secrets.js');
const { pause } = require('../runtime/time.js');
const { checkPrefix, createObjects, namespacesOf } = require('./objects.js');
const { checkClient, readOptions } = require('./options.js');
const { timeOfReply } = require('./reply-time.js');

/**
 * @import { Readable, Writable } from 'node:stream'
 * @import { Objects } from './objects.js'
 */

/**
 * What is used of a bucket.
 * @typedef {object} Bucket
 * @property {string} name
 * @property {(path: string) => File} file
 * @property {(query: object) => Promise<[unknown, object | null, { prefixes?: unknown[] }?]>} getFiles
 *
 * @typedef {object} File
 * @property {(request: object) => Readable} requestStream
 * @property {(options: object) => Writable} createWriteStream
 *
 * @typedef {{ statusCode?: unknown, headers?: { [name: string]: string }, request?: { headers?: { [name: string]: string } } }} Reply
 * @typedef {Error & { code?: unknown, response?: Reply }} Failure
 */

const CLIENT = 'gcs() takes a Bucket of @google-cloud/storage: gcs(new Storage().bucket(name))';

/** The longest body of a reply. A record has 16 KiB. */
const MOST_BYTES = 65_536;

/** Of a write that comes too soon after another one. */
const MOST_TRIES = 4;

/** An error may quote the request with its token. @param {Reply | undefined} reply */
function learnToken(reply) {
  const headers = propertyOf(propertyOf(reply ?? NONE, 'request') ?? NONE, 'headers') ?? NONE;
  const { Authorization, authorization = Authorization } = ownOf(headers);
  const [, token] = /^Bearer (.+)/.exec(String(authorization)) ?? [];
  if (token !== undefined) learnPassword(token);
}

/** The client's error, without the request that it has. @param {unknown} thrown */
function withoutRequest(thrown) {
  const { response, message, name, code } = /** @type {Failure} */ (thrown ?? NONE);
  learnToken(response);
  return Object.assign(new Error(message), { name, code });
}

/**
 * A reply with its text.
 * @param {Readable} stream of a request
 * @param {AbortSignal} signal
 */
async function collect(stream, signal) {
  /** @type {Reply} */
  let reply = {};
  /** @type {Buffer[]} */
  const parts = [];
  let left = MOST_BYTES;
  const onAbort = () => void stream.destroy(signal.reason);
  signal.addEventListener('abort', onAbort);
  try {
    // It is also writable, so that `for await` would not end.
    await new Promise((resolve, reject) => {
      stream.on('error', reject).on('end', resolve);
      stream.on('close', () => reject(new Error('the reply has no end')));
      stream.on('response', (response) => {
        reply = response;
        learnToken(reply);
      });
      stream.on('data', (part) => {
        parts.push(part);
        left -= part.length;
        if (left < 0) stream.destroy(new Error(`a reply has more than ${MOST_BYTES} bytes`));
      });
    });
  } catch (thrown) {
    throw withoutRequest(thrown);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
  return { reply, text: Buffer.concat(parts).toString() };
}

/** @type {typeof import('./gcs.d.ts').gcs} */
function gcs(given, options) {
  checkClient(given, { file: 'function', getFiles: 'function', name: 'string' }, CLIENT);
  const bucket = /** @type {Bucket} */ (/** @type {unknown} */ (given));
  const { namespace, prefix = 'snowdrift' } = readOptions(options, ['namespace', 'prefix']);
  checkPrefix(prefix);
  const name = `gcs:${bucket.name}/${prefix}/${namespace}`;

  /** @type {Objects['put']} */
  async function put(path, text, generation, signal) {
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted();
      try {
        const upload = bucket.file(path).createWriteStream({
          resumable: false,
          // Where it fails, the client deletes the object, and be it another's of meanwhile.
          validation: false,
          preconditionOpts: { ifGenerationMatch: generation ?? 0 },
          // Those of a public bucket would be cached.
          metadata: { cacheControl: 'no-store', contentType: 'text/plain' },
        });
        await pipeline([text], upload, { signal });
        return {};
      } catch (thrown) {
        const failure = withoutRequest(thrown);
        if (failure.code === 412) return { refusal: 'unmet' };
        if (failure.code === 404) {
          throw configError(
            `${name}: there is no bucket ${describe(bucket.name)}: create it, or correct its name`,
          );
        }
        if (failure.code !== 429 || tries === MOST_TRIES) throw failure;
      }
      // An object takes one write a second.
      await pause(1000 * (1 + Math.random()));
    }
  }

  return createObjects({
    name,
    root: `${prefix}/${namespace}`,
    versionName: 'generation',
    noVersion: '1',

    // With 0, the write would create.
    isVersion: (generation) => typeof generation === 'string' && /^[1-9]\d*$/.test(generation),

    lacksConditions: () =>
      configError(
        `${name} cannot lease worker IDs: it writes whether or not ifGenerationMatch is met. Use Google Cloud Storage, or an emulator that keeps this condition`,
      ),

    async get(path, signal) {
      // Not createReadStream(), which ends the connections of all others where it is given up.
      const request = { uri: '', qs: { alt: 'media' }, headers: { 'Cache-Control': 'no-store' } };
      const { reply, text } = await collect(bucket.file(path).requestStream(request), signal);
      const status = Number(propertyOf(reply, 'statusCode'));
      const { date, 'x-goog-generation': version } = ownOf(propertyOf(reply, 'headers') ?? NONE);
      if (status === 200) return { text, version, now: timeOfReply(date) };
      if (status === 404) return { now: timeOfReply(date) };
      throw new Error(`it returned ${status}: ${text.trim()}`);
    },

    put,

    async namespaces(signal) {
      const names = [];
      /** @type {object | null} */
      let query = { prefix: `${prefix}/`, delimiter: '/', autoPaginate: false };
      while (query !== null && query !== undefined) {
        signal.throwIfAborted();
        /** @type {Awaited<ReturnType<Bucket['getFiles']>>} */
        const [, next, reply] = await bucket.getFiles(query).catch((thrown) => {
          throw withoutRequest(thrown);
        });
        names.push(...namespacesOf(propertyOf(reply ?? NONE, 'prefixes') ?? []));
        query = next;
      }
      return names;
    },
  });
}

/** @satisfies {typeof import('./gcs.js')} */
module.exports = { gcs };
