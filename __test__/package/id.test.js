'use strict';
// snowdrift/id where there is no addon: in Node, in a bundle for browsers, in Chromium with a Web Worker, in workerd.

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
const id = require('snowdrift/id');

const flag = (name) => `--${name}`;

const TOOLS = ['esbuild@0.28.2', 'workerd@1.20261117.1'];

/** Where the package is installed without an addon. */
let project;
before(() => {
  project = mkdtempSync(join(tmpdir(), 'snowdrift-id-'));
  const installed = join(project, 'node_modules/snowdrift');
  mkdirSync(installed, { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(installed, 'package.json'));
  const isNoAddon = (path) => !path.endsWith('.node');
  cpSync(join(ROOT, 'js'), join(installed, 'js'), { recursive: true, filter: isNoAddon });
});
after(() => rmSync(project, { recursive: true, force: true, maxRetries: 3 }));

/** What a script prints in the project. */
async function printed(...args) {
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: project });
  return stdout.trim();
}

test('Node loads it without an addon, by require and by import; snowdrift names it', async () => {
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

// It downloads 170 MB.
describe('where there is no Node', { skip: storm, concurrency: 1 }, () => {
  const scratch = new Scratch();
  let tools;
  let bundle;
  /** The lines of id-probe.mjs in this process. core/id.test.js compares these functions with Rust. */
  let expected;

  /** Bundles a script for browsers. */
  function bundled(file, text, ...flags) {
    writeFileSync(join(project, file), text);
    const esbuild = join(tools, 'esbuild/bin/esbuild');
    const usual = ['--bundle', '--format=esm', '--platform=browser', '--target=es2022'];
    return execFileSync(esbuild, [file, ...usual, ...flags], { cwd: project, encoding: 'utf8' });
  }

  before(async () => {
    cpSync(join(ROOT, '__test__/support/id-probe.mjs'), join(project, 'id-probe.mjs'));
    const { probe } = await import('../support/id-probe.mjs');
    expected = probe(id);
    tools = await scratch.tools('id', TOOLS);
    bundle = bundled(
      'probe.js',
      `import * as id from 'snowdrift/id';
       import { probe } from './id-probe.mjs';
       export const lines = probe(id);`,
    );
  });
  after(() => scratch.remove());

  test('a bundle for browsers is small', (t) => {
    const small = bundled('alone.js', `export * from 'snowdrift/id';`, '--minify');
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

  test('workerd, as Cloudflare runs it, without the flag nodejs_compat', async () => {
    const { platform, arch } = process;
    const binary = join(tools, `@cloudflare/workerd-${platform}-${arch === 'x64' ? '64' : arch}`);
    const worker = (lines) => {
      writeFileSync(join(project, 'lines.mjs'), bundle);
      writeFileSync(
        join(project, 'worker.mjs'),
        `import { lines } from 'lines.mjs';
         const expected = ${JSON.stringify(lines)};
         export default {
           test() {
             if (lines.length !== expected.length) throw new Error('length');
             for (const [n, line] of lines.entries()) {
               if (line !== expected[n]) throw new Error(line + ' instead of ' + expected[n]);
             }
             if (typeof process !== 'undefined') throw new Error('it has Node');
           },
         };`,
      );
      writeFileSync(
        join(project, 'worker.capnp'),
        `using Workerd = import "/workerd/workerd.capnp";
         const config :Workerd.Config = (services = [(name = "main", worker = (
           compatibilityDate = "2024-01-01",
           modules = [
             (name = "worker.mjs", esModule = embed "worker.mjs"),
             (name = "lines.mjs", esModule = embed "lines.mjs"),
           ],
         ))]);`,
      );
      return promisify(execFile)(join(binary, 'bin/workerd'), ['test', 'worker.capnp'], {
        cwd: project,
      });
    };
    const { stderr } = await worker(expected);
    assert.match(stderr, /\[ PASS \]/);
    await assert.rejects(worker([...expected.slice(0, -1), 'another']), /instead of another/);
  });
});
