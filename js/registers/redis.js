'use strict';
// A register in Redis, through a client of `ioredis` or `redis`. The records of a namespace are the fields of one hash,
// `snowdrift:NAMESPACE:records`: `TOKEN TEXT` by key. So a namespace is on one node of a cluster, and a flush or an
// eviction loses all of it or nothing.
//
// A script compares and sets, and Redis runs it atomically. Reads are scripts, too: a client may send other reads to
// replicas, which lag. No script reads the clock: ElastiCache Serverless allows that only outside scripts.
//
// The store must keep what it has confirmed: an append-only file, and replicas that do not become the primary without
// the last writes. Otherwise records go back, which holders notice by their tokens.

const { ofClient } = require('../stores/failures.js');
const { checkClient, readNamespace } = require('../stores/options.js');
const { createRegister, decode, encode } = require('./register.js');

const READ = "return redis.call('HGET', KEYS[1], ARGV[1])";

/** Returns what it found instead of the predecessor. A missing record is false, and so is a missing argument. */
const WRITE = `
local found = redis.call('HGET', KEYS[1], ARGV[1])
if (found and string.sub(found, 1, 16)) ~= (ARGV[3] or false) then return {0, found} end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return {1}`;

/**
 * Fields that exist throughout a scan are in it. It may return a field twice, and then the later value counts. 3000 records of
 * the largest size are less than a server may send within a call, MOST_RECEIVED.
 */
const SCAN = "return redis.call('HSCAN', KEYS[1], ARGV[1], 'MATCH', ARGV[2], 'COUNT', 3000)";

function redis(client, options) {
  checkClient(client, 'eval', 'redis() takes a client of ioredis or redis');
  const namespace = readNamespace(options);
  const name = `redis:${namespace}`;
  // In node-redis, sendCommand takes an array of words; in ioredis, a Command object.
  const isNodeRedis = typeof client.sendCommand === 'function' && 'isOpen' in client;
  const send = ofClient((...words) =>
    isNodeRedis ? client.sendCommand(words) : client.call(...words),
  );
  const run = (script, ...values) =>
    send('EVAL', script, '1', `snowdrift:${namespace}:records`, ...values);

  return createRegister({
    name,
    mayForget: true,

    async now() {
      const [seconds, micros] = await send('TIME');
      return Number(seconds) * 1000 + Number(micros) / 1000;
    },

    read: async (key) => ({ record: decode(name, key, await run(READ, key)) }),

    async write(key, record, before) {
      const condition = before === undefined ? [] : [before];
      const [isWritten, found] = await run(WRITE, key, encode(record), ...condition);
      return isWritten
        ? { isWritten: true }
        : { isWritten: false, found: decode(name, key, found) };
    },

    async list(prefix, signal) {
      const records = new Map();
      const pattern = `${prefix.replace(/[\\*?[\]]/g, '\\$&')}*`;
      let cursor = '0';
      do {
        signal.throwIfAborted();
        const [next, page] = await run(SCAN, cursor, pattern);
        for (let n = 0; n < page.length; n += 2) {
          records.set(page[n], decode(name, page[n], page[n + 1]));
        }
        cursor = next;
      } while (cursor !== '0');
      return { records };
    },
  });
}

module.exports = { redis };
