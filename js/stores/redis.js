'use strict';
// `snowdrift/lease/redis`: slots in Redis, through a client of `ioredis` or `redis`. Each change is one script,
// which Redis runs atomically. Holds expire; ceilings do not.
//
// The application may select another database on its connection. So each script selects the one in which the first call
// found it; a script's selection ends with it.
//
// A namespace is one hash, so a flush, an eviction or a lost server loses all of it or nothing. The fields are
// its record (id, layout, ttl, maxClockSkew, maxAhead, floor) and its slots. Each script compares the ID
// before it changes a field.
//
// Redis may lose data, so a missing namespace counts as lost. With `mayForget` the first holder of a new one
// waits until the clock has passed all ceilings that may have been confirmed before.
//
// A confirmed write can be lost alone: in a crash between two fsyncs, or in a failover to a replica without it.
// A living holder notices that at its next renewal, by its ceiling. New holders cannot: redis.d.ts says how to
// run Redis.

const { checkClient, readNamespace } = require('./options.js');
const { formatConflict, ofClient } = require('./failures.js');

/** Lua numbers are doubles: exact up to 2^53, but `tostring` rounds to 14 digits. */
const SHARED = `
local database = table.remove(ARGV, 1)
if database ~= '' then
  local reply = redis.pcall('SELECT', database)
  -- A user without the right to select is in the first database, and so is everyone in a cluster.
  if reply.err and database ~= '0' then return reply end
end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local key = KEYS[1]
local function exact(number) return string.format('%.0f', number) end
local function record()
  return redis.call('HMGET', key, 'id', 'layout', 'ttl', 'maxClockSkew', 'maxAhead', 'floor')
end
local function slot(datacenter, worker)
  local name = datacenter .. ':' .. worker
  return 'ceiling:' .. name, 'hold:' .. name
end`;

const OPEN = `${SHARED}
local id, layout, ttl, skew, ahead, floor = unpack(ARGV)
if redis.call('EXISTS', key) == 0 then
  redis.call('HSET', key, 'id', id, 'layout', layout, 'ttl', ttl, 'maxClockSkew', skew,
    'maxAhead', ahead, 'floor', floor)
end
return record()`;

const RAISE = `${SHARED}
if redis.call('HGET', key, 'id') ~= ARGV[1] then return {false} end
redis.call('HSET', key, 'id', ARGV[2])
for i = 3, #ARGV, 2 do
  local field, least = ARGV[i], tonumber(ARGV[i + 1])
  if tonumber(redis.call('HGET', key, field)) < least then
    redis.call('HSET', key, field, exact(least))
  end
end
return record()`;

const ACQUIRE = `${SHARED}
local datacenter, workers, asked = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local ttl, hold = tonumber(ARGV[5]), cjson.decode(ARGV[6])
local all, list = {}, redis.call('HGETALL', key)
for i = 1, #list, 2 do all[list[i]] = list[i + 1] end
if all.id ~= ARGV[1] then return {'missing'} end

local worker, lowest
local held = {}
for id = 0, workers - 1 do
  local ceilingField, holdField = slot(datacenter, id)
  local holder = all[holdField]
  if holder and cjson.decode(holder).expires > now then
    held[#held + 1] = tostring(id)
    held[#held + 1] = holder
  else
    local ceiling = tonumber(all[ceilingField] or -1)
    if not lowest or ceiling < lowest then worker, lowest = id, ceiling end
    -- Worker IDs are first used in ascending order, so the rest are unused, too.
    if not all[ceilingField] then break end
  end
end
if not worker then return {'held', held} end
hold.expires = now + ttl
local floor = math.max(lowest, tonumber(all.floor))
local ceilingField, holdField = slot(datacenter, worker)
redis.call('HSET', key, ceilingField, exact(math.max(floor, asked)), holdField, cjson.encode(hold))
return {'taken', tostring(worker), exact(floor), exact(hold.expires), exact(now)}`;

const RENEW = `${SHARED}
local ceilingField, holdField = slot(ARGV[2], ARGV[3])
local id, recorded, hold = unpack(redis.call('HMGET', key, 'id', ceilingField, holdField))
if id ~= ARGV[1] or not recorded then return {'missing'} end
recorded = tonumber(recorded)
if recorded < tonumber(ARGV[7]) then return {'reverted'} end
hold = hold and cjson.decode(hold)
if not hold or hold.owner ~= ARGV[4] then return {'taken'} end
hold.expires = now + tonumber(ARGV[5])
local raised = exact(math.max(recorded, tonumber(ARGV[6])))
redis.call('HSET', key, ceilingField, raised, holdField, cjson.encode(hold))
return {'held', exact(hold.expires), exact(now)}`;

const RELEASE = `${SHARED}
local ceilingField, holdField = slot(ARGV[2], ARGV[3])
local id, hold = unpack(redis.call('HMGET', key, 'id', holdField))
if id ~= ARGV[1] or not hold or cjson.decode(hold).owner ~= ARGV[4] then return false end
redis.call('HDEL', key, holdField)
redis.call('HSET', key, ceilingField, ARGV[5])
return 'OK'`;

const SLOTS = `${SHARED}
return {tostring(now), record(), redis.call('HGETALL', key)}`;

/** The fields that raise() may raise. */
const RAISED = ['floor', 'ttl', 'maxClockSkew', 'maxAhead'];

/** @param isOurs whether no application has the client */
function redis(client, options, isOurs = false) {
  checkClient(client, 'eval', 'redis() takes a client of ioredis or redis');
  const namespace = readNamespace(options);
  // In node-redis, sendCommand takes an array of words; in ioredis, a Command object.
  const isNodeRedis = typeof client.sendCommand === 'function' && 'isOpen' in client;
  // Version 5 takes a command that is not sent yet out of its queue when `abortSignal` aborts. ioredis cannot.
  const send = ofClient((words, abortSignal) =>
    isNodeRedis
      ? client.sendCommand(words, { abortSignal })
      : client.call(words[0], ...words.slice(1)),
  );
  const key = `snowdrift:${namespace}`;
  /** Its number as text; '' for the connection's own. */
  let database = isOurs ? '' : undefined;

  async function findDatabase(signal) {
    try {
      const info = await send(['CLIENT', 'INFO'], signal);
      return /\bdb=(\d+)/.exec(info)[1];
    } catch (failure) {
      // Redis before 6.2, or a user without the right. Only ioredis knows which database is selected now.
      if (!/^(NOPERM|ERR unknown)/i.test(failure.message)) throw failure;
      const { condition, options = {} } = client;
      return String(condition?.select ?? options.database ?? options.db ?? 0);
    }
  }

  const run = async (script, values = [], signal) => {
    if (database === undefined) {
      const found = await findDatabase(signal);
      database ??= found;
    }
    signal?.throwIfAborted();
    return send(['EVAL', script, '1', key, database, ...values.map(String)], signal);
  };
  const name = `redis:${namespace}`;

  function readRecord([id, layout, ...numbers]) {
    if (id === null) throw formatConflict(name, `the hash ${key} has no field 'id'`);
    const [ttl, maxClockSkew, maxAhead, floor] = numbers.map(Number);
    return { id, layout, ttl, maxClockSkew, maxAhead, floor };
  }

  return {
    name,
    mayForget: true,

    async now({ signal } = {}) {
      const [seconds, micros] = await send(['TIME'], signal);
      return Number(seconds) * 1000 + Number(micros) / 1000;
    },

    async open({ id, layout, ttl, maxClockSkew, maxAhead, floor, signal }) {
      const record = [id, layout, ttl, maxClockSkew, maxAhead, floor];
      return readRecord(await run(OPEN, record, signal));
    },

    async raise({ namespace, id = namespace, signal, ...least }) {
      const wanted = RAISED.filter((field) => least[field] !== undefined);
      const pairs = wanted.flatMap((field) => [field, least[field]]);
      const found = await run(RAISE, [namespace, id, ...pairs], signal);
      if (found[0] === null) throw new Error(`${name} has no namespace of ID ${namespace}`);
      return readRecord(found);
    },

    async acquire(request) {
      const { namespace: id, datacenterId, workerIds, ceiling, ttl, owner, holder } = request;
      const { host, pid, startedAt } = holder;
      const hold = JSON.stringify({ owner, host, pid, started: Number(startedAt) });
      const asked = [id, datacenterId, workerIds, ceiling, ttl, hold];
      const [what, ...rest] = await run(ACQUIRE, asked, request.signal);
      if (what === 'missing') return { isMissing: true };
      if (what === 'held') return { holders: holdersOf(rest[0]) };
      const [workerId, floor, expires, now] = rest.map(Number);
      return { workerId, floor, expires, now };
    },

    async renew(request) {
      const { namespace: id, datacenterId, workerId, owner, ttl, ceiling, confirmed } = request;
      const asked = [id, datacenterId, workerId, owner, ttl, ceiling, confirmed];
      const [what, ...times] = await run(RENEW, asked, request.signal);
      if (what !== 'held') return { isHeld: false, lost: what };
      const [expires, now] = times.map(Number);
      return { isHeld: true, expires, now };
    },

    async release({ namespace: id, datacenterId, workerId, owner, last, signal }) {
      await run(RELEASE, [id, datacenterId, workerId, owner, last], signal);
    },

    async slots() {
      const [now, record, list] = await run(SLOTS);
      if (list.length === 0) return { slots: [] };
      const fields = new Map(pairsOf(list));
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
      return { namespace: readRecord(record), slots };
    },
  };
}

/** The pairs of a flat list. */
function pairsOf(list) {
  return list.flatMap((first, i) => (i % 2 === 0 ? [[first, list[i + 1]]] : []));
}

/** @param list worker IDs, each followed by its hold as JSON */
function holdersOf(list) {
  return pairsOf(list).map(([workerId, hold]) => {
    const { host, pid, started } = JSON.parse(hold);
    return { workerId: Number(workerId), host, pid, startedAt: new Date(started) };
  });
}

module.exports = { redis };
