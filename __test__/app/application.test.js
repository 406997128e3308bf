'use strict';
// The application of docs/nestjs.md, unchanged: node:cluster, NestJS, TypeORM, PostgreSQL, HTTP, and
// one lease for all its workers.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { readFileSync } = require('node:fs');
const http = require('node:http');
const { after, before, describe, test } = require('node:test');

const { Client } = require('pg');

const { storm } = require('../support/amount.js');
const { countDuplicates, layouts, SnowFlake } = require('../support/support.js');
const { Server, freePort, missing } = require('../support/lease/servers.js');
const { blocksOf, within, writeProgram } = require('../support/page.js');

const WORKERS = 4;
/** How long an application may live, ms. */
const PATIENCE = 600_000;
const block = blocksOf('docs/nestjs.md').find(({ code }) => code.includes('cluster.fork('));

/** Of /proc, which is Linux's. */
const skip = storm ?? (process.platform === 'linux' ? missing('postgres') : 'it reads /proc');

describe('an application with cluster, NestJS, TypeORM and a lease', { skip }, () => {
  let server;
  let client;
  let directory;
  let removeDirectory;
  let application;
  /** Of all orders that were confirmed to a caller. */
  const ids = [];
  /** The workerIds that were ever leased. */
  const slots = new Set();

  before(async () => {
    server = await Server.start('postgres');
    client = new Client({ connectionString: server.url });
    await client.connect();
    const isWritten = new Promise((resolve) => {
      within(async (cwd) => {
        directory = { cwd, program: await writeProgram(block, cwd, {}) };
        await new Promise((done) => {
          removeDirectory = done;
          resolve();
        });
      });
    });
    await isWritten;
  });

  after(async () => {
    application?.primary.kill('SIGKILL');
    removeDirectory();
    await client.end();
    await server.stop();
  });

  /** Starts the primary; resolves when all workers listen. */
  async function start() {
    const port = String(await freePort());
    const { cwd, program } = directory;
    const env = { ...process.env, DATABASE_URL: server.url, PORT: port };
    const primary = spawn(process.execPath, [program], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    application = { primary, port, listening: 0, ended: once(primary, 'exit') };
    application.ended.then(() => clearTimeout(timer));
    // A worker takes long to load where other tests take both processors.
    const timer = setTimeout(() => primary.kill('SIGKILL'), PATIENCE);
    primary.stdout.setEncoding('utf8').on('data', (text) => {
      application.listening += text.split('listening').length - 1;
    });
    await listening(WORKERS);
  }

  /** Until so many workers have listened. */
  async function listening(count) {
    const { primary, ended } = application;
    while (application.listening < count) {
      const how = await Promise.race([once(primary.stdout, 'data'), ended]);
      assert.equal(primary.signalCode ?? primary.exitCode, null, `it ended: ${how}`);
    }
  }

  /** Sends requests at one time, and checks that each has inserted a row. */
  async function order(count) {
    const answers = await Promise.all(Array.from({ length: count }, (_, n) => post(`/item-${n}`)));
    for (const [n, { status, body }] of answers.entries()) {
      assert.equal(status, 201, body);
      const { id, item } = JSON.parse(body);
      assert.equal(item, `item-${n}`);
      ids.push(id);
    }
  }

  async function post(path) {
    const signal = AbortSignal.timeout(PATIENCE);
    const options = { port: application.port, path, method: 'POST', agent: false, signal };
    const request = http.request(options).end();
    const [response] = await once(request, 'response');
    let body = '';
    for await (const text of response.setEncoding('utf8')) body += text;
    return { status: response.statusCode, body };
  }

  function pidsOfWorkers() {
    const { pid } = application.primary;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return children.trim().split(' ').map(Number);
  }

  async function heldSlots() {
    const { rows } = await client.query(
      "SELECT name, convert_from(text, 'UTF8') AS text FROM snowdrift_records",
    );
    const words = rows.map(({ name, text }) => ({ name, words: text.split(' ') }));
    const held = words.filter(({ words: [, kind] }) => kind === 'held');
    for (const { name } of held) slots.add(Number(name.split('/').at(-1)));
    return held.map(({ words: [, , , owner] }) => ({ owner }));
  }

  /** The table has what callers were told, each row once, with IDs of leased slots. */
  async function checkRows() {
    const { rows } = await client.query('SELECT id FROM "order"');
    assert.equal(countDuplicates(ids), 0);
    assert.deepEqual(rows.map(({ id }) => id).sort(), [...ids].sort());
    for (const id of ids) {
      const { datacenterId, workerId } = SnowFlake.parse(id, layouts.node);
      assert.equal(datacenterId, 1);
      assert.ok(slots.has(workerId), `workerId ${workerId}`);
    }
  }

  test('all workers insert rows, each with an ID of its own, by one slot', async () => {
    await start();
    assert.equal(pidsOfWorkers().length, WORKERS);
    for (let n = 0; n < 10; n++) await order(40);
    assert.equal((await heldSlots()).length, 1, 'one slot for the host');
    await checkRows();
  });

  test('no argument of a process shows the URL', () => {
    for (const pid of [application.primary.pid, ...pidsOfWorkers()]) {
      assert.doesNotMatch(readFileSync(`/proc/${pid}/cmdline`, 'utf8'), /postgres:/);
    }
  });

  test('a worker that is killed is replaced by one that joins the slot', async () => {
    const [slot] = await heldSlots();
    process.kill(pidsOfWorkers()[0], 'SIGKILL');
    await listening(WORKERS + 1);
    await order(40);
    const [now, ...others] = await heldSlots();
    assert.deepEqual([now.owner, others], [slot.owner, []]);
  });

  test('the workers of a primary that was killed and started again join the slot', async () => {
    const [slot] = await heldSlots();
    application.primary.kill('SIGKILL');
    await application.ended;
    await start();
    await order(40);
    const [now, ...others] = await heldSlots();
    assert.deepEqual([now.owner, others], [slot.owner, []]);
  });

  test('SIGTERM to the primary ends all, and releases the slot', async () => {
    const workers = pidsOfWorkers();
    application.primary.kill('SIGTERM');
    assert.deepEqual(await application.ended, [0, null]);
    for (const pid of workers) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
    assert.deepEqual(await heldSlots(), []);
  });

  test('after a restart, IDs continue above all that were issued', async () => {
    const highest = ids.map(BigInt).reduce((a, b) => (a > b ? a : b));
    const before = ids.length;
    await start();
    await order(40);
    assert.ok(ids.slice(before).every((id) => BigInt(id) > highest));
    assert.equal((await heldSlots()).length, 1);
    await checkRows();
    application.primary.kill('SIGTERM');
    await application.ended;
    assert.deepEqual(await heldSlots(), []);
  });
});
