'use strict';
// A register in PostgreSQL, or a database of its wire protocol, through a Pool or a Client of `pg`: sql.js has its table.
//
// The database must have committed durably when it answers: no `synchronous_commit = off`.

const { checkClient, readSqlOptions } = require('./options.js');
const { queryPostgres } = require('./sql-alone.js');
const { sql } = require('./sql-dialects.js');
const { sqlRegister } = require('./sql.js');

function postgres(client, options) {
  checkClient(client, 'query', 'postgres() takes a Pool or a Client of pg');
  const given = readSqlOptions(options);
  const name = `postgres:${given.namespace}`;
  return sqlRegister({ ...given, name, dialect: 'postgres', query: queryPostgres(name, client) });
}

module.exports = { postgres, sql };
