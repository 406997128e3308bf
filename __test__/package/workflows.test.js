'use strict';
// What the workflows of GitHub may do, and what must have passed before one publishes.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const { parse } = require('yaml');

const ROOT = join(__dirname, '../..');

const workflows = readdirSync(join(ROOT, '.github/workflows')).map((name) => {
  const text = readFileSync(join(ROOT, '.github/workflows', name), 'utf8');
  return { ...parse(text), name, text };
});

const jobsOf = (file) => workflows.find(({ name }) => name === file).jobs;

const TOKEN = `\${{ github.token }}`;
const ADDON_SUMS = `\${{ toJSON(needs.build.outputs) }}`;

test('workflows run actions by their commits, and one commit of each', () => {
  const pins = new Map();
  for (const { name, text } of workflows) {
    const used = [...text.matchAll(/uses: (?!\.\/)(.*)/g)].map(([, action]) => action);
    assert.ok(used.length > 1, name);
    for (const action of used) {
      const pinned = /^([\w-]+\/[\w-]+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)$/.exec(action);
      assert.ok(pinned, `${name}: ${action}`);
      const [, which, commit] = pinned;
      assert.equal(pins.get(which) ?? commit, commit, which);
      pins.set(which, commit);
    }
  }
});

test('every part of the storms runs at night and before a release', () => {
  const { parts } = jobsOf('storms.yml').storms.strategy.matrix;
  const { stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/storms.mjs'), 'none'], {
    encoding: 'utf8',
  });
  const all = stderr.match(/the parts are (.*)/)[1].split(', ');
  assert.deepEqual(parts.flatMap((names) => names.split(' ')).sort(), all.sort());
  const { publish, storms } = jobsOf('release.yml');
  assert.ok(publish.needs.includes('storms'));
  assert.equal(storms.uses, './.github/workflows/storms.yml');
});

test('workflows have no secret, and one job can publish', () => {
  const rights = {};
  for (const { name, text, permissions, jobs } of workflows) {
    const others = text.replaceAll(`GITHUB_TOKEN: ${TOKEN}`, '');
    assert.doesNotMatch(others, /secrets\.|_TOKEN|github\.token|_authToken/i, name);
    assert.deepEqual(permissions, { contents: 'read' });
    for (const [job, { permissions: own, steps = [], environment }] of Object.entries(jobs)) {
      if (own !== undefined) rights[`${name}: ${job}`] = { ...own, environment };
      else assert.equal(environment, undefined, job);
      for (const step of steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'))) {
        // By default it has the commit that started the run, and no other.
        assert.deepEqual(step.with, { 'persist-credentials': false }, job);
      }
    }
  }
  const reads = { contents: 'read', actions: 'read' };
  assert.deepEqual(rights, {
    'release.yml: commit': { ...reads, environment: undefined },
    'release.yml: publish': { ...reads, 'id-token': 'write', environment: 'npm' },
  });
});

/** The jobs that must pass before a job starts. */
function neededBy(jobs, job) {
  const direct = [jobs[job].needs ?? []].flat();
  return new Set(direct.flatMap((name) => [name, ...neededBy(jobs, name)]));
}

test('a release is made of a commit of main whose checks passed', () => {
  const jobs = jobsOf('release.yml');
  // Hours of work wait for it.
  for (const name of Object.keys(jobs).filter((other) => other !== 'commit')) {
    assert.ok(neededBy(jobs, name).has('commit'), name);
  }
  const { commit, publish } = jobs;
  const condition = "github.event_name == 'push'";
  const env = { GITHUB_TOKEN: TOKEN };
  const runs = ({ steps }) => steps.filter(({ run }) => run !== undefined);
  assert.deepEqual(runs(commit), [
    { if: condition, run: 'node scripts/release.mjs --check --tag "$GITHUB_REF_NAME"', env },
  ]);
  assert.deepEqual(runs(publish), [
    {
      run: 'node scripts/release.mjs --provenance --tag "$GITHUB_REF_NAME" --sums "$ADDON_SUMS"',
      env: { ...env, ADDON_SUMS },
    },
  ]);
  // What publishes has been checked: the conditions are equal, and neither job goes on after a failure.
  assert.deepEqual([commit.if, publish.if], [undefined, condition]);
  for (const job of [commit, publish]) assert.equal(job['continue-on-error'], undefined);
  assert.ok(publish.needs.includes('commit'));
  // No other job publishes.
  const others = Object.keys(jobs).filter((name) => jobs[name].steps && name !== 'publish');
  for (const { run } of others.flatMap((name) => runs(jobs[name]))) {
    assert.ok(!run.includes('release.mjs') || /--(check|dry-run)/.test(run), run);
  }
  const release = workflows.find(({ name }) => name === 'release.yml');
  assert.deepEqual(release.on, { push: { tags: ['v*'] }, workflow_dispatch: null });
  // What the script asks for: this workflow, on this branch.
  const checks = workflows.find(({ name }) => name === 'ci.yml');
  assert.deepEqual(checks.on.push.branches, ['main']);
});
