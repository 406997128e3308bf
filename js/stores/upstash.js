'use strict';
// A register in Upstash's Redis, through its HTTP client, `@upstash/redis`. The records are where redis.js has them: the
// fields `TOKEN TEXT` of the hash `snowdrift:NAMESPACE:records`. So clients of both kinds may share a namespace.
//
// A database may have replicas, which lag. Only its primary runs a script that writes, and each of these does: that of a
// read deletes a field that is never there.
//
// Each call has a number of its own, which its reply repeats: `fetch` may cache, and the client makes up a reply where its
// signal was aborted. The client also takes texts for numbers where they look like one, so that each text begins with a '='.

const { randomBytes } = require('node:crypto');

const { configError, describe } = require('../messages/errors.js');
const { propertyOf } = require('../ids/properties.js');
const { checkClient, readOptions } = require('./options.js');
const { createRegister, decode, encode } = require('./register.js');

/**
 * What is used of a client.
 * @typedef {object} Upstash
 * @property {(script: string, keys: string[], values: string[]) => Promise<unknown>} eval
 * @property {() => Promise<unknown>} time
 * @property {(cursor: string, options: { match: string, count: number }) => Promise<[unknown, unknown[]]>} scan
 */

const CLIENTS = 'upstash() takes a client of @upstash/redis';

const FOUND = "return {'=' .. ARGV[2], 'found', found and '=' .. found or ''}";

const READ = `
redis.call('HDEL', KEYS[1], '')
local found = redis.call('HGET', KEYS[1], ARGV[1])
${FOUND}`;

/** A missing record is false, and so is a missing argument. */
const WRITE = `
local found = redis.call('HGET', KEYS[1], ARGV[1])
if (found and string.sub(found, 1, 16)) ~= (ARGV[4] or false) then ${FOUND} end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return {'=' .. ARGV[2], 'written', ''}`;

/** The error of a command, without the command: that is a script. @param {Error} failure */
function shorten(failure) {
  const [message] = String(failure?.message).split(', command was: ');
  if (message === failure?.message) throw failure;
  throw Object.assign(new Error(message), { name: failure.name });
}

/** @type {typeof import('./upstash.d.ts').upstash} */
function upstash(given, options) {
  checkClient(given, { eval: 'function', time: 'function', scan: 'function' }, CLIENTS);
  if (propertyOf(/** @type {{ connect?: unknown }} */ (given), 'connect') !== undefined) {
    throw configError(`${CLIENTS}; this is one of another package, for redis()`);
  }
  const client = /** @type {Upstash} */ (/** @type {unknown} */ (given));
  // Scanners take a call of `eval` for the language's.
  const send = client.eval.bind(client);
  const { namespace } = readOptions(options);
  const name = `upstash:${namespace}`;

  /**
   * @param {string} script
   * @param {string} key
   * @param {string[]} values
   */
  async function run(script, key, ...values) {
    const number = randomBytes(8).toString('hex');
    const keys = [`snowdrift:${namespace}:records`];
    const reply = await send(script, keys, [key, number, ...values]).catch(shorten);
    const [own, outcome, value] = Array.isArray(reply) ? reply : [];
    const isFound = outcome === 'found' && typeof value === 'string' && /^(=|$)/.test(value);
    if (own !== `=${number}` || !(isFound || outcome === 'written')) {
      throw new Error(`a script returned ${describe(reply)}`);
    }
    const found = value === '' ? undefined : decode(name, key, value.slice(1));
    return { isWritten: outcome === 'written', found };
  }

  return createRegister({
    name,
    mayForget: true,
    // A call by HTTP takes longer, and each has its price.
    bucketSize: 8,

    async now() {
      const [seconds, micros] = /** @type {unknown[]} */ (await client.time());
      return Number(seconds) * 1000 + Number(micros) / 1000;
    },

    read: async (key) => ({ record: (await run(READ, key)).found }),

    async write(key, record, before) {
      const condition = before === undefined ? [] : [before];
      const { isWritten, found } = await run(WRITE, key, encode(record), ...condition);
      return isWritten ? { isWritten } : { isWritten, found };
    },

    async namespaces(signal) {
      const names = new Set();
      let cursor = '0';
      do {
        signal.throwIfAborted();
        const [next, keys] = await client.scan(cursor, {
          match: 'snowdrift:*:records',
          count: 1000,
        });
        for (const key of keys) names.add(String(key).split(':')[1]);
        cursor = String(next);
      } while (cursor !== '0');
      return [...names];
    },
  });
}

/** @satisfies {typeof import('./upstash.js')} */
module.exports = { upstash };
