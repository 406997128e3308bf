'use strict';
// snowdrift/id and snowdrift/public where there is no addon: in Node, Bun and Deno, in a bundle for browsers, in Chromium and
// Firefox with a Web Worker, in workerd. id-probe.mjs has what the first makes of many IDs, the vectors what the second does.

const assert = require('node:assert/strict');
const { execFile, execFileSync, spawn } = require('node:child_process');
const { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { createServer } = require('node:http');
const { once } = require('node:events');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');
const { promisify } = require('node:util');
const { gzipSync } = require('node:zlib');

const { storm } = require('../support/amount.js');
const { ROOT, Scratch } = require('../support/package/scratch.js');
const { KEY, textOf, vectors } = require('../support/public-ids.js');
const id = require('snowdrift/id');

const { arch, platform } = process;
const TOOLS = [
  'esbuild@0.28.2',
  'workerd@1.20261117.1',
  `bun@npm:@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}@1.4.5`,
  `deno@npm:@deno/${platform}-${arch}-glibc@2.9.6`,
  `node-18@npm:node-${platform}-${arch}@18.20.8`,
];
const WORKERD = `@cloudflare/workerd-${platform}-${arch === 'x64' ? '64' : arch}/bin/workerd`;

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

/** Where the package is installed as it is packed, but without an addon. */
let project;
const write = (file, text) => writeFileSync(join(project, file), text);
before(async () => {
  project = mkdtempSync(join(tmpdir(), 'snowdrift-runtimes-'));
  const installed = join(project, 'node_modules/snowdrift');
  mkdirSync(installed, { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(installed, 'package.json'));
  const isNoAddon = (path) => !path.endsWith('.node');
  cpSync(join(ROOT, 'js'), join(installed, 'js'), { recursive: true, filter: isNoAddon });
  const { bundle } = await import('../../scripts/bundle.mjs');
  bundle(installed);
  write('package.json', '{ "dependencies": { "snowdrift": "*" } }');
  write('import.mjs', `import { publicIds } from 'snowdrift/public';${CHECK}`);
  write('require.cjs', `const { publicIds } = require('snowdrift/public');${CHECK}`);
});
after(() => rmSync(project, { recursive: true, force: true, maxRetries: 3 }));

/** Runs a program in the project: what it printed. */
const run = (command, ...args) => promisify(execFile)(command, args, { cwd: project });
const printed = async (...args) => (await run(process.execPath, ...args)).stdout.trim();

test('Node loads snowdrift/id by require and by import; snowdrift names it', async () => {
  const report = '({ parse }) => console.log(parse(5n).sequence)';
  assert.equal(await printed('-e', `(${report})(require('snowdrift/id'))`), '5');
  const imported = `import { parse } from 'snowdrift/id'; (${report})({ parse });`;
  assert.equal(await printed('--input-type=module', '-e', imported), '5');
  const elsewhere = `Object.defineProperty(process, 'arch', { value: 'riscv64' });
    try { require('snowdrift') } catch ({ code, message }) { console.log(code, message) }`;
  assert.match(
    await printed('-e', elsewhere),
    /^ERR_SNOWFLAKE_ADDON snowdrift has no addon for .*\. snowdrift\/id decodes IDs without an addon$/,
  );
});

/** Runs both files with public IDs by a runtime. */
async function check(command, ...args) {
  for (const file of ['import.mjs', 'require.cjs']) {
    const { stdout } = await run(command, ...args, file);
    assert.equal(stdout, 'ERR_SNOWFLAKE_CONFIG all\n');
  }
}

test('Node has public IDs', () => check(process.execPath));

// It downloads 300 MB.
describe('other runtimes', { skip: storm, concurrency: 1 }, () => {
  const scratch = new Scratch();
  let tools;
  let bundle;
  /** The lines of id-probe.mjs in this process. ids/id.test.js compares these functions with Rust. */
  let expected;

  /** Bundles a script. */
  function bundled(file, text, ...flags) {
    write(file, text);
    const esbuild = join(tools, 'esbuild/bin/esbuild');
    return execFileSync(esbuild, [file, '--bundle', '--format=esm', ...flags], {
      cwd: project,
      encoding: 'utf8',
    });
  }
  const forBrowsers = ['--platform=browser', '--target=es2022'];

  before(async () => {
    cpSync(join(ROOT, '__test__/support/id-probe.mjs'), join(project, 'id-probe.mjs'));
    const { probe } = await import('../support/id-probe.mjs');
    expected = probe(id);
    tools = await scratch.tools('runtimes', TOOLS);
    const probing = `import * as id from 'snowdrift/id';
      import { probe } from './id-probe.mjs';
      export const lines = probe(id);`;
    bundle = bundled('probe.js', probing, ...forBrowsers);
  });
  after(() => scratch.remove());

  test('Node 18', () => check(join(tools, 'node-18/bin/node')));
  test('Bun', () => check(join(tools, 'bun/bin/bun'), 'run'));
  // No permission but to read the package.
  test('Deno', () => check(join(tools, 'deno/deno'), 'run', '--no-prompt', '--allow-read'));

  test('a bundle for browsers is small', (t) => {
    const alone = `export * from 'snowdrift/id';`;
    const small = bundled('alone.js', alone, '--minify', ...forBrowsers);
    const gzipped = gzipSync(small, { level: 9 }).length;
    t.diagnostic(`${small.length} bytes minified, ${gzipped} of them compressed by gzip`);
    assert.ok(small.length < 11_000 && gzipped < 5000, `${small.length} bytes, ${gzipped} gzipped`);
    assert.doesNotMatch(small, /"node:|process\./);
  });

  /** Asserts that a browser reports the same lines. @param flagsOf returns its flags, for a profile */
  async function reportedBy(command, flagsOf) {
    const files = {
      '/': [
        'text/html',
        '<!doctype html><title>snowdrift/id</title><script type=module src=page.js></script>',
      ],
      '/lines.js': ['text/javascript', bundle],
      '/worker.js': ['text/javascript', `import { lines } from './lines.js'; postMessage(lines);`],
      '/page.js': [
        'text/javascript',
        `import { lines } from './lines.js';
         const send = (inWorker) =>
           fetch('/report', { method: 'POST', body: JSON.stringify({ lines, inWorker }) });
         const worker = new Worker('worker.js', { type: 'module' });
         worker.onmessage = ({ data }) => send(data);
         worker.onerror = ({ message }) => send(message);`,
      ],
    };
    const server = createServer(async (request, response) => {
      if (request.method === 'POST') {
        let body = '';
        for await (const part of request.setEncoding('utf8')) body += part;
        server.emit('report', JSON.parse(body));
      }
      const [type, text] = files[request.url] ?? ['text/plain', ''];
      response.setHeader('content-type', type).end(text);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${server.address().port}/`;
    const browser = spawn(command, [...flagsOf(join(project, command)), url], {
      // Firefox keeps more than its profile at home.
      env: { ...process.env, HOME: project },
      stdio: 'ignore',
    });
    const ended = once(browser, 'exit');
    const signal = AbortSignal.timeout(600_000);
    try {
      const early = ended.then(() => assert.fail('the browser ended'));
      const [{ lines, inWorker }] = await Promise.race([once(server, 'report', { signal }), early]);
      assert.deepEqual(lines, expected);
      assert.deepEqual(inWorker, expected);
    } finally {
      browser.kill();
      await ended.catch(() => {});
      server.close();
      server.closeAllConnections();
    }
  }

  const flag = (name) => `--${name}`;

  test('Chromium, in a page and in a Web Worker', () =>
    reportedBy('chromium', (profile) => [
      ...['headless', 'no-sandbox', 'disable-gpu', 'disable-quic', 'no-first-run'].map(flag),
      ...['disable-background-networking', 'disable-component-update', 'disable-sync'].map(flag),
      `--user-data-dir=${profile}`,
    ]));

  const noFirefox = existsSync('/usr/bin/firefox-esr') ? false : 'Firefox is not installed';

  test('Firefox, in a page and in a Web Worker', { skip: noFirefox }, () =>
    reportedBy('firefox-esr', (profile) => {
      mkdirSync(profile);
      return ['--headless', '--no-remote', '--profile', profile];
    }),
  );

  /** Runs a worker of workerd, with files beside it. */
  function runWorker(files, settings) {
    for (const [file, text] of Object.entries(files)) write(file, text);
    const modules = Object.keys(files).map(
      (file) => `(name = "${file}", esModule = embed "${file}")`,
    );
    write(
      'worker.capnp',
      `using Workerd = import "/workerd/workerd.capnp";
       const config :Workerd.Config = (services = [(name = "main", worker = (
         ${settings}, modules = [${modules}],
       ))]);`,
    );
    return run(join(tools, WORKERD), 'test', 'worker.capnp');
  }

  test('workerd, as Cloudflare runs it, without the flag nodejs_compat', async () => {
    const comparing = (lines) => `import { lines } from 'lines.mjs';
      const expected = ${JSON.stringify(lines)};
      export default {
        test() {
          if (lines.length !== expected.length) throw new Error('length');
          for (const [n, line] of lines.entries()) {
            if (line !== expected[n]) throw new Error(line + ' instead of ' + expected[n]);
          }
          if (typeof process !== 'undefined') throw new Error('it has Node');
        },
      };`;
    const compare = (lines) =>
      runWorker(
        { 'worker.mjs': comparing(lines), 'lines.mjs': bundle },
        'compatibilityDate = "2024-01-01"',
      );
    assert.match((await compare(expected)).stderr, /\[ PASS \]/);
    await assert.rejects(compare([...expected.slice(0, -1), 'another']), /instead of another/);
  });

  test('workerd has public IDs with the flag nodejs_compat', async () => {
    const worker = `import { publicIds } from 'snowdrift/public';
      export default { test() {${CHECK}} };`;
    // As wrangler does: require() of a part of Node becomes an import.
    const banner = `import * as crypto from 'node:crypto'; const require = () => crypto;`;
    const text = bundled('public.mjs', worker, '--external:node:*', `--banner:js=${banner}`);
    const { stdout, stderr } = await runWorker(
      { 'worker.mjs': text },
      'compatibilityDate = "2025-09-01", compatibilityFlags = ["nodejs_compat"]',
    );
    assert.match(stdout, /^ERR_SNOWFLAKE_CONFIG all$/m);
    assert.match(stderr, /\[ PASS \]/);
  });
});
