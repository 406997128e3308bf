'use strict';
// The loader of the addon tells what it has tried.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { TARGETS, packageOf, targetHere } = require('../../../js/runtime/addon.js');
const { load } = require('../index.js');

/** What is tried for a target that is not installed. */
function triedFor(target) {
  const failures = [];
  assert.equal(
    load(target, (failure) => failures.push(failure)),
    undefined,
  );
  return failures.map(({ code, message }) => {
    assert.equal(code, 'MODULE_NOT_FOUND');
    return message.split("'")[1];
  });
}

test("an addon is looked for beside the loader, then in its platform's package", () => {
  for (const target of TARGETS.filter((each) => each !== targetHere())) {
    const beside = `./snowdrift-zookeeper.${target}.node`;
    assert.deepEqual(triedFor(target), [beside, packageOf('snowdrift-zookeeper', target)]);
  }
});

test('a platform without a package has the addon that was built there, or none', () => {
  assert.deepEqual(triedFor('aix-ppc64'), ['./snowdrift-zookeeper.aix-ppc64.node']);
});
