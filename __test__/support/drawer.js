'use strict';
// Processes that draw IDs until they are killed, and the parent's side of them. Each ID is written to
// a pipe before the next turn, so that a kill loses none that was handed out.
//
// Run as a script, this file is the process: its argument is JSON, the options of its SnowFlake. With
// `cached`, it is a CachedSnowFlake. With `engine`, a store's URL, it is leased from there, and tried again
// until it is had, or with `sqlClient` by a client that sql() takes; with `waits`, not before `go()`. It draws every `pause` ms at the latest. It reports each
// warning, and each lease that it loses or renews.

const { fork } = require('node:child_process');
const { EventEmitter, once } = require('node:events');
const { writeSync } = require('node:fs');
const { subscribe } = require('node:diagnostics_channel');
const { setTimeout: sleep } = require('node:timers/promises');

const { limitWait } = require('./limit-wait.js');

/** The most IDs of a turn: what a pipe takes whole, so that a kill does not cut one in two. */
const MOST = 64;

/** A process that draws, seen from its parent. */
class Drawer {
  #child;
  #chunks = [];
  #opened;
  #gone;
  #reports = new EventEmitter();
  /** Warnings of the process: { code, message, at }, `at` by performance.now() of this one. */
  warnings = [];
  /** Leases that it lost: { lease, at }. */
  losses = [];
  /** The codes with which a draw was refused. */
  refused = new Set();
  /** When it saw its lease renewed last, by performance.now() of this process, and by which process. */
  renewal;

  /** @param env added to the environment, for example a Machine's */
  constructor(options, env = {}) {
    this.#child = fork(__filename, [JSON.stringify(options)], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    this.#child.stdout.on('data', (chunk) => this.#chunks.push(chunk));
    this.#child.on('message', ({ warning, loss, renewer, isReady, refusal, answer }) => {
      const at = performance.now();
      if (renewer) this.renewal = { ...renewer, at };
      if (warning) this.warnings.push({ ...warning, at });
      if (loss) this.losses.push({ lease: loss, at });
      if (refusal) this.refused.add(refusal);
      if (isReady) this.#reports.emit('ready');
      if (answer) this.#reports.emit('answer', answer);
    });
    this.#opened = once(this.#reports, 'answer');
    this.ready = once(this.#reports, 'ready');
    this.ended = once(this.#child, 'close');
    this.#gone = this.ended.then(async ([code, signal]) => {
      // Its last message may come after its end.
      await sleep(1000, undefined, { ref: false });
      throw new Error(`the drawer ended with ${signal ?? code}`);
    });
    this.#gone.catch(() => {});
  }

  /** What a promise of it resolves with; an error if it takes too long, or the process ends before. */
  async #until(promise, what) {
    return await limitWait(Promise.race([promise, this.#gone]), `a drawer, and ${what}`, {
      giveUp: () => this.kill('SIGKILL'),
    });
  }

  get pid() {
    return this.#child.pid;
  }

  get renewedAt() {
    return this.renewal?.at;
  }

  /** What it says first: { lease }, or { code, message, holders } if it was refused. */
  async opened() {
    const [answer] = await this.#until(this.#opened, 'it is open');
    return answer;
  }

  /** Has one that waits begin. */
  go() {
    this.#child.send('go');
  }

  kill(signal) {
    this.#child.kill(signal);
  }

  /** Has it close, and say what happened: { lease, stats, refusals }. */
  async stop() {
    await this.opened();
    const answered = once(this.#reports, 'answer');
    this.#child.send('stop');
    const [answer] = await this.#until(answered, 'it has stopped');
    await limitWait(this.ended, 'the end of a drawer', { giveUp: () => this.kill('SIGKILL') });
    return answer;
  }

  /** Until it has drawn as many IDs as that. */
  async drawn(count) {
    while (this.ids().length < count) {
      await this.#until(once(this.#child.stdout, 'data'), `it has drawn ${count} IDs`);
    }
  }

  /** Until its clock has passed all that another has drawn. */
  async drawnPast(other) {
    // Whatever the clock-back counter: that lies below the timestamp.
    const end = other.ids().at(-1);
    while (!(this.ids().at(-1) > end)) {
      await this.#until(once(this.#child.stdout, 'data'), 'it has drawn past another one');
    }
  }

  /** How many it has drawn so far. */
  get count() {
    return this.ids().length;
  }

  /** What it has drawn so far. */
  ids() {
    const bytes = Buffer.concat(this.#chunks);
    this.#chunks = [bytes];
    return new BigUint64Array(bytes.buffer.slice(bytes.byteOffset), 0, bytes.length >> 3);
  }
}

/** Equal ones among all IDs of all arrays, by comparing them: sorted, they are neighbours. */
function countDuplicatesOf(arrays) {
  const all = new BigUint64Array(arrays.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const ids of arrays) {
    all.set(ids, at);
    at += ids.length;
  }
  all.sort();
  let duplicates = 0;
  for (let i = 1; i < all.length; i++) if (all[i] === all[i - 1]) duplicates++;
  return duplicates;
}

/** A store by a client of docs/stores.md. */
async function openSql({ name, place }) {
  const { openSqlClient } = require('./lease/sql-clients.js');
  const { sql } = require('../../js/stores/sql.js');
  // Some print, and the IDs go to stdout.
  console.log = () => {};
  return sql((await openSqlClient(name, place)).client);
}

async function open({ engine, cached, waits, sqlClient, ...options }) {
  const { CachedSnowFlake, SnowFlake } = require('../..');
  if (waits) {
    // Loads all that it takes, so that it has a lease soon.
    const store = await require('../../js/stores/connect.js').connect(new URL(engine));
    await store.now({ signal: new AbortController().signal });
    await store.close();
    process.send({ isReady: true });
    await once(process, 'message');
  }
  if (cached) return new CachedSnowFlake(options);
  if (engine === undefined && sqlClient === undefined) return new SnowFlake(options);
  let store = engine;
  for (;;) {
    try {
      store ??= await openSql(sqlClient);
      return await SnowFlake.lease(store, options);
    } catch (failure) {
      if (failure.code === 'ERR_SNOWFLAKE_CONFIG') throw failure;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

function report(what, sent = () => {}) {
  if (process.connected) process.send(what, sent);
}

async function draw({ pause = 4, ...options }) {
  // Reported, not printed: most are what these tests provoke.
  process.removeAllListeners('warning');
  process.on('warning', ({ code, message }) => report({ warning: { code, message } }));
  subscribe('snowdrift:lease-lost', (loss) => report({ loss }));
  subscribe('snowdrift:lease-renewed', ({ renewer = { pid: process.pid } }) => report({ renewer }));
  process.on('disconnect', () => process.exit());
  let flake;
  try {
    flake = await open(options);
  } catch ({ code, message, holders }) {
    report({ answer: { code, message, holders } }, () => process.disconnect());
    return;
  }
  const refusals = {};
  const ids = new BigUint64Array(MOST);
  let timer;
  (function turn() {
    const want = 1 + Math.floor(Math.random() * MOST);
    let count = 0;
    try {
      while (count < want) {
        const id = flake.nextId();
        ids[count++] = id;
      }
    } catch ({ code }) {
      if (!(code in refusals)) report({ refusal: code });
      refusals[code] = (refusals[code] ?? 0) + 1;
    }
    writeSync(1, new Uint8Array(ids.buffer, 0, count * 8));
    timer = setTimeout(turn, Math.random() * pause);
  })();
  process.on('message', () => {
    clearTimeout(timer);
    const { lease } = flake;
    const stats = flake.stats();
    flake.close();
    report({ answer: { lease, stats, refusals } }, () => process.disconnect());
  });
  report({ answer: { lease: flake.lease } });
}

if (require.main === module) draw(JSON.parse(process.argv[2]));

module.exports = { Drawer, countDuplicatesOf };
