'use strict';
// `snowdrift/cluster`: a primary's workers, each with a workerId that stays its own for as long as
// the primary lives, however often the worker dies. (`cluster.worker.id` only grows: 5 bits run out
// after 31 restarts.)

const cluster = require('node:cluster');
const { EventEmitter } = require('node:events');
const { availableParallelism, cpus } = require('node:os');

const { SnowFlakeError, configError } = require('./errors.js');
const { choice, directoryOf, propertiesOf, readLayout, wholeNumber } = require('./options.js');
const { clearTimeout, monotonic, setTimeout } = require('./time.js');

const { nextTick } = process;

const OPTION_KEYS = [
  'count',
  'datacenterId',
  'firstWorkerId',
  'layout',
  'state',
  'env',
  'signals',
  'stopTimeout',
  'stableAfter',
  'firstDelay',
  'longestDelay',
];

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
const HOUR_MS = 3_600_000;

/** '1-3' for datacenter 1, worker 3: those that this primary has given out. */
const taken = new Set();

class Workers extends EventEmitter {
  #options;
  /** By workerId: { worker, started, failures, timer }. */
  #places = new Map();
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
    const { count, firstWorkerId, datacenterId } = options;
    const ids = Array.from({ length: count }, (_, n) => firstWorkerId + n);
    const double = ids.find((workerId) => taken.has(`${datacenterId}-${workerId}`));
    if (double !== undefined) {
      throw new SnowFlakeError(
        'ERR_SNOWFLAKE_CONFLICT',
        `this primary has a worker with datacenterId ${datacenterId} and workerId ${double} already: stop those workers first, or set firstWorkerId above theirs`,
      );
    }
    for (const workerId of ids) {
      taken.add(`${datacenterId}-${workerId}`);
      this.#places.set(workerId, { failures: 0 });
    }
    for (const signal of options.signals) process.on(signal, this.#onSignal);
    for (const workerId of ids) this.#fork(workerId);
  }

  get workers() {
    return new Map([...this.#places].flatMap(([id, { worker }]) => (worker ? [[id, worker]] : [])));
  }

  get ended() {
    return this.#ended;
  }

  stop(signal = 'SIGTERM') {
    if (this.#stopping === undefined) {
      this.#stopping = true;
      for (const [workerId, place] of this.#places) {
        clearTimeout(place.timer);
        if (place.worker === undefined) this.#leave(workerId);
        else if (signal !== null) place.worker.process.kill(signal);
      }
      const kill = () => {
        for (const worker of this.workers.values()) worker.process.kill('SIGKILL');
      };
      const timer = setTimeout(kill, this.#options.stopTimeout);
      this.#ended.then(() => clearTimeout(timer));
    }
    return this.#ended;
  }

  #fork(workerId) {
    const { datacenterId, env, state } = this.#options;
    const place = this.#places.get(workerId);
    const worker = cluster.fork({
      ...env,
      ...(state === undefined ? {} : { SNOWDRIFT_STATE: state }),
      datacenterId,
      workerId,
    });
    Object.assign(place, { worker, started: monotonic(), timer: undefined });
    let failure;
    const exited = (code, signal) => {
      if (place.worker === worker) this.#exited(workerId, { code, signal, failure });
    };
    worker.once('exit', exited);
    worker.on('error', (error) => {
      failure = error;
      // A process that could not be started has no exit.
      if (worker.process.pid === undefined) exited(null, null);
    });
    // Later, so that whoever has called forkWorkers() can listen first.
    nextTick(() => this.emit('fork', worker, workerId));
  }

  #exited(workerId, { code, signal, failure }) {
    const place = this.#places.get(workerId);
    const { worker, started } = place;
    place.worker = undefined;
    // One that ends by itself, or that was told to disconnect, has done its work.
    if (this.#stopping || code === 0 || worker.exitedAfterDisconnect) {
      this.emit('exit', worker, workerId);
      this.#leave(workerId);
      return;
    }
    const { stableAfter, firstDelay, longestDelay } = this.#options;
    if (monotonic() - started >= stableAfter) place.failures = 0;
    const delay =
      place.failures === 0 ? 0 : Math.min(firstDelay * 2 ** (place.failures - 1), longestDelay);
    place.failures++;
    place.timer = setTimeout(() => this.#fork(workerId), delay);
    const died = { workerId, pid: worker.process.pid, code, signal, failure, restartInMs: delay };
    if (!this.emit('died', died)) warn(died);
  }

  /** A place that will not be filled again. */
  #leave(workerId) {
    this.#places.delete(workerId);
    taken.delete(`${this.#options.datacenterId}-${workerId}`);
    if (this.#places.size > 0) return;
    for (const signal of this.#options.signals) process.off(signal, this.#onSignal);
    this.#end();
  }

  async #stopFor(signal) {
    if (this.#stopping) return;
    // A terminal has sent its Ctrl-C to the workers, too.
    const isTold = signal === 'SIGINT' && process.stdin.isTTY;
    await this.stop(isTold ? null : signal);
    // Whoever waits for this process should see what ended it; unless the application has its own
    // way to end.
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  }
}

function warn({ workerId, pid, code, signal, failure, restartInMs }) {
  const how = failure?.message ?? signal ?? `code ${code}`;
  const when = restartInMs === 0 ? 'at once' : `in ${restartInMs} ms`;
  process.emitWarning(
    `Worker ${workerId} (process ${pid}) died with ${how}; it is restarted ${when}.`,
    { type: 'SnowFlakeWarning', code: 'SNOWFLAKE_WORKER_DIED' },
  );
}

function readEnvironment(env) {
  let entries;
  try {
    entries = Object.entries(env);
  } catch (cause) {
    throw configError('env must be an object of strings', { cause });
  }
  for (const [name, value] of entries) {
    if (typeof value !== 'string') throw configError(`env.${name} must be a string`);
    if (name === 'datacenterId' || name === 'workerId') {
      throw configError(`env.${name} is set by forkWorkers: use its options`);
    }
  }
  return Object.fromEntries(entries);
}

function readOptions(options) {
  const given = propertiesOf(options, 'options of forkWorkers()', OPTION_KEYS, configError);
  const layout = readLayout(given.layout === undefined ? 'node' : given.layout);
  const number = (name, usual, min, max) =>
    wholeNumber(name, given[name] === undefined ? usual : given[name], min, max);
  const workers = 2 ** layout.workerBits;
  const firstWorkerId = number('firstWorkerId', 0, 0, workers - 1);
  const cores = availableParallelism?.() ?? cpus().length;
  const most = workers - firstWorkerId;
  let signals = given.signals === undefined ? SIGNALS : given.signals;
  if (!Array.isArray(signals)) throw configError('signals must be an array of signal names');
  signals = signals.map((signal) => choice('a signal', signal, SIGNALS));
  return {
    firstWorkerId,
    count: number('count', Math.min(cores, most), 1, most),
    datacenterId: wholeNumber(
      'datacenterId',
      given.datacenterId,
      0,
      2 ** layout.datacenterBits - 1,
    ),
    state:
      given.state === undefined ? undefined : directoryOf('state', given.state, { urlOnly: false }),
    env: readEnvironment(given.env === undefined ? {} : given.env),
    signals: [...new Set(signals)],
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
  return new Workers(readOptions(options));
}

module.exports = { forkWorkers };
