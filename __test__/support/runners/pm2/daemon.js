'use strict';
// pm2 and its daemon, in a home of their own.

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { existsSync, readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');

const PM2 = join(__dirname, 'node_modules/pm2/bin/pm2');

// Ends the daemon when its own input closes: by kill(), or because the test has ended in any way. It takes
// 11 minutes at most.
const GUARD = `
timeout 600 cat >/dev/null
timeout 60 "$0" "$1" kill >/dev/null 2>&1
if [ -e "$PM2_HOME/pm2.pid" ]; then kill -KILL "$(cat "$PM2_HOME/pm2.pid")"; fi`;

class Pm2 {
  #project;
  #home;
  #guard;
  #ended;

  constructor(project) {
    this.#project = project;
    this.#home = join(project.directory, '.pm2');
    // Without its advertisements.
    Object.assign(project.env, { PM2_HOME: this.#home, PM2_DISCRETE_MODE: 'true' });
    this.#guard = spawn('sh', ['-c', GUARD, process.execPath, PM2], {
      cwd: project.directory,
      env: project.env,
      stdio: ['pipe', 'ignore', 'inherit'],
      // Signals to the test's group do not end it.
      detached: true,
    });
    this.#ended = once(this.#guard, 'close');
  }

  /** Runs a command of pm2. */
  async run(...args) {
    return (await this.#project.run(process.execPath, PM2, ...args)).stdout;
  }

  /** Ends the daemon and its applications. */
  async kill() {
    this.#guard.stdin.end();
    await this.#ended;
  }

  /** The daemon's process ID, or undefined. */
  get pid() {
    const file = join(this.#home, 'pm2.pid');
    return existsSync(file) ? Number(readFileSync(file, 'utf8')) : undefined;
  }

  /** What the applications have drawn. */
  drawn() {
    return this.#project.drawn();
  }

  /** What they have written there. */
  get stderr() {
    const logs = join(this.#home, 'logs');
    return readdirSync(logs)
      .filter((name) => name.includes('-error-'))
      .map((name) => readFileSync(join(logs, name), 'utf8'))
      .join('');
  }
}

module.exports = { Pm2 };
