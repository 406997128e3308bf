'use strict';
// Hosts whose processes lease from a store: each host is a directory of pages, each process is led by the
// test.

const assert = require('node:assert/strict');
const { existsSync, readdirSync } = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');

const { createDirectory } = require('../own-directory.js');
const { Peer } = require('../peer.js');

/** Until something holds, at most so long: then it fails, with what was seen last. */
async function within(ms, what, look) {
  const start = performance.now();
  for (;;) {
    const seen = await look();
    const took = performance.now() - start;
    if (seen) return took;
    assert.ok(took < ms, `not within ${ms} ms: ${what}`);
    await sleep(20);
  }
}

/** The names of pages in a directory of SNOWDRIFT_SHARED. */
function pagesIn(directory) {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true }).filter((name) => name.endsWith('.page'));
}

/** One process with a lease. */
class Leaser {
  #peer;

  constructor(peer) {
    this.#peer = peer;
    this.ended = peer.ended;
  }

  get pid() {
    return this.#peer.pid;
  }

  kill(signal) {
    this.#peer.kill(signal);
  }

  run(body, ...values) {
    return this.#peer.run(body, ...values);
  }

  /** Opens a lease more, by a URL. Returns how it stands, with `page` and `scope` of stats(). */
  open(url, options) {
    return this.run(
      async (scene, ...args) => {
        scene.flakes ??= [];
        const flake = await scene.SnowFlake.lease(...args);
        scene.flakes.push(flake);
        scene.flake ??= flake;
        const { page } = flake.stats();
        return { ...flake.lease, page, opened: flake.stats().scope };
      },
      url,
      options,
    );
  }

  /** How the lease stands that it opened first. */
  lease() {
    return this.run((scene) => ({ ...scene.flake.lease, page: scene.flake.stats().page }));
  }

  /** The codes of its warnings of a slot. */
  warnings() {
    return this.run((scene) =>
      scene.warnings.map(({ code }) => code).filter((code) => /_LOST$/.test(code)),
    );
  }

  /** Draws in every turn from now on. */
  draw() {
    return this.run((scene) => {
      scene.drawn = [];
      scene.refusals = {};
      const turn = () => {
        try {
          scene.drawn.push(scene.flake.nextId());
        } catch ({ code }) {
          scene.refusals[code] = (scene.refusals[code] ?? 0) + 1;
        }
        scene.timer = setTimeout(turn, 1);
      };
      turn();
    });
  }

  /** What it has drawn, and how often it was refused. Draws no more. */
  drawn() {
    return this.run(({ timer, drawn, refusals }) => {
      clearTimeout(timer);
      return { ids: BigUint64Array.from(drawn), refusals };
    });
  }

  /** Closes all that it has open, and waits until the store knows. */
  async close() {
    await this.run(async (scene) => {
      await Promise.all(scene.flakes.splice(0).map((flake) => flake.close()));
      scene.flake = undefined;
    });
  }

  end() {
    return this.#peer.end();
  }
}

class LeasingHost {
  directory = createDirectory();
  processes = [];

  start() {
    const leaser = new Leaser(new Peer({ env: { SNOWDRIFT_SHARED: this.directory } }));
    this.processes.push(leaser);
    return leaser;
  }

  get pages() {
    return pagesIn(this.directory);
  }

  async end() {
    await Promise.all(this.processes.map((process) => process.end()));
  }
}

/** Runs a test with new hosts, which it ends. */
async function withHosts(count, body) {
  const hosts = Array.from({ length: count }, () => new LeasingHost());
  try {
    return await body(...hosts);
  } finally {
    for (const { processes } of hosts) for (const process of processes) process.kill('SIGCONT');
    await Promise.all(hosts.map((host) => host.end()));
  }
}

module.exports = { pagesIn, withHosts, within };
