'use strict';
// A commit is released when its checks have passed: what GitHub may answer.

const assert = require('node:assert/strict');
const { after, before, beforeEach, describe, test } = require('node:test');

const { COMMIT, GitHub, listed, run } = require('../support/package/github.js');

const REPOSITORY = 'https://github.com/Someone/snowdrift';

let origin;
let github;
let how;

before(async () => {
  origin = await import('../../scripts/origin.mjs');
  github = await GitHub.start();
});

beforeEach(() => {
  github.requests = [];
  how = { api: github.url, token: 'of the job' };
});

after(() => github.stop());

/** The reason against a release after this answer. */
function reason(answer) {
  github.answer = answer;
  return origin.checksObstacle(COMMIT, REPOSITORY, how);
}

describe('the checks of a commit', () => {
  test('have passed: GitHub is asked for this commit on main, pushed', async () => {
    assert.equal(await reason(listed(run())), undefined);
    const [{ path, query, headers }, ...more] = github.requests;
    assert.equal(more.length, 0);
    assert.equal(path, '/repos/Someone/snowdrift/actions/workflows/ci.yml/runs');
    assert.equal(query.head_sha, COMMIT);
    assert.deepEqual([query.branch, query.event], ['main', 'push']);
    assert.equal(headers.authorization, 'Bearer of the job');
  });

  test('need no token for a public repository', async () => {
    how.token = '';
    assert.equal(await reason(listed(run())), undefined);
    assert.equal(github.requests[0].headers.authorization, undefined);
  });

  for (const conclusion of ['failure', 'skipped', null]) {
    test(`that ended with ${conclusion} are none that passed`, async () => {
      const said = await reason(listed(run({ conclusion })));
      assert.ok(said.includes(`ci.yml ended with ${conclusion} for commit ${COMMIT}`), said);
      assert.ok(said.endsWith('/actions/runs/7'), said);
    });
  }

  for (const status of ['queued', 'in_progress']) {
    test(`that are ${status} have not passed`, async () => {
      const said = await reason(listed(run({ status, conclusion: null })));
      assert.match(
        said,
        new RegExp(`^ci\\.yml is ${status} .*: run this again when it has passed, `),
      );
    });
  }

  test('of another commit, branch or event do not count', async () => {
    const others = [
      { head_sha: '2'.repeat(40) },
      { head_branch: 'v1.2.3' },
      { head_branch: 'topic' },
      { event: 'pull_request' },
      { event: 'workflow_dispatch' },
    ];
    const said = await reason(listed(...others.map(run)));
    assert.ok(said.startsWith(`ci.yml has not run for commit ${COMMIT} on main`), said);
    assert.match(await reason(listed()), /has not run/);
  });

  test('that ran several times have passed each time', async () => {
    const failed = run({ conclusion: 'failure' });
    assert.match(await reason(listed(failed, run())), /ended with failure/);
    assert.match(await reason(listed(run(), failed)), /ended with failure/);
    assert.equal(await reason(listed(run(), run())), undefined);
  });

  for (const [name, answer, why] of [
    ['401', [401, { message: 'Of the API' }], '401, {"message":"Of the API"}'],
    ['garbage', [200, '<html>'], 'JSON'],
    ['something else', [200, { workflow_runs: {} }], 'no list of runs'],
    ['the end of the connection', (_, response) => void response.destroy(), ''],
  ]) {
    test(`are unknown if GitHub answers ${name}`, async () => {
      const said = await reason(answer);
      assert.match(
        said,
        /^GitHub does not list the runs of ci\.yml, .*: check the repository's name/,
      );
      assert.ok(said.includes(why), said);
    });
  }

  test('are unknown if GitHub never answers, or never ends', async () => {
    how.answerMs = 50;
    for (const answer of [
      () => undefined,
      (_, response) => void response.writeHead(200).write('{"workflow'),
    ]) {
      assert.match(await reason(answer), /^GitHub does not list .*timeout/);
    }
  });
});
