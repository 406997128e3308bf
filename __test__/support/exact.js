'use strict';
// IDs that no JavaScript number holds: rounding one makes it another ID.

const assert = require('node:assert/strict');

const { fromBase32, isBase32 } = require('../../js/id.js');

/** Odd, where numbers are 128 apart. IDs that begin a tick end in zeros, and show no rounding. */
const FIRST = 900710334577819649n;

/** A generator of such IDs: what an ORM takes in place of SnowFlake. */
function oddFlake() {
  let last = FIRST - 2n;
  const nextId = () => {
    last += 2n;
    return last;
  };
  return { nextId, nextIdString: () => String(nextId()) };
}

/** All IDs of a result, at any depth, as texts. Of one that was rounded, `rounded`. */
function idsIn(result) {
  const seen = new Set();
  const found = new Set();
  const visit = (value) => {
    if (typeof value === 'bigint') check(value);
    else if (typeof value === 'string' && /^0?\d{18}$/.test(value)) check(BigInt(value));
    else if (isBase32(value)) check(fromBase32(value));
    else if (typeof value === 'number' && value > Number.MAX_SAFE_INTEGER) found.add('rounded');
    else if (value !== null && typeof value === 'object' && !seen.has(value)) {
      seen.add(value);
      // Long of BSON
      if (typeof value.toBigInt === 'function') check(value.toBigInt());
      else for (const each of value[Symbol.iterator] ? value : Object.values(value)) visit(each);
    }
  };
  const check = (id) => found.add(id % 2n === 1n ? String(id) : 'rounded');
  visit(result);
  return [...found].sort();
}

/** Asserts that a result has these IDs, each exactly, and no other one. */
function assertExact(result, ...ids) {
  assert.deepEqual(idsIn(result), [...new Set(ids.map(String))].sort());
}

/** Asserts that all IDs of a result were rounded, as a page says. */
function assertRounded(result) {
  assert.deepEqual(idsIn(result), ['rounded']);
}

module.exports = { assertExact, assertRounded, oddFlake };
