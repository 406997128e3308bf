'use strict';
// What a release consists of, before there is one.

const assert = require('node:assert/strict');
const { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { before, after, test } = require('node:test');

require('./own-directory.js');
const { TARGETS } = require('../js/addon.js');

const ROOT = join(__dirname, '..');
const NAMES = ['snowdrift', 'snowdrift-zookeeper'];

let packages;
let directory;

before(async () => {
  packages = await import('../scripts/packages.mjs');
  directory = mkdtempSync(join(tmpdir(), 'snowdrift-release-'));
});

after(() => rmSync(directory, { recursive: true }));

test('there is one version, and the changelog knows it', () => {
  assert.deepEqual(packages.otherVersions(), []);
  assert.match(packages.releaseDate() ?? '', /^(Unreleased|\d{4}-\d\d-\d\d)$/);
});

test('a tag of another version releases nothing', () => {
  const { version } = packages;
  const others = packages.obstacles(`v${version}`);
  const found = packages.obstacles('v9.9.9').filter((what) => !others.includes(what));
  assert.deepEqual(found, [
    `the tag is v9.9.9, and package.json says ${version}: it should be v${version}`,
  ]);
});

test('each loader spells out each platform', () => {
  for (const [name, file] of [
    ['snowdrift', 'js/native.js'],
    ['snowdrift-zookeeper', 'zookeeper/index.js'],
  ]) {
    const text = readFileSync(join(ROOT, file), 'utf8');
    for (const target of TARGETS) {
      assert.ok(text.includes(`case '${target}':\n        return require('${name}-${target}');`));
    }
  }
});

test("the packages' folders", async () => {
  const present = ['linux-arm64-musl', 'darwin-x64'];
  const out = join(directory, 'npm');
  for (const name of NAMES) {
    for (const target of present) writeFileSync(join(directory, `${name}.${target}.node`), target);
  }
  const { packages: made, missing } = await packages.assemble(directory, out);
  assert.equal(missing.length, NAMES.length * (TARGETS.length - present.length));
  // A package is published after those that it asks for.
  assert.deepEqual(made.slice(-2), NAMES);
  assert.equal(made.length, NAMES.length * (present.length + 1));
  const manifests = new Map();
  for (const name of made) {
    const folder = join(out, name);
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json')));
    manifests.set(name, manifest);
    assert.equal(manifest.name, name);
    const has = readdirSync(folder);
    assert.ok(has.includes('LICENSE') && has.includes('README.md'), folder);
    assert.deepEqual([manifest.license, manifest.version], ['MIT', packages.version]);
    assert.deepEqual([manifest.scripts, manifest.devDependencies], [undefined, undefined]);
  }
  for (const name of NAMES) {
    const { optionalDependencies } = manifests.get(name);
    assert.deepEqual(
      Object.entries(optionalDependencies),
      TARGETS.map((target) => [`${name}-${target}`, packages.version]),
    );
    const every = readdirSync(join(out, name), { recursive: true });
    // What was built in this checkout is one platform's.
    assert.deepEqual(
      every.filter((file) => file.endsWith('.node')),
      [],
    );
    const { os, cpu, libc, main } = manifests.get(`${name}-linux-arm64-musl`);
    assert.deepEqual({ os, cpu, libc }, { os: ['linux'], cpu: ['arm64'], libc: ['musl'] });
    assert.ok(readdirSync(join(out, `${name}-linux-arm64-musl`)).includes(main));
    assert.equal(manifests.get(`${name}-darwin-x64`).libc, undefined);
  }
  assert.ok(readdirSync(join(out, 'snowdrift')).includes('CHANGELOG.md'));
});
