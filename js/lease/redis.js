'use strict';
// `snowdrift/lease/redis`: slots in Redis, by a client of `ioredis` or `redis`. Each change is one
// script, which Redis runs alone. A slot's ceiling has no expiry: only its hold has.
//
// Redis is as safe as what it keeps. A write that it has confirmed and then loses (a crash between two
// fsyncs, a failover to a replica that did not have it, FLUSHALL, an eviction) is a floor that is lost.
// Run it with `appendfsync always` and `maxmemory-policy noeviction`.

const { checkClient, readNamespace } = require('./adapter.js');
const { layoutConflict } = require('./conflict.js');

const NOW = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

// KEYS: the namespace's layout, the datacenter's ceilings, its holds (worker ID to JSON).
const ACQUIRE = `${NOW}
if not redis.call('GET', KEYS[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
local layout = redis.call('GET', KEYS[1])
if layout ~= ARGV[1] then return {'layout', layout} end
local workers, ceiling, ttl = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local worker, floor
local used = redis.call('ZCARD', KEYS[2])
if used < workers then
  worker, floor = tostring(used), -1
else
  local slots = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
  for i = 1, #slots, 2 do
    local hold = redis.call('HGET', KEYS[3], slots[i])
    if not hold or cjson.decode(hold).expires <= now then
      worker, floor = slots[i], tonumber(slots[i + 1])
      break
    end
  end
end
if not worker then return {'held', redis.call('HGETALL', KEYS[3])} end
local hold = cjson.decode(ARGV[5])
hold.expires = now + ttl
redis.call('HSET', KEYS[3], worker, cjson.encode(hold))
redis.call('ZADD', KEYS[2], string.format('%.0f', math.max(floor, ceiling)), worker)
return {'taken', worker, string.format('%.0f', floor), string.format('%.0f', hold.expires)}`;

const RENEW = `${NOW}
local hold = redis.call('HGET', KEYS[3], ARGV[1])
if not hold then return false end
hold = cjson.decode(hold)
if hold.owner ~= ARGV[2] then return false end
local ceiling = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not ceiling then return false end
hold.expires = now + tonumber(ARGV[4])
redis.call('HSET', KEYS[3], ARGV[1], cjson.encode(hold))
redis.call('ZADD', KEYS[2], string.format('%.0f', math.max(tonumber(ceiling), tonumber(ARGV[3]))), ARGV[1])
return string.format('%.0f', hold.expires)`;

const RELEASE = `
local hold = redis.call('HGET', KEYS[3], ARGV[1])
if not hold or cjson.decode(hold).owner ~= ARGV[2] then return false end
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
return 'OK'`;

function redis(client, options) {
  checkClient(client, 'eval', 'redis() takes a client of ioredis or redis');
  const namespace = readNamespace(options);
  // node-redis has sendCommand for arrays of words, ioredis a method for each command.
  const isNodeRedis = typeof client.sendCommand === 'function' && 'isOpen' in client;
  const send = (words) =>
    isNodeRedis ? client.sendCommand(words) : client.call(words[0], ...words.slice(1));
  // In braces, so that a cluster keeps the keys of a script together.
  const keys = (datacenterId) => {
    const base = `{snowdrift:${namespace}}`;
    return [`${base}:layout`, `${base}:${datacenterId}:ceilings`, `${base}:${datacenterId}:holds`];
  };
  const run = (script, { datacenterId }, ...values) =>
    send(['EVAL', script, '3', ...keys(datacenterId), ...values.map(String)]);
  const name = `redis:${namespace}`;

  return {
    name,

    async now() {
      const [seconds, micros] = await send(['TIME']);
      return Number(seconds) * 1000 + Number(micros) / 1000;
    },

    async acquire(request) {
      const { layout, workerIds, ceiling, ttl, owner, holder } = request;
      const { host, pid, startedAt } = holder;
      const hold = JSON.stringify({ owner, host, pid, started: Number(startedAt) });
      const [what, ...rest] = await run(ACQUIRE, request, layout, workerIds, ceiling, ttl, hold);
      if (what === 'layout') throw layoutConflict(name, rest[0], layout);
      if (what === 'held') return { holders: holdersOf(rest[0]) };
      const [workerId, floor, expires] = rest.map(Number);
      return { workerId, floor, expires };
    },

    async renew(request) {
      const { workerId, owner, ceiling, ttl } = request;
      const expires = await run(RENEW, request, workerId, owner, ceiling, ttl);
      return { isHeld: expires !== null, expires: Number(expires) };
    },

    async release(request) {
      const { workerId, owner, last } = request;
      await run(RELEASE, request, workerId, owner, last);
    },
  };
}

/** Of the pairs that HGETALL gives. */
function holdersOf(pairs) {
  const holders = [];
  for (let i = 0; i < pairs.length; i += 2) {
    const { host, pid, started } = JSON.parse(pairs[i + 1]);
    holders.push({ workerId: Number(pairs[i]), host, pid, startedAt: new Date(started) });
  }
  return holders.sort((a, b) => a.workerId - b.workerId);
}

module.exports = { redis };
