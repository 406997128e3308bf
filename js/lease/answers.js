'use strict';
// What a LeaseStore may answer. One of the application's own may be wrong in any way, and a floor that is
// no number would be no fence.

const { shown } = require('../errors.js');

/** The highest tick that a number can hold. */
const LAST_TICK = 2 ** 53;

const isWhole = (value, min, max) => Number.isInteger(value) && value >= min && value <= max;
const isObject = (value) => value !== null && typeof value === 'object';
/** For people only. */
const isExpiry = (value) => value === undefined || value === null || typeof value === 'number';

/** By call: whether that is an answer, and what one is. */
const ANSWERS = {
  now: [(time) => isWhole(Math.floor(time), -8.64e15, 8.64e15), 'Unix ms'],
  acquire: [
    (answer, { workerIds }) =>
      isObject(answer) &&
      (answer.workerId === undefined
        ? Array.isArray(answer.holders) && answer.holders.every(isObject)
        : isWhole(answer.workerId, 0, workerIds - 1) &&
          isWhole(answer.floor, -1, LAST_TICK) &&
          isExpiry(answer.expires)),
    '{ workerId, floor, expires } with a tick or -1 as floor, or { holders }',
  ],
  renew: [
    (answer) => isObject(answer) && typeof answer.isHeld === 'boolean' && isExpiry(answer.expires),
    '{ isHeld, expires }',
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
