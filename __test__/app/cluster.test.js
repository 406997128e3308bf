'use strict';
// snowdrift/cluster: workers that keep their IDs, as an application would have them.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const cluster = require('node:cluster');
const { once } = require('node:events');
const { mkdtempSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const readline = require('node:readline');
const { afterEach, test } = require('node:test');
const { pathToFileURL } = require('node:url');
const { inspect } = require('node:util');

const { removeDirectory } = require('../support/own-directory.js');
const { gate, isQuick, isStorms } = require('../support/amount.js');
const { countDuplicates, refuses, runScript } = require('../support/support.js');
const { limitWait } = require('../support/limit-wait.js');
const { forkWorkers } = require('../../js/cluster.js');
const { memory } = require('../../js/stores/memory.js');

const LEASE = 'postgres://app:geheim@db/x';
/** None that a worker could open. */
const BAD_LEASES = [
  null,
  '',
  5,
  true,
  Symbol('s'),
  () => 'postgres://db',
  ['postgres://db'],
  { toString: () => LEASE },
  Object.create(URL.prototype),
  {},
  new Proxy({}, { get: () => assert.fail('it was read') }),
  'db',
  'file:relative%00',
  'file://other-host/ids',
  'gopher://app:geheim@db',
  'postgres://app:ge#heim@db:5432/x',
  'postgres://app:geheim/x',
  new URL('https://app:geheim@db/geheim'),
  class extends URL {},
];

/** No worker here lives so long, however slowly it starts: a death is then a failure. */
const stableAfter = 3_600_000;

const APP = join(__dirname, '../support/cluster-app.js');
const apps = [];

afterEach(async () => {
  for (const app of apps.splice(0)) await app.kill();
});

/** An application that runs, and all that it has printed. */
class App {
  #said = [];
  #waiting = () => {};
  #hasEnded = false;

  constructor(behaviour, options) {
    this.process = spawn(process.execPath, [APP, behaviour, JSON.stringify(options)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.ended = once(this.process, 'close');
    const lines = readline.createInterface({ input: this.process.stdout });
    lines.on('line', (line) => {
      this.#said.push(JSON.parse(line));
      this.#waiting();
    });
    lines.on('close', () => {
      this.#hasEnded = true;
      this.#waiting();
    });
    apps.push(this);
  }

  /** What it said that has a property, in order. */
  all(key) {
    return this.#said.filter((what) => Object.hasOwn(what, key));
  }

  /** Until it has said so many of these; an error if it has ended or is silent for long. */
  async said(key, count) {
    const fail = (how) => assert.fail(`it ${how}: ${count} '${key}' of ${inspect(this.#said)}`);
    while (this.all(key).length < count) {
      if (this.#hasEnded) fail('ended');
      const line = new Promise((resolve) => {
        this.#waiting = resolve;
      });
      await limitWait(line, () => `${count} '${key}' of ${inspect(this.#said)}`);
    }
    return this.all(key);
  }

  async kill() {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      this.process.kill('SIGTERM');
    }
    await this.ended;
  }
}

test('workers have the IDs 0 to count - 1, the datacenter, and the environment that was given', async () => {
  const app = new App('serve', { count: 3, datacenterId: 5, env: { NOTE: 'hello' } });
  const serving = await app.said('serves', 3);
  assert.deepEqual(serving.map(({ serves }) => serves).sort(), [0, 1, 2]);
  assert.ok(serving.every(({ datacenterId, note }) => datacenterId === 5 && note === 'hello'));
});

test('one that is killed is restarted under its ID, again and again', async () => {
  const app = new App('serve', { count: 2, datacenterId: 1, stableAfter: 0 });
  const deaths = isStorms ? 34 : isQuick ? 2 : 6;
  for (let n = 0; n < deaths; n++) {
    const serving = await app.said('serves', 2 + n);
    assert.ok(serving.every(({ serves }) => serves === 0 || serves === 1));
    const { pid } = app.all('forked').findLast(({ forked }) => forked === 1);
    process.kill(pid, 'SIGKILL');
  }
  const died = await app.said('died', deaths);
  assert.ok(died.every(({ died: id, signal }) => id === 1 && signal === 'SIGKILL'));
  assert.deepEqual(died[0].running, [0]);
  const last = (await app.said('serves', 2 + deaths)).at(-1);
  assert.equal(last.serves, 1);
  assert.ok(last.id > deaths, `cluster.worker.id is ${last.id} by now`);
});

test('a crash loop is restarted at once, then after pauses that double up to the longest', {
  skip: gate,
}, async () => {
  const options = { count: 1, datacenterId: 1, stableAfter, firstDelay: 10, longestDelay: 60 };
  const app = new App('crash', options);
  const died = await app.said('died', 6);
  assert.deepEqual(
    died.slice(0, 6).map(({ restartInMs }) => restartInMs),
    [0, 10, 20, 40, 60, 60],
  );
  assert.ok(died.every(({ code }) => code === 3));
});

test('a signal is passed on; the workers stop, then the primary ends by it', {
  skip: gate,
}, async () => {
  const app = new App('serve', { count: 2, datacenterId: 1, stopTimeout: 300_000 });
  await app.said('serves', 2);
  app.process.kill('SIGTERM');
  const [code, signal] = await app.ended;
  assert.deepEqual([code, signal], [null, 'SIGTERM']);
  assert.deepEqual(
    app
      .all('stops')
      .map(({ stops }) => stops)
      .sort(),
    [0, 1],
  );
  assert.equal(app.all('ended').length, 2);
  assert.equal(app.all('died').length, 0);
});

test('a signal while a worker waits for its restart ends that, too', { skip: gate }, async () => {
  const app = new App('crash', {
    count: 1,
    datacenterId: 1,
    stableAfter,
    firstDelay: 60_000,
    longestDelay: 60_000,
  });
  await app.said('died', 2);
  app.process.kill('SIGINT');
  assert.deepEqual(await app.ended, [null, 'SIGINT']);
});

test('one that does not stop is killed after stopTimeout', { skip: gate }, async () => {
  // A worker that is held up for so long is killed before it has seen the signal.
  let ignored = 0;
  for (let stopTimeout = 200; ignored === 0; stopTimeout *= 3) {
    assert.ok(stopTimeout < 60_000, 'it sees no signal before it is killed');
    const app = new App('stubborn', { count: 1, datacenterId: 1, stopTimeout });
    await app.said('serves', 1);
    app.process.kill('SIGTERM');
    assert.deepEqual(await app.ended, [null, 'SIGTERM']);
    ignored = app.all('ignored').length;
    assert.ok(ignored <= 1);
  }
});

test('one that ends by itself is not restarted, and when all have, the primary ends', {
  skip: gate,
}, async () => {
  const app = new App('finish', { count: 3, datacenterId: 1 });
  assert.deepEqual(await app.ended, [0, null]);
  assert.equal(countDuplicates((await app.said('finished', 3)).map(({ finished }) => finished)), 0);
  assert.equal(app.all('forked').length, 3);
});

test('with state, each has its slot recorded, and a restarted one has it again', {
  skip: gate,
}, async () => {
  const state = mkdtempSync(join(tmpdir(), 'snowdrift-cluster-'));
  try {
    const app = new App('serve', { count: 2, datacenterId: 1, state });
    const serving = await app.said('serves', 2);
    assert.ok(serving.every((one) => one.state === 'held'));
    process.kill(app.all('forked')[0].pid, 'SIGKILL');
    assert.equal((await app.said('serves', 3))[2].state, 'held');
    await app.kill();
  } finally {
    removeDirectory(state);
  }
});

test('with lease, workers have the URL and the datacenter, and nothing that names a worker ID', {
  skip: gate,
}, async () => {
  const given = 'postgres://app:geheim@db:5432/x?namespace=orders';
  process.env.workerId = '3';
  process.env.SNOWDRIFT_STATE = '/var/lib/app/ids';
  try {
    // More than there are worker IDs.
    const options = { count: 34, datacenterId: 5, lease: given, env: { NOTE: 'hello' } };
    const app = new App('environment', options);
    assert.deepEqual(await app.ended, [0, null]);
    const told = app.all('environment');
    assert.equal(told.length, 34);
    for (const { environment, argv } of told) {
      const node = { datacenterId: '5', workerId: null, state: null };
      assert.deepEqual(environment, { ...node, lease: given, note: 'hello' });
      assert.doesNotMatch(argv.slice(2, 3).join(), /geheim/);
    }
    const indexes = app.all('forked').map(({ forked }) => forked);
    assert.deepEqual(
      indexes,
      Array.from({ length: 34 }, (_, n) => n),
    );
    assert.equal(app.all('ended').length, 34);
  } finally {
    delete process.env.workerId;
    delete process.env.SNOWDRIFT_STATE;
  }
});

test('with lease, a worker that dies is restarted under its index', { skip: gate }, async () => {
  const lease = new URL('file:///var/lib/app/ids');
  const app = new App('crash', { count: 1, datacenterId: 1, lease, longestDelay: 100 });
  const died = await app.said('died', 3);
  assert.ok(died.every(({ index, died: workerId }) => index === 0 && workerId === null));
  assert.ok(app.all('forked').every(({ forked }) => forked === 0));
});

test('without lease, the event of a death has both the index and the workerId', {
  skip: gate,
}, async () => {
  const app = new App('crash', { count: 1, datacenterId: 1, firstWorkerId: 7 });
  const [{ index, died }] = await app.said('died', 1);
  assert.deepEqual([index, died], [0, 7]);
});

test('with the lease of a directory, workers draw', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'snowdrift-cluster-'));
  try {
    const lease = pathToFileURL(directory).href;
    const app = new App('lease', { count: 3, datacenterId: 1, lease });
    const drawn = await app.said('leases', 3);
    assert.equal(countDuplicates(drawn.map(({ id }) => id)), 0);
    await app.kill();
  } finally {
    removeDirectory(directory);
  }
});

test('two groups of one primary may lease', { skip: gate }, async () => {
  cluster.setupPrimary({ exec: APP, args: ['environment'], silent: true });
  const options = { count: 1, datacenterId: 1, lease: 'file:///var/lib/app/ids' };
  const groups = [forkWorkers(options), forkWorkers(options)];
  assert.deepEqual([...groups[0].workers.keys()], [0]);
  await Promise.all(groups.map(({ ended }) => ended));
});

test('the IDs of two groups of one primary must not overlap', async () => {
  cluster.setupPrimary({ exec: APP, args: ['finish'], silent: true });
  const first = forkWorkers({ count: 2, datacenterId: 1 });
  const { message } = refuses(
    () => forkWorkers({ count: 1, datacenterId: 1, firstWorkerId: 1 }),
    'ERR_SNOWFLAKE_CONFLICT',
  );
  assert.match(message, /datacenterId 1 and workerId 1: .*firstWorkerId/);
  const second = forkWorkers({ count: 1, datacenterId: 1, firstWorkerId: 2 });
  await Promise.all([first.ended, second.ended]);
  await forkWorkers({ count: 1, datacenterId: 1 }).ended;
});

test('bad options are refused before anything is forked', () => {
  for (const [options, what] of [
    [undefined, /options of forkWorkers\(\) must be an object/],
    [{ count: 2 }, /datacenterId must be a whole number from 0 to 7; it is undefined/],
    [{ count: 33, datacenterId: 1 }, /count must be a whole number from 1 to 32/],
    [{ count: 0, datacenterId: 1 }, /count must be/],
    [{ count: '2', datacenterId: 1 }, /count must be/],
    [{ count: 31, firstWorkerId: 2, datacenterId: 1 }, /count must be a whole number from 1 to 30/],
    [{ count: 2, datacenterId: 8 }, /datacenterId must be/],
    [
      { count: 2, datacenterId: 1, layout: 'uid' },
      /datacenterId must be 0, since the layout has no bits for it; it is 1/,
    ],
    [{ count: 2, datacenterId: 1, env: { A: 1 } }, /env\.A must be a string; it is a number/],
    [{ count: 2, datacenterId: 1, env: null }, /env must be an object/],
    [{ count: 2, datacenterId: 1, env: { workerId: '1' } }, /forkWorkers\(\) sets env\.workerId/],
    [{ count: 2, datacenterId: 1, signals: ['SIGKILL'] }, /a signal must be one of 'SIGINT'/],
    [{ count: 2, datacenterId: 1, signals: 'SIGINT' }, /signals must be an array.*'SIGINT'/],
    [{ count: 2, datacenterId: 1, state: 5 }, /state must be the path/],
    ...BAD_LEASES.map((lease) => [{ datacenterId: 1, lease }, /lease/]),
    [{ datacenterId: 1, lease: '/var/lib/app/ids' }, /lease must be the URL of a store.*'\/var/],
    [{ datacenterId: 1, lease: memory() }, /lease must be the URL of a store, which each worker/],
    [{ datacenterId: 1, lease: 'gopher://db' }, /must be a URL of file:, .*'gopher:\/\/db'/],
    [{ datacenterId: 1, lease: LEASE, state: '/ids' }, /leave out lease or state/],
    [
      { datacenterId: 1, lease: 'file:///ids', firstWorkerId: 0 },
      /leave out lease or firstWorkerId/,
    ],
    [{ datacenterId: 1, lease: LEASE, firstWorkerId: 32 }, /firstWorkerId must be/],
    [{ lease: LEASE }, /datacenterId must be/],
    [{ count: 1001, datacenterId: 1, lease: LEASE }, /count must be a whole number from 1 to 1000/],
    [
      { datacenterId: 1, lease: LEASE, env: { SNOWDRIFT_LEASE: LEASE } },
      /forkWorkers\(\) sets env\.SNOWDRIFT_LEASE/,
    ],
    [
      { datacenterId: 1, lease: LEASE, env: { SNOWDRIFT_STATE: '/ids' } },
      /forkWorkers\(\) sets env\.SNOWDRIFT_STATE/,
    ],
    [{ count: 2, datacenterId: 1, workers: 5 }, /has no 'workers'/],
  ]) {
    const error = refuses(() => forkWorkers(options), 'ERR_SNOWFLAKE_CONFIG');
    assert.match(error.message, what);
    assert.doesNotMatch(inspect(error), /geheim/);
  }
  assert.deepEqual(Object.keys(cluster.workers ?? {}), []);
});

test('an environment that no process can have is refused, and leaves nothing behind', () => {
  for (const env of [{ NOTE: 'geheim\0' }, { NOTE: 'geheim'.repeat(100_000) }]) {
    const options = { count: 2, datacenterId: 5, env };
    for (let n = 0; n < 2; n++) {
      const { message } = refuses(() => forkWorkers(options), 'ERR_SNOWFLAKE_CONFIG');
      assert.match(message, /^cannot fork a worker \(\w+\): check that no variable of env/);
      assert.doesNotMatch(message, /geheim/);
    }
    assert.equal(process.listenerCount('SIGTERM'), 0);
  }
});

test('in a worker it is refused', async () => {
  const script = `
    const { forkWorkers } = require(${JSON.stringify(join(__dirname, '../..', 'js', 'cluster.js'))});
    try { forkWorkers({ count: 1, datacenterId: 1 }); } catch ({ code, message }) { console.log(code, message); }
    process.exit();`;
  // What makes a process a worker.
  const { stdout } = await runScript(script, { env: { NODE_UNIQUE_ID: '1' } });
  assert.match(stdout, /^ERR_SNOWFLAKE_CONFIG forkWorkers\(\) is for the primary/);
});
