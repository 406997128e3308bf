'use strict';
// `snowdrift/lease/postgres`: slots in PostgreSQL, through a Pool or a Client of `pg`.

const { checkClient } = require('./options.js');
const { queryPostgres } = require('./sql-clients.js');
const { sql } = require('./sql-dialects.js');
const { sqlStore } = require('./sql.js');

function postgres(client, options) {
  checkClient(client, 'query', 'postgres() takes a Pool or a Client of pg');
  const query = (text, values, signal) => queryPostgres(client, text, values, signal);
  return sqlStore({ kind: 'postgres', dialect: 'postgres', query }, options);
}

module.exports = { postgres, sql };
