'use strict';
// `snowdrift namespace tables`: what it prints, run by PostgreSQL, MariaDB and SQLite, is what a lease needs.

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');

const { gate, isStorms } = require('../support/amount.js');
const { json, run } = require('../support/cli.js');
const { LIMITED } = require('../support/lease/limited-users.js');
const { Server, missing } = require('../support/lease/servers.js');
const { SnowFlake, refuses, rejects } = require('../support/support.js');
const { DIALECTS, migration } = require('../../js/stores/sql-dialects.js');

for (const [engine, { user, urlOf, admin }] of Object.entries(LIMITED)) {
  test(`${engine}: the table and the rights are enough, and each right is needed`, {
    skip: gate ?? missing(engine),
  }, async () => {
    const server = await Server.start(engine);
    const client = await admin(server.url);
    try {
      const url = urlOf(server);
      let namespaces = 0;
      /** Takes, renews and releases a slot, of a new namespace. */
      const use = async (more = '') => {
        const own = `${url}?namespace=n${namespaces++}${more}`;
        const options = { datacenterId: 1, scope: 'process', callTimeout: 60_000 };
        const flake = await SnowFlake.lease(own, options);
        flake.nextId();
        await flake.close();
        const { slots } = await json('slots', own);
        // A release has 2 s.
        if (isStorms) assert.equal(slots[0].state, 'free');
        assert.equal(slots.length, 1);
        await json('recover', own, '--ttl', '60000');
      };
      const denied = async (what, said = /denied access/) => {
        const { message } = await rejects(use(), 'ERR_SNOWFLAKE_STORE');
        assert.match(message, said, what);
      };
      // MySQL shows no database to a user without any right in it.
      const isOpen = engine === 'postgres';
      await denied('without a table', isOpen ? /has no table.*namespace tables/ : undefined);
      const { stdout } = await run(['namespace', 'tables', '--for', engine]);
      await client.query(stdout.replaceAll('TO app', `TO ${user}`));
      await use();
      const { [engine]: statements } = await json('namespace', 'tables');
      const [, rights, table] = /^GRANT (.*) ON (\S+) TO app$/.exec(statements.rights);
      for (const right of rights.split(', ')) {
        await client.query(`REVOKE ${right} ON ${table} FROM ${user}`);
        await denied(`without ${right}`);
        await client.query(`GRANT ${right} ON ${table} TO ${user}`);
      }
      await use();
      // And in a schema whose name has to be quoted.
      const schema = 'Our "ids` ü';
      await client.query(`CREATE SCHEMA ${DIALECTS[engine].quote(schema)}`);
      const args = ['--for', engine, '--schema', schema];
      const { stdout: there } = await run(['namespace', 'tables', ...args]);
      await client.query(there.replaceAll('TO app', `TO ${user}`));
      await use(`&schema=${encodeURIComponent(schema)}`);
    } finally {
      await client.end();
      await server.stop();
    }
  });
}

describe('what it prints', () => {
  test('of one database, or of all: the tables that leases create', async () => {
    const all = await json('namespace', 'tables');
    assert.deepEqual(Object.keys(all), ['postgres', 'mysql', 'sqlite']);
    for (const [name, statements] of Object.entries(all)) {
      assert.equal(`${statements.table};\n`, migration(name));
      assert.deepEqual(await json('namespace', 'tables', '--for', name), { [name]: statements });
      const { stdout } = await run(['namespace', 'tables', '--for', name]);
      for (const statement of Object.values(statements))
        assert.ok(stdout.includes(`${statement};`));
      const { stdout: both } = await run(['namespace', 'tables']);
      assert.ok(both.includes(stdout.trim()));
    }
  });

  test('of a schema: the tables that leases with this option use', async () => {
    const all = await json('namespace', 'tables', '--schema', 'i"d`s');
    assert.deepEqual(Object.keys(all), ['postgres', 'mysql']);
    for (const [name, { table, rights }] of Object.entries(all)) {
      assert.equal(`${table};\n`, migration(name, { schema: 'i"d`s' }));
      const quoted = DIALECTS[name].quote('i"d`s');
      assert.ok(rights.includes(` ON ${quoted}.snowdrift_records TO `), rights);
    }
    assert.equal(all.postgres.uses, 'GRANT USAGE ON SCHEMA "i""d`s" TO app');
    for (const schema of ['', 'a?b', 'x'.repeat(64), '\0', 7]) {
      refuses(() => migration('postgres', { schema }), 'ERR_SNOWFLAKE_CONFIG');
    }
  });

  test('wrong usage exits with 2 and says what to do', async () => {
    for (const [args, said] of [
      [['--for', 'oracle'], /--for must be postgres, mysql .* or sqlite; it is 'oracle'/],
      [['--for', 'toString'], /--for must be postgres, mysql .* or sqlite; it is 'toString'/],
      [['--for', 'SQLite'], /--for must be postgres, mysql .* or sqlite; it is 'SQLite'/],
      [['--schema', 'a?b'], /schema must be a name of 1 to 63 bytes/],
      [['--for', 'sqlite', '--schema', 'ids'], /SQLite has no schemas: leave schema out/],
      [['--schema', ''], /--schema is empty/],
      [['x'], /namespace tables takes no argument; remove 'x'/],
    ]) {
      const answer = await run(['namespace', 'tables', ...args]);
      assert.deepEqual([answer.code, answer.stdout], [2, ''], args.join(' '));
      assert.match(answer.stderr, said);
    }
  });
});
