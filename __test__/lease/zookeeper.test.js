'use strict';
// ZooKeeper with a login: the nodes of snowdrift are its user's only.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');
const { inspect } = require('node:util');

const { loadAddon } = require('../../js/addon.js');
const { connect } = require('../../js/stores/connect.js');
const { zookeeper } = require('../../js/stores/zookeeper.js');
const { storm } = require('../support/amount.js');
const { contract, open, take } = require('../support/lease/contract.js');
const { Server, missing } = require('../support/lease/servers.js');
const { SnowFlake } = require('../support/support.js');

const PASSWORD = 'g3heim/&t:x';

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
    const { workerId } = await take(store);
    const paths = ['', '/1', `/1/${workerId}`, `/1/${workerId}/holder`];
    for (const login of [undefined, 'app:other', 'other:g3heim']) {
      const other = await stranger(login);
      for (const path of paths.map((each) => `/snowdrift/closed${each}`)) {
        const set = { kind: 'set', path, data: '{"ceiling":-1,"owner":null}' };
        for (const attack of [
          set,
          { kind: 'delete', path },
          { ...set, path: `${path}/x`, kind: 'create' },
        ]) {
          await assert.rejects(other.change([attack]), /not authorized|not empty/, inspect(attack));
        }
        await assert.rejects(other.get(path), /not authorized/);
        await assert.rejects(other.children(path), /not authorized/);
      }
    }
    const { slots } = await store.slots();
    assert.deepEqual([slots[0].isHeld, slots[0].ceiling], [true, 100]);
  });

  test('without a login, or with another one, the namespace is denied', async () => {
    await open(await opened(urlOf('denied')));
    const anyone = new URL(`${server.url}?namespace=denied`);
    for (const url of [anyone, urlOf('denied', 'app', 'g3heim'), urlOf('denied', 'other')]) {
      const store = await opened(url);
      await assert.rejects(open(store), (error) => {
        assert.equal(error.code, 'ERR_SNOWFLAKE_STORE');
        assert.match(error.message, /^ZooKeeper at \S+ denied access: grant this user the rights/);
        assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /g3heim/);
        return true;
      });
    }
  });

  contract(test, (namespace) => opened(urlOf(namespace)), {
    ttl: 5000,
    die: (store) => store.close(),
  });

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
});

test('a login is both user and password', { skip: missing('zookeeper') }, () => {
  for (const login of [{ user: 'app' }, { password: 'x' }, { user: 'a:b', password: 'x' }]) {
    assert.throws(() => zookeeper('zk1:2181', login), { code: 'ERR_SNOWFLAKE_CONFIG' });
  }
});
