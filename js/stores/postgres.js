'use strict';
// A register in PostgreSQL, or a database of its wire protocol, through a Pool or a Client of `pg`: sql.js has its table.
//
// The database must have committed durably when it answers: no `synchronous_commit = off`.

const { checkClient } = require('./options.js');
const { queryPostgres } = require('./sql-clients.js');
const { sql } = require('./sql-dialects.js');
const { sqlRegister } = require('./sql.js');

function postgres(client, options) {
  checkClient(client, 'query', 'postgres() takes a Pool or a Client of pg');
  return sqlRegister('postgres', 'postgres', options, (name) => queryPostgres(name, client));
}

module.exports = { postgres, sql };
