'use strict';
// `snowdrift/lease/mysql`: slots in MariaDB or MySQL, by a pool or a connection of `mysql2`.

const { checkClient, readNamespace } = require('./adapter.js');
const { queryMysql, sql, sqlStore } = require('./sql.js');

function mysql(client, options) {
  checkClient(client, 'query', 'mysql() takes a pool or a connection of mysql2');
  const namespace = readNamespace(options);
  return sqlStore({
    name: `mysql:${namespace}`,
    dialect: 'mysql',
    namespace,
    query: (text, values, signal) => queryMysql(client, text, values, signal),
  });
}

module.exports = { mysql, sql };
