'use strict';
// Checks the answers of a LeaseStore. One of the application's own may be wrong in any way, and a floor
// that is no number would be no fence.

const { shown } = require('../errors.js');
const { parseLayoutKey } = require('../layout-key.js');

/** The highest tick that a number can hold. */
const LAST_TICK = 2 ** 53;

const isObject = (value) => value !== null && typeof value === 'object';
const isWhole = (value, min, max) => Number.isInteger(value) && value >= min && value <= max;
const isTick = (value) => isWhole(value, -1, LAST_TICK);
const isDuration = (value) => isWhole(value, 0, Number.MAX_SAFE_INTEGER);
/** Unix ms, with a fraction or without. */
const isTime = (value) =>
  typeof value === 'number' && isWhole(Math.floor(value), -8.64e15, 8.64e15);
const isNow = (value) => value === undefined || isTime(value);
const isExpiry = (value) => value === null || isTime(value);

const isNamespace = (answer) =>
  isObject(answer) &&
  typeof answer.id === 'string' &&
  /^[0-9a-f]{32}$/.test(answer.id) &&
  parseLayoutKey(answer.layout) !== undefined &&
  isDuration(answer.ttl) &&
  isDuration(answer.maxClockSkew) &&
  isDuration(answer.maxAhead) &&
  isTick(answer.floor);

const NAMESPACE = '{ id, layout, ttl, maxClockSkew, maxAhead, floor }';

const isAcquired = (answer, { workerIds }) =>
  isWhole(answer.workerId, 0, workerIds - 1) &&
  isTick(answer.floor) &&
  isExpiry(answer.expires) &&
  isNow(answer.now);

/** By call: whether that is an answer, and what one is. */
const ANSWERS = {
  now: [isTime, 'Unix ms'],
  open: [isNamespace, NAMESPACE],
  raise: [
    (answer, { namespace, floor = -1, ttl = 0, maxClockSkew = 0, maxAhead = 0 }) =>
      isNamespace(answer) &&
      answer.id === namespace &&
      answer.floor >= floor &&
      answer.ttl >= ttl &&
      answer.maxClockSkew >= maxClockSkew &&
      answer.maxAhead >= maxAhead,
    `${NAMESPACE}, none of them lower than requested`,
  ],
  acquire: [
    (answer, request) =>
      isObject(answer) &&
      (answer.isMissing === true ||
        (answer.workerId === undefined
          ? Array.isArray(answer.holders) && answer.holders.every(isObject)
          : isAcquired(answer, request))),
    '{ workerId, floor, expires } with a tick or -1 as floor, or { holders }, or { isMissing: true }',
  ],
  renew: [
    (answer) =>
      isObject(answer) &&
      (answer.isHeld === true
        ? isExpiry(answer.expires) && isNow(answer.now)
        : answer.isHeld === false && ['taken', 'missing', 'reverted'].includes(answer.lost)),
    "{ isHeld: true, expires }, or { isHeld: false, lost } with 'taken', 'missing' or 'reverted'",
  ],
  release: [() => true],
};

/** An answer, if it is one. */
function readAnswer(call, answer, request) {
  const [isAnswer, expected] = ANSWERS[call];
  if (isAnswer(answer, request)) return answer;
  throw new Error(`it answered ${shown(answer)}; it must be ${expected}`);
}

module.exports = { readAnswer };
