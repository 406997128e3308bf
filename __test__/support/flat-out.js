'use strict';
// Processes and threads that draw flat out into files: 8 bytes an ID, all that each has drawn, so that tens of millions can be
// sorted and compared.
//
// Run as a script or a thread, this file is the one that draws: `job` has the `kind` of call, the `options` and the `file`. It reports once it is open, begins when it is sent the time
// to end at (ms by the monotonic clock of the machine), and answers what it met.

const { fork } = require('node:child_process');
const { once } = require('node:events');
const { closeSync, openSync, readFileSync, statSync, writeSync } = require('node:fs');
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');

const { limitWait } = require('./limit-wait.js');

/** IDs that are written at once. */
const CHUNK = 8192;

/** The machine's monotonic clock, ms: the same for all of its processes, whatever the wall clock does. */
const monotonicMs = () => Number(process.hrtime.bigint() / 1000n) / 1000;

/** Ways to draw: each call adds IDs to `sink`. */
const KINDS = {
  loop(flake, sink) {
    for (let n = 0; n < 500; n++) sink.add(flake.nextId());
  },
  batch(flake, sink) {
    sink.addAll(flake.nextIds(400_000));
  },
  async async(flake, sink) {
    sink.add(await flake.nextIdAsync());
  },
};

class Sink {
  #buffer = new BigUint64Array(CHUNK);
  #length = 0;
  #file;
  count = 0;

  constructor(path) {
    this.#file = openSync(path, 'a');
  }

  add(id) {
    this.#buffer[this.#length++] = id;
    if (this.#length === CHUNK) this.flush();
  }

  addAll(ids) {
    this.flush();
    this.#write(ids);
  }

  flush() {
    this.#write(this.#buffer.subarray(0, this.#length));
    this.#length = 0;
  }

  close() {
    this.flush();
    closeSync(this.#file);
  }

  #write(ids) {
    this.count += ids.length;
    for (let at = 0; at < ids.byteLength; ) {
      at += writeSync(
        this.#file,
        new Uint8Array(ids.buffer, ids.byteOffset + at, ids.byteLength - at),
      );
    }
  }
}

async function draw(flake, kind, sink, end) {
  const refusals = {};
  let longest = 0;
  for (let start = monotonicMs(); start < end; ) {
    try {
      const waits = KINDS[kind](flake, sink);
      if (waits) await waits;
    } catch ({ code, message }) {
      refusals[code ?? 'unexpected'] ??= { count: 0, message };
      refusals[code ?? 'unexpected'].count++;
    }
    const now = monotonicMs();
    longest = Math.max(longest, now - start);
    start = now;
  }
  sink.close();
  return { count: sink.count, refusals, longest };
}

async function main({ kind, options, file }, port) {
  const { SnowFlake } = require('../..');
  const flake = new SnowFlake(options);
  port.send({ page: flake.stats().page ?? null });
  port.receive(async (end) => {
    port.send(await draw(flake, kind, new Sink(file), end));
    port.close();
  });
}

/** One that draws, seen from the test. */
class FlatOut {
  #child;
  #isThread;
  /** When it has ended, and no message of it comes any more. */
  #silent;

  /** @param how 'process' or 'thread' */
  constructor(how, { env, ...job }) {
    this.file = job.file;
    this.kind = job.kind;
    this.#isThread = how === 'thread';
    this.#child = this.#isThread
      ? new Worker(__filename, { workerData: job })
      : fork(__filename, [JSON.stringify(job)], { env: { ...process.env, ...env } });
    this.ended = once(this.#child, 'exit');
    // A process's exit may be seen before its last message, a thread's may not.
    this.#silent = this.#isThread
      ? this.ended
      : Promise.all([this.ended, once(this.#child, 'disconnect')]).then(([how]) => how);
    this.ready = this.#message();
  }

  /** The next message; an error if it ends before, or if there is none for long. */
  async #message() {
    const message = once(this.#child, 'message');
    const ended = this.#silent.then(([code, signal]) => {
      throw new Error(`it ended with ${signal ?? code}`);
    });
    ended.catch(() => {});
    const [answer] = await limitWait(Promise.race([message, ended]), `a message of ${this.file}`);
    return answer;
  }

  /** Has it begin; answers { count, refusals, longest }. */
  async draw(end) {
    const answer = this.#message();
    if (this.#isThread) this.#child.postMessage(end);
    else this.#child.send(end);
    const met = await answer;
    await this.ended;
    return met;
  }

  kill(signal) {
    if (this.#isThread) this.#child.terminate();
    else this.#child.kill(signal);
  }
}

/** All IDs of files, sorted. */
function sortedIds(files) {
  const bytes = files.map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0);
  const all = new BigUint64Array(bytes.reduce((sum, size) => sum + (size >> 3), 0));
  let at = 0;
  for (const [n, file] of files.entries()) {
    if (bytes[n] === 0) continue;
    const ids = idsIn(file);
    all.set(ids, at);
    at += ids.length;
  }
  return all.sort();
}

function idsIn(file) {
  const bytes = readFileSync(file);
  return new BigUint64Array(bytes.buffer, bytes.byteOffset, bytes.length >> 3);
}

/** Equal neighbours. */
function duplicatesIn(sorted) {
  let count = 0;
  for (let n = 1; n < sorted.length; n++) if (sorted[n] === sorted[n - 1]) count++;
  return count;
}

/** How many of sorted IDs lie in [from, to). */
function countBetween(sorted, from, to) {
  const below = (bound) => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (sorted[middle] < bound) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return below(to) - below(from);
}

if (!isMainThread && workerData?.file) {
  main(workerData, {
    send: (message) => parentPort.postMessage(message),
    receive: (act) => parentPort.once('message', act),
    close: () => parentPort.close(),
  });
} else if (require.main === module) {
  process.on('disconnect', () => process.exit());
  main(JSON.parse(process.argv[2]), {
    send: (message) => process.send(message),
    receive: (act) => process.once('message', act),
    close: () => process.disconnect(),
  });
}

module.exports = { FlatOut, countBetween, duplicatesIn, idsIn, monotonicMs, sortedIds };
