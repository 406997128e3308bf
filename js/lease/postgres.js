'use strict';
// `snowdrift/lease/postgres`: slots in PostgreSQL, by a Pool or a Client of `pg`.

const { checkClient, readNamespace } = require('./adapter.js');
const { sql, sqlStore } = require('./sql.js');

function postgres(client, options) {
  checkClient(client, 'query', 'postgres() takes a Pool or a Client of pg');
  const namespace = readNamespace(options);
  return sqlStore({
    name: `postgres:${namespace}`,
    dialect: 'postgres',
    namespace,
    async query(text, values) {
      let n = 0;
      // Without values, pg sends several statements as one.
      const { rows } = await client.query(
        text.replaceAll('?', () => `$${++n}`),
        values,
      );
      return rows;
    },
  });
}

module.exports = { postgres, sql };
