'use strict';
// Projects of users, in a directory outside of the repository, who install from a registry to which the
// packages have been published as a release publishes them.

const { execFile } = require('node:child_process');
const { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { promisify } = require('node:util');

const { targetHere } = require('../../../js/runtime/addon.js');
const { storm } = require('../amount.js');
const { createDirectory } = require('../own-directory.js');
const { Registry } = require('./registry.js');

const ROOT = join(__dirname, '../../..');

const PNPM = 'pnpm@10.34.8';
const YARN = '@yarnpkg/cli-dist@4.18.1';

class Scratch {
  directory = mkdtempSync(join(tmpdir(), 'snowdrift-package-'));
  #registry;
  /** By project: each is an application of its own, and two of them use one worker ID, so each has a host. */
  #hosts = new Map();

  /**
   * Of the addons, this machine's is the one that was built; the others have no code in them.
   * @returns the names of what was published
   */
  async publish() {
    const { ADDONS, assemble, npm, publish } = await import('../../../scripts/packages.mjs');
    const upstream = await npm(['config', 'get', 'registry']);
    this.#registry ??= await Registry.start(/^@?snowdrift\b/, upstream);
    const addons = this.#make('addons');
    for (const name of ADDONS) writeFileSync(join(addons, name), 'another platform');
    for (const folder of ['js/runtime', 'packages/zookeeper']) {
      const built = readdirSync(join(ROOT, folder)).find((file) => file.endsWith('.node'));
      if (built !== undefined) cpSync(join(ROOT, folder, built), join(addons, built));
    }
    const out = join(this.directory, 'npm');
    const { packages } = assemble(addons, out);
    return await publish(out, packages, this.#registry.url, [], this.env);
  }

  /** The environment of what is run here: nothing is kept in the user's caches but public packages. */
  get env() {
    const cache = (name) => join(this.directory, 'caches', name);
    return {
      ...this.#registry.env,
      npm_config_cache: cache('npm'),
      npm_config_store_dir: cache('pnpm'),
      npm_config_audit: 'false',
      npm_config_fund: 'false',
      npm_config_update_notifier: 'false',
      YARN_NPM_REGISTRY_SERVER: this.#registry.url.slice(0, -1),
      YARN_UNSAFE_HTTP_WHITELIST: '127.0.0.1',
      YARN_GLOBAL_FOLDER: cache('yarn'),
      YARN_ENABLE_TELEMETRY: '0',
      // Yarn keeps from what was published less than a day ago.
      YARN_NPM_MINIMAL_AGE_GATE: '0',
      YARN_ENABLE_IMMUTABLE_INSTALLS: 'false',
      YARN_ENABLE_PROGRESS_BARS: 'false',
      NEXT_TELEMETRY_DISABLED: '1',
    };
  }

  /** An empty project, with the application in it. */
  project(name, manifest = {}) {
    const directory = this.#make(name);
    this.#hosts.set(directory, createDirectory());
    writeFileSync(
      join(directory, 'package.json'),
      JSON.stringify({ name, version: '1.0.0', private: true, ...manifest }),
    );
    cpSync(join(__dirname, 'app'), directory, { recursive: true });
    return directory;
  }

  /** Public packages, from the machine's own registry and by its cache. */
  async tools(name, packages) {
    const directory = this.project(name);
    const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline'];
    await promisify(execFile)('npm', ['install', ...flags, ...packages], { cwd: directory });
    return join(directory, 'node_modules');
  }

  /** Runs a program; answers what it printed. A failure shows it. */
  async run(directory, [program, ...args], env = {}) {
    try {
      const { stdout, stderr } = await promisify(execFile)(program, args, {
        cwd: directory,
        env: { ...process.env, ...this.env, SNOWDRIFT_SHARED: this.#hosts.get(directory), ...env },
        maxBuffer: 2 ** 26,
        timeout: 600_000,
      });
      return { stdout, stderr };
    } catch (failure) {
      const { message, stdout, stderr } = failure;
      throw Object.assign(new Error(`${message}\n${stdout}\n${stderr}`), { stdout, stderr });
    }
  }

  /** As `run`, of a program whose last line is JSON. */
  async report(directory, command, env) {
    const { stdout } = await this.run(directory, command, env);
    return JSON.parse(stdout.trim().split('\n').at(-1));
  }

  remove() {
    this.#registry?.stop();
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 3 });
  }

  #make(name) {
    const directory = join(this.directory, name);
    mkdirSync(directory, { recursive: true });
    return directory;
  }
}

/** Why these tests are skipped here, if they are. */
function skipped() {
  // They download 400 MB and take minutes.
  if (storm !== undefined) return storm;
  if (!targetHere()?.endsWith('-gnu')) return 'they are tried on Linux with glibc';
  return false;
}

module.exports = { PNPM, ROOT, Scratch, YARN, skipped };
