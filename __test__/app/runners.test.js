'use strict';
// Process managers, watchers and test runners start many processes with one worker ID. They all draw from
// one sequence: no duplicate, no refusal, no warning, nothing to set up.

const assert = require('node:assert/strict');
const { utimesSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

const { storm } = require('../support/amount.js');
const { Server, missing } = require('../support/lease/servers.js');
const { Pm2 } = require('../support/runners/pm2/daemon.js');
const { Packages, assertOneSequence, missingRunner } = require('../support/runners/project.js');
const { until } = require('../support/support.js');

const NODE = process.execPath;
const JEST = ['node_modules/jest/bin/jest.js', '--ci', '--transform={}'];
/** By engine of a store: the package of its client, which an application installs. */
const CLIENTS = { postgres: 'pg', mysql: 'mysql2', redis: 'ioredis', etcd: undefined };
/** A drawer with so many IDs is at work. */
const SOME = 1000;
const WORKERS = 4;
/** More than a test runner has workers. */
const TEST_FILES = 2 * WORKERS;

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const skip = storm ?? (process.platform === 'linux' ? undefined : 'tried on Linux');

describe('processes of one environment', { skip, timeout: 14 * 60_000 }, () => {
  const packages = new Packages();
  before(() => packages.assemble());
  after(() => packages.remove());

  /** A project that ends with the test. With `state`, its applications use a directory of that name. */
  function projectOf(t, { state, files } = {}) {
    const project = packages.project(files);
    if (state) project.env.STATE = join(project.directory, 'state');
    t.after(() => project.stop());
    return project;
  }

  /** Until so many drawers are at work. */
  function drawing(count, ...projects) {
    return until(() => areDrawing(count, ...projects));
  }

  function areDrawing(count, ...projects) {
    for (const { stderr } of projects) assert.equal(stderr, '');
    const drawn = projects.flatMap((project) => [...project.drawn().values()]);
    return drawn.filter(({ length }) => length >= SOME).length >= count;
  }

  async function stopped(...projects) {
    for (const project of projects) {
      await project.stop();
      assert.equal(project.stderr, '');
    }
  }

  for (const [suffix, state] of [
    ['', false],
    [', with state', true],
  ]) {
    test(`cluster workers, and a thread of each${suffix}`, async (t) => {
      const project = projectOf(t, { state });
      project.start(NODE, 'cluster.js');
      await drawing(6, project);
      await stopped(project);
      assertOneSequence(t, project);
    });

    test(`node --watch of a server and a worker${suffix}`, async (t) => {
      const project = projectOf(t, { state });
      for (const file of ['server.js', 'worker.js']) project.start(NODE, '--watch', file);
      await drawing(2, project);
      for (let n = 1; n <= 3; n++) {
        // Again, since a change is lost where the watcher does not watch that file yet.
        let due = 0;
        let pause = 5000;
        await until(() => {
          if (Date.now() >= due) {
            const now = new Date();
            utimesSync(join(project.directory, 'draw.js'), now, now);
            due = Date.now() + pause;
            pause *= 2;
          }
          return areDrawing(2 + 2 * n, project);
        });
      }
      await stopped(project);
      assertOneSequence(t, project);
    });

    test(`pm2 reload of a cluster${suffix}`, { skip: missingRunner('pm2') }, async (t) => {
      const project = projectOf(t, { state });
      const pm2 = new Pm2(project);
      t.after(() => pm2.kill());
      await pm2.run('start', 'server.js', '-i', String(WORKERS));
      const { pid } = pm2;
      await drawing(WORKERS, pm2);
      for (let n = 1; n <= 2; n++) {
        await pm2.run('reload', 'server');
        await drawing(WORKERS * (1 + n), pm2);
      }
      await pm2.kill();
      await until(() => !isRunning(pid));
      assert.equal(pm2.stderr, '');
      // More would be restarts of failed ones.
      assert.equal(project.drawn().size, 3 * WORKERS);
      assertOneSequence(t, project);
    });
  }

  const copiesOf = (from) =>
    Array.from({ length: TEST_FILES }, (_, n) => ({ from, to: from.replace(/^.*?\./, `${n}.`) }));

  /** Runs a test runner on copies of one test file, each of which has so many drawers. */
  async function runTests(t, { runner, file, drawers, command, state }) {
    const project = projectOf(t, { state, files: copiesOf(join(runner, file)) });
    project.link(runner);
    const { stdout, stderr } = await project.run(NODE, ...command, `--maxWorkers=${WORKERS}`);
    assert.doesNotMatch(stdout + stderr, /warning|SNOWFLAKE|failed to exit|did not exit/i);
    assert.equal(project.drawn().size, drawers * TEST_FILES);
    assertOneSequence(t, project);
  }

  for (const [what, state, ...flags] of [
    ['processes', false],
    ['processes, with state', true],
    ['threads', false, '--workerThreads'],
  ]) {
    test(`jest with parallel ${what}`, { skip: missingRunner('jest') }, (t) => {
      const command = [...JEST, ...flags];
      return runTests(t, { runner: 'jest', file: 'draw.test.js', drawers: 2, command, state });
    });
  }

  test('jest, with leases from stores', { skip: missingRunner('jest') }, async (t) => {
    const project = projectOf(t, { files: [{ from: 'jest/lease.test.js', to: 'lease.test.js' }] });
    project.link('jest');
    const urls = [];
    for (const [engine, client] of Object.entries(CLIENTS)) {
      if (missing(engine)) continue;
      const server = await Server.start(engine);
      t.after(() => server.stop());
      urls.push(server.url);
      if (client !== undefined) project.linkClient(client);
    }
    project.env.LEASE_URLS = urls.join(' ');
    const { stderr } = await project.run(NODE, ...JEST);
    assert.match(stderr, new RegExp(`Tests: +${urls.length + 1} passed`));
    assert.doesNotMatch(stderr, /not exit/);
  });

  for (const [what, state, pool] of [
    ['processes', false, 'forks'],
    ['processes, with state', true, 'forks'],
    ['threads', false, 'threads'],
    ['contexts of their own', false, 'vmThreads'],
  ]) {
    test(`vitest with parallel ${what}`, { skip: missingRunner('vitest') }, (t) => {
      const command = ['node_modules/vitest/vitest.mjs', 'run', `--pool=${pool}`];
      return runTests(t, { runner: 'vitest', file: 'draw.test.mjs', drawers: 1, command, state });
    });
  }
});
