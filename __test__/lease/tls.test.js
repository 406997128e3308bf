'use strict';
// TLS by URL, as docs/store-security.md has it: the server's certificate must be of a CA that the process trusts,
// and name the host.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

const { gate } = require('../support/amount.js');
const { Server, missing } = require('../support/lease/servers.js');
const { runScript, until } = require('../support/support.js');

const PAGE = readFileSync(join(__dirname, '../../docs/store-security.md'), 'utf8');

const ENGINES = [
  {
    engine: 'postgres',
    options: 'sslmode=verify-full',
    ca: ({ certificate }) => `sslrootcert=${certificate}`,
  },
  {
    engine: 'mysql',
    options: 'ssl={"verifyIdentity":true}',
    host: '127.1',
    // What the page warns of.
    lax: 'ssl={}',
  },
  { engine: 'redis' },
  { engine: 'etcd', ca: ({ certificate }) => `ca=${certificate}` },
];

const SCRIPT = `
  const options = { datacenterId: 1, ttl: 2000, maxClockSkew: 2000, scope: 'process', callTimeout: 60_000, maxWait: 60_000 };
  require('../..').SnowFlake.lease(process.env.URL_OF_ENGINE, options)
    .then(async (flake) => { console.log(typeof (await flake.nextIdAsync())); await flake.close(); }, ({ message }) => console.log(message));`;

for (const { engine, options = '', ca, lax, host: right = '127.0.0.1' } of ENGINES) {
  const skip = missing(engine) ?? (engine === 'redis' ? undefined : gate);
  describe(engine, { skip }, () => {
    let server;
    before(async () => {
      assert.ok(PAGE.includes(options));
      server = await Server.start(engine, { tls: true });
    });
    after(() => server?.stop());

    const output = async (env, host = right, more = '') => {
      const query = [more.startsWith('ssl=') ? '' : options, more].filter(Boolean).join('&');
      const url = `${server.url.replace('127.0.0.1', host)}?${query}`;
      return (await runScript(SCRIPT, { env: { URL_OF_ENGINE: url, ...env } })).stdout;
    };

    test('a server is trusted by its CA and its name', async () => {
      // It listens before it serves.
      await until(async () => (await output(server.trusting)) === 'bigint\n');
      assert.match(await output({}), /^Cannot agree on TLS with \w+ at 127/);
      assert.match(
        await output(server.trusting, 'localhost'),
        /^Cannot agree on TLS with \w+ at l/,
      );
      if (lax !== undefined) {
        assert.equal(await output(server.trusting, 'localhost', lax), 'bigint\n');
        assert.match(await output({}, 'localhost', lax), /^Cannot agree on TLS with \w+ at l/);
      }
      if (ca !== undefined) assert.equal(await output({}, right, ca(server)), 'bigint\n');
    });
  });
}
