'use strict';
// `snowdrift/lease/postgres`: slots in PostgreSQL, by a Pool or a Client of `pg`.

const { checkClient, readNamespace } = require('./adapter.js');
const { queryPostgres, sql, sqlStore } = require('./sql.js');

function postgres(client, options) {
  checkClient(client, 'query', 'postgres() takes a Pool or a Client of pg');
  const namespace = readNamespace(options);
  return sqlStore({
    name: `postgres:${namespace}`,
    dialect: 'postgres',
    namespace,
    query: (text, values, signal) => queryPostgres(client, text, values, signal),
  });
}

module.exports = { postgres, sql };
