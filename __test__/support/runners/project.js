'use strict';
// Projects of users, in directories outside of the repository, with the packages as npm would install
// them. All their processes have one environment, with one worker ID.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');

const { countDuplicatesOf } = require('../drawer.js');
const { missingPackages } = require('../installed.js');
require('../own-directory.js');

const ROOT = join(__dirname, '../../..');
/** Nothing outlives its test by more: s. */
const LONGEST = 600;
/** An ID's tick is above those bits, in the default layout. */
const TICK_BITS = 22n;

/** The packages, assembled as for a release. */
class Packages {
  #directory = fs.mkdtempSync(join(tmpdir(), 'snowdrift-runners-'));
  #names;
  #projects = 0;

  async assemble() {
    const { assemble } = await import('../../../scripts/packages.mjs');
    const { packages } = assemble(join(ROOT, 'js/runtime'), join(this.#directory, 'npm'));
    this.#names = packages;
  }

  /** A new project with the applications in it, and some more files. */
  project(files = []) {
    const directory = join(this.#directory, `project-${this.#projects++}`);
    fs.cpSync(join(__dirname, 'apps'), directory, { recursive: true });
    for (const { from, to } of files) fs.cpSync(join(__dirname, from), join(directory, to));
    fs.writeFileSync(join(directory, 'package.json'), '{ "private": true }');
    fs.mkdirSync(join(directory, 'tmp'));
    this.install(directory);
    return new Project(directory);
  }

  /** Puts a copy of the packages in a directory's node_modules. */
  install(directory) {
    for (const name of this.#names) {
      const from = join(this.#directory, 'npm', name);
      fs.cpSync(from, join(directory, 'node_modules', name), { recursive: true });
    }
  }

  remove() {
    fs.rmSync(this.#directory, { recursive: true, force: true, maxRetries: 3 });
  }
}

class Project {
  #programs = [];

  constructor(directory) {
    this.directory = directory;
    this.env = {
      PATH: process.env.PATH,
      HOME: directory,
      TMPDIR: join(directory, 'tmp'),
      SNOWDRIFT_SHARED: fs.mkdtempSync(join(process.env.SNOWDRIFT_SHARED, 'runners-')),
      datacenterId: '1',
      workerId: '3',
    };
  }

  /** Has a runner in its node_modules, which finds its dependencies where it is installed. */
  link(runner) {
    const installed = join(__dirname, runner, 'node_modules', runner);
    fs.symlinkSync(installed, join(this.directory, 'node_modules', runner));
  }

  /** Has a store's client in its node_modules, which finds its dependencies in the clone's. */
  linkClient(client) {
    fs.symlinkSync(
      join(ROOT, 'node_modules', client),
      join(this.directory, 'node_modules', client),
    );
  }

  /** Starts a program. */
  start(...command) {
    const program = new Program(command, { cwd: this.directory, env: this.env });
    this.#programs.push(program);
    return program;
  }

  /** Runs a program that should succeed. */
  async run(...command) {
    const program = this.start(...command);
    const [code] = await program.ended;
    assert.equal(code, 0, `${command.join(' ')}\n${program.stdout}\n${program.stderr}`);
    return program;
  }

  /** What its programs have written there. */
  get stderr() {
    return this.#programs.map(({ stderr }) => stderr).join('');
  }

  /** Ends what runs. */
  async stop() {
    await Promise.all(this.#programs.map((program) => program.stop()));
  }

  /** The IDs of each drawer, by its name. */
  drawn() {
    const directory = join(this.directory, 'ids');
    const names = fs.existsSync(directory) ? fs.readdirSync(directory) : [];
    return new Map(names.map((name) => [name, idsIn(join(directory, name))]));
  }
}

class Program {
  #process;
  #isOver = false;
  stdout = '';
  stderr = '';

  constructor([program, ...args], options) {
    // It ends even if this process is killed.
    const bounded = ['-s', 'KILL', String(LONGEST), program, ...args];
    this.#process = spawn('timeout', bounded, {
      ...options,
      stdio: ['ignore', 'pipe', 'pipe'],
      // A process group of its own.
      detached: true,
    });
    for (const stream of ['stdout', 'stderr']) {
      this.#process[stream].setEncoding('utf8').on('data', (text) => {
        this[stream] += text;
      });
    }
    this.ended = once(this.#process, 'close');
    this.ended.then(() => {
      this.#isOver = true;
    });
  }

  /** Kills all of its process group. */
  async stop() {
    if (!this.#isOver) process.kill(-this.#process.pid, 'SIGKILL');
    await this.ended;
  }
}

function idsIn(file) {
  const bytes = fs.readFileSync(file);
  return new BigUint64Array(
    bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + (bytes.length & ~7)),
  );
}

/** How many ticks have IDs of more than one drawer. */
function ticksOfMany(arrays) {
  const drawers = new Map();
  for (const ids of arrays) {
    const ticks = new Set();
    let last;
    for (const id of ids) {
      const tick = id >> TICK_BITS;
      if (tick !== last) ticks.add(tick);
      last = tick;
    }
    for (const tick of ticks) drawers.set(tick, (drawers.get(tick) ?? 0) + 1);
  }
  return [...drawers.values()].filter((count) => count > 1).length;
}

/** Asserts that no ID is a duplicate, and that drawers drew at one time. Reports the figures. */
function assertOneSequence(t, ...projects) {
  const arrays = projects.flatMap((project) => [...project.drawn().values()]);
  const count = arrays.reduce((sum, { length }) => sum + length, 0);
  const duplicates = countDuplicatesOf(arrays);
  const contended = ticksOfMany(arrays);
  t.diagnostic(
    `${count} IDs of ${arrays.length} drawers, ${duplicates} duplicates; ${contended} ms with more than one drawer`,
  );
  assert.ok(contended > 0, 'at no time did two draw at once');
  assert.equal(duplicates, 0, `${duplicates} of ${count} IDs are duplicates`);
}

/** Why a runner cannot be tested here, or undefined. */
function missingRunner(runner) {
  return missingPackages(join(__dirname, runner), '--runners');
}

module.exports = { Packages, assertOneSequence, missingRunner };
