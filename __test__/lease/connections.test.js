'use strict';
// What servers and networks do to a lease's connection: refuse it, stay silent, speak another protocol,
// vanish. Every call ends, the error says why, and the process can always end.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const net = require('node:net');
const { after, describe, test } = require('node:test');
const { inspect } = require('node:util');

const { gate, storm } = require('../support/amount.js');
const { linkedServer } = require('../support/lease/link.js');
const { inTime } = require('../support/lease/rounds.js');
const {
  ENGINES,
  Server,
  freePort,
  missing,
  noAddon,
  unusual,
} = require('../support/lease/servers.js');
const { SnowFlake, entry, refuses, runScript, until } = require('../support/support.js');

const PRODUCTS = {
  postgres: 'PostgreSQL',
  mysql: 'MySQL',
  redis: 'Redis',
  mongodb: 'MongoDB',
  etcd: 'etcd',
  zookeeper: 'ZooKeeper',
};

const children = new Set();
after(() => {
  for (const child of children) child.kill('SIGKILL');
});

/** A server for each connection of which `answer` is called. */
async function listening(answer) {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.resume();
    answer(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server.unref();
}

/** How lease() from a URL is refused, and after how many ms. */
async function refusal(url, options) {
  const start = performance.now();
  const error = await SnowFlake.lease(url, { datacenterId: 1, callTimeout: 300, ...options }).then(
    () => assert.fail('it was not refused'),
    (thrown) => thrown,
  );
  assert.equal(error.code, 'ERR_SNOWFLAKE_STORE', inspect(error));
  return { error, message: error.message, ms: performance.now() - start };
}

/** A process that runs the body of an async function. `line()` is the next that it prints. */
function start(body, { args = [], env = {} } = {}) {
  const script = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const { memory } = require('snowdrift/lease/memory');
    // A store in memory. \`release\` gets the write that releases a slot.
    const releasing = (release) => {
      const store = memory();
      const isRelease = (_, { text }) => / free /.test(text);
      const write = async (...values) =>
        isRelease(...values) ? release(() => store.write(...values)) : store.write(...values);
      return { ...store, write };
    };
    const lines = [];
    const print = (what) => console.log(what);
    const told = () => new Promise((resolve) => process.stdin.once('data', resolve));
    const done = () => process.stdin.destroy();
    (async () => {${body}})().catch((error) => { print(error.message); process.exit(9); });`;
  const child = spawn(process.execPath, [...args, '-e', script], {
    cwd: __dirname,
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  children.add(child);
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    child.kill('SIGKILL');
  }, LATE);
  const ended = once(child, 'close').then((end) => {
    clearTimeout(limit);
    children.delete(child);
    assert.ok(!isLate, `the process has not ended after ${LATE} ms: ${output}`);
    return end;
  });
  // Not every test waits for it.
  ended.catch(() => {});
  return {
    child,
    ended,
    output: () => output,
    has: (text) => until(() => output.includes(text) || child.exitCode !== null),
    tell: () => child.stdin.write('\n'),
    /** How it ended, and how many ms after `what`. */
    async after(what) {
      const begun = performance.now();
      what();
      const [code, signal] = await ended;
      return { code, signal, ms: performance.now() - begun, output };
    },
  };
}

/** Pools of an application, of at most one connection. */
const POOLS = {
  postgres(url) {
    const pool = new (require('pg').Pool)({ connectionString: url, max: 1 });
    const { postgres } = require('../../js/stores/postgres.js');
    const query = async () => (await pool.query('SELECT 1 AS one')).rows[0].one;
    return { pool, store: postgres(pool, { namespace: 'pool' }), query, end: () => pool.end() };
  },
  mysql(url) {
    const pool = require('mysql2').createPool({ uri: url, connectionLimit: 1 });
    const { mysql } = require('../../js/stores/mysql.js');
    const query = async () => (await pool.promise().query('SELECT 1 AS one'))[0][0].one;
    const end = () => pool.promise().end();
    return { pool, store: mysql(pool, { namespace: 'pool' }), query, end };
  },
};

/** A URL of a server, changed. */
const changed = (server, change) => {
  const url = new URL(server.url);
  change(url);
  return url.href;
};

/** A user whose password is another than in the URL, in each server's way. */
const LOCKED = {
  async postgres(server) {
    const { Client } = require('pg');
    const admin = new Client({ connectionString: server.url });
    await admin.connect();
    const { rows } = await admin.query('SHOW hba_file');
    await admin.query("CREATE ROLE locked LOGIN PASSWORD 'other'");
    await admin.query(`COPY (SELECT unnest(ARRAY['host all locked 127.0.0.1/32 scram-sha-256', 'host all all 127.0.0.1/32 trust']))
      TO '${rows[0].hba_file}'`);
    await admin.query('SELECT pg_reload_conf()');
    await admin.end();
    // It may still read them.
    const connectionString = changed(server, (url) => Object.assign(url, { username: 'locked' }));
    await until(async () => {
      const locked = new Client({ connectionString });
      const isRefused = await locked.connect().then(
        () => false,
        () => true,
      );
      await locked.end().catch(() => {});
      return isRefused;
    });
  },
  async mysql(server) {
    const admin = await require('mysql2/promise').createConnection(server.url);
    await admin.query("CREATE USER locked@'127.0.0.1' IDENTIFIED BY 'other'");
    await admin.end();
  },
  async redis(server) {
    const admin = new (require('ioredis'))(server.url);
    await admin.call('ACL', 'SETUSER', 'locked', 'on', '>other', '~*', '+@all');
    await admin.quit();
  },
};

const wrongPassword = (engine) => [
  'a wrong password',
  async (server) => {
    await LOCKED[engine](server);
    return changed(server, (url) => Object.assign(url, { username: 'locked', password: 'geheim' }));
  },
  /refused the login.*: check user and password\. Its client says: \w+: .*(password|denied)/,
];

const unknownDatabase = (pathname) => [
  'an unknown database',
  (server) => changed(server, (url) => Object.assign(url, { pathname })),
  /has no such database.*: create it, or correct its name\. Its client says: \w+: /,
];

/** A server without TLS that is called with it. */
const withoutTls = (scheme, search) => [
  'a server without TLS',
  (server) => changed(server, (url) => Object.assign(url, { search })).replace(/^\w+/, scheme),
  // Redis answers nothing to what is no command. The end of a connection may come before etcd's answer.
  /^(Cannot agree on TLS with|Redis .* did not answer|etcd .* closed the connection .* uses TLS|MongoDB .* showed no primary: .* uses TLS)/,
  scheme === 'rediss' ? 2000 : undefined,
];

const REFUSED = {
  postgres: [
    wrongPassword('postgres'),
    unknownDatabase('/absent'),
    withoutTls('postgres', '?sslmode=require'),
  ],
  mysql: [
    wrongPassword('mysql'),
    unknownDatabase('/absent'),
    withoutTls('mysql', '?ssl={"rejectUnauthorized":true}'),
  ],
  redis: [wrongPassword('redis'), unknownDatabase('/99'), withoutTls('rediss', '')],
  mongodb: [withoutTls('mongodb', '?tls=true')],
  etcd: [withoutTls('etcds', '')],
  zookeeper: [withoutTls('zookeepers', '')],
};

/** A server that answers nothing holds a process for so long at most, ms; and some for a busy machine. */
const END_MS = 4000 + 1500;
/** For what comes whatever the machine does. */
const LATE = 180_000;
/** So slow may a server be where nothing else is wrong. */
const PATIENT = 60_000;

test('a URL without a user, in a container whose environment has none, is an error that says where to name one', {
  skip: missing('postgres') ?? gate,
}, async () => {
  const server = await Server.start('postgres');
  const url = changed(server, (one) => Object.assign(one, { username: '' }));
  const script = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    SnowFlake.lease(${JSON.stringify(url)}, { datacenterId: 1 }).catch(({ message }) => console.log(message));`;
  const { stdout } = await runScript(script, { env: { USER: undefined, PGUSER: undefined } });
  await server.stop();
  assert.match(
    stdout,
    /^PostgreSQL at 127\.0\.0\.1:\d+ was given no user \(28000\): name one in the URL before the host, as in app@host, or set PGUSER\./,
  );
});

describe('connections', { concurrency: 3 }, () => {
  describe('without a server', { concurrency: 4 }, () => {
    for (const engine of ENGINES) {
      // ZooKeeper's client has a time limit of its own, so that lateness changes its answer.
      const skip = noAddon(engine) ?? (engine === 'zookeeper' ? storm : undefined);
      const limit = engine === 'zookeeper' ? '( within 300 ms)?' : ' within 300 ms';
      test(`${engine}: a silent server is named within callTimeout`, { skip }, async () => {
        const server = await listening(() => {});
        const where = `127.0.0.1:${server.address().port}`;
        await inTime(300 + 500 + 3000, async () => {
          const { message, ms } = await refusal(`${engine}://${where}`);
          const said = new RegExp(
            `^${PRODUCTS[engine]} at ${where} did not answer${limit}: check that it runs, that this is its port, and that no firewall drops packets`,
          );
          assert.match(message, said);
          return ms;
        });
        server.close();
      });

      test(`${engine}: a port without a server, and a host without an address, are named`, {
        skip,
      }, async () => {
        const port = await freePort();
        const login = 'app:geheim@';
        const options = { callTimeout: engine === 'zookeeper' ? 3000 : PATIENT };
        for (const host of ['127.0.0.1', 'localhost']) {
          const { message, error } = await refusal(`${engine}://${login}${host}:${port}`, options);
          const start = `Cannot reach ${PRODUCTS[engine]} at ${host}:${port}`;
          const why = engine === 'zookeeper' ? '' : ' (ECONNREFUSED)';
          assert.ok(message.startsWith(`${start}${why}: check that it runs and that`), message);
          assert.match(message, /Its client says: \S/);
          assert.doesNotMatch(inspect(error), /geheim/);
        }
        const { message } = await refusal(`${engine}://${login}nowhere.invalid:${port}`, options);
        assert.match(
          message,
          new RegExp(
            `^Cannot find the host of ${PRODUCTS[engine]} at nowhere.invalid:${port}( \\(E|: check its name)`,
          ),
        );
      });

      test(`${engine}: a server of another protocol is named as such, or as silent`, {
        skip,
      }, async () => {
        for (const greeting of ['HTTP/1.1 400 Bad Request\r\n\r\n', 'SSH-2.0-OpenSSH_9.2\r\n']) {
          for (const isClosed of [false, true]) {
            const server = await listening((socket) =>
              isClosed ? socket.end(greeting) : socket.write(greeting),
            );
            const where = `127.0.0.1:${server.address().port}`;
            const { message } = await refusal(`${engine}://${where}`, { callTimeout: 500 });
            const name = `${PRODUCTS[engine]} at ${where}`;
            assert.ok(message.includes(name), message);
            assert.match(message, /this is its port/, `${greeting} ${isClosed}`);
            server.close();
          }
        }
      });
    }

    test('a ZooKeeper server that is silent for longer than its client waits is named, too', {
      skip: noAddon('zookeeper'),
    }, async () => {
      const server = await listening(() => {});
      const where = `127.0.0.1:${server.address().port}`;
      const { message } = await refusal(`zookeeper://${where}`, { callTimeout: PATIENT });
      server.close();
      assert.ok(message.startsWith(`ZooKeeper at ${where} did not answer: check that`), message);
      assert.match(message, /Its client says: .* no response from connection in 2000ms$/);
    });

    test('no error shows the password of a URL', async () => {
      for (const url of [
        'etcd://app:geheim%zz@127.0.0.1:2379',
        'postgress://app:geheim@db/x',
        'postgres://app:ge#heim@db:5432/x',
        'zookeeper://app:geheim%zz@127.0.0.1:1',
        'postgres//app:geheim@db/x',
        '//app:geheim@db/x',
        'file://app:geheim@db/x',
        'mysql://app:geheim%zz@127.0.0.1:1/x',
        'redis://:geheim%zz@127.0.0.1:1',
        'mysql://app:geheim@127.0.0.1:1/x?ssl=xyz',
      ]) {
        const error = await SnowFlake.lease(url, { datacenterId: 1 }).catch((thrown) => thrown);
        assert.equal(error.code, 'ERR_SNOWFLAKE_CONFIG');
        assert.doesNotMatch(inspect(error), /heim/);
      }
      const { message } = await SnowFlake.lease('postgres://app:ge#heim@db:5432/x').catch(
        (thrown) => thrown,
      );
      assert.match(message, /not a valid URL: 'postgres:..\*\*\*'\. Percent-encode/);
      const { message: ofState } = refuses(
        () => new SnowFlake({ datacenterId: 1, workerId: 1, state: 'postgres://app:geheim@db/x' }),
        'ERR_SNOWFLAKE_CONFIG',
      );
      assert.match(
        ofState,
        /state must be the absolute path of a directory.*'postgres:..\*\*\*@db'/,
      );
    });
  });

  describe('signals', { concurrency: 2 }, () => {
    // A store that takes a while to release, and says that it did.
    const LEASE = `
      const slow = (name) =>
        releasing(async (write) => {
          await new Promise((resolve) => setTimeout(resolve, 100));
          print('released ' + name);
          return write();
        });
      const options = { datacenterId: 1, scope: 'process', ttl: 60_000 };`;
    /** A second copy of the package in the same process. */
    const COPY = `
      const { createRequire } = require('node:module');
      const path = require('node:path');
      for (const file of Object.keys(require.cache)) {
        if (file.startsWith(path.join(path.dirname(${JSON.stringify(entry)}), '/')) && file.endsWith('.js')) delete require.cache[file];
      }
      const copy = require(${JSON.stringify(entry)});`;
    /** signal-exit 4 and 3, as far as they decide whether a signal is theirs. */
    const SIGNAL_EXIT = `
      const signalExit = (emitter, others) => {
        emitter.count++;
        const listener = (signal) => {
          if (process.listeners(signal).length !== emitter.count + others()) return;
          process.off('SIGTERM', listener).off('SIGINT', listener);
          emitter.count--;
          print('signal-exit');
          process.kill(process.pid, signal);
        };
        process.on('SIGTERM', listener).on('SIGINT', listener);
      };
      const v3 = () => process.__signal_exit_emitter__?.count ?? 0;
      const exit4 = () => signalExit(globalThis[Symbol.for('signal-exit emitter')] ??= { count: 0 }, v3);
      const exit3 = () => signalExit(process.__signal_exit_emitter__ ??= { count: 0 }, () => 0);`;
    const READY = "print('ready'); setInterval(() => {}, 1000);";
    const lease = "await SnowFlake.lease(slow('one'), options);";

    for (const [name, body, signal, expected] of [
      ['one copy', `${LEASE}${lease}`, 'SIGINT', ['released one']],
      [
        'two copies of the package',
        `${LEASE}${lease}${COPY}
        await copy.SnowFlake.lease(slow('two'), { datacenterId: 2, scope: 'process' });`,
        'SIGTERM',
        ['released one', 'released two'],
      ],
      [
        'signal-exit 4',
        `${LEASE}${SIGNAL_EXIT} exit4(); ${lease}`,
        'SIGTERM',
        ['released one', 'signal-exit'],
      ],
      [
        'signal-exit 3 loaded later',
        `${LEASE}${SIGNAL_EXIT} ${lease} exit3();`,
        'SIGINT',
        ['released one', 'signal-exit'],
      ],
      [
        'two copies, signal-exit 3 and 4',
        `${LEASE}${SIGNAL_EXIT} exit3(); ${lease} exit4(); ${COPY}
        await copy.SnowFlake.lease(slow('two'), { datacenterId: 2, scope: 'process' });`,
        'SIGTERM',
        ['released one', 'released two', 'signal-exit'],
      ],
    ]) {
      // The last one has the listeners of all.
      const skip = ['one copy', 'two copies, signal-exit 3 and 4'].includes(name)
        ? undefined
        : gate;
      test(`${name}: ${signal} releases the slots, and ends the process`, { skip }, async () => {
        await inTime(END_MS, async () => {
          const process = start(`${body}${READY}`);
          await process.has('ready');
          const end = await process.after(() => process.child.kill(signal));
          const lines = end.output.trim().split('\n').slice(1);
          assert.deepEqual([...new Set(lines)].sort(), expected);
          assert.deepEqual([end.code, end.signal], [null, signal]);
          return end.ms;
        });
      });
    }

    for (const [name, before, later] of [
      ['on(), before the lease', "process.on('SIGTERM', own);", ''],
      ['on(), after the lease', '', "process.on('SIGTERM', own);"],
      ['once(), before the lease', "process.once('SIGTERM', own);", ''],
      ['once(), after the lease', '', "process.once('SIGTERM', own);"],
      ['on(), beside two copies', "process.on('SIGTERM', own);", COPY],
      ['once(), beside signal-exit', `${SIGNAL_EXIT} exit4(); process.once('SIGTERM', own);`, ''],
    ]) {
      const skip = /^(on\(\), before|once\(\), after)/.test(name) ? undefined : gate;
      test(`an application that listens itself continues: ${name}`, { skip }, async () => {
        const process = start(`${LEASE}
          let flake;
          const own = () => setTimeout(() => {
            print(typeof flake.nextId());
            flake.close().then(() => process.exit(5));
          }, 300);
          ${before}
          flake = await SnowFlake.lease(slow('one'), options);
          ${later}
          if (${later === COPY}) await copy.SnowFlake.lease(memory(), { datacenterId: 2, scope: 'process' });
          ${READY}`);
        await process.has('ready');
        const { code, signal, output } = await process.after(() => process.child.kill('SIGTERM'));
        assert.equal(output, 'ready\nbigint\nreleased one\n');
        assert.deepEqual([code, signal], [5, null]);
      });
    }

    test('process.exit() releases no lease', async () => {
      const process = start(`${LEASE}
        const flake = await SnowFlake.lease(slow('one'), options);
        print(typeof flake.nextId());
        process.exit(6);`);
      const { code, output } = await process.after(() => {});
      assert.deepEqual([code, output], [6, 'bigint\n']);
    });

    test('a second signal ends the process at once', async () => {
      const process = start(`${LEASE}
        const store = releasing(() => {
          print('releasing');
          process.kill(process.pid, 'SIGINT');
          return new Promise(() => {});
        });
        await SnowFlake.lease(store, options);${READY}`);
      await process.has('ready');
      // By the first one, when the store has had its time, it would end by SIGTERM.
      const { signal, output } = await process.after(() => process.child.kill('SIGTERM'));
      assert.deepEqual([signal, output], ['SIGINT', 'ready\nreleasing\n']);
    });

    test('workers of a cluster release theirs', { skip: gate }, async () => {
      const process = start(`
        const cluster = require('node:cluster');
        cluster.setupPrimary({ execArgv: [], exec: ${JSON.stringify(require.resolve('../support/lease/cluster-worker.js'))} });
        const workers = [1, 2].map(() => cluster.fork());
        let ready = 0;
        for (const worker of workers) {
          worker.on('message', (message) => {
            print(message);
            if (message === 'ready' && ++ready === 2) workers.forEach(({ process }) => process.kill('SIGTERM'));
          });
          worker.on('exit', (code, signal) => print('ended ' + signal));
        }
        done();`);
      const { code, output } = await process.after(() => {});
      assert.equal(code, 0);
      assert.deepEqual(output.trim().split('\n').sort(), [
        ...['ended SIGTERM', 'ended SIGTERM', 'ready', 'ready', 'released', 'released'],
      ]);
    });

    test('a store that hangs holds up neither the end of the process nor close()', async () => {
      const hanging =
        '{ ...releasing(() => new Promise(() => {})), close: () => new Promise(() => {}) }';
      // Releasing takes 2 s at most, and closing 1 s.
      await inTime(4500, async () => {
        const process = start(`
        await SnowFlake.lease(${hanging}, { datacenterId: 1, scope: 'process' });
        const closed = await SnowFlake.lease(${hanging}, { datacenterId: 2, scope: 'process' });
        const start = performance.now();
        const closing = closed.close();
        let code;
        try { closed.nextId(); } catch (error) { code = error.code; }
        print([code, closed.isClosed, closed.close() === closing, await closing, performance.now() - start].join());
        done();`);
        await process.has('ERR_');
        const { code, ms, output } = await process.after(() => {});
        const [, closing] = /^ERR_SNOWFLAKE_CLOSED,true,true,,([\d.]+)\n$/.exec(output);
        assert.equal(code, 0);
        assert.ok(closing > 2500, `${closing} ms`);
        return ms < END_MS ? Number(closing) : Number.POSITIVE_INFINITY;
      });
    });

    test('close() never rejects, whatever the store throws', async () => {
      const process = start(`
        const store = { ...releasing(() => { throw new Error('no'); }), close: async () => { throw 1; } };
        const flake = await SnowFlake.lease(store, { datacenterId: 1 });
        require('node:diagnostics_channel').subscribe('snowdrift:lease-released', () => flake.close());
        flake.close();
        const plain = new SnowFlake({ datacenterId: 2, workerId: 1 });
        print([await flake.close(), await plain.close(), await plain[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]()].join());
        done();`);
      const { code, output } = await process.after(() => {});
      assert.deepEqual([code, output], [0, ',,\n']);
    });
  });

  for (const engine of ENGINES) {
    describe(`${engine}, a real server`, { skip: unusual(engine), concurrency: 2 }, () => {
      const own = linkedServer(engine);
      // On Redis, the first holder of a namespace waits for both.
      const soon = { datacenterId: 1, ttl: 2000, maxClockSkew: 3000 };
      const HELD = (url, options) =>
        `await SnowFlake.lease(${JSON.stringify(url)}, ${JSON.stringify(options)});`;

      test('a half-open connection is replaced, and one of a server that was silent', {
        skip: storm,
      }, async () => {
        const { link, url } = await own.linked('half');
        const flake = await SnowFlake.lease(url, { ...soon, callTimeout: 8000 });
        const { renewals } = flake.lease;
        const { connections } = link;
        link.halfOpen();
        await until(() => flake.lease.renewals > renewals + 1);
        assert.ok(link.connections > connections, 'by another connection');
        await until(() => flake.lease.state === 'held');
        // So is one that a silent server accepted.
        link.halfOpen();
        link.silent();
        await until(() => flake.lease.failure !== undefined);
        const late = { renewals: flake.lease.renewals, connections: link.connections };
        await until(() => link.connections > late.connections);
        link.mend();
        await until(() => flake.lease.renewals > late.renewals);
        // While it is silent, close() settles; whatever is asked, nothing more is issued.
        link.halfOpen();
        link.silent();
        const start = performance.now();
        await flake.close();
        // How soon a process can end is shown above, and below.
        assert.ok(performance.now() - start < 30_000, `${performance.now() - start} ms`);
      });

      test('a lease() from a silent server is refused; the next one works', {
        skip: storm,
      }, async () => {
        const { link, url } = await own.linked('silent');
        link.silent();
        const { message } = await refusal(url);
        // On a busy machine ZooKeeper's client may give up first.
        assert.match(message, /did not answer( within 300 ms)?: /);
        link.mend();
        const flake = await SnowFlake.lease(url, { ...soon, ttl: 20_000, callTimeout: PATIENT });
        assert.equal(typeof flake.nextId(), 'bigint');
        await flake.close();
      });

      test('lease() that a signal interrupts ends with the process', async () => {
        await inTime(1500, async () => {
          const { link, url } = await own.linked('interrupted');
          const {
            child,
            has,
            after: afterwards,
          } = start(`print('ready'); ${HELD(url, { ...soon, callTimeout: PATIENT })}`);
          link.silent();
          await has('ready');
          await until(() => link.connections > 0 || child.exitCode !== null);
          const end = await afterwards(() => child.kill('SIGTERM'));
          assert.equal(end.signal, 'SIGTERM');
          return end.ms;
        });
      });

      if (POOLS[engine]) {
        test('a half-open connection of a pool of the application is replaced, the others stay', {
          skip: storm,
        }, async () => {
          const { link, url } = await own.linked('pool');
          const { pool, store, query, end } = POOLS[engine](url.split('?')[0]);
          pool.on('error', () => {});
          const flake = await SnowFlake.lease(store, { ...soon, callTimeout: 8000 });
          for (let n = 0; n < 2; n++) {
            const { renewals } = flake.lease;
            const { connections } = link;
            link.halfOpen();
            // A renewal may have been under way.
            await until(() => flake.lease.renewals > renewals && link.connections > connections);
            assert.equal(link.connections, connections + 1, 'one for one');
          }
          assert.equal(await query(), 1);
          await flake.close();
          await end();
        });
      }

      for (const [what, locate, expected, callTimeout = PATIENT] of REFUSED[engine]) {
        test(`${what} is named`, async () => {
          const url = await locate(own.server);
          const { message, error } = await refusal(url, { callTimeout });
          assert.match(message, expected);
          assert.ok(
            message.includes(`${PRODUCTS[engine]} at 127.0.0.1:${own.server.port}`),
            message,
          );
          assert.doesNotMatch(
            inspect(error),
            /geheim|postgres:\/\/|mysql:\/\/|redis:\/\/|mongodb:\/\//,
          );
        });
      }
    });

    // On its own: it stops the server.
    test(`${engine}: a process can end while the server is stopped`, {
      skip: missing(engine) ?? storm,
    }, async () => {
      const server = await Server.start(engine);
      try {
        const ready = async () => {
          const options = { datacenterId: 1, callTimeout: PATIENT };
          // Shorter on Redis, whose first lease waits for it.
          if (engine === 'redis') Object.assign(options, { ttl: 2000, maxClockSkew: 3000 });
          const process = start(`
            const flake = await SnowFlake.lease(${JSON.stringify(server.url)}, ${JSON.stringify(options)});
            print('ready');
            await told();
            done();`);
          await process.has('ready');
          return process;
        };
        await inTime(END_MS, async () => {
          const processes = await Promise.all([ready(), ready()]);
          server.signal('SIGSTOP');
          const ends = await Promise.all(
            processes.map((process, n) =>
              process.after(n === 0 ? process.tell : () => process.child.kill('SIGTERM')),
            ),
          );
          server.signal('SIGCONT');
          assert.deepEqual(
            ends.map(({ code, signal }) => code ?? signal),
            [0, 'SIGTERM'],
            inspect(ends),
          );
          return Math.max(...ends.map(({ ms }) => ms));
        });
      } finally {
        server.signal('SIGCONT');
        await server.stop();
      }
    });
  }
});
