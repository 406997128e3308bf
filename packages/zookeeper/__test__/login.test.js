'use strict';
// When a session logs in: by servers that answer a login at once.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { missing } = require('../../../__test__/support/lease/servers.js');
const { until } = require('../../../__test__/support/support.js');
const { loadHere } = require('./support/addon.js');
const { answerLoginsFirst } = require('./support/liar.js');

const skip = missing('zookeeper');

/** What becomes of a session with such a server. */
async function withSession(options, use) {
  const server = await answerLoginsFirst(options);
  try {
    const session = await loadHere().connect(`127.0.0.1:${server.port}`, 10_000, 'app:g3heim');
    try {
      await use(session, server);
    } finally {
      session.close();
    }
  } finally {
    server.close();
  }
}

test('a session logs in once it is there, and before any call', { skip }, async () => {
  await withSession({}, (_, { connections }) => {
    assert.deepEqual(connections, [['session', 'ping', 'login', 'sync']]);
  });
});

test('to a server that needs a login first, the two go together until they are answered in order', {
  skip,
}, async () => {
  await withSession({ needsLogin: true, overtaken: 2 }, (_, { connections }) => {
    assert.deepEqual(connections[0], ['session', 'ping']);
    const tries = connections.slice(1);
    assert.equal(tries.length, 3);
    for (const kinds of tries) assert.deepEqual(kinds.slice(0, 2), ['session', 'login']);
    assert.ok(tries[2].includes('sync'));
  });
});

test('a session that has lost its connection has ended, and its calls fail at once', {
  skip,
}, async () => {
  await withSession({}, async (session, { cut }) => {
    assert.equal(session.hasEnded(), false);
    cut();
    await until(() => session.hasEnded());
    // It would wait for another connection, which nobody answers.
    await assert.rejects(session.touch('/'), /^Error: ZooKeeper: connection to server has lost$/);
  });
});
