'use strict';
// What a server sends takes no memory that it has not sent.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { missing } = require('../../../__test__/support/lease/servers.js');
const { runScript } = require('../../../__test__/support/support.js');
const { lieAboutChildren } = require('./support/liar.js');

test('a list that is longer than its reply takes no memory and ends no process', {
  skip: missing('zookeeper') ?? (process.platform === 'win32' && 'it allocates the list at once'),
}, async () => {
  // As many as there can be, and some that a small machine would have.
  for (const names of [2 ** 31 - 1, 2 ** 28]) {
    const server = await lieAboutChildren(names);
    const script = `
      const { loadHere } = require(${JSON.stringify(require.resolve('./support/addon.js'))});
      const peak = () => process.resourceUsage().maxRSS / 1024;
      (async () => {
        const session = await loadHere().connect('127.0.0.1:${server.port}', 10_000);
        const before = peak();
        const { message } = await session.children('/').catch((failure) => failure);
        console.log(JSON.stringify({ message, mb: peak() - before }));
        session.close();
      })();`;
    const { stdout, stderr } = await runScript(script);
    server.close();
    assert.ok(stdout !== '', stderr);
    const { message, mb } = JSON.parse(stdout);
    assert.match(message, /unmarshal/);
    assert.equal(server.lies(), 1);
    assert.ok(mb < 100, `${mb} MB`);
  }
});
