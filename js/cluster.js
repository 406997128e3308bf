'use strict';
// `snowdrift/cluster`: forks and restarts a primary's workers. A restarted worker gets the index of the one that
// died. Each index has a workerId, unless the workers lease theirs. (`cluster.worker.id` grows with each restart:
// 31 restarts exhaust 5 bits.)

const cluster = require('node:cluster');
const { EventEmitter } = require('node:events');
const { availableParallelism, cpus } = require('node:os');
const { pathToFileURL } = require('node:url');

const { SnowFlakeError, configError, describe } = require('./errors.js');
const { namesServer, serverUrl } = require('./stores/url.js');
const {
  choice,
  directoryOf,
  fieldNumber,
  optionsOf,
  schemeRemedy,
  wholeNumber,
} = require('./checks.js');
const { readLayout } = require('./ids/layouts.js');
const { clearTimeout, monotonic, setTimeout } = require('./time.js');
const { NUMBERED_BY } = require('./siblings.js');
const { warn } = require('./warnings.js');
const { NONE } = require('./ids/properties.js');

const { nextTick } = process;

const OPTION_KEYS = [
  'count',
  'datacenterId',
  'firstWorkerId',
  'layout',
  'state',
  'lease',
  'env',
  'signals',
  'stopTimeout',
  'stableAfter',
  'firstDelay',
  'longestDelay',
];

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
const HOUR_MS = 3_600_000;

/** The most workers that lease: guards against typing errors. */
const MAX_LEASING = 1000;

/** Nodes of this primary's workers: '1-3' for datacenter 1, worker 3. */
const nodesInUse = new Set();

class Workers extends EventEmitter {
  #options;
  /** By index: { worker, started, failures, timer }. */
  #entries = new Map();
  #stopping;
  #onSignal = (signal) => this.#stopFor(signal);
  #ended;
  #end;

  constructor(options) {
    super();
    this.#options = options;
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    const indexes = Array.from({ length: options.count }, (_, index) => index);
    const conflict = indexes.find((index) => nodesInUse.has(this.#nodeOf(index)));
    if (conflict !== undefined) {
      throw new SnowFlakeError(
        'ERR_SNOWFLAKE_CONFLICT',
        `this primary already has a worker with datacenterId ${options.datacenterId} and workerId ${this.#workerIdOf(conflict)}: stop those workers first, or set firstWorkerId above theirs`,
      );
    }
    for (const index of indexes) {
      if (options.firstWorkerId !== undefined) nodesInUse.add(this.#nodeOf(index));
      this.#entries.set(index, { __proto__: null, failures: 0 });
    }
    for (const signal of options.signals) process.on(signal, this.#onSignal);
    try {
      for (const index of indexes) this.#fork(index);
    } catch ({ code }) {
      this.stop('SIGKILL');
      // Its message quotes the variable, which may be a secret.
      const remedy =
        code === 'ERR_ACCESS_DENIED'
          ? 'start Node with --allow-child-process, too'
          : 'check that no variable of env has a null byte, or is too long';
      throw configError(`cannot fork a worker (${code}): ${remedy}`);
    }
  }

  /** The workerId of an index; undefined if its worker leases any. */
  #workerIdOf(index) {
    const { firstWorkerId } = this.#options;
    return firstWorkerId === undefined ? undefined : firstWorkerId + index;
  }

  #nodeOf(index) {
    return `${this.#options.datacenterId}-${this.#workerIdOf(index)}`;
  }

  get workers() {
    return new Map(
      [...this.#entries].flatMap(([index, { worker }]) =>
        worker ? [[this.#workerIdOf(index) ?? index, worker]] : [],
      ),
    );
  }

  get ended() {
    return this.#ended;
  }

  stop(signal = 'SIGTERM') {
    if (this.#stopping === undefined) {
      this.#stopping = true;
      for (const [index, { timer, worker }] of this.#entries) {
        clearTimeout(timer);
        if (worker === undefined) this.#remove(index);
        else if (signal !== null) worker.process.kill(signal);
      }
      const kill = () => {
        for (const worker of this.workers.values()) worker.process.kill('SIGKILL');
      };
      const timer = setTimeout(kill, this.#options.stopTimeout);
      this.#ended.then(() => clearTimeout(timer));
    }
    return this.#ended;
  }

  #fork(index) {
    const entry = this.#entries.get(index);
    const worker = cluster.fork(this.#environmentOf(index));
    Object.assign(entry, { worker, started: monotonic(), timer: undefined });
    let failure;
    const onExit = (code, signal) => {
      if (entry.worker === worker) this.#handleExit(index, { code, signal, failure });
    };
    worker.once('exit', onExit);
    worker.on('error', (error) => {
      failure = error;
      // A process that failed to start emits no exit.
      if (worker.process.pid === undefined) onExit(null, null);
    });
    // After the caller of forkWorkers() has added its listeners.
    nextTick(() => this.emit('fork', worker, this.#workerIdOf(index) ?? index));
  }

  /** A worker's additions to the primary's environment; undefined removes a variable. */
  #environmentOf(index) {
    const { datacenterId, env, state, lease } = this.#options;
    if (lease !== undefined) {
      const node = { datacenterId, workerId: this.#workerIdOf(index) };
      return { ...env, ...node, SNOWDRIFT_LEASE: lease, SNOWDRIFT_STATE: undefined };
    }
    const recorded = state === undefined ? {} : { SNOWDRIFT_STATE: state };
    const workerId = this.#workerIdOf(index);
    return { ...env, ...recorded, datacenterId, workerId, [NUMBERED_BY]: process.pid };
  }

  #handleExit(index, { code, signal, failure }) {
    const entry = this.#entries.get(index);
    const workerId = this.#workerIdOf(index);
    const { worker, started } = entry;
    entry.worker = undefined;
    // Code 0 and a requested disconnect are no failure.
    if (this.#stopping || code === 0 || worker.exitedAfterDisconnect) {
      this.emit('exit', worker, workerId ?? index);
      this.#remove(index);
      return;
    }
    const { stableAfter, firstDelay, longestDelay } = this.#options;
    if (monotonic() - started >= stableAfter) entry.failures = 0;
    const delay =
      entry.failures === 0 ? 0 : Math.min(firstDelay * 2 ** (entry.failures - 1), longestDelay);
    entry.failures++;
    entry.timer = setTimeout(() => this.#fork(index), delay);
    const { pid } = worker.process;
    const node = workerId === undefined ? { index } : { index, workerId };
    const died = { ...node, pid, code, signal, failure, restartInMs: delay };
    if (!this.emit('died', died)) warnOfDeath(died);
  }

  /** Removes the entry of a worker that is not restarted. */
  #remove(index) {
    this.#entries.delete(index);
    nodesInUse.delete(this.#nodeOf(index));
    if (this.#entries.size > 0) return;
    for (const signal of this.#options.signals) process.off(signal, this.#onSignal);
    this.#end();
  }

  async #stopFor(signal) {
    if (this.#stopping) return;
    // On Ctrl-C, the terminal sends the signal to the workers, too.
    const isFromTerminal = signal === 'SIGINT' && process.stdin.isTTY;
    await this.stop(isFromTerminal ? null : signal);
    // Ends by the signal, for the parent process to see, unless the application handles it.
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  }
}

function warnOfDeath({ index, workerId = index, pid, code, signal, failure, restartInMs }) {
  const reason = failure?.message ?? signal ?? `code ${code}`;
  const delay = restartInMs === 0 ? 'at once' : `in ${restartInMs} ms`;
  warn(
    'SNOWFLAKE_WORKER_DIED',
    `Worker ${workerId} (process ${pid}) died with ${reason}; it restarts ${delay}.`,
  );
}

/** A URL's text; undefined for any other value than a URL or a string. */
function textOf(value) {
  try {
    return typeof value === 'string' || value instanceof URL ? String(value) : undefined;
  } catch {
    // It only has the prototype of a URL.
    return undefined;
  }
}

/** The text of a store's URL, for the workers' environment. */
function readLease(value) {
  const text = textOf(value);
  const url = serverUrl('lease', text);
  if (url !== undefined) return url.href;
  if (text !== undefined && /^file:/i.test(text)) {
    return pathToFileURL(directoryOf('lease', text, { urlOnly: true })).href;
  }
  throw configError(
    `lease must be the URL of a store, which each worker opens itself, such as 'postgres://db/app' or 'file:///var/lib/app/ids'; it is ${describe(value)}${schemeRemedy(text)}`,
  );
}

function readEnvironment(env, isLeasing) {
  const ours = ['datacenterId', 'workerId'];
  if (isLeasing) ours.push('SNOWDRIFT_LEASE', 'SNOWDRIFT_STATE');
  let entries;
  try {
    entries = Object.entries(env);
  } catch (cause) {
    throw configError('env must be an object of strings', { cause });
  }
  for (const [name, value] of entries) {
    if (typeof value !== 'string') {
      throw configError(`env.${name} must be a string; it is a ${typeof value}`);
    }
    if (ours.includes(name)) {
      throw configError(`forkWorkers() sets env.${name}: use its options`);
    }
  }
  return Object.fromEntries(entries);
}

function readForkOptions(options) {
  const given = optionsOf(options, 'options of forkWorkers()', OPTION_KEYS);
  const { lease, state, env = NONE, signals = SIGNALS } = given;
  const layout = readLayout(given.layout ?? 'node');
  const number = (name, usual, min, max) =>
    wholeNumber(name, given[name] === undefined ? usual : given[name], min, max);
  const isLeasing = lease !== undefined;
  const ofWorkers = isLeasing ? readLease(lease) : undefined;
  const isClaiming = isLeasing && given.firstWorkerId !== undefined;
  const fixed = ['state', 'firstWorkerId'].find((name) => given[name] !== undefined);
  if (isLeasing && fixed !== undefined && (fixed === 'state' || !namesServer(ofWorkers))) {
    throw configError(
      `lease takes any free workerId, and ${fixed} needs a fixed one: leave out lease or ${fixed}`,
    );
  }
  const isNumbered = !isLeasing || isClaiming;
  const workers = 2 ** layout.workerBits;
  const firstWorkerId = isNumbered ? number('firstWorkerId', 0, 0, workers - 1) : undefined;
  const cores = availableParallelism?.() ?? cpus().length;
  const most = isNumbered ? workers - firstWorkerId : MAX_LEASING;
  if (!Array.isArray(signals)) {
    throw configError(`signals must be an array of signal names; it is ${describe(signals)}`);
  }
  return {
    firstWorkerId,
    count: number('count', Math.min(cores, most), 1, most),
    datacenterId: fieldNumber('datacenterId', given.datacenterId, layout.datacenterBits),
    state: state === undefined ? undefined : directoryOf('state', state, { urlOnly: false }),
    lease: ofWorkers,
    env: readEnvironment(env, isLeasing),
    signals: [...new Set(signals.map((signal) => choice('a signal', signal, SIGNALS)))],
    stopTimeout: number('stopTimeout', 10_000, 0, HOUR_MS),
    stableAfter: number('stableAfter', 10_000, 0, HOUR_MS),
    firstDelay: number('firstDelay', 100, 1, HOUR_MS),
    longestDelay: number('longestDelay', 30_000, 1, HOUR_MS),
  };
}

function forkWorkers(options) {
  if (!cluster.isPrimary) {
    throw configError(
      'forkWorkers() is for the primary: call it where require("node:cluster").isPrimary is true',
    );
  }
  return new Workers(readForkOptions(options));
}

module.exports = { forkWorkers };
