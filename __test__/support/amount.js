'use strict';
// Which tests run, and how much of something they do.
//
//   TESTS=quick       as npm test: without what a change rarely breaks
//   TESTS=gate        as .ci/run: a missing program fails its tests instead of skipping them
//   TESTS=storms      as npm run storms: storms, too, and as much as they take. A missing program fails its tests
//   TESTS=platform    storms, too, as much as usual, with the programs that the machine has
//   TESTS_TIMES=100   a hundred times as much of what has no end: seeds, kills, seconds
//   TESTS_SEED=4711   the same again as by that seed; a simulation runs that one alone

const { TESTS, TESTS_TIMES, TESTS_SEED } = process.env;

if (TESTS !== undefined && !['quick', 'gate', 'storms', 'platform'].includes(TESTS))
  throw new Error(`TESTS is '${TESTS}', and may be 'quick', 'gate', 'storms' or 'platform'`);

const isStorms = TESTS === 'storms' || TESTS === 'platform';

function number(name, text) {
  const value = Number(text);
  if (text === '' || Number.isNaN(value)) throw new Error(`${name} is '${text}', and is no number`);
  return value;
}

const times = TESTS_TIMES === undefined ? 1 : number('TESTS_TIMES', TESTS_TIMES);

/** The seed that is asked for, or undefined. */
const seed = TESTS_SEED === undefined ? undefined : number('TESTS_SEED', TESTS_SEED);

/** So much, or `storms` with TESTS=storms. */
function amount(usual, storms) {
  return Math.max(Math.round((TESTS === 'storms' ? storms : usual) * times), 1);
}

/**
 * Why `npm test` skips a storm, or undefined. A storm is a test whose result may depend on when the scheduler runs a process,
 * or that takes long: CONTRIBUTING.md has the list.
 */
const storm = isStorms ? undefined : 'a storm: npm run storms';

/** Whether it is `npm test`, which does with little. */
const isQuick = TESTS === 'quick';

/** Why `npm test` leaves a test to the gate, or undefined: a change rarely breaks it, and it takes long. */
const gate = isQuick ? 'left to the gate: .ci/run' : undefined;

/** Where nothing may be missing, throws: what a machine has not is then a failure. Otherwise returns the reason. */
function skipped(reason) {
  if (TESTS === 'gate' || TESTS === 'storms') throw new Error(reason);
  return reason;
}

module.exports = { amount, gate, isQuick, isStorms, seed, skipped, storm };
