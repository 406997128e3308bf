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

const { configError, describe } = require('../messages/errors.js');
const { checkClient, readOptions } = require('./options.js');
const { createRegister, decode, encode } = require('./register.js');
const { NONE } = require('../ids/properties.js');
const { untilAborted } = require('../runtime/limits.js');

/** @import { StoreOptions } from './store.d.ts' */

/**
 * What is used of clients. `condition`: of the connection of one of `ioredis`.
 * @typedef {object} Client
 * @property {{ keyPrefix?: string, database?: number, db?: number }} [options]
 * @property {{ select?: number } | null} [condition]
 */

/**
 * @typedef {Client & {
 *   sendCommand(words: string[], options: { abortSignal: AbortSignal }): Promise<unknown>,
 *   isOpen: boolean,
 * }} NodeRedis
 */

/** A cluster of `redis`. @typedef {Omit<NodeRedis, 'sendCommand'> & {
 *   sendCommand(key: string | undefined, isReadonly: boolean, words: string[], options: object): Promise<unknown>,
 *   masters: object[],
 *   nodeClient(node: object): Promise<NodeRedis> | NodeRedis,
 * }} NodeRedisCluster
 */

/**
 * A client, or a Cluster, which has its nodes.
 * @typedef {Client & { call(...words: string[]): Promise<unknown>, nodes?: (role: 'master') => IORedis[] }} IORedis
 */

/** The application may select another database on its connection. A script's own selection ends with it. */
const SELECT = `
local database = table.remove(ARGV, 1)
if database ~= '' then
  local reply = redis.pcall('SELECT', database)
  -- A user without the right to select is in the first database, and so is everyone in a cluster.
  if reply.err and database ~= '0' then return reply end
end
`;

const READ = `${SELECT} return redis.call('HGET', KEYS[1], ARGV[1])`;

/** Returns what it found instead of the predecessor. A missing record is false, and so is a missing argument. */
const WRITE = `${SELECT}
local found = redis.call('HGET', KEYS[1], ARGV[1])
if (found and string.sub(found, 1, 16)) ~= (ARGV[3] or false) then return {0, found} end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return {1}`;

const CLIENTS = 'redis() takes a client or a cluster, of ioredis or redis';

/** A pattern of Redis for a text itself. @param {string} text */
const patternOf = (text) => text.replace(/[\\*?[\]]/g, '\\$&');

/**
 * In node-redis, sendCommand takes an array of words; in ioredis, a Command object.
 * @param {NodeRedis | NodeRedisCluster | IORedis} client
 * @returns {client is NodeRedis | NodeRedisCluster}
 */
const isOfNodeRedis = (client) => 'isOpen' in client && typeof client.sendCommand === 'function';

/**
 * A cluster of `redis` does not notice that a node is gone: a call to it waits until it is back. After a call that has failed,
 * this one goes to any node. That names the right one, and the cluster asks who its nodes are.
 * @param {NodeRedisCluster} cluster
 * @param {string} key
 */
function throughCluster(cluster, key) {
  let hasFailed = false;
  /**
   * @param {string[]} words
   * @param {AbortSignal} abortSignal
   */
  return async (words, abortSignal) => {
    const first = hasFailed ? undefined : key;
    const send = () => cluster.sendCommand(first, false, words, { abortSignal });
    try {
      const reply = await untilAborted(abortSignal, send);
      hasFailed = false;
      return reply;
    } catch (failure) {
      hasFailed = true;
      throw failure;
    }
  };
}

/**
 * @param {{ eval: unknown }} given
 * @param {StoreOptions} [options]
 * @param {boolean} [isOurs] whether no application has the client
 */
function redis(given, options, isOurs = false) {
  checkClient(given, { eval: 'function' }, CLIENTS);
  const { namespace } = readOptions(options);
  const name = `redis:${namespace}`;
  const key = `snowdrift:${namespace}:records`;
  const client = /** @type {NodeRedis | NodeRedisCluster | IORedis} */ (
    /** @type {unknown} */ (given)
  );
  const isNodeRedis = isOfNodeRedis(client);
  if (!isNodeRedis) checkClient(client, { call: 'function' }, CLIENTS);
  const cluster = isNodeRedis && 'masters' in client ? client : undefined;
  const toCluster = cluster && throughCluster(cluster, key);
  /**
   * Version 5 takes a command that is not sent yet out of its queue when `abortSignal` aborts. ioredis cannot.
   * @param {string[]} words
   * @param {AbortSignal} abortSignal
   * @param {NodeRedis | IORedis} [node] of a cluster
   * @returns {Promise<unknown>}
   */
  async function send(words, abortSignal, node) {
    const [name, ...rest] = words;
    if (isNodeRedis && !client.isOpen) {
      throw configError('the client of redis is not connected: await client.connect() first');
    }
    const one = node ?? /** @type {NodeRedis | IORedis} */ (client);
    // keyPrefix needs to know which words are keys. Some versions of ioredis do not, for a name in upper case.
    const reply = isOfNodeRedis(one)
      ? await (node === undefined && toCluster
          ? toCluster(words, abortSignal)
          : one.sendCommand(words, { abortSignal }))
      : await one.call(name.toLowerCase(), ...rest);
    if (reply !== undefined) return reply;
    throw configError(
      `${name} got no reply from its client, which calls back: create the client without legacyMode, or pass client.v4`,
    );
  }
  /** What ioredis puts before each key of a script. */
  const keyPrefix = client.options?.keyPrefix ?? '';
  /** Its number as text. A cluster has one. @type {string | undefined} */
  let database = cluster && '';

  /** @param {AbortSignal} signal */
  async function findDatabase(signal) {
    if (isOurs) return String(client.options?.db ?? 0);
    try {
      const info = await send(['CLIENT', 'INFO'], signal);
      const [, number] = /\bdb=(\d+)/.exec(String(info)) ?? [];
      if (number !== undefined) return number;
      throw new Error(`CLIENT INFO returned ${describe(info)}`);
    } catch (failure) {
      const { message } = /** @type {Error} */ (failure);
      // Redis before 6.2, or a user without the right. Only ioredis knows which database is selected now.
      if (!/^(NOPERM|ERR unknown)/i.test(message)) throw failure;
      const { condition, options = NONE } = client;
      return String(condition?.select ?? options.database ?? options.db ?? 0);
    }
  }

  /** @param {AbortSignal} signal */
  async function databaseOf(signal) {
    if (database !== undefined) return database;
    const found = await findDatabase(signal);
    database ??= found;
    signal.throwIfAborted();
    return database;
  }

  /**
   * @param {AbortSignal} signal
   * @param {string} script
   * @param {string[]} values
   */
  async function run(signal, script, ...values) {
    const number = await databaseOf(signal);
    // Nobody moves our own connection.
    return send(['EVAL', script, '1', key, isOurs ? '' : number, ...values], signal);
  }

  /** Each has the keys of its slots. @returns {Promise<(NodeRedis | IORedis)[]>} */
  async function nodesOf() {
    if (cluster) return Promise.all(cluster.masters.map((node) => cluster.nodeClient(node)));
    const one = /** @type {NodeRedis | IORedis} */ (client);
    return (isOfNodeRedis(one) ? undefined : one.nodes?.('master')) ?? [one];
  }

  return createRegister({
    name,
    mayForget: true,

    async now(signal) {
      const [seconds, micros] = /** @type {unknown[]} */ (await send(['TIME'], signal));
      return Number(seconds) * 1000 + Number(micros) / 1000;
    },

    async read(key, signal) {
      const stored = await run(signal, READ, key);
      return { record: decode(name, key, /** @type {string | null} */ (stored)) };
    },

    async write(key, record, before, signal) {
      const condition = before === undefined ? [] : [before];
      const values = [key, encode(record), ...condition];
      const reply = /** @type {[unknown, string?]} */ (await run(signal, WRITE, ...values));
      // A client may return numbers as text, and '0' is true.
      const [isWritten, found] = [Number(reply[0]), reply[1]];
      if (isWritten === 1) return { isWritten: true };
      if (isWritten === 0) return { isWritten: false, found: decode(name, key, found) };
      throw new Error(`the script of a write returned ${describe(reply)}`);
    },

    async namespaces(signal) {
      const names = new Set();
      for (const node of await nodesOf()) {
        let cursor = '0';
        do {
          signal.throwIfAborted();
          const pattern = `${patternOf(keyPrefix)}snowdrift:*:records`;
          const scan = ['SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000'];
          const reply = await send(scan, signal, node);
          const [next, keys] = /** @type {[unknown, unknown[]]} */ (reply);
          for (const key of keys) names.add(String(key).slice(keyPrefix.length).split(':')[1]);
          cursor = String(next);
        } while (cursor !== '0');
      }
      return [...names];
    },
  });
}

/** @satisfies {typeof import('./redis.js')} */
module.exports = { redis };
