'use strict';
// `snowdrift namespace tables`

/**
 * @import { FlagsOf } from './flags.js'
 * @import { CommandIo } from './main.js'
 */

const { readOptions } = require('../stores/options.js');
const { DIALECTS, RECORDS, createRecords, recordsIn } = require('../stores/sql-dialects.js');

const help = `Usage: snowdrift namespace tables [--for DATABASE] [--schema NAME]

Prints the table that leases use, and the least rights of their user: for a migration, where the application
may not create tables. Without --for, those of all databases.

  --for DATABASE        postgres or mysql (MariaDB, too)
  --schema NAME         its schema, on MySQL and MariaDB its database: the option schema of the leases
  --json                prints the statements by name, by database`;

const options = /** @type {const} */ ({ for: { type: 'string' }, schema: { type: 'string' } });

/**
 * @typedef {'postgres' | 'mysql'} Dialect
 * @typedef {{ table: string, uses?: string, rights: string }} Statements
 */

const RIGHTS = 'SELECT, INSERT, UPDATE';

const title = {
  postgres: 'PostgreSQL. Run it in the database of the leases, as the owner of the schema.',
  mysql: 'MySQL and MariaDB. Run it in the database of the leases.',
};

const USER = "The least rights of the application's user, here app";
const note = {
  postgres: `${USER}, besides CONNECT on the database and, without --schema, USAGE on the schema.`,
  mysql: `${USER}; without --schema, in the database app.`,
};

/**
 * The statements of each database, by name.
 * @param {string | undefined} schema the table's schema; undefined for the connection's
 * @returns {Record<Dialect, Statements>}
 */
function leaseTables(schema) {
  const table = (/** @type {Dialect} */ dialect) =>
    createRecords(dialect, recordsIn(dialect, schema));
  const rights = (/** @type {string} */ table) => `GRANT ${RIGHTS} ON ${table} TO app`;
  const uses = schema && `GRANT USAGE ON SCHEMA ${DIALECTS.postgres.quote(schema)} TO app`;
  return {
    postgres: {
      table: table('postgres'),
      ...(uses && { uses }),
      rights: rights(recordsIn('postgres', schema)),
    },
    mysql: {
      table: table('mysql'),
      rights: rights(schema ? recordsIn('mysql', schema) : `app.${RECORDS}`),
    },
  };
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
    throw usage(`namespace tables takes no argument; remove '${positionals[0]}'`);
  const all = leaseTables(readOptions(schema === undefined ? {} : { schema }, ['schema']).schema);
  if (name !== undefined && !isDialect(name))
    throw usage(`--for must be postgres or mysql (MariaDB, too); it is '${name}'`);
  /** @type {Dialect[]} */
  const names = name === undefined ? ['postgres', 'mysql'] : [name];
  show(Object.fromEntries(names.map((one) => [one, all[one]])), () =>
    names.map((one) => leaseScript(one, all[one])).join('\n\n\n'),
  );
}

module.exports = { help, options, run };
