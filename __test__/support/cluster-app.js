'use strict';
// An application on forkWorkers, for app/cluster.test.js. Its arguments: how its workers behave, and the
// options of forkWorkers as JSON. Both sides print lines of JSON.

const cluster = require('node:cluster');
const { SnowFlake } = require('../..');
const { forkWorkers } = require('../../js/cluster.js');

const [behaviour, options] = process.argv.slice(2);
const print = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);

const WORKERS = {
  /** Draws one ID and stays until it is told to stop. */
  serve() {
    const { datacenterId, workerId } = SnowFlake.parse(SnowFlake.nextId());
    const { id } = cluster.worker;
    const { state, note } = { state: SnowFlake.default.lease?.state, note: process.env.NOTE };
    process.on('SIGTERM', () => {
      print({ stops: workerId });
      process.disconnect();
    });
    print({ serves: workerId, datacenterId, id, state, note });
  },
  /** Tells what of its environment is about the node, and ends. */
  environment() {
    const { datacenterId, workerId = null, SNOWDRIFT_STATE: state = null } = process.env;
    const { SNOWDRIFT_LEASE: lease, NOTE: note } = process.env;
    print({ environment: { datacenterId, workerId, state, lease, note }, argv: process.argv });
    process.disconnect();
  },
  /** Draws from a lease until the test ends it. */
  async lease() {
    const flake = await SnowFlake.ready();
    print({ leases: flake.workerId, id: SnowFlake.nextIdString() });
  },
  crash() {
    process.exit(3);
  },
  finish() {
    print({ finished: Number(process.env.workerId) });
    process.disconnect();
  },
  stubborn() {
    process.on('SIGTERM', () => print({ ignored: Number(process.env.workerId) }));
    setInterval(() => {}, 1000);
    print({ serves: Number(process.env.workerId) });
  },
};

if (cluster.isPrimary) {
  const workers = forkWorkers(JSON.parse(options));
  workers.on('died', ({ workerId = null, index, code, signal, restartInMs }) => {
    const running = [...workers.workers.keys()];
    print({ died: workerId, index, code, signal, restartInMs, running });
  });
  workers.on('fork', (worker, workerId) => print({ forked: workerId, pid: worker.process.pid }));
  workers.on('exit', (_, workerId) => print({ ended: workerId }));
  workers.ended.then(() => print('all ended'));
} else {
  WORKERS[behaviour]();
}
