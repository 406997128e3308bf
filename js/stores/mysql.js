'use strict';
// A register in MariaDB, MySQL or a database of their wire protocol, through a pool of `mysql2`: sql-register.js
// has its table.
//
// The database must have committed durably when it answers, and all processes must use one primary.

const { checkClient } = require('./options.js');
const { POOLS, queryMysql } = require('./sql-clients.js');
const { sqlRegister } = require('./sql-register.js');

/** @type {typeof import('./mysql.d.ts').mysql} */
function mysql(pool, options) {
  checkClient(pool, POOLS.mysql, 'mysql() takes a pool of mysql2, and sql() other clients');
  return sqlRegister('mysql', 'mysql', options, (name) => queryMysql(name, pool));
}

/** @satisfies {typeof import('./mysql.js')} */
module.exports = { mysql };
