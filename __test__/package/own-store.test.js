'use strict';
// The store of docs/own-store.md, tested as its reader would, and a lease from it.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

require('../support/own-directory.js');
const { gate } = require('../support/amount.js');
const { Server, missing } = require('../support/lease/servers.js');
const { runFiles } = require('../support/page.js');
const { TITLES } = require('../../js/stores/contract-checks.js');

const PAGE = 'docs/own-store.md';
/** What the page gives no options for: a silent server, a spoilt record. */
const SKIPPED = 2;

describe(PAGE, { skip: missing('mongodb') ?? gate }, () => {
  let server;
  before(async () => {
    server = await Server.start('mongodb');
  });
  after(() => server?.stop());

  // As from a shell: this test is no parent of theirs.
  const environment = () => ({ MONGODB_URL: server.url, NODE_TEST_CONTEXT: undefined });
  const run = (...programs) => runFiles(PAGE, programs, environment());

  test('the store passes the contract', async () => {
    const printed = await run(['--test', '--test-reporter=tap', 'mongodb.test.mjs']);
    const numberOf = (what) => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(printed)[1]);
    assert.equal(numberOf('skipped'), SKIPPED);
    assert.equal(numberOf('pass'), TITLES.length - SKIPPED);
  });

  test('a lease from it gives IDs', async () => {
    const [, lease] = /Lease from it: `(.*)`/.exec(readFileSync(join(__dirname, '../..', PAGE)));
    const program = `
      import { MongoClient } from 'mongodb';
      import { SnowFlake } from 'snowdrift';
      import { mongodb } from './mongodb.mjs';
      const client = new MongoClient(process.env.MONGODB_URL);
      const flake = await ${lease};
      console.log(flake.nextId());
      await flake.close();
      await client.close();`;
    assert.match(await run(['--input-type=module', '--eval', program]), /^\d{15,}n$/m);
  });
});
