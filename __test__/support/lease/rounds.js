'use strict';
// Times and moments that a busy machine may miss: it may stop any process for seconds. A round that it has made
// late does not count, and is repeated. A fault makes all rounds late. So this is for storms.

const assert = require('node:assert/strict');

const { storm } = require('../amount.js');

const MOST = 5;

/**
 * Repeats a round until it succeeds.
 * @param round answers whether it did; what it asserts holds for each
 */
async function inRounds(what, round) {
  assert.equal(storm, undefined, 'only a storm has rounds');
  for (let rounds = 0; rounds < MOST; rounds++) if (await round(rounds)) return;
  assert.fail(`${what}: in none of ${MOST} rounds`);
}

/**
 * Repeats a scene until it takes less than so many ms. Outside of storms its time is nothing to assert.
 * @param scene answers how many it took
 */
async function inTime(limit, scene) {
  if (storm !== undefined) return void (await scene(0));
  const took = [];
  do took.push(await scene(took.length));
  while (!(took.at(-1) < limit) && took.length < MOST);
  assert.ok(took.at(-1) < limit, `${took.map(Math.round).join(', ')} ms; the limit is ${limit} ms`);
}

module.exports = { inRounds, inTime };
