'use strict';
// The engine of `prisma migrate` and `prisma db push`, compiled to WebAssembly: the command line downloads a binary from a
// host of its own, which not every machine reaches. It knows PostgreSQL and SQLite. It runs in a process of its own, which
// ends without its timers.

const { execFile } = require('node:child_process');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { promisify } = require('node:util');

const { modulesOf } = require('./installed.js');

const modules = join(modulesOf('prisma'), '@prisma');

/** The one table that the application has, and how its migration created it. */
const SCHEMA = 'datasource db {\n provider = "postgresql"\n}\nmodel users {\n id BigInt @id\n}';
const CREATE = 'CREATE TABLE users (id bigint NOT NULL PRIMARY KEY)';

const filters = { externalTables: [], externalEnums: [] };

/** By command line, what it has the engine do. */
const COMMANDS = {
  'db push': (engine) =>
    engine.schemaPush({
      force: true,
      schema: { files: [{ path: 'schema.prisma', content: SCHEMA }] },
      filters,
    }),
  'migrate reset': (engine) => engine.reset({ filter: filters }),
  /** Of a database whose one migration has run: returns what it wants to do next. */
  async 'migrate dev'(engine) {
    const content = { tag: 'ok', value: CREATE };
    const path = '1_users';
    const migrationsList = {
      baseDir: 'migrations',
      lockfile: { path: 'migration_lock.toml', content: 'provider = "postgresql"' },
      shadowDbInitScript: '',
      migrationDirectories: [{ path, migrationFile: { path: `${path}/migration.sql`, content } }],
    };
    await engine.markMigrationApplied({ migrationName: path, migrationsList });
    return (await engine.devDiagnostic({ migrationsList, filters })).action;
  },
};

async function load() {
  const folder = join(modules, 'schema-engine-wasm');
  const bindings = await import(join(folder, 'schema_engine_bg.js'));
  const { instance } = await WebAssembly.instantiate(
    readFileSync(join(folder, 'schema_engine_bg.wasm')),
    { './schema_engine_bg.js': bindings },
  );
  bindings.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start();
  return bindings.SchemaEngine;
}

/** The OIDs of PostgreSQL's `"char"`, which the engine asks for and its adapter refuses, and of `text`. */
const CHAR = 18;
const TEXT = 25;

/** Connects to a database, and to a shadow of it: Prisma's own factory drops that before it has left it. */
function factoryOf(url) {
  const { PrismaPg } = require(join(modules, 'adapter-pg'));
  const { Pool } = require(require.resolve('pg', { paths: [join(modules, 'adapter-pg')] }));
  const { query } = Pool.prototype;
  Pool.prototype.query = async function (...args) {
    const result = await query.apply(this, args);
    for (const field of result.fields) if (field.dataTypeID === CHAR) field.dataTypeID = TEXT;
    return result;
  };
  const { hostname: host, port, username: user, pathname } = new URL(url);
  const config = { host, port, user, database: pathname.slice(1) };
  return new (class extends PrismaPg {
    async connectToShadowDb() {
      const database = `shadow_${process.pid}_${performance.now().toFixed()}`;
      const pool = new Pool(config);
      await pool.query(`CREATE DATABASE ${database}`);
      return new PrismaPg({ ...config, database }).connect();
    }
  })(config);
}

async function main(command, url) {
  const SchemaEngine = await load();
  const { bindMigrationAwareSqlAdapterFactory } = require(join(modules, 'driver-adapter-utils'));
  const adapter = bindMigrationAwareSqlAdapterFactory(factoryOf(url));
  const options = { datamodels: [['schema.prisma', SCHEMA]] };
  const engine = await SchemaEngine.new(options, () => {}, adapter);
  process.stdout.write(JSON.stringify((await COMMANDS[command](engine)) ?? null), () => {
    process.exit();
  });
}

/** Runs a command of Prisma's on a database of PostgreSQL, whose only model is `users`. Returns what the engine returns. */
async function runPrisma(command, url) {
  const { stdout } = await promisify(execFile)(process.execPath, [__filename, command, url]);
  return JSON.parse(stdout);
}

if (require.main === module) main(...process.argv.slice(2));

module.exports = { CREATE, runPrisma };
