// The load of large fleets of leased processes on their store, in simulated time: the real js/lease on a model
// of the addon, with a store that counts its calls. Prints the calls of the start and of the minute after it.
//
//   node __test__/load/hosts.mjs [--hosts 1000] [--processes 16] [--ttl 30000] [--scope process]

import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

const require = createRequire(import.meta.url);
const { HostMemory, Life } = require('../support/lease/addon-model.js');
const { here, newStoreLease, runFleet } = require('../support/lease/in-virtual-time.js');
const { VirtualTime } = require('../support/lease/virtual-time.js');
const { layouts } = require('../../js/index.js');

/** The time in which all processes start, and the time measured after it, ms. */
const STARTING = 60_000;
const MEASURED = 60_000;
/** Latency of a message to or from the store, ms. */
const TRAVEL = 1;

const { values } = parseArgs({
  options: {
    hosts: { type: 'string', default: '1000' },
    processes: { type: 'string', default: '16' },
    ttl: { type: 'string', default: '30000' },
    scope: { type: 'string', default: 'auto' },
  },
});
const [hosts, processes, ttl] = [values.hosts, values.processes, values.ttl].map(Number);

/** A store that never fails, and counts. */
class CountingStore {
  name = 'counting:';
  calls = {};
  slots = new Map();
  #record;

  constructor(time, life) {
    for (const name of ['now', 'open', 'acquire', 'renew', 'release']) {
      this[name] = async (request) => {
        await travel(life());
        this.calls[name] = (this.calls[name] ?? 0) + 1;
        const answer = this[`_${name}`](request, time.now);
        await travel(life());
        return answer;
      };
    }
  }

  async raise() {
    throw new Error('nothing is lost here');
  }

  _now(_, now) {
    return now;
  }

  _open({ signal: _, ...record }) {
    this.#record ??= { ...record, floor: -1 };
    return this.#record;
  }

  _acquire({ owner, ttl }, now) {
    const workerId = this.slots.size;
    this.slots.set(workerId, owner);
    return { workerId, floor: -1, expires: now + ttl, now };
  }

  _renew({ owner, workerId, ttl }, now) {
    if (this.slots.get(workerId) !== owner) throw new Error('two owners of one slot');
    return { isHeld: true, expires: now + ttl, now };
  }

  _release() {}
}

const time = new VirtualTime(1_000_000);
const fleet = {
  scope: values.scope === 'process' ? 'process' : 'host',
  count() {},
  get now() {
    return time.now;
  },
  after: (ms, run, life) => time.schedule({ run, life, unref() {}, ref() {} }, ms),
};
runFleet(fleet);
const store = new CountingStore(time, () => here.getStore());

function travel(life) {
  return new Promise((resolve) => fleet.after(TRAVEL, resolve, life));
}

const settings = {
  // Enough worker IDs for one slot per process.
  layout: {
    ...layouts.node,
    datacenterBits: 0,
    workerBits: 20,
    clockBackBits: 1,
    sequenceBits: 1,
    epoch: 0,
  },
  datacenterId: 0,
  maxAhead: 0,
  scope: values.scope,
  leasing: {
    ...{ ttl, wait: 0, callTimeout: 5000, maxClockSkew: 10_000 },
    ...{ host: 'simulated', started: 0, inThread: false },
  },
};

const leases = [];
let failure;
for (let n = 0; n < hosts; n++) {
  const host = Object.assign(new HostMemory(), { name: n, skew: 0 });
  for (let process = 0; process < processes; process++) {
    const life = new Life(fleet, host, n * processes + process + 1);
    const open = () =>
      newStoreLease()
        .take(store, settings)
        .then(
          (lease) => leases.push(lease),
          (error) => {
            failure = error;
          },
        );
    // All processes of a host start at about the same time, as a cluster's do.
    fleet.after((STARTING * n) / hosts + 20 * process, open, life);
  }
}

/** Runs the simulation up to a time. Returns the calls to the store. */
async function until(end) {
  const before = { ...store.calls };
  while (time.peek < end) {
    const { run, life, isCleared } = time.next();
    if (isCleared) continue;
    here.run(life, run);
    await new Promise((resolve) => setImmediate(resolve));
    if (failure) throw failure;
  }
  return Object.entries(store.calls).map(([name, calls]) => [name, calls - (before[name] ?? 0)]);
}

const show = (calls, ms) =>
  calls
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${name} ${(count / (ms / 1000)).toFixed(1)}`)
    .join(', ');

const start = time.now;
const starting = await until(start + STARTING + ttl);
const measured = await until(start + STARTING + ttl + MEASURED);
const total = measured.reduce((sum, [, count]) => sum + count, 0);
console.log(`${hosts} hosts of ${processes} processes, ttl ${ttl} ms, scope '${values.scope}'`);
console.log(`processes with a lease: ${leases.length}; slots in use: ${store.slots.size}`);
console.log(`calls a second while they start: ${show(starting, STARTING + ttl)}`);
console.log(
  `calls a second after that: ${show(measured, MEASURED)}; ${(total / (MEASURED / 1000)).toFixed(1)} in all`,
);
process.exit();
