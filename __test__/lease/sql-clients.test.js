'use strict';
// Each client that docs/stores.md names for sql(), with the code that it shows: the contract, and hosts in chaos.

const { after, before, describe, test } = require('node:test');
const { join } = require('node:path');

const { createDirectory } = require('../support/own-directory.js');
const { Server, missing } = require('../support/lease/servers.js');
const {
  SQL_CLIENTS,
  engineOf,
  openSqlClient,
  preparePrismaClients,
} = require('../support/lease/sql-clients.js');
const { storm } = require('../support/amount.js');
const { missingOrm } = require('../support/installed.js');
const { registerContract } = require('../../js/stores/contract.js');
const { sql } = require('../../js/stores/sql.js');

const isServer = (engine) => !['file', 'memory'].includes(engine);

describe('clients of SQL databases', { concurrency: 1 }, () => {
  before(async () => {
    if (missingOrm('prisma') === undefined) await preparePrismaClients();
  });

  for (const [name, { missing: missingPackage }] of Object.entries(SQL_CLIENTS)) {
    const engine = engineOf(name);
    const skip = storm ?? missingPackage() ?? (isServer(engine) ? missing(engine) : undefined);
    if (skip) {
      test(name, { skip }, () => {});
      continue;
    }
    describe(name, () => {
      let server;
      const place = isServer(engine) ? undefined : join(createDirectory(), 'app.db');
      const opened = [];
      /** In a database of one process, all share it. */
      let shared;
      before(async () => {
        if (place === undefined) server = await Server.start(engine);
      });
      after(async () => {
        for (const end of opened) await end();
        await server?.stop();
      });

      async function open() {
        const { client, end } = await openSqlClient(name, place ?? server.url);
        opened.push(end);
        return client;
      }

      registerContract(
        name,
        async (namespace) => {
          if (engine === 'memory') shared ??= open();
          return sql(await (shared ?? open()), { namespace });
        },
        { limit: 240_000 },
      );
    });
  }
});
