'use strict';
// What mongodb() asks of the driver and of the server, and what it makes of each reply, with the driver itself and a server
// that says what a test wants. stores.test.js has it on a server.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');

const { MongoClient } = require('mongodb');
const mongoose = require('mongoose');

const { connect } = require('../../js/stores/connect.js');
const { mongodb } = require('../../js/stores/mongodb.js');
const { SnowFlake, refuses, rejects, runScript } = require('../support/support.js');
const { speakMongo } = require('../support/lease/mongo-wire.js');

const { signal } = new AbortController();
const [BEFORE, TOKEN] = ['b'.repeat(16), 'a'.repeat(16)];
const record = { token: TOKEN, text: 'snowdrift2' };

const cursor = (...documents) => ({
  ok: 1,
  cursor: { id: 0n, ns: 'app.x', firstBatch: documents },
});
const stored = (more) => cursor({ _id: 'default:namespace', token: BEFORE, text: 'x', ...more });
const done = { ok: 1, n: 1, nModified: 1 };
const nothing = { ok: 1, n: 0, nModified: 0 };
const duplicate = {
  ok: 1,
  n: 0,
  writeErrors: [{ index: 0, code: 11000, errmsg: 'E11000 duplicate key' }],
};

/** Runs `use` with a store of a client on a server with these replies, by command. */
async function withStore(replies, use, { options = '', settings, ...own } = {}) {
  const server = await speakMongo((command) => {
    const [name] = Object.keys(command);
    const reply = replies[name];
    return typeof reply === 'function' ? reply(command) : reply;
  });
  const client = new MongoClient(`${server.url}?${options}`, settings);
  try {
    return await use(mongodb(client, own), server);
  } finally {
    await client.close(true);
    server.close();
  }
}

test('whatever the client’s defaults are: the primary, linearizable reads, and writes on the disks of a majority', async () => {
  const defaults = {
    options: 'w=0&readPreference=secondaryPreferred&readConcernLevel=local&journal=false',
    settings: { raw: true, promoteValues: false },
  };
  await withStore(
    { hello: { ok: 1, localTime: new Date(1234) }, find: stored(), insert: done, update: done },
    async (store, { commands }) => {
      assert.equal(store.name, 'mongodb:app/default');
      assert.equal(await store.now({ signal }), 1234);
      const read = await store.read('namespace', { signal });
      assert.deepEqual(read, { record: { token: BEFORE, text: 'x' } });
      for (const before of [undefined, BEFORE]) {
        const reply = await store.write('namespace', record, before, { signal });
        assert.deepEqual(reply, { isWritten: true });
      }
      const [, find, insert, update] = commands;
      const id = 'default:namespace';
      assert.deepEqual(find.filter, { _id: id });
      assert.deepEqual(find.readConcern, { level: 'linearizable' });
      assert.deepEqual(insert.documents, [{ _id: id, ...record }]);
      const [{ q, u }] = update.updates;
      assert.deepEqual([q, u], [{ _id: id, token: BEFORE }, { $set: record }]);
      for (const { writeConcern } of [insert, update]) {
        assert.deepEqual(writeConcern, { w: 'majority', wtimeout: 30_000, j: true });
      }
      for (const command of commands) {
        assert.equal(command.$readPreference, undefined, 'the primary');
        assert.equal(command.startTransaction, undefined);
      }
    },
    defaults,
  );
});

test('a write that too few members have on disk is not written', async () => {
  const writeConcernError = { code: 64, errmsg: 'waiting for replication timed out' };
  const late = { ...done, writeConcernError };
  await withStore({ insert: late, update: late }, async (store) => {
    for (const before of [undefined, BEFORE]) {
      const writing = store.write('namespace', record, before, { signal });
      await assert.rejects(writing, /waiting for replication timed out/);
    }
  });
});

test('a write that another has anticipated returns what it found; one that was sent twice is written', async () => {
  const found = { token: 'c'.repeat(16), text: 'x' };
  for (const [there, expected] of [
    [stored(found), { isWritten: false, found }],
    [stored(record), { isWritten: true, now: undefined }],
    [cursor(), { isWritten: false, found: undefined }],
  ]) {
    await withStore({ insert: duplicate, update: nothing, find: there }, async (store) => {
      for (const before of [undefined, BEFORE]) {
        const reply = await store.write('namespace', record, before, { signal });
        assert.deepEqual(reply, expected);
      }
    });
  }
});

test('a document of another format is an error that names its key', async () => {
  for (const more of [
    { token: 5 },
    { text: null },
    { token: 'nonsense' },
    { token: { $gt: '' } },
  ]) {
    await withStore({ find: stored(more) }, (store) =>
      rejects(store.read('namespace', { signal }), 'ERR_SNOWFLAKE_STORE', /'namespace' holds/),
    );
  }
});

test('replies that no server sends fail the call', async () => {
  const header = Buffer.alloc(16);
  header.writeInt32LE(header.length);
  const bytes = [header, Buffer.alloc(64, 0xff)];
  const documents = [{ ok: 1 }, {}, { ok: 1, n: 2 }, { ok: 1, n: 'one' }, { ok: 0 }];
  const odd = { ok: 1, cursor: { id: 0n, ns: 'a', firstBatch: [7, null] } };
  for (const reply of [...bytes, ...documents, odd]) {
    const replies = { hello: reply, find: reply, update: reply };
    await withStore(
      replies,
      async (store) => {
        const limit = AbortSignal.timeout(60_000);
        const calls = [store.now({ signal: limit })];
        if (!documents.includes(reply)) calls.push(store.read('namespace', { signal: limit }));
        if (reply !== odd) calls.push(store.write('0/0', record, BEFORE, { signal: limit }));
        for (const { status } of await Promise.allSettled(calls)) {
          assert.equal(status, 'rejected', inspect(reply));
          assert.ok(!limit.aborted, 'in time');
        }
      },
      { options: 'serverSelectionTimeoutMS=300&retryWrites=false&retryReads=false' },
    );
  }
});

test('a server that never answers: a signal ends each call', async () => {
  await withStore({}, async (store) => {
    const abort = new AbortController();
    const options = { signal: abort.signal };
    const calls = [
      store.now(options),
      store.read('namespace', options),
      store.write('namespace', record, undefined, options),
      store.write('namespace', record, BEFORE, options),
      store.namespaces(options),
    ].map((call) => assert.rejects(call, /enough/));
    abort.abort(new Error('enough'));
    await Promise.all(calls);
  });
});

test('a server outside of a replica set is refused, and the error says how to make it one', async () => {
  const errmsg = 'node needs to be a replica set member to use read concern';
  await withStore(
    { hello: { ok: 1, localTime: new Date() }, find: { ok: 0, code: 123, errmsg } },
    async (store) => {
      const leasing = SnowFlake.lease(store, { datacenterId: 1, callTimeout: 60_000 });
      const { message } = await rejects(leasing, 'ERR_SNOWFLAKE_STORE');
      assert.match(message, /has no linearizable reads.*--replSet and run rs\.initiate\(\) once/);
    },
  );
});

test('the client of mongoose, and databases by name', async () => {
  await withStore({}, async (_, { url }) => {
    const connection = mongoose.createConnection(`${url}?serverSelectionTimeoutMS=300`);
    assert.equal(mongodb(connection.getClient()).name, 'mongodb:app/default');
    for (const given of [connection, mongoose]) {
      const { message } = refuses(() => mongodb(given), 'ERR_SNOWFLAKE_CONFIG');
      assert.match(message, /mongoose\.connection\.getClient\(\)/);
    }
    await connection.close();
  });
  const client = new MongoClient('mongodb://127.0.0.1:1/app');
  const options = { namespace: 'orders', database: 'ids' };
  assert.equal(mongodb(client, options).name, 'mongodb:ids/orders');
  assert.equal(mongodb(client.db('other')).name, 'mongodb:other/default');
  for (const [given, own, text] of [
    [client.db('other'), options, /needs a MongoClient/],
    [client, { database: 'a/b' }, /name of a database of MongoDB; it is 'a\/b'/],
    [client, { database: 7 }, /name of a database/],
    [client, { database: '' }, /name of a database of MongoDB; it is ''/],
    ['mongodb://127.0.0.1', undefined, /takes a MongoClient or a Db/],
    [{ collection() {}, command: 1 }, undefined, /takes a MongoClient or a Db/],
    [undefined, undefined, /takes a MongoClient or a Db/],
  ]) {
    assert.match(refuses(() => mongodb(given, own), 'ERR_SNOWFLAKE_CONFIG').message, text);
  }
});

test('a URL: all its servers are asked, and its connections end soon after the last call', async () => {
  const server = await speakMongo(({ hello }) =>
    hello ? { ok: 1, localTime: new Date(1234) } : cursor(),
  );
  const { port } = server;
  try {
    const script = `
      const { connect } = require(${JSON.stringify(require.resolve('../../js/stores/connect.js'))});
      const { signal } = new AbortController();
      connect(new URL('mongodb://127.0.0.1:${port}/app?host=127.0.0.1:${port}&w=0&readPreference=secondary'))
        .then((store) => store.now({ signal }).then((now) => console.log(store.name, store.server, now)));`;
    const { stdout, stderr, code } = await runScript(script);
    const name = `MongoDB at 127.0.0.1:${port},127.0.0.1:${port}`;
    assert.deepEqual([stdout, code], [`mongodb:app/default ${name} 1234\n`, 0], stderr);
  } finally {
    server.close();
  }
});

test('a URL with a file that cannot be read names the file', async () => {
  const url = new URL('mongodb://127.0.0.1:1/app?tls=true&tlsCAFile=/nowhere/ca.pem');
  const { message } = await rejects(connect(url), 'ERR_SNOWFLAKE_CONFIG');
  assert.match(message, /the file of the option tlsCAFile of MongoDB/);
});
