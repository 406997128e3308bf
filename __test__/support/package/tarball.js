'use strict';
// The package as `npm run package` makes it of this clone: what the README has users install until the first version is on npm.

const { execFileSync, spawnSync } = require('node:child_process');
const { mkdirSync, mkdtempSync, readdirSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { basename, join } = require('node:path');

const ROOT = join(__dirname, '../../..');

/** The longest that a process may take. */
const PATIENCE_MS = 300_000;

/**
 * Packs the clone, or one of its folders.
 * @param to a folder, which gets the file
 * @returns the path of the file
 */
function pack(to, folder) {
  if (folder === '.') {
    const script = join(ROOT, 'scripts/pack.mjs');
    return execFileSync(process.execPath, [script, to], { encoding: 'utf8' }).trim();
  }
  const args = ['pack', folder, '--json', '--silent', '--pack-destination', to];
  const output = execFileSync('npm', args, {
    cwd: ROOT,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
  return join(to, JSON.parse(output)[0].filename);
}

/** Puts packages in a project's node_modules, by their files. */
function unpack(project, ...files) {
  for (const file of files) {
    const folder = join(project, 'node_modules', basename(file).replace(/-\d.*$/, ''));
    mkdirSync(folder, { recursive: true });
    execFileSync('tar', ['-xzf', file, '-C', folder, '--strip-components=1']);
  }
}

/** Projects, each with what was packed: outside of the repository, and removed with `remove`. */
class Packed {
  directory = mkdtempSync(join(tmpdir(), 'snowdrift-packed-'));
  #files;
  #count = 0;

  /** @param folders of the clone: '.', './packages/zookeeper' */
  constructor(...folders) {
    this.#files = folders.map((folder) => pack(this.directory, folder));
  }

  /** A new project. */
  project() {
    const directory = join(this.directory, `project-${this.#count++}`);
    mkdirSync(directory);
    unpack(directory, ...this.#files);
    return directory;
  }

  remove() {
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Runs a program to its end. */
function run(command, args, options) {
  return spawnSync(command, args, {
    encoding: 'utf8',
    timeout: PATIENCE_MS,
    killSignal: 'SIGKILL',
    ...options,
  });
}

/** Runs Node in a project, with the worker ID that its applications have. */
function runIn(project, args) {
  const node = { datacenterId: '1', workerId: '3' };
  return run(process.execPath, args, { cwd: project, env: { ...process.env, ...node } });
}

/** Whether a folder's addon is built. */
const isBuilt = (folder) =>
  readdirSync(join(ROOT, folder === '.' ? 'js/runtime' : folder)).some((name) =>
    name.endsWith('.node'),
  );

module.exports = { Packed, isBuilt, pack, run, runIn };
