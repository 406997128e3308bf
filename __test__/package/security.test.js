'use strict';
// What SECURITY.md says of the package: its unsafe code, scripts, dependencies, network, environment.

const assert = require('node:assert/strict');
const { readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const ROOT = join(__dirname, '../..');
const read = (path) => readFileSync(join(ROOT, path), 'utf8');
const page = read('SECURITY.md');

/** Paths of the files below a folder, with this ending. */
function filesOf(folder, ending) {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .map((path) => join(folder, path).replaceAll('\\', '/'))
    .filter((path) => path.endsWith(ending))
    .sort();
}

/** The lines of a Rust file, without comments and strings. */
function codeOf(path) {
  return read(path)
    .split('\n')
    .map((line) => line.replace(/"(?:[^"\\]|\\.)*"/g, '""').replace(/\/\/.*/, ''));
}

/** Those before the tests of the file; none of a file of tests. */
function productOf(path) {
  if (/\/tests(\.rs|\/)/.test(path)) return [];
  const lines = codeOf(path);
  const tests = lines.findIndex(
    (line, n) => line === '#[cfg(test)]' && /^mod tests\b/.test(lines[n + 1]),
  );
  return tests === -1 ? lines : lines.slice(0, tests);
}

const UNSAFE = /\bunsafe\b/g;
const rust = [...filesOf('src', '.rs'), ...filesOf('packages/zookeeper/src', '.rs')];
const js = [...filesOf('js', '.js'), 'packages/zookeeper/index.js'];

test('the page has the number of unsafe in each room', () => {
  const found = new Map();
  for (const path of rust) {
    const count = codeOf(path).join('\n').match(UNSAFE)?.length ?? 0;
    const [room] = path.match(/^src\/\w+(\/|\.rs)|^.*\/src\//);
    if (count > 0) found.set(room, (found.get(room) ?? 0) + count);
  }
  const [row] = page.match(/^\| `unsafe`.*$/m);
  const rooms = Array.from(row.matchAll(/`(\S+\/)` (\d+)/g), ([, room, count]) => [
    room,
    Number(count),
  ]);
  assert.deepEqual(rooms, [...found]);
});

test('no script runs at an installation, and nothing is installed beside the package', () => {
  const others = ['npm', 'packages'].flatMap((folder) => filesOf(folder, 'package.json'));
  assert.ok(others.length > 20, String(others));
  for (const path of ['package.json', ...others]) {
    const { scripts = {}, dependencies } = JSON.parse(read(path));
    const atInstall = Object.keys(scripts).filter((name) => /install|^prepare|^dep/.test(name));
    assert.deepEqual([atInstall, dependencies], [[], undefined], path);
  }
});

/** The files that contain a match, and the first group of each match. */
function uses(pattern) {
  return js.flatMap((path) => {
    // Comments name things that the code does not use.
    const code = read(path).replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
    return [...code.matchAll(pattern)].map(([whole, what = whole]) => `${path}: ${what}`);
  });
}

test('few modules can reach the network, and none starts a program or runs text', () => {
  const network = uses(
    /require\('(?:node:)?(net|http|https|http2|tls|dgram|dns(?:\/promises)?)'\)|\b(?:fetch)\(/g,
  );
  assert.deepEqual(network, [
    'js/cli/serve.js: dns/promises',
    'js/cli/serve.js: net',
    'js/server/http.js: http',
    'js/server/peers.js: http',
    'js/stores/etcd-client.js: https',
    'js/stores/etcd-client.js: http',
    'js/stores/kubernetes-client.js: https',
    'js/stores/servers/mysql.js: net',
    // For the list of CAs.
    'js/stores/zookeeper-client.js: tls',
  ]);
  assert.deepEqual(uses(/require\('(?:node:)?(child_process|vm|inspector|repl)'\)/g), []);
  assert.deepEqual(uses(/\beval\(|\bnew Function\(|\bexecFile|\bspawn/g), []);
  assert.deepEqual(uses(/require\('(?:node:)?(cluster)'\)/g), [
    // Whether this process is a worker.
    'js/runtime/siblings.js: cluster',
  ]);
});

test('JavaScript writes no file: Rust creates them, with their modes', () => {
  const imported = uses(/const \{([^}]*)\} = require\('node:fs(?:\/promises)?'\)/g);
  assert.ok(imported.length > 1, String(imported));
  for (const names of imported)
    assert.match(
      names,
      /: (?: ?(?:constants|existsSync|open|readdirSync|readFileSync|stat|statSync),?)+ $/,
    );
  // What opens a file only reads it.
  assert.deepEqual(uses(/\{ (constants|open) \} = require\('node:fs/g), [
    ...['js/runtime/files.js: constants', 'js/runtime/files.js: open'],
  ]);
  assert.deepEqual(read('js/runtime/files.js').match(/\bopen\(.*|const FLAGS = .*/g), [
    ...['const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);', 'open(path, FLAGS);'],
  ]);
  assert.deepEqual(uses(/require\('node:fs[^']*'\)(?!;)/g), []);
  const created = rust.flatMap((path) =>
    productOf(path)
      .filter((line) => /\bFile::create\b|fs::write\(|fs::create_dir/.test(line))
      .map(() => path),
  );
  assert.deepEqual([...new Set(created)], ['src/files/system/windows.rs'], 'of Windows alone');
});

test('the environment is read by the names that are listed', () => {
  const names = uses(/environmentOf\('(\w+)'/g).map((found) => found.split(': ')[1]);
  const others = [...new Set(names)].filter((name) => !/^SNOWDRIFT_/.test(name)).sort();
  assert.deepEqual(others, [
    ...['KUBERNETES_SERVICE_HOST', 'KUBERNETES_SERVICE_PORT', 'NODE_EXTRA_CA_CERTS', 'PGSSLMODE'],
    ...['pm_id', 'workerId'],
  ]);
  // By a constant.
  assert.deepEqual(uses(/(?:environmentOf|variable)\(([A-Z_]+)\)/g), [
    'js/cli/public.js: VARIABLE',
    ...['js/stores/servers/upstash.js: URL_NAME', 'js/stores/servers/upstash.js: TOKEN_NAME'],
  ]);
  others.push('PUBLIC_ID_KEY', 'UPSTASH_REDIS_REST_URL', 'UPSTASH_REDIS_REST_TOKEN');
  const [row] = page.match(/^\| Environment .*$/m);
  for (const name of others) assert.ok(row.includes(`\`${name}\``), name);
});

test('the files that are read in /proc are the ones that the page lists', () => {
  const texts = [...rust.filter((path) => !/\/tests(\.rs|\/)/.test(path)), ...js].map(read);
  const found = texts.flatMap((text) => text.match(/["']\/proc\/[^"']*/g) ?? []);
  assert.deepEqual([...new Set(found.map((path) => path.slice(1)))].sort(), [
    '/proc/locks',
    '/proc/self/environ',
    '/proc/self/uid_map',
    '/proc/sys/kernel/random/boot_id',
    '/proc/{name}/stat',
  ]);
});
