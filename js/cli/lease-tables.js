'use strict';
// The SQL that `snowdrift sql --lease-tables` prints: the table that leases use, and the least rights of their user.

const { DIALECTS, createRecords, recordsIn } = require('../stores/sql-dialects.js');

const RIGHTS = 'SELECT, INSERT, UPDATE';

/**
 * By database: its statements by name, a title, and what to note about the rights.
 * @param schema of the table; undefined for that of the connection. SQLite has none
 */
function leaseTables(schema) {
  const table = (dialect) => createRecords(dialect, recordsIn(dialect, schema));
  const rights = (dialect, of) => `GRANT ${RIGHTS} ON ${recordsIn(dialect, of)} TO app`;
  const uses = schema && `GRANT USAGE ON SCHEMA ${DIALECTS.postgres.quote(schema)} TO app`;
  const place =
    schema === undefined ? 'database and schema of the leases' : 'database of the leases';
  const postgres = {
    title: `PostgreSQL. Run it in the ${place}, as the owner of the schema.`,
    statements: {
      table: table('postgres'),
      ...(uses && { uses }),
      rights: rights('postgres', schema),
    },
    note: `The least rights of the application's user, here app, besides CONNECT on the database${uses ? '' : ' and USAGE on the schema'}.`,
  };
  const mysql = {
    title: `MySQL and MariaDB.${schema === undefined ? ' Run it in the database of the leases.' : ''}`,
    statements: { table: table('mysql'), rights: rights('mysql', schema ?? 'app') },
    note: `The least rights of the application's user, here app${schema === undefined ? ' in the database app' : ''}.`,
  };
  if (schema !== undefined) return { postgres, mysql };
  const title = 'SQLite. It has no users: who may write the file has all rights.';
  return { postgres, mysql, sqlite: { title, statements: { table: table('sqlite') } } };
}

/** The script of a database. */
function leaseScript({ title, note, statements: { table, ...rights } }) {
  const granted = Object.values(rights).map((sql) => `${sql};`);
  const blocks = [`-- ${title}`, `${table};`];
  if (granted.length > 0) blocks.push([`-- ${note}`, ...granted].join('\n'));
  return blocks.join('\n\n');
}

module.exports = { leaseScript, leaseTables };
