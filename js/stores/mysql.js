'use strict';
// A register in MariaDB, MySQL or a database of their wire protocol, through a pool or a connection of `mysql2`: sql.js
// has its table.
//
// `DO 0` changes nothing, and its reply has the status of the connection: whether it is inside a transaction or without
// autocommit. It comes before each statement, since that would hold a lock in the application's transaction. On a
// connection that the application uses meanwhile, it may begin one in between. The reply to a change has the status, too.
// A SELECT is followed by another `DO 0` there: both are queued at once, so nothing comes between these.
//
// The database must have committed durably when it answers, and all processes must use one primary.

const { checkClient, readNamespace } = require('./options.js');
const { onMysql, uncommittedError } = require('./sql-clients.js');
const { DIALECTS, sql } = require('./sql-dialects.js');
const { sqlRegister } = require('./sql.js');

/**
 * Runs a statement on a connection, in a transaction of its own.
 * @param query runs a statement, and returns rows or the reply to a change
 * @param isShared whether the application uses the connection meanwhile
 */
async function runAlone(name, query, isShared, text, values) {
  const check = (reply) => {
    if (!DIALECTS.mysql.isCommitted(reply)) throw uncommittedError(name);
  };
  check(await query('DO 0'));
  const isSelect = /^S(ELECT|HOW)/.test(text);
  const [result, status] = await Promise.all([
    query(text, values),
    isSelect && isShared ? query('DO 0') : undefined,
  ]);
  if (!isSelect) check(result);
  else if (isShared) check(status);
  return isSelect ? result : Array.from({ length: result.affectedRows }, () => ({}));
}

function mysql(client, options) {
  checkClient(client, 'query', 'mysql() takes a pool or a connection of mysql2');
  const namespace = readNamespace(options);
  const name = `mysql:${namespace}`;
  const isShared = typeof client.getConnection !== 'function';
  const query = (text, values, signal) =>
    onMysql(client, signal, (connection) => {
      const run = async (...statement) => (await connection.query(...statement))[0];
      return runAlone(name, run, isShared, text, values);
    });
  return sqlRegister({ name, namespace, dialect: 'mysql', query });
}

module.exports = { mysql, runAlone, sql };
