'use strict';
// Where a release comes from: the commits that may be released, and the repository that the packages name.

const assert = require('node:assert/strict');
const { execFile, execFileSync, spawnSync } = require('node:child_process');
const {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, beforeEach, describe, test } = require('node:test');
const { promisify } = require('node:util');

const { GitHub, listed, run } = require('../support/package/github.js');

const ROOT = join(__dirname, '../..');

let origin;
before(async () => {
  origin = await import('../../scripts/origin.mjs');
});

describe('a commit', () => {
  let github;
  let directory;
  let remote;
  let repository;

  /** Runs git as nobody's configuration says. */
  function git(folder, ...args) {
    const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
    const who = ['-c', 'user.name=A', '-c', 'user.email=a@example.com'];
    return execFileSync('git', [...who, ...args], { cwd: folder, env, encoding: 'utf8' }).trim();
  }

  const commit = (folder, text) => {
    writeFileSync(join(folder, 'file'), text);
    git(folder, 'add', '--all');
    git(folder, 'commit', '--quiet', '--message', text);
    return git(folder, 'rev-parse', 'HEAD');
  };

  /** A clone that has this commit checked out, as a workflow or a maintainer has. */
  function clone(which) {
    const folder = mkdtempSync(join(directory, 'clone-'));
    git(folder, 'clone', '--quiet', repository, '.');
    git(folder, 'checkout', '--quiet', '--detach', which);
    return folder;
  }

  const reasons = (folder, from = repository) =>
    origin.commitObstacles(from, { folder, api: github.url });

  /** Each commit's checks have this result. */
  const ended = (conclusion) => (query) => listed(run({ head_sha: query.head_sha, conclusion }));

  let first;
  let last;
  let side;
  before(async () => {
    github = await GitHub.start();
    directory = mkdtempSync(join(tmpdir(), 'snowdrift-origin-'));
    remote = join(directory, 'remote');
    repository = `file://${remote}`;
    mkdirSync(remote);
    git(remote, 'init', '--quiet', '--initial-branch', 'main');
    git(remote, 'config', 'uploadpack.allowAnySHA1InWant', 'true');
    first = commit(remote, 'first');
    commit(remote, 'second');
    last = commit(remote, 'third');
    git(remote, 'checkout', '--quiet', '-b', 'topic', first);
    side = commit(remote, 'side');
    git(remote, 'tag', 'v1.2.3');
    git(remote, 'checkout', '--quiet', 'main');
  });
  beforeEach(() => {
    github.answer = ended('success');
    github.requests = [];
  });
  after(() => {
    github.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test('of main whose checks passed may be released', async () => {
    for (const which of [first, last]) assert.deepEqual(await reasons(clone(which)), []);
    assert.deepEqual(
      github.requests.map(({ query }) => query.head_sha),
      [first, last],
    );
  });

  test('of main may be released from a checkout of this commit alone', async () => {
    for (const [which, expected] of [
      [last, []],
      [first, []],
      [side, [`commit ${side} is not on main of ${repository}: merge it, then release it`]],
    ]) {
      const folder = mkdtempSync(join(directory, 'shallow-'));
      git(folder, 'init', '--quiet');
      git(folder, 'fetch', '--quiet', '--depth', '1', repository, which);
      git(folder, 'checkout', '--quiet', '--detach', 'FETCH_HEAD');
      assert.deepEqual(await reasons(folder), expected);
    }
  });

  test('of another branch may not, though it is tagged and its checks passed', async () => {
    assert.deepEqual(await reasons(clone('v1.2.3')), [
      `commit ${side} is not on main of ${repository}: merge it, then release it`,
    ]);
    assert.deepEqual(github.requests, []);
  });

  test('of another branch may not, though the tag or a branch here is called main', async () => {
    git(remote, 'tag', 'main', side);
    try {
      const folder = clone(side);
      git(folder, 'branch', '--force', 'main', side);
      git(folder, 'update-ref', 'refs/remotes/origin/main', side);
      const [said] = await reasons(folder);
      assert.match(said, /is not on main/);
    } finally {
      git(remote, 'tag', '--delete', 'main');
    }
  });

  test('that is not pushed may not', async () => {
    const folder = clone(last);
    const own = commit(folder, 'own');
    const [said] = await reasons(folder);
    assert.ok(said.startsWith(`commit ${own} is not on main`), said);
  });

  test('may not, while files differ from it: changed, staged, removed or new', async () => {
    const folder = clone(last);
    const change = (path, text) => writeFileSync(join(folder, path), text);
    for (const [make, said] of [
      [() => change('file', 'changed'), /^files differ from the commit \(file\): /],
      [() => git(folder, 'add', '--all'), /^files differ from the commit \(file\): /],
      [() => rmSync(join(folder, 'file')), /^files differ from the commit \(file\): /],
      [() => change('new', 'new'), /^files differ from the commit \(file and 1 more\): /],
    ]) {
      make();
      const [found, ...more] = await reasons(folder);
      assert.match(found, said);
      assert.deepEqual(more, []);
    }
    assert.deepEqual(github.requests, []);
  });

  test('may not, while the repository cannot be reached', async () => {
    const [said, ...more] = await reasons(clone(last), 'file:///nowhere/at/all');
    assert.match(said, /^cannot fetch main of file:.*nowhere.* \(.+\): check its name$/);
    assert.deepEqual(more, []);
  });

  test('is checked before packing, by the workflow and by hand', async () => {
    const folder = join(directory, 'someone/snowdrift');
    const built = (path) => /\.node$|target$|node_modules$/.test(path);
    for (const path of readdirSync(ROOT)) {
      if (!/^(js|npm|scripts|packages|package.*json|Cargo\.toml|CHANGELOG\.md)$/.test(path))
        continue;
      cpSync(join(ROOT, path), join(folder, path), { recursive: true, filter: (at) => !built(at) });
    }
    const changes = join(folder, 'CHANGELOG.md');
    const text = readFileSync(changes, 'utf8').replace(/^(## \[.*\]) - .*$/m, '$1 - 2026-01-02');
    writeFileSync(changes, text);
    git(folder, 'init', '--quiet', '--initial-branch', 'main');
    commit(folder, 'released');
    const env = {
      ...process.env,
      GITHUB_API_URL: github.url,
      GITHUB_SERVER_URL: `file://${directory}`,
      GITHUB_REPOSITORY: 'someone/snowdrift',
    };
    const release = (...args) =>
      promisify(execFile)(process.execPath, ['scripts/release.mjs', ...args], { cwd: folder, env });
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json')));
    const { stdout } = await release('--check', '--tag', `v${version}`);
    assert.equal(stdout, `${version} may be released\n`);
    github.answer = ended('failure');
    for (const args of [['--check'], [], ['--provenance', '--tag', `v${version}`]]) {
      const refused = { code: 1, stdout: '', stderr: /^error: ci\.yml ended with failure /m };
      await assert.rejects(release(...args), refused);
    }
    github.requests = [];
    await assert.rejects(release('--tag', 'v9.9.9'), { code: 1, stderr: /the tag is v9\.9\.9/ });
    assert.deepEqual(github.requests, []);
    assert.ok(!existsSync(join(folder, 'artifacts')));
  });
});

describe('the repository', () => {
  test('is that of the workflow, in its letter case, or the one that is asked for', () => {
    const workflow = { GITHUB_REPOSITORY: 'Some-one/snow.drift' };
    const url = 'https://github.com/Some-one/snow.drift';
    assert.deepEqual(origin.repositoryOf(undefined, workflow), { url });
    const elsewhere = { ...workflow, GITHUB_SERVER_URL: 'https://git.example.com' };
    assert.deepEqual(origin.repositoryOf(undefined, elsewhere), {
      url: 'https://git.example.com/Some-one/snow.drift',
    });
    assert.deepEqual(origin.repositoryOf('Some-one/snow.drift', {}), { url });
  });

  for (const malformed of ['', 'someone/..', 'someone/snowdrift.git', 'someone/snowdrift\n']) {
    test(`${JSON.stringify(malformed)} is refused`, () => {
      const { url, wrong } = origin.repositoryOf(malformed, {});
      assert.equal(url, undefined);
      assert.ok(wrong.startsWith(`the repository is '${malformed}': it should be OWNER/NAME`));
    });
  }

  test('a release without one, or with a malformed one, stops before it packs', () => {
    const { GITHUB_REPOSITORY, ...env } = process.env;
    for (const [args, said] of [
      [[], 'error: the repository is unknown outside of its workflow'],
      [['--check'], 'error: the repository is unknown outside of its workflow'],
      [['--repository', 'snowdrift'], "error: the repository is 'snowdrift': it should be"],
    ]) {
      const script = join(ROOT, 'scripts/release.mjs');
      const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
        env,
        encoding: 'utf8',
      });
      assert.equal(status, 1);
      assert.ok(stderr.includes(said), stderr);
      assert.equal(stdout, '');
    }
  });
});
