'use strict';
// The rights that docs/store-security.md grants are enough for all calls of a store; with one less, an error
// says so. The blocks of the page run as they are there.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { createHash } = require('node:crypto');
const { once } = require('node:events');
const { after, before, describe, test } = require('node:test');

const { connect } = require('../../js/stores/connect.js');
const { sql } = require('../../js/stores/sql-dialects.js');
const { storm } = require('../support/amount.js');
const { take } = require('../support/lease/contract.js');
const { Server, missing } = require('../support/lease/servers.js');
const { blocksOf } = require('../support/page.js');

const BLOCKS = blocksOf('docs/store-security.md').map(({ code }) => code);

/** The block of the page with a text. */
function blockWith(text) {
  const found = BLOCKS.filter((code) => code.includes(text));
  assert.equal(found.length, 1, text);
  return found[0];
}

let namespaces = 0;

/** Makes each call of a store, in a new namespace. */
async function useAll(url) {
  const own = new URL(url);
  own.searchParams.set('namespace', `rights-${namespaces++}`);
  const store = await connect(own);
  try {
    const holder = await take(store);
    const { namespace, signal } = holder;
    assert.equal((await store.renew({ ...holder, ceiling: 200 })).isHeld, true);
    await store.raise({ namespace, floor: 5, signal });
    await store.release({ ...holder, last: 150 });
    assert.equal((await store.slots()).slots.length, 1);
    assert.ok((await store.now()) > 0);
  } finally {
    await store.close();
  }
}

/** Fails unless a right is missing. */
async function isDenied(url, what) {
  await assert.rejects(useAll(url), ({ code, message }) => {
    assert.equal(code, 'ERR_SNOWFLAKE_STORE', what);
    assert.match(message, / at 127\.0\.0\.1:\d+ denied access.*: grant this user the rights/, what);
    return true;
  });
}

const withLogin = (server, login) => server.url.replace(/:\/\/(\w+@)?/, `://${login}@`);

/** How an operator runs SQL. */
const DATABASES = {
  postgres: {
    // The page's user is the administrator here.
    user: 'limited',
    table: (name) => name,
    async admin(url) {
      const client = new (require('pg').Client)({ connectionString: url });
      await client.connect();
      await client.query('CREATE USER limited');
      return client;
    },
    allowTables: ['GRANT CREATE ON SCHEMA public TO limited'],
  },
  mysql: {
    user: 'app',
    table: (name) => `app.${name}`,
    async admin(url) {
      const client = await require('mysql2/promise').createConnection({
        ...{ uri: url, multipleStatements: true, connectTimeout: 60_000 },
      });
      const [strangers] = await client.query("SELECT host FROM user WHERE user = ''");
      for (const { host } of strangers) await client.query("DROP USER ''@?", [host]);
      await client.query('CREATE DATABASE app; USE app; CREATE USER app');
      return client;
    },
    allowTables: [
      'GRANT CREATE ON app.snowdrift_namespaces TO app',
      'GRANT CREATE ON app.snowdrift_slots TO app',
    ],
  },
};

for (const [engine, { user, table, admin, allowTables }] of Object.entries(DATABASES)) {
  describe(engine, { skip: missing(engine) }, () => {
    let server;
    let client;
    let url;
    const grants = blockWith(`UPDATE ON ${table('snowdrift_slots')} `)
      .trim()
      .split('\n')
      .map((line) => line.replace('TO app', `TO ${user}`));
    before(async () => {
      server = await Server.start(engine);
      client = await admin(server.url);
      url = withLogin(server, user).replace(/\/mysql$/, '/app');
    });
    after(async () => {
      await client?.end();
      await server?.stop();
    });

    test('the rights are enough, and each of them is needed', async () => {
      await client.query(sql(engine));
      for (const grant of grants) await client.query(grant);
      await useAll(url);
      for (const grant of grants) {
        const [, rights, where] = /^GRANT (.*) ON (\S+) TO \w+;$/.exec(grant);
        assert.equal(rights.split(', ').length, 3);
        for (const right of rights.split(', ')) {
          await client.query(`REVOKE ${right} ON ${where} FROM ${user}`);
          await isDenied(url, `without ${right} on ${where}`);
          await client.query(grant);
        }
      }
      await useAll(url);
    });

    test('tables that are missing need the right to create them', async () => {
      await client.query(`DROP TABLE IF EXISTS ${table('snowdrift_slots')}`);
      await client.query(`DROP TABLE IF EXISTS ${table('snowdrift_namespaces')}`);
      await isDenied(url, 'without tables');
      for (const grant of allowTables) await client.query(grant);
      await useAll(url);
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
    const allowed = words.filter((word) => word.startsWith('+') && word !== '+info');
    assert.ok(allowed.length > 5);
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
});

test('etcd: lease/etcd.test.js has the role of the page', () => {
  const [, right, prefix] = /--prefix=true app (\w+) (\S+)/.exec(blockWith('etcdctl role add'));
  assert.deepEqual([right, prefix], ['readwrite', 'snowdrift/']);
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
    const holder = await take(open);
    const closed = await connect(new URL(`${url}?namespace=open`));
    const other = await take(closed);
    assert.notEqual(other.workerId, holder.workerId);
    await operate(blockWith('setAcl -R'));
    await assert.rejects(open.renew({ ...holder, ceiling: 200 }), /denied access/);
    assert.equal((await closed.renew({ ...holder, ceiling: 200 })).isHeld, true);
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
