'use strict';
// An application on forkWorkers, for cluster.test.js. Its arguments: how its workers behave, and the
// options of forkWorkers as JSON. Both sides print lines of JSON.

const cluster = require('node:cluster');
const { SnowFlake } = require('..');
const { forkWorkers } = require('../js/cluster.js');

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
  workers.on('died', ({ workerId, code, signal, restartInMs }) =>
    print({ died: workerId, code, signal, restartInMs, running: [...workers.workers.keys()] }),
  );
  workers.on('fork', (worker, workerId) => print({ forked: workerId, pid: worker.process.pid }));
  workers.on('exit', (_, workerId) => print({ ended: workerId }));
  workers.ended.then(() => print('all ended'));
} else {
  WORKERS[behaviour]();
}
