'use strict';
// What a release puts on npm's pages and into node_modules leads somewhere: links, pages named by declarations and
// errors, the repository.

const assert = require('node:assert/strict');
const {
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} = require('node:fs');
const { tmpdir } = require('node:os');
const { join, posix } = require('node:path');
const { after, before, describe, test } = require('node:test');

require('../support/own-directory.js');
const { TARGETS, packageOf } = require('../../js/runtime/addon.js');

const ROOT = join(__dirname, '../..');
/** The repository that releases. */
const REPOSITORY = 'https://github.com/Some-one/snow.drift';

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));

let packages;
let directory;
let out;
/** The main packages with their folders, and the platforms'. */
let mains;
let platforms;

before(async () => {
  packages = await import('../../scripts/packages.mjs');
  mains = Object.entries(packages.MAINS);
  platforms = mains.flatMap(([name, folder]) =>
    TARGETS.map((target) => [packageOf(name, target), posix.join(folder, 'npm', target), name]),
  );
  directory = mkdtempSync(join(tmpdir(), 'snowdrift-links-'));
  for (const name of packages.ADDONS) writeFileSync(join(directory, name), '');
  out = join(directory, 'packages');
  packages.assemble(directory, out, REPOSITORY);
});

after(() => rmSync(directory, { recursive: true }));

const filesOf = (name) =>
  readdirSync(join(out, name), { recursive: true }).map((path) => path.replaceAll('\\', '/'));

const linksIn = (text) => Array.from(text.matchAll(/\]\(([^)\s]+)[^)]*\)/g), ([, to]) => to);

test('each link of a packed page leads to a packed file, or to the repository at its version', () => {
  let [inside, outside] = [0, 0];
  for (const [name, source] of mains) {
    const files = filesOf(name);
    for (const page of files.filter((path) => path.endsWith('.md'))) {
      for (const to of linksIn(readFileSync(join(out, name, page), 'utf8'))) {
        const where = `${name}/${page}: ${to}`;
        const [path] = to.split('#');
        const repository = /^(.*)\/blob\/v([^/]+)\/(.*)$/.exec(path);
        if (repository !== null && repository[1] === REPOSITORY) {
          const [, , version, file] = repository;
          assert.ok(existsSync(join(ROOT, source, file)), where);
          assert.equal(version, packages.version, where);
          outside++;
        } else if (!path.includes(':')) {
          const file = path === '' ? page : posix.join(posix.dirname(page), path);
          assert.ok(files.includes(file), where);
          inside++;
        }
      }
    }
  }
  assert.ok(inside > 100 && outside > 5, `${inside} inside, ${outside} outside`);
});

test('pages that declarations and errors name are packed', () => {
  const files = filesOf('snowdrift');
  let named = 0;
  for (const path of files.filter((file) => /\.(js|d\.ts)$/.test(file))) {
    const text = readFileSync(join(out, 'snowdrift', path), 'utf8');
    for (const [page] of text.matchAll(/\b(?:docs\/)?[\w-]+\.(?:md|html)\b/g)) {
      assert.ok(files.includes(page), `${path} names ${page}`);
      named++;
    }
  }
  assert.ok(named > 0, String(named));
});

describe('the page of each package', () => {
  test('has the repository that releases, its folder there, issues and a homepage', () => {
    for (const [name, folder] of [...mains, ...platforms]) {
      const { homepage, bugs, repository } = readJson(join(out, name, 'package.json'));
      assert.equal(homepage, `${REPOSITORY}#readme`, name);
      assert.deepEqual(bugs, { url: `${REPOSITORY}/issues` }, name);
      // As npm writes it: what it would change, it warns of.
      const { directory: at = '.', ...rest } = repository;
      assert.deepEqual(rest, { type: 'git', url: `git+${REPOSITORY}.git` }, name);
      assert.equal(at, folder, name);
      assert.ok(existsSync(join(ROOT, folder, 'package.json')), name);
    }
  });
});
