'use strict';
// A commit is released when its checks have passed: what GitHub may answer, and how often it is asked.

const assert = require('node:assert/strict');
const { after, before, beforeEach, describe, test } = require('node:test');

const { COMMIT, GitHub, listed, run } = require('../support/package/github.js');

const REPOSITORY = 'https://github.com/Someone/snowdrift';
const PENDING = { status: 'in_progress', conclusion: null };

let origin;
let github;
/** What was waited for. */
let waits;
let how;

before(async () => {
  origin = await import('../../scripts/origin.mjs');
  github = await GitHub.start();
});

beforeEach(() => {
  github.requests = [];
  waits = [];
  how = { api: github.url, token: 'of the job', pause: (what) => waits.push(what) };
});

after(() => github.stop());

/** The reason against a release after these answers. */
function reason(...answers) {
  github.answers = answers;
  return origin.checksObstacle(COMMIT, REPOSITORY, how);
}

describe('the checks of a commit', () => {
  test('have passed: GitHub is asked for this commit on main, pushed', async () => {
    assert.equal(await reason(listed(run())), undefined);
    const [{ path, query, headers }, ...more] = github.requests;
    assert.equal(more.length, 0);
    assert.equal(path, '/repos/Someone/snowdrift/actions/workflows/ci.yml/runs');
    assert.equal(query.head_sha, COMMIT);
    assert.deepEqual([query.branch, query.event, query.page], ['main', 'push', '1']);
    assert.equal(headers.authorization, 'Bearer of the job');
    assert.deepEqual(waits, []);
  });

  test('need no token for a public repository', async () => {
    how.token = '';
    assert.equal(await reason(listed(run())), undefined);
    assert.equal(github.requests[0].headers.authorization, undefined);
  });

  for (const conclusion of [
    'failure',
    'cancelled',
    'timed_out',
    'skipped',
    'neutral',
    'stale',
    'action_required',
    'startup_failure',
    null,
  ]) {
    test(`that ended with ${conclusion} are none that passed`, async () => {
      const said = await reason(listed(run({ conclusion })));
      assert.ok(said.includes(`ci.yml ended with ${conclusion} for commit ${COMMIT}`), said);
      assert.ok(said.endsWith('/actions/runs/7'), said);
      assert.equal(github.requests.length, 1);
    });
  }

  test('are waited for while they run', async () => {
    const queued = listed(run({ status: 'queued', conclusion: null }));
    assert.equal(await reason(queued, listed(run(PENDING)), listed(run())), undefined);
    assert.deepEqual(
      waits.map((what) => what.split(' for ')[0]),
      ['ci.yml is queued', 'ci.yml is in_progress'],
    );
  });

  test('may fail while a release waits for them', async () => {
    const said = await reason(listed(run(PENDING)), listed(run({ conclusion: 'failure' })));
    assert.match(said, /^ci\.yml ended with failure/);
  });

  test('are not waited for without an end', async () => {
    const said = await reason(listed(run(PENDING)));
    assert.match(said, /^ci\.yml is in_progress .*: run this again when it has ended$/);
    assert.deepEqual([github.requests.length, waits.length], [60, 59]);
  });

  test('may be listed some minutes after the tag', async () => {
    assert.equal(await reason(listed(), listed(), listed(run())), undefined);
    assert.equal(waits.length, 2);
  });

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
    assert.equal(github.requests.length, 5);
  });

  test('repeated have the result of the last attempt', async () => {
    assert.equal(await reason(listed(run({ run_attempt: 2 }))), undefined);
    const again = run({ ...PENDING, run_attempt: 2 });
    assert.equal(await reason(listed(again), listed(run({ run_attempt: 2 }))), undefined);
    assert.match(
      await reason(listed(run({ run_attempt: 2, conclusion: 'failure' }))),
      /ended with failure/,
    );
  });

  test('that ran several times have the result of the last run, whatever the order', async () => {
    const failed = run({ conclusion: 'failure', run_number: 9 });
    for (const runs of [
      [failed, run()],
      [run(), failed],
    ]) {
      assert.match(await reason(listed(...runs)), /ended with failure/);
    }
    const passed = run({ run_number: 10 });
    assert.equal(await reason(listed(run(), failed, passed)), undefined);
    const cancelled = run({ conclusion: 'cancelled', run_number: 11 });
    assert.match(await reason(listed(passed, cancelled)), /ended with cancelled/);
  });

  test('are found on all pages', async () => {
    const old = (n) => run({ run_number: n, conclusion: 'failure' });
    const pages = [
      Array.from({ length: 100 }, (_, n) => old(n)),
      [old(100), run({ run_number: 101 })],
    ];
    assert.equal(await reason((query) => listed(...pages[query.page - 1])), undefined);
    assert.deepEqual(
      github.requests.map(({ query }) => query.page),
      ['1', '2'],
    );
    github.requests = [];
    assert.match(await reason(listed(...pages[0])), /ended with failure/);
    assert.equal(github.requests.length, 10);
  });

  for (const [status, advice] of [
    [401, 'the token in GITHUB_TOKEN is not valid'],
    [403, 'actions: read'],
    [404, 'check the name of the repository'],
    [429, 'in an hour'],
    [422, 'Of the API'],
  ]) {
    test(`are asked for once if GitHub answers ${status}`, async () => {
      const said = await reason([status, { message: 'Of the API' }]);
      assert.match(said, new RegExp(`^GitHub answers ${status} to .*/runs.* \\(Of the API\\)`));
      assert.ok(said.includes(advice), said);
      assert.deepEqual([github.requests.length, waits.length], [1, 0]);
    });
  }

  for (const [name, answer] of [
    ['an error of its own', [502, '<html>']],
    ['garbage', [200, '<html>']],
    ['nothing', [200, '']],
    ['something else', [200, { workflow_runs: {} }]],
    ['null', [200, 'null']],
  ]) {
    test(`are asked for again if GitHub answers ${name}, a few times`, async () => {
      assert.equal(await reason(answer, answer, answer, answer, listed(run())), undefined);
      github.requests = [];
      const said = await reason(answer);
      assert.match(said, /^GitHub answers \d+ to .* without a list of runs: run this again later$/);
      assert.equal(github.requests.length, 5);
    });
  }

  test('are asked for a few times if GitHub ends the connection', async () => {
    const said = await reason((_, response) => void response.destroy());
    assert.match(said, /^GitHub does not answer \(.+\): run this again later$/);
    assert.equal(github.requests.length, 5);
  });

  test('are asked for a few times if GitHub never answers, or never ends', async () => {
    how.answerMs = 50;
    assert.match(await reason(() => undefined), /^GitHub does not answer \(.*timeout.*\)/);
    const said = await reason((_, response) => void response.writeHead(200).write('{"workflow'));
    assert.match(said, /^GitHub does not answer \(.*timeout.*\)/);
    assert.equal(waits.length, 8);
  });

  test('are waited for beyond failures that end', async () => {
    const broken = [500, ''];
    const round = [broken, broken, broken, broken, listed(run(PENDING))];
    assert.equal(await reason(...round, ...round, listed(run())), undefined);
  });
});
