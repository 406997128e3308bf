'use strict';
// A client of ZooKeeper has one session, whatever calls it at once. The addon is a fake.

const assert = require('node:assert/strict');
const { beforeEach, test } = require('node:test');

const { createClient } = require('../../js/stores/zookeeper-client.js');

let sessions;

class Session {
  isOpen = true;
  hasEnded = () => !this.isOpen;
  close = () => {
    this.isOpen = false;
  };
}

const connect = async () => sessions[sessions.push(new Session()) - 1];

beforeEach(() => {
  sessions = [];
});

const create = () => createClient('zk1:2181', {}, () => ({ connect }));

test('calls that find none, or an ended one, open one together', async () => {
  const { session } = create();
  for (const count of [1, 2]) {
    const open = await Promise.all([session(), session(), session()]);
    assert.deepEqual([new Set(open).size, sessions.length], [1, count]);
    open[0].close();
  }
});

test('a session that is replaced is closed: its client may reconnect', async () => {
  const { session } = create();
  const lost = await session();
  lost.hasEnded = () => true;
  assert.notEqual(await session(), lost);
  assert.equal(lost.isOpen, false);
});

test('calls that are abandoned leave no session open after close()', async () => {
  for (const hasEnded of [false, true]) {
    const { session, close } = create();
    if (hasEnded) (await session()).close();
    const limit = new AbortController();
    const call = session(limit.signal);
    limit.abort();
    await Promise.all([close(), assert.rejects(call, { name: 'AbortError' })]);
  }
  assert.deepEqual(
    sessions.filter(({ isOpen }) => isOpen),
    [],
  );
});
