'use strict';
// ZooKeeper with a login: the nodes of snowdrift are its user's only. And what people see of its holders.

const assert = require('node:assert/strict');
const { hostname } = require('node:os');
const { after, before, describe, test } = require('node:test');
const { inspect } = require('node:util');

const { loadAddon } = require('../../js/runtime/addon.js');
const { connect } = require('../../js/stores/connect.js');
const { registerContract } = require('../../js/stores/contract.js');
const { zookeeper } = require('../../js/stores/zookeeper.js');
const { storm } = require('../support/amount.js');
const { Server, missing } = require('../support/lease/servers.js');
const { SnowFlake, until } = require('../support/support.js');

const PASSWORD = 'g3heim/&t:x';
const { signal } = new AbortController();

describe('zookeeper with a login', { skip: missing('zookeeper') ?? storm }, () => {
  let server;
  const closing = [];
  const urlOf = (namespace, user = 'app', password = PASSWORD) => {
    const url = new URL(`${server.url}?namespace=${namespace}`);
    return Object.assign(url, { username: user, password: encodeURIComponent(password) });
  };
  const opened = async (url) => {
    const store = await connect(url);
    closing.push(() => store.close());
    return store;
  };
  /** A session of anyone. */
  const stranger = async (login) => {
    const { directory, load } = require('snowdrift-zookeeper');
    const addon = loadAddon('snowdrift-zookeeper', directory, load);
    const session = await addon.connect(`127.0.0.1:${server.port}`, 10_000, login);
    closing.push(() => session.close());
    return session;
  };

  before(async () => {
    server = await Server.start('zookeeper');
  });
  after(async () => {
    await Promise.all(closing.map((close) => close()));
    await server?.stop();
  });

  test('an open parent is kept; the nodes below it are of the first that has a login', async () => {
    // The probe of the server has created /snowdrift, for everyone.
    const session = await stranger();
    assert.ok((await session.touch('/snowdrift')) > 0);
    const store = await opened(urlOf('closed'));
    const record = { token: '0123456789abcdef', text: 'mine' };
    await store.write('1/3', record, undefined, { signal });
    await store.show({ datacenterId: 1, workerId: 3 }, { host: 'here' }, { signal });
    const bucket = ['/records/1-3', `/records/1-3/${record.token}`];
    const paths = ['', '/records', ...bucket, '/holders', '/holders/1-3'];
    for (const login of [undefined, 'app:other', 'other:g3heim']) {
      const other = await stranger(login);
      for (const path of paths.map((each) => `/snowdrift/closed${each}`)) {
        const set = { kind: 'set', path, data: 'theirs' };
        for (const attack of [
          set,
          { kind: 'delete', path },
          { ...set, path: `${path}/x`, kind: 'create' },
        ]) {
          await assert.rejects(
            other.change([attack]),
            /not authorized|not empty|ephemeral/,
            inspect(attack),
          );
        }
        await assert.rejects(other.get(path), /not authorized/);
        await assert.rejects(other.children(path), /not authorized/);
      }
    }
    assert.deepEqual((await store.read('1/3', { signal })).record, record);
  });

  test('without a login, or with another one, the namespace is denied', async () => {
    const record = { token: '0123456789abcdef', text: '' };
    await (await opened(urlOf('denied'))).write('a', record, undefined, { signal });
    const anyone = new URL(`${server.url}?namespace=denied`);
    for (const url of [anyone, urlOf('denied', 'app', 'g3heim'), urlOf('denied', 'other')]) {
      const store = await opened(url);
      for (const call of [
        () => store.read('a', { signal }),
        () => store.write('a', { ...record, token: 'f'.repeat(16) }, record.token, { signal }),
        () => store.write('b', record, undefined, { signal }),
      ]) {
        await assert.rejects(call(), (error) => {
          assert.equal(error.code, 'ERR_SNOWFLAKE_STORE');
          assert.match(
            error.message,
            /^ZooKeeper at \S+ denied access: grant this user the rights/,
          );
          assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /g3heim/);
          return true;
        });
      }
    }
  });

  test('nodes that were deleted are created again, by sessions that were open before', async () => {
    const own = await Server.start('zookeeper');
    const stores = [connect(new URL(own.url)), connect(new URL(own.url))];
    const [one, other] = await Promise.all(stores);
    try {
      const record = { token: '0123456789abcdef', text: 'first' };
      await one.write('0/0', record, undefined, { signal });
      await other.read('0/0', { signal });
      const { directory, load } = require('snowdrift-zookeeper');
      const addon = loadAddon('snowdrift-zookeeper', directory, load);
      const operator = await addon.connect(`127.0.0.1:${own.port}`, 10_000);
      const remove = async (path) => {
        for (const name of await operator.children(path)) await remove(`${path}/${name}`);
        await operator.change([{ kind: 'delete', path }]);
      };
      await remove('/snowdrift');
      operator.close();
      assert.equal((await one.read('0/0', { signal })).record, undefined);
      assert.ok((await other.write('0/0', record, undefined, { signal })).isWritten);
      assert.deepEqual((await one.read('0/0', { signal })).record, record);
    } finally {
      await Promise.all([one.close(), other.close()]);
      await own.stop();
    }
  });

  registerContract('with a login', (namespace) => connect(urlOf(namespace)), { limit: 240_000 });

  test('leases by URL and by zookeeper() share a namespace', async () => {
    const store = zookeeper(`127.0.0.1:${server.port}`, {
      ...{ namespace: 'both', user: 'app', password: PASSWORD },
    });
    const options = { datacenterId: 1, scope: 'process' };
    const both = [
      await SnowFlake.lease(store, options),
      await SnowFlake.lease(urlOf('both').href, options),
    ];
    assert.notEqual(both[0].workerId, both[1].workerId);
    for (const flake of both) await flake.close();
  });

  describe('the holders of slots, as people see them', () => {
    const slot = { datacenterId: 1, workerId: 7 };
    const storeOf = (namespace, more) => {
      const store = zookeeper(`127.0.0.1:${server.port}`, { namespace, ...more });
      closing.push(() => store.close());
      return store;
    };
    const shown = async (namespace) =>
      (await stranger()).children(`/snowdrift/${namespace}/holders`);

    test('are nodes that last as long as the lease', async () => {
      const options = { datacenterId: 1, scope: 'process', address: '10.0.0.7:8080' };
      const flake = await SnowFlake.lease(storeOf('shown', { port: 81 }), options);
      const name = `1-${flake.workerId}`;
      await until(async () => (await shown('shown'))[0] === name);
      const text = await (await stranger()).get(`/snowdrift/shown/holders/${name}`);
      const { started, ...holder } = JSON.parse(text);
      const { address } = options;
      assert.deepEqual(holder, { host: hostname(), address, pid: process.pid, port: 81 });
      assert.ok(Date.parse(started) <= Date.now());
      await flake.close();
      await until(async () => (await shown('shown')).length === 0);
    });

    test('are shown again by a later renewal, and removed by the session that showed them', async () => {
      const [first, second] = [storeOf('again'), storeOf('again')];
      await first.show(slot, { pid: 1 }, { signal });
      await second.show(slot, { pid: 2 }, { signal });
      await second.show(slot, undefined, { signal });
      assert.deepEqual(await shown('again'), ['1-7'], 'it is the node of the first');
      await first.close();
      await until(async () => (await shown('again')).length === 0);
      await second.show(slot, { pid: 2 }, { signal });
      assert.deepEqual(await shown('again'), ['1-7']);
      await second.show(slot, undefined, { signal });
      assert.deepEqual(await shown('again'), []);
    });

    test('do not matter to a lease', async () => {
      const owner = await stranger('operator:secret');
      const record = { token: '0123456789abcdef', text: '-' };
      await storeOf('hidden').write('9/9', record, undefined, { signal });
      await owner.make('/snowdrift/hidden/holders');
      const store = storeOf('hidden');
      const failures = [];
      const show = (...values) => {
        const showing = store.show(...values);
        showing.catch(({ message }) => failures.push(message));
        return showing;
      };
      const flake = await SnowFlake.lease(
        { ...store, show },
        { datacenterId: 1, scope: 'process' },
      );
      await until(() => failures.length > 0);
      assert.match(failures[0], /not authorized/);
      assert.equal(flake.lease.state, 'held');
      assert.equal(typeof flake.nextId(), 'bigint');
      await flake.close();
    });
  });
});

test('a port is one', { skip: missing('zookeeper') }, () => {
  for (const port of ['81', -1, 65_536, null]) {
    assert.throws(() => zookeeper('zk1:2181', { port }), { code: 'ERR_SNOWFLAKE_CONFIG' });
  }
});

test('a login is both user and password', { skip: missing('zookeeper') }, () => {
  for (const login of [{ user: 'app' }, { password: 'x' }, { user: 'a:b', password: 'x' }]) {
    assert.throws(() => zookeeper('zk1:2181', login), { code: 'ERR_SNOWFLAKE_CONFIG' });
  }
});
