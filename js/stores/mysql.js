'use strict';
// A register in MariaDB, MySQL or a database of their wire protocol, through a pool or a connection of `mysql2`: sql.js
// has its table.
//
// The database must have committed durably when it answers, and all processes must use one primary.

const { checkClient, readSqlOptions } = require('./options.js');
const { queryMysql } = require('./sql-alone.js');
const { sql } = require('./sql-dialects.js');
const { sqlRegister } = require('./sql.js');

function mysql(client, options) {
  checkClient(client, 'query', 'mysql() takes a pool or a connection of mysql2');
  const given = readSqlOptions(options);
  const name = `mysql:${given.namespace}`;
  return sqlRegister({ ...given, name, dialect: 'mysql', query: queryMysql(name, client) });
}

module.exports = { mysql, sql };
