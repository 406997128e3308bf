'use strict';
// ORMs and tools beside a living lease, as docs/orms.md has them: which drop the table of leases in the application's
// schema, and which in a schema of its own.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');
const { promisify } = require('node:util');
const postgresql = require('@mikro-orm/postgresql');
const { DataTypes, Sequelize } = require('sequelize');
const { DataSource, EntitySchema } = require('typeorm');

const { gate } = require('../support/amount.js');
const { createDirectory } = require('../support/own-directory.js');
const { CLIENTS } = require('../support/lease/clients.js');
const { Server, missing } = require('../support/lease/servers.js');
const { missingOrm, modulesOf } = require('../support/installed.js');
const { CREATE, runPrisma } = require('../support/prisma-engine.js');
const { SnowFlake, soon, until } = require('../support/support.js');

/** Short, for renewals. A hold that expires stays its owner's, since nobody else acquires slots. */
const OPTIONS = { scope: 'process', ttl: 1000, maxClockSkew: 500, callTimeout: 60_000 };
const connectTimeout = 60_000;

/** What a tool does to the table of leases: in the application's schema, and in one of its own. */
const KEEPS_BOTH = [true, true];
const DROPS_ONE = [false, true];
const DROPS_BOTH = [false, false];
const DROPS_OTHER = [true, false];

function typeorm(options) {
  return async ({ engine, url }) => {
    const user = new EntitySchema({
      name: 'user',
      columns: { id: { type: 'bigint', primary: true } },
    });
    const type = { postgres: 'postgres', mysql: 'mariadb' }[engine];
    const source = new DataSource({ type, url, connectTimeout, entities: [user], ...options });
    await source.initialize();
    await source.destroy();
  };
}

function sequelize(run) {
  return async ({ url }) => {
    const client = new Sequelize(url, { logging: false, dialectOptions: { connectTimeout } });
    client.define('user', { id: { type: DataTypes.BIGINT, primaryKey: true } });
    await run(client);
    await client.close();
  };
}

function mikroOrm(run, options) {
  return async ({ engine, url }) => {
    const { BigIntType, EntitySchema, MikroORM } =
      engine === 'postgres'
        ? postgresql
        : require(join(modulesOf('mikro-orm'), '@mikro-orm/mariadb'));
    const id = { type: new BigIntType('bigint'), primary: true, autoincrement: false };
    const user = new EntitySchema({ name: 'User', properties: { id } });
    const orm = await MikroORM.init({ entities: [user], clientUrl: url, ...options });
    await run(orm.schema);
    await orm.close(true);
  };
}

function drizzleKit(options) {
  return async ({ engine, url }) => {
    const core = { postgres: 'pg', mysql: 'mysql' }[engine];
    const folder = modulesOf('drizzle-kit');
    const models = join(folder, `models-${engine}.cjs`);
    writeFileSync(
      models,
      `const { bigint, ${core}Table } = require('drizzle-orm/${core}-core');
      exports.users = ${core}Table('users', { id: bigint({ mode: 'bigint' }).primaryKey() });`,
    );
    const config = join(createDirectory(), 'drizzle.config.json');
    writeFileSync(
      config,
      JSON.stringify({
        dialect: { postgres: 'postgresql', mysql: 'mysql' }[engine],
        schema: models,
        dbCredentials: { url },
        ...options,
      }),
    );
    const bin = join(folder, 'drizzle-kit/bin.cjs');
    const args = [bin, 'push', '--force', '--config', config];
    await promisify(execFile)(process.execPath, args, { cwd: join(folder, '..') });
  };
}

const prisma =
  (command) =>
  ({ url }) =>
    runPrisma(command, url);

/** Prisma finds a table in its schema that no migration creates, and none in another one. */
async function prismaDev({ url }) {
  const { tag, reason } = await runPrisma('migrate dev', url);
  assert.equal(tag, 'reset');
  assert.match(reason, /snowdrift_records/);
  assert.doesNotMatch(reason, /ids_/);
}

const skipTables = { schemaGenerator: { skipTables: ['snowdrift_records'] } };

const missingPrisma = (engine) =>
  missingOrm('prisma') ?? (engine === 'mysql' ? 'the engine knows no MySQL' : undefined);
const missingMikroOrm = (engine) => (engine === 'mysql' ? missingOrm('mikro-orm') : undefined);

/** By name: what it does to the table, how it runs, and why it is skipped. */
const TOOLS = {
  'TypeORM: synchronize': [KEEPS_BOTH, typeorm({ synchronize: true })],
  'TypeORM: dropSchema': [DROPS_ONE, typeorm({ dropSchema: true, synchronize: true })],
  'Sequelize: sync by force': [KEEPS_BOTH, sequelize((client) => client.sync({ force: true }))],
  'Sequelize: dropAllTables': [
    DROPS_ONE,
    sequelize((client) => client.getQueryInterface().dropAllTables()),
  ],
  'Sequelize: dropAllSchemas': [
    { postgres: DROPS_OTHER, mysql: KEEPS_BOTH },
    sequelize((client) => client.dropAllSchemas()),
  ],
  'MikroORM: refreshDatabase': [
    KEEPS_BOTH,
    mikroOrm((schema) => schema.refreshDatabase()),
    missingMikroOrm,
  ],
  'MikroORM: updateSchema': [
    { postgres: DROPS_BOTH, mysql: DROPS_ONE },
    mikroOrm((schema) => schema.updateSchema()),
    missingMikroOrm,
  ],
  'MikroORM: updateSchema with skipTables': [
    KEEPS_BOTH,
    mikroOrm((schema) => schema.updateSchema(), skipTables),
    missingMikroOrm,
  ],
  'Prisma: migrate dev, which asks to reset': [KEEPS_BOTH, prismaDev, missingPrisma],
  'Prisma: migrate reset': [DROPS_ONE, prisma('migrate reset'), missingPrisma],
  'Prisma: db push': [DROPS_ONE, prisma('db push'), missingPrisma],
  'Drizzle: drizzle-kit push': [DROPS_ONE, drizzleKit(), () => missingOrm('drizzle-kit')],
};

const warnings = [];
process.on('warning', (warning) => warnings.push(warning));

/** By engine: the one that is tried where the gate has the others. It drops one of the tables. */
const QUICK = { postgres: 'TypeORM: dropSchema' };

/** Of the two tables that there were, which there are. */
async function tablesIn(client, places) {
  const sql =
    "SELECT table_schema AS place FROM information_schema.tables WHERE table_name = 'snowdrift_records'";
  const result = await client.query(sql);
  const found = (result.rows ?? result[0]).map(({ place }) => place);
  return places.map((place) => found.includes(place));
}

for (const engine of ['postgres', 'mysql']) {
  describe(`on ${engine}`, {
    skip: missing(engine) ?? (engine in QUICK ? undefined : gate),
    concurrency: 4,
  }, () => {
    const [[, { connect, end }]] = Object.entries(CLIENTS[engine]);
    const tools = Object.entries(TOOLS);
    let server;
    before(async () => {
      server = await Server.start(engine);
      const operator = await connect(server.url);
      for (const at of Object.keys(tools)) await operator.query(`CREATE DATABASE app_${at}`);
      await end(operator);
    });
    after(() => server?.stop());

    for (const [at, [name, [does, run, skip]]] of tools.entries()) {
      test(name, {
        skip: skip?.(engine) ?? (name === QUICK[engine] ? undefined : gate),
      }, async (t) => {
        const [database, own] = [`app_${at}`, `ids_${at}`];
        const url = new URL(server.url);
        url.pathname = `/${database}`;
        const client = await connect(url.href);
        t.after(() => end(client));
        // Tools ask whether a new table is one that is gone, renamed.
        await client.query(CREATE);
        await client.query(`CREATE SCHEMA ${own}`);
        const leases = [];
        for (const [datacenterId, query] of [
          [1, ''],
          [2, `?schema=${own}`],
        ]) {
          const flake = await SnowFlake.lease(url + query, { datacenterId, ...OPTIONS });
          t.after(() => flake.close());
          leases.push(flake);
        }
        const places = [engine === 'postgres' ? 'public' : database, own];
        assert.deepEqual(await tablesIn(client, places), [true, true]);
        const owners = leases.map(({ lease }) => lease.owner);

        await run({ engine, url: url.href });
        const kept = does[engine] ?? does;
        const isLost = (which) => {
          const { owner, lost, failure } = leases[which].lease;
          return owner !== owners[which] || lost !== undefined || failure !== undefined;
        };
        for (const which of [0, 1]) {
          const { renewals } = leases[which].lease;
          const isRenewed = () => leases[which].lease.renewals >= renewals + 2;
          // While a tool has its locks, a call may fail on a busy machine. A lease that is kept is renewed after that.
          await until(() => (kept[which] ? isRenewed() && !isLost(which) : isLost(which)));
        }
        assert.deepEqual([!isLost(0), !isLost(1)], kept);
        const isAdvised = ({ detail }) => /give it a schema of its own: \?schema=ids/.test(detail);
        if (!kept[0]) await until(() => warnings.some(isAdvised));
        for (const flake of leases.filter((_, which) => kept[which])) {
          await soon(() => flake.nextId());
        }
        // The holder of a table that was dropped creates it anew.
        if (kept[0] && kept[1]) assert.deepEqual(await tablesIn(client, places), kept);
      });
    }
  });
}
