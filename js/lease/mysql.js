'use strict';
// `snowdrift/lease/mysql`: slots in MariaDB or MySQL, by a pool or a connection of `mysql2`.

const { checkClient, readNamespace } = require('./adapter.js');
const { sql, sqlStore } = require('./sql.js');

function mysql(client, options) {
  checkClient(client, 'query', 'mysql() takes a pool or a connection of mysql2');
  const namespace = readNamespace(options);
  // mysql2 has its promises apart; those of mysql2/promise are the client itself.
  const promised = typeof client.promise === 'function' ? client.promise() : client;
  return sqlStore({
    name: `mysql:${namespace}`,
    dialect: 'mysql',
    namespace,
    async query(text, values) {
      const [rows] = await promised.query(text, values);
      return rows;
    },
  });
}

module.exports = { mysql, sql };
