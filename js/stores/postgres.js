'use strict';
// A register in PostgreSQL, or a database of its wire protocol, through a Pool of `pg`: sql-register.js has its table.
//
// The database must have committed durably when it answers: no `synchronous_commit = off`.

const { checkClient } = require('./options.js');
const { POOLS, queryPostgres } = require('./sql-clients.js');
const { sqlRegister } = require('./sql-register.js');

/** @type {typeof import('./postgres.d.ts').postgres} */
function postgres(pool, options) {
  checkClient(pool, POOLS.postgres, 'postgres() takes a Pool of pg, and sql() other clients');
  return sqlRegister('postgres', 'postgres', options, (name) => queryPostgres(name, pool));
}

/** @satisfies {typeof import('./postgres.js')} */
module.exports = { postgres };
