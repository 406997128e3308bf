'use strict';
// snowdrift/public without the addon, by each runtime that has node:crypto: the IDs of the test vectors, both ways.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');
const { promisify } = require('node:util');

const { storm } = require('../support/amount.js');
const { ROOT, Scratch } = require('../support/package/scratch.js');
const { KEY, textOf, vectors } = require('../support/public-ids.js');

const { arch, platform } = process;
const TOOLS = [
  'esbuild@0.28.2',
  'workerd@1.20261117.1',
  `bun@npm:@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}@1.4.5`,
  `deno@npm:@deno/${platform}-${arch}-glibc@2.9.6`,
  `node-18@npm:node-${platform}-${arch}@18.20.8`,
];

/** The published keys are refused. */
const ownVectors = vectors.map((vector) => ({
  ...vector,
  key: KEY,
  text: textOf({ ...vector, key: KEY }),
}));

/** Throws unless `publicIds` gives the texts of all vectors. */
const CHECK = `
  for (const { key, kind, prefix, id, text } of ${JSON.stringify(ownVectors)}) {
    const ids = publicIds({ kind, key, prefix: prefix === '' ? false : prefix });
    if (ids.encode(id) !== text || ids.decodeString(text) !== id) throw new Error(text);
    if (ids.is(text.slice(0, -1) + (text.endsWith('0') ? '1' : '0'))) throw new Error(text);
  }
  try {
    publicIds({ kind: 'order', key: undefined });
  } catch ({ code }) {
    console.log(code, 'all');
  }`;

/** Where the package is installed without an addon. */
let project;

before(() => {
  project = mkdtempSync(join(tmpdir(), 'snowdrift-public-'));
  const installed = join(project, 'node_modules/snowdrift');
  mkdirSync(installed, { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(installed, 'package.json'));
  const isNoAddon = (path) => !path.endsWith('.node');
  cpSync(join(ROOT, 'js'), join(installed, 'js'), { recursive: true, filter: isNoAddon });
  writeFileSync(join(project, 'package.json'), '{ "dependencies": { "snowdrift": "*" } }');
  writeFileSync(
    join(project, 'import.mjs'),
    `import { publicIds } from 'snowdrift/public';${CHECK}`,
  );
  writeFileSync(
    join(project, 'require.cjs'),
    `const { publicIds } = require('snowdrift/public');${CHECK}`,
  );
});
after(() => rmSync(project, { recursive: true, force: true, maxRetries: 3 }));

/** Runs both files by a runtime. */
async function check(command, ...args) {
  for (const file of ['import.mjs', 'require.cjs']) {
    const { stdout } = await promisify(execFile)(command, [...args, file], { cwd: project });
    assert.equal(stdout, 'ERR_SNOWFLAKE_CONFIG all\n');
  }
}

test('Node', () => check(process.execPath));

describe('other runtimes', { skip: storm }, () => {
  const scratch = new Scratch();
  let tools;
  before(async () => {
    tools = await scratch.tools('public', TOOLS);
  });
  after(() => scratch.remove());

  test('Node 18', () => check(join(tools, 'node-18/bin/node')));
  test('Bun', () => check(join(tools, 'bun/bin/bun'), 'run'));
  // No permission but to read the package.
  test('Deno', () => check(join(tools, 'deno/deno'), 'run', '--no-prompt', '--allow-read'));

  test('workerd, as Cloudflare runs it, with the flag nodejs_compat', async () => {
    const worker = `import { publicIds } from 'snowdrift/public';
      export default { test() {${CHECK}} };`;
    writeFileSync(join(project, 'worker.mjs'), worker);
    // As wrangler does: require() of a part of Node becomes an import.
    const banner = `import * as crypto from 'node:crypto'; const require = () => crypto;`;
    await promisify(execFile)(
      join(tools, 'esbuild/bin/esbuild'),
      [
        'worker.mjs',
        '--bundle',
        '--format=esm',
        '--external:node:*',
        `--banner:js=${banner}`,
      ].concat('--outfile=bundle.mjs'),
      { cwd: project },
    );
    writeFileSync(
      join(project, 'worker.capnp'),
      `using Workerd = import "/workerd/workerd.capnp";
       const config :Workerd.Config = (services = [(name = "main", worker = (
         compatibilityDate = "2025-09-01",
         compatibilityFlags = ["nodejs_compat"],
         modules = [(name = "worker.mjs", esModule = embed "bundle.mjs")],
       ))]);`,
    );
    const workerd = `@cloudflare/workerd-${platform}-${arch === 'x64' ? '64' : arch}/bin/workerd`;
    const { stdout, stderr } = await promisify(execFile)(
      join(tools, workerd),
      ['test', 'worker.capnp'],
      { cwd: project },
    );
    assert.match(stdout, /^ERR_SNOWFLAKE_CONFIG all$/m);
    assert.match(stderr, /\[ PASS \]/);
  });
});
