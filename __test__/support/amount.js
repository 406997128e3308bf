'use strict';
// How much of something a test does.
//
//   TESTS=all         all of it, as .ci/run does: what takes minutes, and what is missing is a failure
//   TESTS_TIMES=100   a hundred times as much of what has no end: seeds, kills, seconds
//   TESTS_SEED=4711   the same again as by that seed; a simulation runs that one alone

const { TESTS, TESTS_TIMES, TESTS_SEED } = process.env;

if (TESTS !== undefined && TESTS !== 'all')
  throw new Error(`TESTS is '${TESTS}', and may be 'all'`);

const isAll = TESTS === 'all';

function number(name, text) {
  const value = Number(text);
  if (text === '' || Number.isNaN(value)) throw new Error(`${name} is '${text}', and is no number`);
  return value;
}

const times = TESTS_TIMES === undefined ? 1 : number('TESTS_TIMES', TESTS_TIMES);

/** The seed that is asked for, or undefined. */
const seed = TESTS_SEED === undefined ? undefined : number('TESTS_SEED', TESTS_SEED);

/** So much, or `all` where all is tested. */
function amount(usual, all) {
  return Math.max(Math.round((isAll ? all : usual) * times), 1);
}

/** Why a test that takes long is skipped, or undefined. */
const tooLong = isAll ? undefined : 'it takes long: TESTS=all runs it';

/** Where all is tested, throws: what a machine has not is then a failure. Otherwise returns the reason. */
function skipped(reason) {
  if (isAll) throw new Error(reason);
  return reason;
}

module.exports = { amount, isAll, seed, skipped, tooLong };
