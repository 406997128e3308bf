'use strict';
// npm run demo: it shows no duplicate, and finds those that there are.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, test } = require('node:test');
const { pathToFileURL } = require('node:url');

const { gate } = require('../support/amount.js');
const { entry } = require('../support/support.js');

const DEMO = join(__dirname, '../../demo/index.js');
const WORKERS = 4;
/** Of part 3: each of its five stages that draw has a minute's IDs. */
const ROLLBACK_IDS = 300_000;

let directory;
before(() => {
  directory = mkdtempSync(join(tmpdir(), 'snowdrift-demo-'));
});
after(() => rmSync(directory, { recursive: true }));

/** The demo in a pipe: how it ended, and what it printed. */
async function run(args, env = {}) {
  const child = spawn(process.execPath, [DEMO, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 300_000,
    killSignal: 'SIGKILL',
  });
  const printed = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', (text) => {
      printed[stream] += text;
    });
  }
  const [code] = await once(child, 'close');
  return { ...printed, code };
}

/** The IDs and the duplicates of snowdrift, by part. */
function partsOf(stdout) {
  const found = stdout.matchAll(
    /^ {3}(?:Duplicates among all ([\d,]+) IDs: +|snowdrift +([\d,]+) +)([\d,]+)$/gm,
  );
  return [...found].map(([, all, ofTable, duplicates]) =>
    [all ?? ofTable, duplicates].map((figure) => Number(figure.replaceAll(',', ''))),
  );
}

/** What is true of each demo that finds no duplicate. */
function checkOutput(text, count) {
  const all = 2 * WORKERS * count;
  const totals = [all, all, ROLLBACK_IDS].map((total) => [total, 0]);
  assert.deepEqual(partsOf(text), totals, text);
  assert.ok(!text.includes('\x1b'));
  const lines = text.split('\n').filter((line) => !/The (first warning|refusal): /.test(line));
  for (const line of lines) assert.ok(line.length <= 80, line);
  assert.match(text, /^ {3}a plain class +[\d,]+ +[\d,]+$/m);
  const stages = [...text.matchAll(/^ {3}\w.* (continues|refuses) .* ([\d-])$/gm)];
  assert.deepEqual(
    stages.map(([, answer, counter]) => `${answer} ${counter}`),
    [...[0, 1, 2, 3].map((n) => `continues ${n}`), 'refuses -', 'continues 0'],
  );
  assert.match(text, /The refusal: ERR_SNOWFLAKE_CLOCK_BACK: the clock rolled back to /);
  assert.match(text, /^snowdrift: 0 duplicates, after [\d.]+ s\.$/m);
}

test('in a pipe: plain lines, each worker, and no duplicate in any part', async () => {
  const env = { FORCE_COLOR: '1', SNOWDRIFT_LEASE: 'redis://127.0.0.1:1' };
  const { code, stdout, stderr } = await run(['--count', '20000'], env);
  assert.equal(code, 0, stdout + stderr);
  assert.equal(stderr, '');
  checkOutput(stdout, 20_000);
  const rows = [...stdout.matchAll(/^ +(\d) +[\d,]+ +(\d{18}) +(\S+Z) +\d+$/gm)];
  assert.deepEqual(
    rows.map(([, workerId]) => workerId),
    ['0', '1', '2', '3'],
  );
  const [, , id] = rows[0];
  assert.ok(stdout.includes(`A BigInt: ${id}n. A string, for ORMs: '${id}'.`), stdout);
});

test('leases worker IDs from a directory', { skip: gate }, async () => {
  const lease = pathToFileURL(join(directory, 'leased')).href;
  const { code, stdout, stderr } = await run(['--count', '1000', '--lease', lease]);
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /with a leased workerId/);
  checkOutput(stdout, 1000);
});

test('finds duplicates, in the parts that have them', { skip: gate }, async () => {
  const file = join(directory, 'fault.cjs');
  writeFileSync(
    file,
    `const { SnowFlake } = require(${JSON.stringify(entry)});
    if (require('node:cluster').isWorker) {
      const id = SnowFlake.nextIdString();
      SnowFlake.nextIdString = () => id;
    }`,
  );
  const env = { NODE_OPTIONS: `--require ${file}` };
  const { code, stdout, stderr } = await run(['--count', '5000'], env);
  const parts = partsOf(stdout).map(([, duplicates]) => duplicates > 0);
  assert.deepEqual([code, parts], [1, [true, true, false]], stdout + stderr);
});

test('refuses a wrong option', async () => {
  const { code, stdout, stderr } = await run(['--count', '0']);
  assert.deepEqual([code, stdout], [2, '']);
  assert.ok(stderr.includes("--count must be a whole number from 1 to 1,000,000; it is '0'"));
  assert.match(stderr, /--lease URL/);
});

test('refuses a lease that no worker can open, once', { skip: gate }, async () => {
  const { code, stderr } = await run(['--lease', 'gopher://db']);
  assert.equal(code, 1);
  assert.match(stderr, /^worker \d: .* must be a URL .*\n$/);
});
