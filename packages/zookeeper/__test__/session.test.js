'use strict';
// Sessions with a real server, by the calls of the addon alone. What snowdrift's leases make of them: __test__/lease.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');

const { storm } = require('../../../__test__/support/amount.js');
const { Server, missing } = require('../../../__test__/support/lease/servers.js');
const { until } = require('../../../__test__/support/support.js');
const { loadHere } = require('./support/addon.js');

const skip = missing('zookeeper');
/** The longest that the server allows, ms. */
const SESSION_MS = 20_000;

const connect = (...values) => loadHere().connect(...values);

describe('a session', { skip: skip ?? storm }, () => {
  let server;
  const sessions = [];
  const opened = async (login) => {
    const session = await connect(`127.0.0.1:${server.port}`, SESSION_MS, login);
    sessions.push(session);
    return session;
  };
  before(async () => {
    server = await Server.start('zookeeper');
  });
  after(async () => {
    for (const session of sessions) session.close();
    await server?.stop();
  });

  test('makes nodes with those above them, and reads them; what is not there is null, or empty', async () => {
    const session = await opened();
    assert.equal(await session.get('/made/here'), null);
    assert.deepEqual(await session.children('/made'), []);
    await session.make('/made/here');
    // It may be there.
    await session.make('/made/here');
    assert.equal(await session.get('/made/here'), '');
    assert.deepEqual(await session.children('/made'), ['here']);
  });

  test('makes all of its changes, or none', async () => {
    const session = await opened();
    await session.make('/changes');
    const { isDone } = await session.change([
      { kind: 'create', path: '/changes/a', data: 'ä' },
      { kind: 'create', path: '/changes/b' },
    ]);
    assert.equal(isDone, true);
    const created = { kind: 'create', path: '/changes/c' };
    for (const refused of [
      { kind: 'create', path: '/changes/a' },
      { kind: 'set', path: '/changes/absent', data: 'x' },
      { kind: 'delete', path: '/changes/absent' },
    ]) {
      assert.equal((await session.change([created, refused])).isDone, false, refused.path);
    }
    assert.deepEqual((await session.children('/changes')).sort(), ['a', 'b']);
    assert.equal(await session.get('/changes/a'), 'ä');
  });

  test("tells when a node was set, by the ensemble's clock", async () => {
    const session = await opened();
    await session.make('/clock');
    const first = await session.touch('/clock');
    const { time } = await session.change([{ kind: 'set', path: '/clock', data: '' }]);
    assert.ok(first > 0 && time >= first, `${first}, ${time}`);
  });

  test('sees what an earlier session has written', async () => {
    await (await opened()).make('/earlier');
    assert.equal(await (await opened()).get('/earlier'), '');
  });

  test('that is closed takes its ephemeral nodes with it, and fails each call', async () => {
    const [first, other] = [await opened(), await opened()];
    await first.make('/ephemeral');
    await first.change([{ kind: 'createEphemeral', path: '/ephemeral/first' }]);
    assert.deepEqual(await other.children('/ephemeral'), ['first']);
    assert.equal(first.hasEnded(), false);
    first.close();
    assert.equal(first.hasEnded(), true);
    await until(async () => (await other.children('/ephemeral')).length === 0);
    for (const call of ['make', 'get', 'children', 'touch']) {
      await assert.rejects(first[call]('/ephemeral'), /^Error: ZooKeeper: /, call);
    }
    await assert.rejects(first.change([{ kind: 'delete', path: '/ephemeral' }]), /^Error: Zoo/);
  });

  test("with a login makes nodes that are that user's only", async () => {
    const owner = await opened('app:g3heim');
    await owner.make('/owned/inside');
    for (const login of [undefined, 'app:other', 'other:g3heim']) {
      const stranger = await opened(login);
      for (const call of [
        () => stranger.get('/owned'),
        () => stranger.children('/owned'),
        () => stranger.touch('/owned/inside'),
        () => stranger.change([{ kind: 'delete', path: '/owned/inside' }]),
      ]) {
        await assert.rejects(call(), /^Error: ZooKeeper: not authorized$/);
      }
    }
    assert.equal(await owner.get('/owned/inside'), '');
  });
});

test('a server that is not there is named, and why', { skip }, async () => {
  await assert.rejects(connect('127.0.0.1:1', SESSION_MS), ({ message }) => {
    assert.match(message, /^ZooKeeper: 127\.0\.0\.1:1: .*refused/i);
    return true;
  });
});

test('certificates that cannot be used are refused, and not shown', { skip }, async () => {
  if (!loadHere().HAS_TLS) return;
  const pem = (what) => `-----BEGIN ${what}-----\ng3heim\n-----END ${what}-----\n`;
  for (const ca of ['', 'g3heim', pem('CERTIFICATE'), pem('PRIVATE KEY')]) {
    await assert.rejects(connect('127.0.0.1:1', SESSION_MS, undefined, { ca }), ({ message }) => {
      assert.match(message, /^ZooKeeper: cannot use ca/);
      assert.doesNotMatch(message, /g3heim/);
      return true;
    });
  }
});
