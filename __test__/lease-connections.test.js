'use strict';
// What servers and networks do to a lease's connection: refuse it, stay silent, speak another protocol,
// vanish. Every call ends, the error says why, and the process can always end.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const net = require('node:net');
const { after, before, describe, test } = require('node:test');
const { inspect } = require('node:util');

const { Link } = require('./lease/link.js');
const { ENGINES, Server, missing } = require('./lease/servers.js');
const { SnowFlake, entry, until } = require('./support.js');

const PRODUCTS = {
  postgres: 'PostgreSQL',
  mysql: 'MySQL',
  redis: 'Redis',
  etcd: 'etcd',
  zookeeper: 'ZooKeeper',
};

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
  const ended = once(child, 'close');
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

/** A server that answers nothing holds a process for so long at most, ms; and some for a busy machine. */
const END_MS = 4000 + 1500;

describe('connections', { concurrency: 4 }, () => {
  describe('without a server', { concurrency: 4 }, () => {
    for (const engine of ENGINES) {
      for (const thread of [false, true]) {
        test(`${engine}: a silent server is named within callTimeout${thread ? ', in a thread' : ''}`, async () => {
          const server = await listening(() => {});
          const where = `127.0.0.1:${server.address().port}`;
          const { message, ms } = await refusal(`${engine}://${where}`, { thread });
          assert.equal(
            message,
            `${PRODUCTS[engine]} at ${where} did not answer within 300 ms: check that it runs, that this is its port, and that no firewall drops packets`,
          );
          // A thread takes seconds to start on a busy machine.
          assert.ok(ms < 300 + 500 + (thread ? 9000 : 3000), `${ms} ms`);
          server.close();
        });
      }

      test(`${engine}: a port without a server, and a host without an address, are named`, async () => {
        const server = await listening(() => {});
        const { port } = server.address();
        server.close();
        await once(server, 'close');
        const login = engine === 'etcd' || engine === 'zookeeper' ? '' : 'app:geheim@';
        const options = { callTimeout: 3000 };
        for (const host of ['127.0.0.1', 'localhost']) {
          const { message, error } = await refusal(`${engine}://${login}${host}:${port}`, options);
          const start = `Cannot reach ${PRODUCTS[engine]} at ${host}:${port}`;
          const why = engine === 'zookeeper' ? '' : ' (ECONNREFUSED)';
          assert.ok(message.startsWith(`${start}${why}: check that it runs and that`), message);
          assert.match(message, /Its client says: \S/);
          assert.doesNotMatch(inspect(error), /geheim/);
        }
        if (engine === 'zookeeper') return;
        const { message } = await refusal(`${engine}://${login}nowhere.invalid:${port}`, options);
        assert.match(
          message,
          new RegExp(
            `^Cannot find the host of ${PRODUCTS[engine]} at nowhere.invalid:${port} \\(E`,
          ),
        );
      });

      test(`${engine}: what speaks another protocol is named as such, or as silent`, async () => {
        for (const greeting of ['HTTP/1.1 400 Bad Request\r\n\r\n', 'SSH-2.0-OpenSSH_9.2\r\n']) {
          for (const isClosed of [false, true]) {
            const server = await listening((socket) =>
              isClosed ? socket.end(greeting) : socket.write(greeting),
            );
            const where = `127.0.0.1:${server.address().port}`;
            const { message } = await refusal(`${engine}://${where}`, { callTimeout: 500 });
            const name = `${PRODUCTS[engine]} at ${where}`;
            assert.ok(message.includes(name), message);
            assert.match(
              message,
              /this is its port|Cannot reach ZooKeeper/,
              `${greeting} ${isClosed}`,
            );
            server.close();
          }
        }
      });
    }

    test('no error shows the password of a URL', async () => {
      for (const url of [
        'etcd://app:geheim@127.0.0.1:2379',
        'postgress://app:geheim@db/x',
        'postgres://app:ge#heim@db:5432/x',
      ]) {
        const error = await SnowFlake.lease(url, { datacenterId: 1 }).catch((thrown) => thrown);
        assert.equal(error.code, 'ERR_SNOWFLAKE_CONFIG');
        assert.doesNotMatch(inspect(error), /heim/);
      }
    });
  });

  describe('signals', { concurrency: 3 }, () => {
    // A store that takes a while to release, and says that it did.
    const LEASE = `
      const slow = (name) => {
        const store = memory();
        const release = async (request) => {
          await new Promise((resolve) => setTimeout(resolve, 100));
          print('released ' + name);
          return store.release(request);
        };
        return { ...store, release };
      };
      const options = { datacenterId: 1 };`;
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
        await copy.SnowFlake.lease(slow('two'), { datacenterId: 2 });`,
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
        await copy.SnowFlake.lease(slow('two'), { datacenterId: 2 });`,
        'SIGTERM',
        ['released one', 'released two', 'signal-exit'],
      ],
    ]) {
      test(`${name}: ${signal} releases the slots, and ends the process`, async () => {
        const process = start(`${body}${READY}`);
        await process.has('ready');
        const end = await process.after(() => process.child.kill(signal));
        const lines = end.output.trim().split('\n').slice(1);
        assert.deepEqual([...new Set(lines)].sort(), expected);
        assert.deepEqual([end.code, end.signal], [null, signal]);
        assert.ok(end.ms < END_MS, `${end.ms} ms`);
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
      test(`an application that listens itself goes on: ${name}`, async () => {
        const process = start(`${LEASE}
          let flake;
          const own = () => setTimeout(() => {
            print(typeof flake.nextId());
            flake.close().then(() => process.exit(5));
          }, 300);
          ${before}
          flake = await SnowFlake.lease(slow('one'), options);
          ${later}
          if (${later === COPY}) await copy.SnowFlake.lease(memory(), { datacenterId: 2 });
          ${READY}`);
        await process.has('ready');
        const { code, signal, output } = await process.after(() => process.child.kill('SIGTERM'));
        assert.equal(output, 'ready\nbigint\nreleased one\n');
        assert.deepEqual([code, signal], [5, null]);
      });
    }

    test('a second signal ends the process at once', async () => {
      const process = start(`${LEASE}
        const store = { ...memory(), release: () => { print('releasing'); return new Promise(() => {}); } };
        await SnowFlake.lease(store, options);${READY}`);
      await process.has('ready');
      process.child.kill('SIGTERM');
      await process.has('releasing');
      const { signal, ms } = await process.after(() => process.child.kill('SIGINT'));
      assert.equal(signal, 'SIGINT');
      assert.ok(ms < 1500, `${ms} ms`);
    });

    test('workers of a cluster release theirs', async () => {
      const process = start(`
        const cluster = require('node:cluster');
        cluster.setupPrimary({ execArgv: [], exec: ${JSON.stringify(require.resolve('./lease/cluster-worker.js'))} });
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

    test('a store that hangs holds neither the end of work nor close()', async () => {
      const hanging = `{ ...memory(), release: () => new Promise(() => {}), close: () => new Promise(() => {}) }`;
      const process = start(`
        await SnowFlake.lease(${hanging}, { datacenterId: 1 });
        const closed = await SnowFlake.lease(${hanging}, { datacenterId: 2 });
        const start = performance.now();
        const closing = closed.close();
        let code;
        try { closed.nextId(); } catch (error) { code = error.code; }
        print([code, closed.isClosed, closed.close() === closing, await closing, Math.round((performance.now() - start) / 1000)].join());
        done();`);
      const { code, ms, output } = await process.after(() => {});
      assert.equal(output, 'ERR_SNOWFLAKE_CLOSED,true,true,,3\n');
      assert.equal(code, 0);
      assert.ok(ms < 3000 + END_MS, `${ms} ms`);
    });

    test('close() never rejects, whatever the store throws', async () => {
      const process = start(`
        const store = { ...memory(), release: () => { throw new Error('no'); }, close: async () => { throw 1; } };
        const flake = await SnowFlake.lease(store, { datacenterId: 1 });
        require('node:diagnostics_channel').subscribe('snowdrift:lease-released', () => flake.close());
        flake.close();
        const plain = new SnowFlake({ datacenterId: 1, workerId: 1 });
        print([await flake.close(), await plain.close(), await plain[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]()].join());
        done();`);
      const { code, output } = await process.after(() => {});
      assert.deepEqual([code, output], [0, ',,\n']);
    });
  });
});
