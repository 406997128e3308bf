'use strict';
// The SQL that `snowdrift sql --lease-tables` prints: the table that leases use, and the least rights of their user.

const { RECORDS, createRecords } = require('../stores/sql-dialects.js');

const RIGHTS = 'SELECT, INSERT, UPDATE';

/** By database: its statements by name, and what to note about each. */
const LEASE_TABLES = {
  postgres: {
    title:
      'PostgreSQL. Run it in the database and schema of the leases, as the owner of the schema.',
    statements: {
      table: createRecords('postgres'),
      rights: `GRANT ${RIGHTS} ON ${RECORDS} TO app`,
    },
    notes: {
      rights:
        "The least rights of the application's user, here app, besides CONNECT on the database and USAGE on the schema.",
    },
  },
  mysql: {
    title: 'MySQL and MariaDB. Run it in the database of the leases.',
    statements: {
      table: createRecords('mysql'),
      rights: `GRANT ${RIGHTS} ON app.${RECORDS} TO app`,
    },
    notes: { rights: "The least rights of the application's user, here app in the database app." },
  },
  sqlite: {
    title: 'SQLite. It has no users: who may write the file has all rights.',
    statements: { table: createRecords('sqlite') },
    notes: {},
  },
};

/** The script of a database. */
function leaseScript({ title, statements, notes }) {
  const blocks = Object.entries(statements).map(([name, sql]) =>
    [...(notes[name] ? [`-- ${notes[name]}`] : []), `${sql};`].join('\n'),
  );
  return [`-- ${title}`, ...blocks].join('\n\n');
}

module.exports = { LEASE_TABLES, leaseScript };
