'use strict';
// The rights that docs/store-security.md and `snowdrift namespace tables` grant are enough for all calls of a store; with one less, an
// error says so. The blocks of the page run as they are there.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { createHash, randomBytes } = require('node:crypto');
const { once } = require('node:events');
const { after, before, describe, test } = require('node:test');

const { connect } = require('../../js/stores/connect.js');
const { redis } = require('../../js/stores/redis.js');
const { gate, storm } = require('../support/amount.js');
const { json } = require('../support/cli.js');
const { requireLogin } = require('../support/lease/etcd-users.js');
const { LIMITED, withLogin } = require('../support/lease/limited-users.js');
const { createNamespace } = require('../support/lease/namespaces.js');
const { Server, missing } = require('../support/lease/servers.js');
const { blocksOf } = require('../support/page.js');
const { SnowFlake } = require('../support/support.js');

const BLOCKS = blocksOf('docs/store-security.md').map(({ code }) => code);

/** The block of the page with a text. */
function blockWith(text) {
  const found = BLOCKS.filter((code) => code.includes(text));
  assert.equal(found.length, 1, text);
  return found[0];
}

const { signal } = new AbortController();
const SIGNAL = { signal };
const newRecord = () => ({ token: randomBytes(8).toString('hex'), text: 'x' });

let namespaces = 0;

/** Makes each call of a store, in a new namespace. */
async function useAll(url, options = {}) {
  const own = new URL(url);
  for (const [name, value] of Object.entries(options)) own.searchParams.set(name, value);
  own.searchParams.set('namespace', `rights-${namespaces++}`);
  const store = await connect(own);
  try {
    const [first, next] = [newRecord(), newRecord()];
    assert.equal((await store.read('0/1', SIGNAL)).record, undefined);
    assert.ok((await store.write('0/1', first, undefined, SIGNAL)).isWritten);
    assert.ok((await store.write('0/1', next, first.token, SIGNAL)).isWritten);
    assert.deepEqual((await store.read('0/1', SIGNAL)).record, next);
    assert.ok((await store.now(SIGNAL)) > 0);
  } finally {
    await store.close();
  }
}

const DENIED = / at 127\.0\.0\.1:\d+ denied access.*: grant this user the rights/;

/** Fails unless a right is missing. */
async function isDenied(url, what, { expected = DENIED, ...options } = {}) {
  await assert.rejects(useAll(url, options), ({ code, message }) => {
    assert.equal(code, 'ERR_SNOWFLAKE_STORE', what);
    assert.match(message, expected, what);
    return true;
  });
}

/** What allows the user of a database to create the table. */
const ALLOW_TABLE = {
  postgres: 'GRANT CREATE ON SCHEMA public TO limited',
  mysql: 'GRANT CREATE ON app.snowdrift_records TO app',
};

for (const [engine, { user, table, urlOf, admin }] of Object.entries(LIMITED)) {
  const skip = missing(engine) ?? (engine === 'postgres' ? undefined : gate);
  describe(engine, { skip }, () => {
    let server;
    let client;
    let url;
    /** What the program prints, for this user. */
    async function statementsFor(...options) {
      const { [engine]: statements } = await json('namespace', 'tables', ...options);
      const forUser = ([name, text]) => [name, text.replace(/ TO app$/, ` TO ${user}`)];
      return Object.fromEntries(Object.entries(statements).map(forUser));
    }
    before(async () => {
      server = await Server.start(engine);
      client = await admin(server.url);
      url = urlOf(server);
    });
    after(async () => {
      await client?.end();
      await server?.stop();
    });

    test('the rights are enough, and each of them is needed', async () => {
      const { table: created, rights: grant } = await statementsFor();
      await client.query(created);
      await client.query(grant);
      await useAll(url);
      const [, rights, where] = /^GRANT (.*) ON (\S+) TO \w+$/.exec(grant);
      assert.equal(rights.split(', ').length, 3);
      for (const right of rights.split(', ')) {
        await client.query(`REVOKE ${right} ON ${where} FROM ${user}`);
        await isDenied(url, `without ${right} on ${where}`);
        await client.query(grant);
      }
      await useAll(url);
    });

    test('a table that is missing needs the right to create it', async () => {
      await client.query(`DROP TABLE IF EXISTS ${table('snowdrift_records')}`);
      const remedy =
        / at 127\.0\.0\.1:\d+ has no table \S*snowdrift_records\S*, and this user may not create it \(\w+\): .*"npx snowdrift namespace tables --schema NAME" prints for that schema, and grant this user the rights\. Its client says: .*(permission denied for schema public|CREATE command denied)/;
      await isDenied(url, 'without the table', { expected: remedy });
      await client.query(ALLOW_TABLE[engine]);
      await useAll(url);
    });

    if (engine !== 'postgres') return;
    test('a table in another schema needs the right to use that', async () => {
      const schema = 'ids';
      const { table: created, uses, rights } = await statementsFor('--schema', schema);
      await client.query(`CREATE SCHEMA ${schema}; ${created}`);
      await client.query(rights);
      await isDenied(url, 'without USAGE', { schema });
      await client.query(uses);
      await useAll(url, { schema });
    });
  });
}

describe('redis', { skip: missing('redis') }, () => {
  let server;
  let client;
  before(async () => {
    server = await Server.start('redis');
    client = new (require('ioredis'))(server.url);
  });
  after(async () => {
    client?.disconnect();
    await server?.stop();
  });

  test('the rights are enough, and each of them is needed', async () => {
    const [command, ...words] = blockWith('ACL SETUSER').trim().split(' ');
    const url = withLogin(server, 'app:password');
    await client.call(command, ...words);
    await useAll(url);
    const allowed = words.filter((word) => word.startsWith('+'));
    assert.ok(allowed.length > 3);
    for (const word of allowed) {
      await client.call(command, ...words, word.replace('+', '-'));
      await isDenied(url, `without ${word}`);
    }
    await client.call(command, ...words.map((word) => word.replace('~snowdrift:', '~other:')));
    await isDenied(url, 'without the keys');
    await client.call(command, ...words);
    await isDenied(`${url}/2`, 'another database');
    await client.call(command, ...words, '+select');
    await useAll(`${url}/2`);
  });

  test('a lease by a client of the application needs no CLIENT INFO', async () => {
    const [command, ...words] = blockWith('ACL SETUSER').trim().split(' ');
    await client.call(command, ...words);
    const own = new (require('ioredis'))(withLogin(server, 'app:password'), {
      enableReadyCheck: false,
    });
    const store = redis(own, { namespace: 'without-info' });
    try {
      await createNamespace(store);
      const options = { datacenterId: 1, ttl: 60_000, callTimeout: 60_000 };
      const flakes = [await SnowFlake.lease(store, options), await SnowFlake.lease(store, options)];
      assert.equal(flakes[1].workerId, flakes[0].workerId, 'the second one has joined');
      await Promise.all(flakes.map((flake) => flake.close()));
    } finally {
      own.disconnect();
    }
  });
});

describe('etcd', { skip: missing('etcd') ?? gate }, () => {
  test('the role is enough, and each of its rights is needed', async () => {
    const [, right, prefix] = /--prefix=true app (\w+) (\S+)/.exec(blockWith('etcdctl role add'));
    assert.deepEqual([right, prefix], ['readwrite', 'snowdrift/']);
    const server = await Server.start('etcd');
    try {
      const userWith = (...permissions) => ({ password: 'password', permissions });
      const root = await requireLogin(server.url.replace('etcd:', 'http:'), {
        app: userWith(['READWRITE', prefix]),
        reader: userWith(['READ', prefix]),
        writer: userWith(['WRITE', prefix]),
        other: userWith(['READWRITE', 'other/']),
      });
      root.close();
      await useAll(withLogin(server, 'app:password'));
      for (const user of ['reader', 'writer', 'other']) {
        await isDenied(withLogin(server, `${user}:password`), user);
      }
    } finally {
      await server.stop();
    }
  });
});

describe('zookeeper', { skip: missing('zookeeper') ?? storm }, () => {
  let server;
  let url;
  /** Runs commands of an operator. */
  async function operate(commands) {
    const args = ['-server', `127.0.0.1:${server.port}`];
    const child = spawn('/usr/share/zookeeper/bin/zkCli.sh', args, {
      env: { ...process.env, CLIENT_JVMFLAGS: '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' },
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    child.stdin.end(`${commands}\nquit\n`);
    const [code] = await once(child, 'close');
    assert.equal(code, 0, commands);
  }
  before(async () => {
    server = await Server.start('zookeeper');
    url = withLogin(server, 'app:password');
  });
  after(() => server?.stop());

  test('nodes that were created without a login can be closed', async () => {
    const open = await connect(new URL(`${server.url}?namespace=open`));
    const closed = await connect(new URL(`${url}?namespace=open`));
    const [first, next] = [newRecord(), newRecord()];
    await open.write('a', first, undefined, SIGNAL);
    assert.deepEqual((await closed.read('a', SIGNAL)).record, first);
    await operate(blockWith('setAcl -R'));
    await assert.rejects(open.write('a', next, first.token, SIGNAL), /denied access/);
    assert.ok((await closed.write('a', next, first.token, SIGNAL)).isWritten);
    await open.close();
    await closed.close();
  });

  test('the rights are enough, and each of them is needed', async () => {
    await operate('addauth digest app:password\ndeleteall /snowdrift');
    const hash = createHash('sha1').update('app:password').digest('base64');
    const commands = blockWith('create /snowdrift').replace('HASH', hash);
    await operate(commands);
    await useAll(url);
    const rights = 'cw';
    for (const right of rights) {
      const less = commands.replace(`:${rights}`, `:${rights.replace(right, '')}`);
      assert.notEqual(less, commands);
      await operate(less);
      await isDenied(url, `without ${right}`);
    }
    await operate(commands);
    await useAll(url);
  });
});
