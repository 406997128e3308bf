'use strict';
// npm run demo: in a pipe and on a terminal; it finds what is wrong, and leaves no process behind.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');
const { pathToFileURL } = require('node:url');

const { gate, isStorms, storm } = require('../support/amount.js');
const { entry, until } = require('../support/support.js');
const { Terminal, missingTerminal, screenOf } = require('../support/terminal.js');

/** The longest that a demo may take. */
const PATIENCE_MS = 300_000;
/** So often a demo is run until this process sees it in time. */
const ROUNDS = 8;

/** Has rounds until one answers undefined; each says why it showed nothing. Its assertions hold in each. */
async function shown(round) {
  const missed = [];
  while (missed.length < ROUNDS) {
    const why = await round(missed.length);
    if (why === undefined) return;
    missed.push(why);
  }
  assert.fail(missed.join('; '));
}

const DEMO = join(__dirname, '../../demo/index.js');
const ESCAPE = '\x1b';
const children = process.platform === 'linux' ? undefined : 'processes are looked up in /proc';

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
    timeout: PATIENCE_MS,
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

/** The processes that a process has started. */
function childrenOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return text.split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function isRunning(pid) {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** The numbers of duplicates that it prints, in order. */
const duplicatesIn = (text) =>
  [...text.matchAll(/Duplicates among all ([\d,]+)\s+IDs:\s+([\d,]+)/g)].map(([, all, n]) =>
    [all, n].map((figure) => Number(figure.replaceAll(',', ''))),
  );

test('in a pipe: plain lines, aligned figures, and no duplicate in any part', async () => {
  const { code, stdout, stderr } = await run(['--count', '20000'], { FORCE_COLOR: '1' });
  assert.equal(code, 0, stdout + stderr);
  assert.equal(stderr, '');
  assert.ok(!stdout.includes(ESCAPE) && !stdout.includes('\r'));
  const all = [6 * 20_000, 16 * 1250, 6 * 10_000];
  assert.deepEqual(
    duplicatesIn(stdout),
    all.map((total) => [total, 0]),
  );
  const lines = stdout.split('\n');
  for (const line of lines) assert.ok(line.length <= 79, line);
  for (let n = 0; n < 3; n++) assert.ok(lines.includes(`   worker ${n}: 40,000 IDs`), stdout);
  for (let n = 1; n <= 8; n++) assert.ok(lines.includes(`   process ${n}: 2,500 IDs`), stdout);
  const rates = lines.filter((line) => / (BigInt|string) .*%$/.test(line));
  assert.deepEqual(
    rates.map((line) => line.trim().split(/\s+/).slice(0, 3).join(' ')),
    [0, 1, 2].flatMap((n) => [`${n} BigInt 20,000`, `${n} string 20,000`]),
  );
  assert.equal(new Set(rates.map(({ length }) => length)).size, 1, rates.join('\n'));
  const stages = stdout.match(/^ {3}(right|at|a minute) .*(continues|refuses)$/gm);
  const counters = stages.map((line) => line.match(/ (-|\d) +[\d,]+ {2}\w+$/)[1]);
  assert.equal(stages.length, 7);
  assert.deepEqual([...counters.slice(0, 4), ...counters.slice(5)], ['0', '1', '2', '3', '-', '0']);
  assert.match(stdout, /The refusal: ERR_SNOWFLAKE_CLOCK_BACK: /);
});

test('leases worker IDs from a directory', { skip: gate }, async () => {
  const lease = pathToFileURL(join(directory, 'leased')).href;
  const { code, stdout, stderr } = await run(['--count', '1000', '--lease', lease]);
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /a leased\s+workerId/);
  assert.match(stdout, /Duplicates among all 6,000 IDs: 0/);
});

/** Faults in the package, the parts that find them, and how many IDs it takes. */
const FAULTS = {
  'cluster workers that repeat an ID': [
    `if (require('node:cluster').isWorker) {
      const id = SnowFlake.nextIdString();
      SnowFlake.nextIdString = () => id;
    }`,
    [true, false, false],
  ],
  'processes that share no sequence': [
    `snowdrift.SnowFlake = class extends SnowFlake {
      static configure() { SnowFlake.configure({ scope: 'process' }); }
    };`,
    [false, true, false],
    400_000,
  ],
  'a generator without a clock-back counter': [
    `snowdrift.SnowFlake = class extends SnowFlake {
      constructor(options) {
        super(options);
        if (!options.clock) return;
        const { parse, stats } = this;
        const nextId = () => this.nextId() & ~(3n << 12n);
        return { nextId, parse: (id) => this.parse(id), close: () => this.close() };
      }
    };`,
    [false, false, true],
  ],
};

for (const [name, [fault, found, count = 20_000]] of Object.entries(FAULTS)) {
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
    // Processes repeat IDs only if they draw at one time: a busy machine may run them one after the other.
    await shown(async (round) => {
      const { code, stdout, stderr } = await run(['--count', String(count * 2 ** round)], {
        NODE_OPTIONS: `--require ${file}`,
      });
      const parts = duplicatesIn(stdout).map(([, duplicates]) => duplicates > 0);
      for (const [n, isFound] of parts.entries()) {
        assert.ok(found[n] || !isFound, `part ${n + 1}: ${stdout}`);
      }
      assert.equal(code, parts.includes(true) ? 1 : 0, stdout + stderr);
      if (!parts.includes(true) && isOfMany) return 'no process repeats an ID';
      assert.match(stderr, /FAILED/);
      assert.deepEqual(parts, found, stdout);
      return undefined;
    });
  });
}

const WRONG = [
  [['--count', '0'], "--count must be a whole number from 1 to 10,000,000; it is '0'"],
  [['--count', '1e3'], "it is '1e3'"],
  [['--count', '10000001'], "it is '10000001'"],
  [['--count='], "it is ''"],
  [['--count'], "'--count <value>' argument missing"],
  [['--cuont', '5'], "Unknown option '--cuont'"],
  [['200000'], "Unexpected argument '200000'"],
];
for (const [n, [args, message]] of WRONG.entries()) {
  test(`refuses ${args.join(' ')}`, { skip: n > 0 ? gate : undefined }, async () => {
    const { code, stdout, stderr } = await run(args);
    assert.equal(code, 2);
    assert.equal(stdout, '');
    assert.ok(stderr.includes(message), stderr);
    assert.match(stderr, /--lease URL/);
  });
}

test('refuses a lease that no worker can open, once', { skip: gate }, async () => {
  for (const lease of ['gopher://db', `${pathToFileURL(directory).href}/not/there`]) {
    const { code, stderr } = await run(['--count', '1000', '--lease', lease]);
    assert.equal(code, 1);
    assert.equal(stderr.trim().split('\n').length, 1, stderr);
  }
});

describe('its processes', { skip: storm ?? children }, () => {
  /** Whether a process has come so far as to load the addon. */
  function isDrawing(pid) {
    try {
      return readFileSync(`/proc/${pid}/maps`, 'latin1').includes('.node\n');
    } catch {
      return false;
    }
  }

  /** The demo when a part's processes draw; nothing if it has ended before that was seen. */
  async function drawing(args, part, processes) {
    const demo = start(args);
    let all = [];
    let hasEnded = false;
    demo.ended.then(() => {
      hasEnded = true;
    });
    await until(() => {
      all = childrenOf(demo.pid).filter(isDrawing);
      return hasEnded || (demo.stdout.includes(`${part}. `) && all.length === processes);
    });
    return hasEnded ? {} : { demo, all };
  }

  /** Whether a process was there to get a signal. */
  function kills(pid, signal) {
    try {
      return process.kill(pid, signal);
    } catch {
      return false;
    }
  }

  const SIGNALS = { SIGINT: 130, SIGKILL: null, SIGTERM: 143 };
  const PARTS = [
    { part: 1, processes: 3, args: ['--count', '1000000'] },
    { part: 2, processes: 8, args: ['--count', '100000'] },
  ];
  for (const { part, processes, args } of PARTS) {
    test(`one that is killed fails the demo, and ends the others, part ${part}`, async () => {
      await shown(async () => {
        const { demo, all } = await drawing(args, part, processes);
        if (demo === undefined || !kills(all[1], 'SIGKILL')) return 'it has ended before';
        const { code, stderr } = await demo.ended;
        if (code === 0) return 'it had drawn before';
        assert.equal(code, 1);
        assert.match(stderr, /^(worker|process) \d ended with SIGKILL$/m);
        await until(() => !all.some(isRunning));
        return undefined;
      });
    });

    for (const [signal, code] of Object.entries(SIGNALS)) {
      test(`end with the demo, by ${signal}, part ${part}`, async () => {
        await shown(async () => {
          const { demo, all } = await drawing(args, part, processes);
          if (demo === undefined || !kills(demo.pid, signal)) return 'it has ended before';
          const ended = await demo.ended;
          if (ended.code === 0) return 'it had ended before';
          assert.deepEqual([ended.code, ended.signal], [code, code === null ? signal : null]);
          assert.equal(ended.stderr, '');
          await until(() => !all.some(isRunning));
          return undefined;
        });
      });
    }
  }
});

describe('on a terminal', { skip: gate ?? missingTerminal() }, () => {
  const command = (count) => [process.execPath, DEMO, '--count', String(count)];
  const isBar = (line) => /[█░]/.test(line);

  for (const columns of isStorms ? [60, 80, 120] : [80]) {
    test(`each bar has its line, and ends full, at ${columns} columns`, async () => {
      await shown(async () => {
        const terminal = new Terminal(command(20_000), { columns });
        assert.equal(await terminal.ended, 0, terminal.text);
        const bars = screenOf(terminal.text, columns).filter(isBar);
        const workers = [0, 1, 2].map((n) => `worker ${n}`);
        const processes = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `process ${n}`);
        assert.deepEqual(
          bars.map((bar) => bar.trim().split('  ')[0]),
          [...workers, 'decoded', ...processes, 'decoded'],
        );
        for (const bar of bars)
          assert.match(bar, /^ {3}\w+( \d)? {2}█{20,40} {2}100% {2}[\d,]+ IDs$/);
        // Redrawn in place, with some of them half full.
        const partial = terminal.text.split('\n').filter((line) => line.includes('░'));
        if (isStorms && partial.length <= 30) return `${partial.length} bars that are not full`;
        return undefined;
      });
    });
  }

  test('a terminal that gets narrower and wider', { skip: storm }, async () => {
    await shown(async () => {
      const terminal = new Terminal(command(300_000), { columns: 100 });
      await until(() => terminal.text.includes('%'));
      terminal.resize(50);
      await until(() => terminal.text.includes('2. '));
      terminal.resize(120);
      assert.equal(await terminal.ended, 0, terminal.text);
      const [first, rest] = terminal.text.split(/^ +worker +IDs as/m);
      assert.ok(rest.includes('IDs: 0'));
      // Once below the bars that the terminal has wrapped.
      const bars = screenOf(first, 120).filter(isBar);
      if (bars.length === 3) return 'it was resized when the bars were full';
      assert.equal(bars.length, 6, bars.join('\n'));
      // A bar is as wide as the terminal, which may have got wider before the last one was drawn.
      if (bars.slice(3).some((bar) => bar.length >= 50)) return bars.join('\n');
      for (const bar of bars.slice(3)) assert.ok(bar.includes('100%'), bar);
      return undefined;
    });
  });

  for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
    test(`plain lines with ${Object.entries(env).join()}`, async () => {
      const terminal = new Terminal(command(1000), { env });
      assert.equal(await terminal.ended, 0, terminal.text);
      assert.ok(!terminal.text.includes(ESCAPE), terminal.text);
      assert.match(terminal.text, /^ {3}worker 2: 2,000 IDs\r$/m);
    });
  }

  for (const part of [1, 2]) {
    test(`Ctrl+C ends it, part ${part}`, { skip: storm }, async () => {
      await shown(async () => {
        const terminal = new Terminal(command(part === 1 ? 1_000_000 : 100_000));
        const bar = new RegExp(`^${part}\\. [\\s\\S]*░`, 'm');
        await until(() => bar.test(terminal.text));
        terminal.interrupt();
        const code = await terminal.ended;
        if (code === 0) return 'it had ended before';
        assert.equal(code, 130, terminal.text);
        assert.doesNotMatch(terminal.text, /ended|FAILED/);
        return undefined;
      });
    });
  }
});
