'use strict';
// `snowdrift namespace tables`

/**
 * @import { FlagsOf } from './flags.js'
 * @import { CommandIo } from './main.js'
 */

const { describe } = require('../messages/errors.js');
const { readOptions } = require('../stores/options.js');
const { DIALECTS, RECORDS, createRecords, recordsIn } = require('../stores/sql-dialects.js');

const help = `Usage: snowdrift namespace tables [--for DATABASE] [--schema NAME]

Prints the table that leases use, and the least rights of their user: for a migration, where the
application may not create tables. Without --for, those of all databases.

  --for DATABASE        postgres, mysql (MariaDB, too) or sqlite
  --schema NAME         its schema, on MySQL and MariaDB its database: the leases' option schema
  --json                prints the statements by name, by database`;

const options = /** @type {const} */ ({ for: { type: 'string' }, schema: { type: 'string' } });

/**
 * @typedef {import('../stores/types.d.ts').DialectName} Dialect
 * @typedef {{ table: string, uses?: string, rights?: string }} Statements
 */

const RIGHTS = 'SELECT, INSERT, UPDATE';

const { quote: quoted } = DIALECTS.postgres;

const title = {
  postgres: 'PostgreSQL. Run it in the database of the leases, as the owner of the schema.',
  mysql: 'MySQL and MariaDB. Run it in the database of the leases.',
  sqlite: 'SQLite. Run it in the database of the leases.',
};

const USER = "The least rights of the application's user, here app";
const note = {
  postgres: `${USER}, besides CONNECT on the database and, without --schema, USAGE on the schema.`,
  mysql: `${USER}; without --schema, in the database app.`,
  sqlite: 'It has no users.',
};

/**
 * The statements of a database, by name.
 * @param {Dialect} name
 * @param {string | undefined} schema the table's schema; undefined for the connection's
 * @returns {Statements}
 */
function statementsOf(name, schema) {
  const table = createRecords(name, recordsIn(name, schema));
  if (name === 'sqlite') return { table };
  const uses = schema && name === 'postgres' && `GRANT USAGE ON SCHEMA ${quoted(schema)} TO app`;
  const place = schema || name === 'postgres' ? recordsIn(name, schema) : `app.${RECORDS}`;
  return { table, ...(uses && { uses }), rights: `GRANT ${RIGHTS} ON ${place} TO app` };
}

/**
 * The SQL script of a database.
 * @param {Dialect} name
 * @param {Statements} statements
 */
function leaseScript(name, { table, ...rights }) {
  const granted = Object.values(rights).map((sql) => `${sql};`);
  return [`-- ${title[name]}`, `${table};`, [`-- ${note[name]}`, ...granted].join('\n')].join(
    '\n\n',
  );
}

/**
 * @param {string} name
 * @returns {name is Dialect}
 */
const isDialect = (name) => Object.hasOwn(title, name);

/**
 * @param {FlagsOf<typeof options>} flags
 * @param {string[]} positionals
 * @param {CommandIo} io
 */
async function run({ for: name, schema }, positionals, { show, usage }) {
  if (positionals.length > 0)
    throw usage(`namespace tables takes no argument; remove ${describe(positionals[0])}`);
  const { schema: place } = readOptions(schema === undefined ? {} : { schema }, ['schema']);
  if (name !== undefined && !isDialect(name))
    throw usage(`--for must be postgres, mysql (MariaDB, too) or sqlite; it is ${describe(name)}`);
  /** @type {Dialect[]} */
  const all = schema === undefined ? ['postgres', 'mysql', 'sqlite'] : ['postgres', 'mysql'];
  const names = name === undefined ? all : [name];
  const found = names.map((one) => statementsOf(one, place));
  show(Object.fromEntries(names.map((one, n) => [one, found[n]])), () =>
    names.map((one, n) => leaseScript(one, found[n])).join('\n\n\n'),
  );
}

module.exports = { help, options, run };
