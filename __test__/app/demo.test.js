'use strict';
// npm run demo: in a pipe and on a terminal; it finds duplicates, and leaves no process behind.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');
const { pathToFileURL } = require('node:url');

const { gate, storm } = require('../support/amount.js');
const { entry, until } = require('../support/support.js');
const { Terminal, missingTerminal } = require('../support/terminal.js');

const DEMO = join(__dirname, '../../demo/index.js');
const WORKERS = 4;
/** Of part 3: each of its five stages that draw has a minute's IDs. */
const ROLLBACK_IDS = 300_000;

let directory;
before(() => {
  directory = mkdtempSync(join(tmpdir(), 'snowdrift-demo-'));
});
after(() => rmSync(directory, { recursive: true }));

/** The demo in a pipe, as it runs. */
function start(args, env = {}) {
  const child = spawn(process.execPath, [DEMO, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 300_000,
    killSignal: 'SIGKILL',
  });
  const demo = { pid: child.pid, stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', (text) => {
      demo[stream] += text;
    });
  }
  demo.ended = once(child, 'close').then(([code, signal]) => ({ ...demo, code, signal }));
  return demo;
}

const run = (args, env) => start(args, env).ended;

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

/** Faults in the package, and the parts that find them. */
const FAULTS = {
  'cluster workers that repeat an ID': [
    `if (require('node:cluster').isWorker) {
      const id = SnowFlake.nextIdString();
      SnowFlake.nextIdString = () => id;
    }`,
    [true, true, false],
  ],
  'processes that share no sequence': [
    `if (require('node:cluster').isWorker) SnowFlake.configure({ scope: 'process' });`,
    [false, true, false],
  ],
  'a generator without a clock-back counter': [
    `snowdrift.SnowFlake = class extends SnowFlake {
      constructor(options) {
        super(options);
        const nextId = () => this.nextId() & ~(3n << 12n);
        return { nextId, parse: (id) => this.parse(id), close: () => this.close() };
      }
    };`,
    [false, false, true],
  ],
};

for (const [name, [fault, found]] of Object.entries(FAULTS)) {
  // They repeat IDs only if they draw at one time, which a busy machine may not let them.
  const isOfMany = name.startsWith('processes');
  test(`finds ${name}`, { skip: isOfMany ? storm : gate }, async () => {
    const file = join(directory, 'fault.cjs');
    writeFileSync(
      file,
      `const path = ${JSON.stringify(entry)};
      const snowdrift = { ...require(path) };
      require.cache[require.resolve(path)].exports = snowdrift;
      const { SnowFlake } = snowdrift;
      ${fault}`,
    );
    const args = ['--count', isOfMany ? '300000' : '5000'];
    const { code, stdout, stderr } = await run(args, { NODE_OPTIONS: `--require ${file}` });
    const parts = partsOf(stdout).map(([, duplicates]) => duplicates > 0);
    assert.deepEqual([code, parts], [1, found], stdout + stderr);
  });
}

const WRONG = [
  [['--count', '0'], "--count must be a whole number from 1 to 1,000,000; it is '0'"],
  [['--count', '1e3'], "it is '1e3'"],
  [['--count='], "it is ''"],
  [['--cuont', '5'], "Unknown option '--cuont'"],
];
for (const [n, [args, message]] of WRONG.entries()) {
  test(`refuses ${args.join(' ')}`, { skip: n > 0 ? gate : undefined }, async () => {
    const { code, stdout, stderr } = await run(args);
    assert.deepEqual([code, stdout], [2, '']);
    assert.ok(stderr.includes(message), stderr);
    assert.match(stderr, /--lease URL/);
  });
}

test('refuses a lease that no worker can open, once', { skip: gate }, async () => {
  const { code, stderr } = await run(['--lease', 'gopher://db']);
  assert.equal(code, 1);
  assert.match(stderr, /^worker \d: lease must be a URL .*\n$/);
});

/** Whether a process runs, and has come so far as to load the addon. */
function isDrawing(pid) {
  try {
    return readFileSync(`/proc/${pid}/maps`, 'latin1').includes('.node\n');
  } catch {
    return false;
  }
}

const ENDS = {
  'a killed worker fails the demo': ([pid]) => [
    pid,
    'SIGKILL',
    1,
    /^worker \d ended with SIGKILL\n$/,
  ],
  'SIGTERM ends the demo': (_, demo) => [demo, 'SIGTERM', 143, /^$/],
  'SIGKILL ends the demo': (_, demo) => [demo, 'SIGKILL', null, /^$/],
};
const noProc = process.platform !== 'linux' && 'processes are looked up in /proc';
for (const [name, endOf] of Object.entries(ENDS)) {
  test(`${name}, and all workers end`, { skip: storm ?? noProc }, async () => {
    const demo = start(['--count', '1000000']);
    let pids;
    await until(() => {
      const text = readFileSync(`/proc/${demo.pid}/task/${demo.pid}/children`, 'utf8');
      pids = text.split(' ').map(Number).filter(isDrawing);
      return pids.length === WORKERS;
    });
    const [pid, signal, code, stderr] = endOf(pids, demo.pid);
    process.kill(pid, signal);
    const ended = await demo.ended;
    assert.equal(ended.code, code, ended.stderr);
    assert.match(ended.stderr, stderr);
    await until(() => !pids.some(isDrawing));
  });
}

describe('on a terminal', { skip: gate ?? missingTerminal() }, () => {
  const command = (count) => [process.execPath, DEMO, '--count', String(count)];

  test('plain lines of 80 columns', async () => {
    const terminal = new Terminal(command(1000));
    assert.equal(await terminal.ended, 0, terminal.text);
    checkOutput(terminal.text.replaceAll('\r\n', '\n'), 1000);
  });

  for (const part of [1, 2]) {
    test(`Ctrl+C ends it, part ${part}`, { skip: storm }, async () => {
      const terminal = new Terminal(command(1_000_000));
      await until(() => terminal.text.includes(`${part}. `));
      terminal.interrupt();
      assert.equal(await terminal.ended, 130, terminal.text);
      assert.doesNotMatch(terminal.text, /ended|Error/);
    });
  }
});
