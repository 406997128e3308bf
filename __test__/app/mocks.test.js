'use strict';
// Tests of users, by their test runners, with the package as npm installs it: spies, automocks, fake timers. Those of
// node:test are in generator/mocks.test.js and generator/fake-timers.test.js, the spies of jest in docs/testing.md.

const assert = require('node:assert/strict');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

const { storm } = require('../support/amount.js');
const { Packages, missingRunner } = require('../support/runners/project.js');

const RUNNERS = {
  jest: {
    files: ['automock.test.js', 'timers.test.js'],
    command: ['node_modules/jest/bin/jest.js', '--ci', '--transform={}'],
    passed: /^Tests: +5 passed, 5 total$/m,
  },
  vitest: {
    files: ['mocks.test.mjs', 'automock.test.mjs', 'timers.test.mjs'],
    command: ['node_modules/vitest/vitest.mjs', 'run'],
    passed: /^ +Tests +9 passed \(9\)$/m,
  },
};

describe('tests of users', { skip: storm, timeout: 5 * 60_000 }, () => {
  const packages = new Packages();
  before(() => packages.assemble());
  after(() => packages.remove());

  for (const [runner, { files, command, passed }] of Object.entries(RUNNERS)) {
    test(`by ${runner}: spies, mocks and fake timers`, {
      skip: missingRunner(runner),
    }, async (t) => {
      const project = packages.project([
        { from: 'timers.js', to: 'timers.js' },
        ...files.map((file) => ({ from: join(runner, file), to: file })),
      ]);
      t.after(() => project.stop());
      project.env.NO_COLOR = '1';
      project.link(runner);
      const { stdout, stderr } = await project.run(process.execPath, ...command);
      assert.match(stdout + stderr, passed);
      assert.doesNotMatch(stdout + stderr, /SNOWFLAKE_|failed to exit|did not exit/);
    });
  }
});
