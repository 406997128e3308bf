'use strict';
// `snowdrift/lease/mysql`: slots in MariaDB or MySQL, through a pool or a connection of `mysql2`.

const { checkClient } = require('./options.js');
const { queryMysql } = require('./sql-clients.js');
const { sql } = require('./sql-dialects.js');
const { sqlStore } = require('./sql.js');

function mysql(client, options) {
  checkClient(client, 'query', 'mysql() takes a pool or a connection of mysql2');
  const query = (text, values, signal) => queryMysql(client, text, values, signal);
  return sqlStore({ kind: 'mysql', dialect: 'mysql', query }, options);
}

module.exports = { mysql, sql };
