'use strict';
// Checks the replies of a LeaseStore. An application's own store may return anything, and a floor that is not
// a number would fence nothing.

const { describe } = require('../errors.js');
const { printable } = require('../secrets.js');
const { parseLayoutKey } = require('../ids/layout-key.js');

/** The highest tick that a number holds exactly. */
const LAST_TICK = 2 ** 53;

const isObject = (value) => value !== null && typeof value === 'object';
const isWhole = (value, min, max) => Number.isInteger(value) && value >= min && value <= max;
const isTick = (value) => isWhole(value, -1, LAST_TICK);
/** A day: more than any limit of a holder. A larger one would let a lost namespace stop IDs for years. */
const isDuration = (value) => isWhole(value, 0, 86_400_000);
/** Unix ms, with a fraction or without. */
const isTime = (value) =>
  typeof value === 'number' && isWhole(Math.floor(value), -8.64e15, 8.64e15);
const isNow = (value) => value === undefined || isTime(value);
const isExpiry = (value) => value === null || isTime(value);

const isNamespace = (reply) =>
  isObject(reply) &&
  typeof reply.id === 'string' &&
  /^[0-9a-f]{32}$/.test(reply.id) &&
  parseLayoutKey(reply.layout) !== undefined &&
  isDuration(reply.ttl) &&
  isDuration(reply.maxClockSkew) &&
  isDuration(reply.maxAhead) &&
  isTick(reply.floor);

/** The longest host name shown, as long as the column of SQL stores. */
const MAX_HOST = 255;

const isNodeId = (value) => isWhole(value, 0, 2 ** 31);
const isHolder = (holder) =>
  isObject(holder) && (holder.workerId === undefined || isNodeId(holder.workerId));
const isSlot = (slot) =>
  isObject(slot) &&
  isNodeId(slot.datacenterId) &&
  isNodeId(slot.workerId) &&
  isTick(slot.ceiling) &&
  (slot.expires === undefined || isExpiry(slot.expires));

/** A holder as far as its record is one. It is shown only. */
function readHolder({ pid, host, startedAt, ...rest }) {
  const started = Number(startedAt);
  return {
    ...rest,
    ...(isWhole(pid, 0, 2 ** 32) ? { pid } : {}),
    ...(typeof host === 'string' ? { host: printable(host.slice(0, MAX_HOST)) } : {}),
    ...(isTime(started) ? { startedAt: new Date(started) } : {}),
  };
}

const NAMESPACE = '{ id, layout, ttl, maxClockSkew, maxAhead, floor }';

const isAcquired = (reply, { workerIds }) =>
  isWhole(reply.workerId, 0, workerIds - 1) &&
  isTick(reply.floor) &&
  isExpiry(reply.expires) &&
  isNow(reply.now);

/** By call: the check of a reply, and its description in errors. */
const REPLIES = {
  now: [isTime, 'Unix ms'],
  open: [isNamespace, NAMESPACE],
  raise: [
    (reply, { namespace, id = namespace, floor = -1, ttl = 0, maxClockSkew = 0, maxAhead = 0 }) =>
      isNamespace(reply) &&
      reply.id === id &&
      reply.floor >= floor &&
      reply.ttl >= ttl &&
      reply.maxClockSkew >= maxClockSkew &&
      reply.maxAhead >= maxAhead,
    `${NAMESPACE}, none of them lower than requested`,
  ],
  acquire: [
    (reply, request) =>
      isObject(reply) &&
      (reply.isMissing === true ||
        (reply.workerId === undefined
          ? Array.isArray(reply.holders) && reply.holders.every(isHolder)
          : isAcquired(reply, request))),
    '{ workerId, floor, expires } with a tick or -1 as floor, or { holders }, or { isMissing: true }',
  ],
  renew: [
    (reply) =>
      isObject(reply) &&
      (reply.isHeld === true
        ? isExpiry(reply.expires) && isNow(reply.now)
        : reply.isHeld === false && ['taken', 'missing', 'reverted'].includes(reply.lost)),
    "{ isHeld: true, expires }, or { isHeld: false, lost } with 'taken', 'missing' or 'reverted'",
  ],
  release: [() => true],
  slots: [
    (reply) =>
      isObject(reply) &&
      (reply.namespace === undefined ? reply.slots?.length === 0 : isNamespace(reply.namespace)) &&
      Array.isArray(reply.slots) &&
      reply.slots.every(isSlot),
    '{ namespace, slots }, with undamaged records',
  ],
};

/** Returns a valid reply, with its holders as they may be shown. Throws for any other. */
function readReply(call, reply, request) {
  const [isValid, expected] = REPLIES[call];
  if (isValid(reply, request)) {
    if (call === 'slots') return { ...reply, slots: reply.slots.map(readHolder) };
    const { holders } = call === 'acquire' ? reply : {};
    return holders === undefined ? reply : { ...reply, holders: holders.map(readHolder) };
  }
  const damage = call === 'slots' ? damageIn(reply) : '';
  throw new Error(`it returned ${describe(reply)}; it must return ${expected}${damage}`);
}

/** The first damaged slot of a list, for the operator who looks for its record. */
function damageIn(reply) {
  const damaged = Array.isArray(reply?.slots) ? reply.slots.filter((slot) => !isSlot(slot)) : [];
  return damaged.length > 0 ? `. This slot is damaged: ${describe(damaged[0])}` : '';
}

module.exports = { readReply };
