'use strict';
// What a release consists of, before there is one.

const assert = require('node:assert/strict');
const { execFileSync, spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
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
const { join, relative } = require('node:path');
const { before, after, test } = require('node:test');

const { parse } = require('yaml');

require('../support/own-directory.js');
const { gate } = require('../support/amount.js');
const { TARGETS, packageOf } = require('../../js/runtime/addon.js');

const ROOT = join(__dirname, '../..');
const NAMES = ['snowdrift', 'snowdrift-zookeeper'];
const PLATFORMS = NAMES.flatMap((name) => TARGETS.map((target) => ({ name, target })));

const readJson = (...path) => JSON.parse(readFileSync(join(ROOT, ...path)));

let packages;
let directory;
/** The folders of the main packages. */
let mains;

before(async () => {
  packages = await import('../../scripts/packages.mjs');
  mains = NAMES.map((name) => packages.MAINS[name]);
  directory = mkdtempSync(join(tmpdir(), 'snowdrift-release-'));
});

after(() => rmSync(directory, { recursive: true }));

test('there is one version, and the changelog knows it', () => {
  assert.deepEqual(packages.otherVersions(), []);
  assert.match(packages.releaseDate() ?? '', /^(Unreleased|\d{4}-\d\d-\d\d)$/);
});

test('each loader names each platform', () => {
  for (const [name, file] of [
    ['snowdrift', 'js/runtime/native.js'],
    ['snowdrift-zookeeper', 'packages/zookeeper/index.js'],
  ]) {
    const text = readFileSync(join(ROOT, file), 'utf8');
    for (const target of TARGETS) {
      const loads = `case '${target}':\n        return require('${packageOf(name, target)}');`;
      assert.ok(text.includes(loads), loads);
    }
  }
});

test('a release builds the addon of each platform, tries it there, and publishes what passed', () => {
  const { jobs } = parse(readFileSync(join(ROOT, '.github/workflows/release.yml'), 'utf8'));
  const built = jobs.build.strategy.matrix.include;
  const tried = ['try', 'try-musl', 'try-arm'].flatMap(
    (name) => jobs[name].strategy.matrix.platform,
  );
  for (const platforms of [built, tried]) {
    assert.deepEqual(platforms.map(({ target }) => target).sort(), TARGETS);
  }
  assert.deepEqual(Object.keys(jobs.build.outputs).sort(), TARGETS);
  const others = Object.keys(jobs).filter((name) => !['pack', 'publish'].includes(name));
  assert.deepEqual([...jobs.publish.needs].sort(), others.sort());
  const script = readFileSync(join(ROOT, 'scripts/addons.mjs'), 'utf8');
  for (const target of TARGETS) assert.ok(script.includes(`\n  '${target}': '`), target);
  // The kills.
  assert.ok(readFileSync(join(ROOT, 'scripts/test-platform.mjs'), 'utf8').includes("'host/scope'"));
});

test('every part of the storms runs at night and before a release', () => {
  const { jobs } = parse(readFileSync(join(ROOT, '.github/workflows/storms.yml'), 'utf8'));
  const run = ['scripts/storms.mjs', 'none'];
  const { stderr } = spawnSync(process.execPath, run, { cwd: ROOT, encoding: 'utf8' });
  const all = stderr.match(/the parts are (.*)/)[1].split(', ');
  const { parts } = jobs.storms.strategy.matrix;
  assert.deepEqual(parts.flatMap((names) => names.split(' ')).sort(), all.sort());
});

test('each entry has its types beside it, and both are packed', () => {
  const { exports, files, main, types } = readJson('package.json');
  assert.deepEqual(exports['.'], { types, default: main });
  assert.deepEqual([main, types], ['./js/index.js', './index.d.ts']);
  for (const entry of Object.values(exports).slice(1, -1)) {
    assert.match(entry, /^\.\/js\/.*\.js$/);
    for (const file of [entry, entry.replace(/\.js$/, '.d.ts')]) {
      assert.ok(existsSync(join(ROOT, file)), `there is no ${file}`);
    }
  }
  assert.ok(files.includes('js') && files.includes('index.d.ts'));
  const top = readdirSync(ROOT).filter((file) => file.endsWith('.d.ts'));
  assert.deepEqual(top, ['index.d.ts']);
});

test('there is a folder for each addon and platform, and no other', () => {
  assert.deepEqual(Object.keys(packages.MAINS), NAMES);
  for (const folder of mains) {
    assert.deepEqual(readdirSync(join(ROOT, folder, 'npm')).sort(), TARGETS, folder);
  }
});

test("each platform's package is for that platform, and as the package that loads it", () => {
  const { version, license, engines } = readJson('package.json');
  for (const { name, target } of PLATFORMS) {
    const platform = packageOf(name, target);
    const folder = join(packages.MAINS[name], 'npm', target);
    const { description, ...manifest } = readJson(folder, 'package.json');
    const [os, cpu, abi] = target.split('-');
    const addon = `${name}.${target}.node`;
    assert.deepEqual(manifest, {
      name: platform,
      version,
      license,
      type: 'commonjs',
      main: addon,
      files: [addon],
      engines,
      os: [os],
      cpu: [cpu],
      ...(os === 'linux' && { libc: [{ gnu: 'glibc', musl: 'musl' }[abi]] }),
    });
    const readme = readFileSync(join(ROOT, folder, 'README.md'), 'utf8');
    assert.ok(readme.startsWith(`# ${platform}\n`));
    const linked = `[\`${name}\`](https://www.npmjs.com/package/${name})`;
    assert.ok(readme.includes(`${description.replace(name, linked)}.`), description);
  }
  for (const folder of mains) {
    const main = readJson(folder, 'package.json');
    assert.deepEqual([main.version, main.license, main.engines], [version, license, engines]);
  }
});

/** A folder with each addon of a release, and what their jobs put out: by target, as GitHub's toJSON() has it. */
async function builtAddons() {
  const { sumsOf } = await import('../../scripts/sums.mjs');
  const from = mkdtempSync(join(directory, 'built-'));
  for (const { name, target } of PLATFORMS) {
    writeFileSync(join(from, `${name}.${target}.node`), `${name} for ${target}`);
  }
  const outputs = Object.fromEntries(TARGETS.map((target) => [target, sumsOf(from, target)]));
  return { from, outputs, text: JSON.stringify(outputs, null, 2) };
}

test('addons that are not what their jobs have built are refused, and so are others', async () => {
  const { readSums, sumObstacles } = await import('../../scripts/sums.mjs');
  const { ADDONS } = packages;
  assert.equal(ADDONS.length, PLATFORMS.length);
  const { from, outputs, text } = await builtAddons();
  const wrong = (sums = text) => sumObstacles(from, ADDONS, readSums(sums));
  assert.deepEqual(wrong(), []);

  // An artifact that another job of the run has replaced.
  const addon = join(from, 'snowdrift.linux-x64-gnu.node');
  const before = readFileSync(addon);
  writeFileSync(addon, 'changed');
  assert.deepEqual(wrong(), [`${addon} is not what its job has built: its sum differs`]);
  writeFileSync(addon, before);

  // What a release has written itself is none.
  for (const name of ['packages', 'packed']) mkdirSync(join(from, name));
  assert.deepEqual(wrong(), []);
  for (const name of ['snowdrift.linux-x64-gnu2.node', 'package.json', '.npmrc']) {
    const extra = join(from, name);
    writeFileSync(extra, 'extra');
    assert.deepEqual(wrong(), [`${extra} is no addon of a release: remove it`]);
    rmSync(extra);
  }

  // A sum that is missing, given twice, or of no addon.
  const [first, ...others] = text.match(/[0-9a-f]{64} {2}[\w.-]+/g);
  const [, name] = first.split('  ');
  const without = [`there is no sum of ${name}, or more than one`];
  assert.deepEqual(wrong(others.join('\n')), without);
  assert.deepEqual(wrong(`${text}${'0'.repeat(64)}  ${name}`), without);
  assert.deepEqual(wrong(`${text}${first}`), without);
  const others64 = `${'0'.repeat(64)}  snowdrift.other.node`;
  assert.deepEqual(wrong(text + others64), [
    'there is a sum of snowdrift.other.node, which is no addon of a release',
  ]);
  assert.equal(wrong(JSON.stringify({ ...outputs, 'darwin-x64': '' })).length, NAMES.length);
  assert.equal(wrong('').length, ADDONS.length);
});

test('a release with a changed addon packs nothing, not even as a try', {
  skip: gate,
}, async () => {
  const { from, text } = await builtAddons();
  const folder = join(directory, 'release');
  // Without its Git, and without what was built.
  const isSource = (path) => !/[/\\](node_modules|target|\.git|artifacts)$|\.node$/.test(path);
  for (const path of ['js', 'npm', 'packages', 'scripts', 'index.d.ts', 'docs']) {
    cpSync(join(ROOT, path), join(folder, path), { recursive: true, filter: isSource });
  }
  for (const file of readdirSync(ROOT)) {
    if (/\.(json|toml|md|lock)$|^LICENSE$/.test(file)) cpSync(join(ROOT, file), join(folder, file));
  }
  cpSync(from, join(folder, 'artifacts'), { recursive: true });
  writeFileSync(join(folder, 'artifacts/snowdrift-zookeeper.darwin-x64.node'), 'changed');
  const args = ['scripts/release.mjs', '--dry-run', '--repository', 'someone/snowdrift'];
  const { status, stderr } = spawnSync(process.execPath, [...args, '--sums', text], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.equal(status, 1, stderr);
  assert.match(stderr, /^error: \S*snowdrift-zookeeper\.darwin-x64\.node is not what its job/m);
  assert.ok(!existsSync(join(folder, 'artifacts/packages')));
  assert.ok(!existsSync(join(folder, 'artifacts/packed')));
});

test('packages put together for no repository name none, and keep their links', async () => {
  const out = join(directory, 'anywhere');
  const { packages: made } = packages.assemble(directory, out);
  for (const name of made) {
    const { homepage, bugs, repository } = JSON.parse(
      readFileSync(join(out, name, 'package.json')),
    );
    assert.deepEqual([homepage, bugs, repository], [undefined, undefined, undefined], name);
  }
  const page = ['docs', 'installation.md'];
  assert.equal(
    readFileSync(join(out, 'snowdrift', ...page), 'utf8'),
    readFileSync(join(ROOT, ...page), 'utf8'),
  );
});

test('a release packs the folders with their addons', async () => {
  const present = ['linux-arm64-musl', 'darwin-x64'];
  const out = join(directory, 'packages');
  for (const name of NAMES) {
    for (const target of present) writeFileSync(join(directory, `${name}.${target}.node`), target);
  }
  const { packages: made, missing } = packages.assemble(directory, out);
  assert.equal(missing.length, NAMES.length * (TARGETS.length - present.length));
  const platforms = PLATFORMS.filter(({ target }) => present.includes(target));
  // A package is published after those that it depends on.
  assert.deepEqual(made, [...platforms.map((it) => packageOf(it.name, it.target)), ...NAMES]);
  for (const { name, target } of platforms) {
    const folder = join(out, packageOf(name, target));
    const addon = `${name}.${target}.node`;
    assert.deepEqual(readdirSync(folder).sort(), ['LICENSE', 'README.md', 'package.json', addon]);
    assert.equal(readFileSync(join(folder, addon), 'utf8'), target);
  }
  for (const name of NAMES) {
    const every = readdirSync(join(out, name), { recursive: true });
    assert.ok(every.includes('LICENSE') && every.includes('README.md'), name);
    // What was built in this checkout is one platform's.
    assert.deepEqual(
      every.filter((file) => file.endsWith('.node')),
      [],
    );
    const manifest = JSON.parse(readFileSync(join(out, name, 'package.json')));
    for (const field of ['scripts', 'devDependencies', 'workspaces']) {
      assert.equal(manifest[field], undefined, `${name}: ${field}`);
    }
    assert.deepEqual(
      Object.entries(manifest.optionalDependencies),
      TARGETS.map((target) => [packageOf(name, target), packages.version]),
    );
  }
  assert.ok(readdirSync(join(out, 'snowdrift')).includes('CHANGELOG.md'));
});

test('a release has the files that npm packs of this clone', { skip: gate }, async () => {
  const out = join(directory, 'as-npm');
  packages.assemble(join(directory, 'none'), out);
  for (const [name, folder] of Object.entries(packages.MAINS)) {
    const source = folder === '.' ? folder : `./${folder}`;
    const args = ['pack', source, '--ignore-scripts', '--dry-run', '--json'];
    const [{ files }] = JSON.parse(await packages.npm(args));
    // The code is put together.
    const isOther = (path) => !path.endsWith('.node') && !/^js\/.*\.js$/.test(path);
    const packed = files.map(({ path }) => path).filter(isOther);
    const made = readdirSync(join(out, name), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(join(out, name), join(entry.parentPath ?? entry.path, entry.name)))
      .filter(isOther);
    assert.deepEqual(made.sort(), [...new Set([...packed, 'LICENSE'])].sort(), name);
  }
});

/** What a release packs, put together under this umask. */
async function packedUnder(umask) {
  const from = mkdtempSync(join(directory, 'addons-'));
  for (const name of NAMES) writeFileSync(join(from, `${name}.linux-x64-gnu.node`), 'native');
  const before = process.umask(umask);
  try {
    const out = join(from, 'packages');
    packages.assemble(from, out, 'https://github.com/someone/snowdrift');
    packages.addSboms(out);
    await packages.pack(out, join(from, 'packed'));
    return join(from, 'packed');
  } finally {
    process.umask(before);
  }
}

const noCargo =
  spawnSync('cargo', ['--version']).status !== 0 && 'there is no cargo to list the crates';

test('packages packed twice have equal bytes, and checksums', {
  skip: gate ?? noCargo,
}, async () => {
  const [first, second] = [await packedUnder(0o022), await packedUnder(0o077)];
  const names = readdirSync(first).sort();
  assert.equal(names.length, 2 * NAMES.length + 1, String(names));
  for (const name of names) {
    const [one, other] = [first, second].map((folder) => readFileSync(join(folder, name)));
    assert.ok(one.equals(other), name);
  }
  const listed = readFileSync(join(first, 'SHA256SUMS'), 'utf8').trim().split('\n');
  assert.deepEqual(
    listed.sort(),
    names
      .filter((name) => name.endsWith('.tgz'))
      .map((name) => {
        const bytes = readFileSync(join(first, name));
        return `${createHash('sha256').update(bytes).digest('hex')}  ${name}`;
      })
      .sort(),
  );
  // What is installed has its bill of materials.
  const archive = join(
    first,
    names.find((name) => /^snowdrift-\d/.test(name)),
  );
  const packed = execFileSync('tar', ['-xOzf', archive, 'package/sbom.cdx.json'], {
    encoding: 'utf8',
  });
  assert.equal(JSON.parse(packed).metadata.component.purl, `pkg:npm/snowdrift@${packages.version}`);
});

test('a bill of materials has each crate of the lock file that is linked, and no other', {
  skip: gate ?? noCargo,
}, async () => {
  const { sbomOf } = await import('../../scripts/sbom.mjs');
  const { bomFormat, specVersion, components: crates } = sbomOf('snowdrift', '1.2.3');
  assert.deepEqual([bomFormat, specVersion], ['CycloneDX', '1.5']);
  const names = crates.map(({ name }) => name);
  const direct = ['crc32fast', 'fastrand', 'libc', 'memmap2', 'napi', 'parking_lot', 'tempfile'];
  for (const name of [...direct, 'napi-sys', 'windows-sys']) assert.ok(names.includes(name), name);
  // Of tests, of the build, and of the other addon.
  for (const name of ['loom', 'proptest', 'arbitrary', 'napi-build', 'tokio', 'snowdrift']) {
    assert.ok(!names.includes(name), name);
  }
  const lock = readFileSync(join(ROOT, 'Cargo.lock'), 'utf8');
  for (const { name, version, hashes, licenses } of crates) {
    const [{ content }] = hashes;
    assert.ok(lock.includes(`name = "${name}"\nversion = "${version}"\n`), name);
    assert.ok(lock.includes(`checksum = "${content}"`), name);
    assert.match(licenses[0].expression, /MIT|Apache-2\.0|ISC|Zlib/);
  }
});
