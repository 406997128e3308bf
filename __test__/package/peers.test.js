'use strict';
// package.json admits the versions of clients that the tests use, and no others.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { peerDependencies, devDependencies, peerDependenciesMeta } = require('../../package.json');
const boundary = require('../support/boundary/package.json');
const { versionsOf } = require('../support/installed.js');

/** The packages that an application brings; the other one comes from this repository. */
const CLIENTS = Object.keys(peerDependencies).filter((name) => name !== 'snowdrift-zookeeper');

/** The versions of an age, those of frameworks in a folder of their own. */
const allOf = (age) => ({ ...versionsOf(age), ...versionsOf(`frameworks-${age}`) });
/** Those between. Mongoose brings the driver. */
const { version: mongodb } = require('mongodb/package.json');
const usual = { ...devDependencies, ...boundary.dependencies, mongodb };

/** What a caret keeps: 5 of 5.11.1, and 0.3 of 0.3.20. */
const lineOf = (version) => /^(0\.\d+|\d+)/.exec(version)[0];

test('each client is optional', () => {
  assert.deepEqual(Object.keys(peerDependenciesMeta).sort(), Object.keys(peerDependencies).sort());
  for (const { optional } of Object.values(peerDependenciesMeta)) assert.equal(optional, true);
});

for (const name of CLIENTS) {
  test(`the range of ${name} begins with the oldest tested version, and has the tested majors`, () => {
    const [oldest, newest] = [allOf('oldest')[name], allOf('newest')[name]];
    const tested = [oldest, usual[name], newest].filter(Boolean);
    const [first, ...later] = peerDependencies[name].split(' || ');
    assert.equal(first, `^${oldest}`);
    const lines = [...new Set(tested.map(lineOf))];
    assert.deepEqual(
      later,
      lines.slice(1).map((line) => `^${line}.0.0`),
    );
  });
}

test("the two folders have other majors than npm ci's, or older versions", () => {
  for (const [name, version] of Object.entries(versionsOf('newest'))) {
    assert.ok(Number(lineOf(version)) > Number(lineOf(devDependencies[name])), name);
  }
  const ofStores = CLIENTS.filter((name) => !(name in versionsOf('frameworks-oldest')));
  assert.deepEqual(Object.keys(versionsOf('oldest')), ofStores.sort());
});
