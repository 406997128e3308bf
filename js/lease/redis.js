'use strict';
// `snowdrift/lease/redis`: slots in Redis, by a client of `ioredis` or `redis`. Each change is one
// script, which Redis runs alone. A slot's ceiling has no expiry: only its hold has.
//
// A namespace is one hash, so that it is kept whole or lost whole: flushed, evicted, deleted, or gone
// with a server that kept nothing. Whoever finds none cannot tell whether there ever was one, and
// holders that know their slots may still live. So it starts with what they can have been confirmed of
// at most (`unused`, the horizon of its first holder): the floor of every slot that it knows nothing
// of. Hence the first lease of a namespace waits for that long.
//
// A write that is confirmed and then lost (a crash between two fsyncs, a failover to a replica that did
// not have it) leaves the rest of the hash, and is not noticed: index.d.ts says how to run Redis.

const { checkClient, readNamespace } = require('./adapter.js');
const { layoutConflict } = require('./conflict.js');

const NOW = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

/** `ceiling` and `hold` are a slot's fields, `prefix` those of its datacenter. */
const SLOT = `
local prefix = ARGV[1] .. ':'
local function fields(worker) return 'ceiling:' .. prefix .. worker, 'hold:' .. prefix .. worker end
local function tick(number) return string.format('%.0f', number) end`;

const ACQUIRE = `${NOW}${SLOT}
local layout, horizon, workers = ARGV[2], ARGV[3], tonumber(ARGV[4])
local asked, ttl, hold = tonumber(ARGV[5]), tonumber(ARGV[6]), cjson.decode(ARGV[7])
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'layout', layout, 'unused', horizon)
end
local all, list = {}, redis.call('HGETALL', KEYS[1])
for i = 1, #list, 2 do all[list[i]] = list[i + 1] end
if all.layout ~= layout then return {'layout', all.layout} end

local worker, floor
local held = {}
for id = 0, workers - 1 do
  local ceilingField, holdField = fields(id)
  local holder = all[holdField]
  if holder and cjson.decode(holder).expires > now then
    held[#held + 1] = tostring(id)
    held[#held + 1] = holder
  else
    local ceiling = tonumber(all[ceilingField] or all.unused)
    if not floor or ceiling < floor then worker, floor = id, ceiling end
    -- They are first used in their order: none above it has a ceiling of its own.
    if not all[ceilingField] then break end
  end
end
if not worker then return {'held', held} end
hold.expires = now + ttl
local ceilingField, holdField = fields(worker)
redis.call('HSET', KEYS[1], ceilingField, tick(math.max(floor, asked)), holdField, cjson.encode(hold))
return {'taken', tostring(worker), tick(floor), tick(hold.expires)}`;

const RENEW = `${NOW}${SLOT}
local ceilingField, holdField = fields(ARGV[2])
local ceiling, hold = unpack(redis.call('HMGET', KEYS[1], ceilingField, holdField))
if not ceiling or not hold then return false end
hold = cjson.decode(hold)
if hold.owner ~= ARGV[3] then return false end
hold.expires = now + tonumber(ARGV[5])
local raised = tick(math.max(tonumber(ceiling), tonumber(ARGV[4])))
redis.call('HSET', KEYS[1], ceilingField, raised, holdField, cjson.encode(hold))
return tick(hold.expires)`;

const RELEASE = `${SLOT}
local ceilingField, holdField = fields(ARGV[2])
local hold = redis.call('HGET', KEYS[1], holdField)
if not hold or cjson.decode(hold).owner ~= ARGV[3] then return false end
redis.call('HDEL', KEYS[1], holdField)
redis.call('HSET', KEYS[1], ceilingField, ARGV[4])
return 'OK'`;

const SLOTS = `${NOW}
return {tostring(now), redis.call('HGETALL', KEYS[1])}`;

function redis(client, options) {
  checkClient(client, 'eval', 'redis() takes a client of ioredis or redis');
  const namespace = readNamespace(options);
  // node-redis has sendCommand for arrays of words, ioredis a method for each command.
  const isNodeRedis = typeof client.sendCommand === 'function' && 'isOpen' in client;
  const send = (words) =>
    isNodeRedis ? client.sendCommand(words) : client.call(words[0], ...words.slice(1));
  const run = (script, { datacenterId }, ...values) =>
    send(['EVAL', script, '1', `snowdrift:${namespace}`, ...[datacenterId, ...values].map(String)]);
  const name = `redis:${namespace}`;

  return {
    name,

    async now() {
      const [seconds, micros] = await send(['TIME']);
      return Number(seconds) * 1000 + Number(micros) / 1000;
    },

    async acquire(request) {
      const { layout, horizon, workerIds, ceiling, ttl, owner, holder } = request;
      const { host, pid, startedAt } = holder;
      const hold = JSON.stringify({ owner, host, pid, started: Number(startedAt) });
      const asked = [layout, horizon, workerIds, ceiling, ttl, hold];
      const [what, ...rest] = await run(ACQUIRE, request, ...asked);
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

    async slots() {
      const [now, list] = await run(SLOTS, { datacenterId: 0 });
      const fields = new Map();
      for (let i = 0; i < list.length; i += 2) fields.set(list[i], list[i + 1]);
      const slots = [];
      for (const [field, ceiling] of fields) {
        const [kind, datacenterId, workerId] = field.split(':');
        if (kind !== 'ceiling') continue;
        const hold = fields.get(`hold:${datacenterId}:${workerId}`);
        const { host, pid, started, expires } = hold === undefined ? {} : JSON.parse(hold);
        slots.push({
          datacenterId: Number(datacenterId),
          workerId: Number(workerId),
          ...(hold === undefined ? {} : { host, pid, startedAt: new Date(started), expires }),
          ceiling: Number(ceiling),
          isHeld: expires > Number(now),
        });
      }
      return { layout: fields.get('layout'), slots };
    },
  };
}

/** Of worker IDs, each followed by its hold. */
function holdersOf(pairs) {
  const holders = [];
  for (let i = 0; i < pairs.length; i += 2) {
    const { host, pid, started } = JSON.parse(pairs[i + 1]);
    holders.push({ workerId: Number(pairs[i]), host, pid, startedAt: new Date(started) });
  }
  return holders;
}

module.exports = { redis };
