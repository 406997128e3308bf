'use strict';
// sql(): a store through any client. Its statements are those of examples/sql-statements.sql; transactions are refused where they show;
// a client that misbehaves ends no process and no promise stays open; and it shares its table with the stores of pg and mysql2.

const assert = require('node:assert/strict');
const { AsyncLocalStorage } = require('node:async_hooks');
const { randomBytes } = require('node:crypto');
const { setMaxListeners } = require('node:events');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');
const { inspect } = require('node:util');

require('../support/own-directory.js');
const { run } = require('../support/cli.js');
const { Server, missing } = require('../support/lease/servers.js');
const { SnowFlake, refuses, rejects, until } = require('../support/support.js');
const { mysql } = require('../../js/stores/mysql.js');
const { postgres } = require('../../js/stores/postgres.js');
const { migration, sql } = require('../../js/stores/sql.js');

const LIST = 'examples/sql-statements.sql';

const { signal } = new AbortController();
setMaxListeners(0, signal);
const SIGNAL = { signal };
const record = (text = 'x') => ({ token: randomBytes(8).toString('hex'), text });
const OPTIONS = { datacenterId: 1, ttl: 1000, maxClockSkew: 500, callTimeout: 60_000 };

/** By dialect: an application's client. `single` has one connection. */
const CLIENTS = {
  postgres: {
    engine: 'postgres',
    open(url, max = 4) {
      const pool = new (require('pg').Pool)({ connectionString: url, max });
      pool.on('error', () => {});
      return {
        query: async (text, values) => (await pool.query(text, values)).rows,
        native: (options) => postgres(pool, options),
        end: () => pool.end(),
        // What a pool's connections send.
        onSend: (listen) =>
          pool.on('connect', (client) => hear(client, ({ text }) => text, listen)),
      };
    },
  },
  mysql: {
    engine: 'mysql',
    open(url, connectionLimit = 4) {
      const options = { uri: url, connectionLimit, connectTimeout: 0 };
      const pool = require('mysql2').createPool(options);
      const promising = pool.promise();
      return {
        query: async (text, values) => (await promising.query(text, values))[0],
        native: (options) => mysql(pool, options),
        end: () => promising.end(),
        onSend: (listen) =>
          pool.on('connection', (connection) =>
            hear(connection, (statement) => statement.sql ?? statement, listen),
          ),
      };
    },
  },
  sqlite: {
    async open() {
      const { Database } = await require('sql.js')();
      const database = new Database();
      return {
        async query(text, values) {
          const statement = database.prepare(text, values);
          const rows = [];
          while (statement.step()) rows.push(statement.getAsObject());
          statement.free();
          return rows;
        },
        end() {},
      };
    },
  },
};

/** Reports each statement that a connection sends. */
function hear(connection, textOf, listen) {
  const { query } = connection;
  connection.query = function (...values) {
    listen(textOf(values[0]));
    return query.apply(this, values);
  };
}

/** By dialect: what connections of a URL have their `query` from. */
const PROTOTYPES = {
  postgres: () => require('pg').Client.prototype,
  mysql: () => require('mysql2').Connection.prototype,
};

/** A lease by a URL, and the commands for it. */
async function runCommands(t, dialect, url, listen) {
  const prototype = PROTOTYPES[dialect]();
  const { query } = prototype;
  t.after(() => {
    prototype.query = query;
  });
  let count = 0;
  const textOf = (statement) => statement.text ?? statement.sql ?? statement;
  hear(prototype, textOf, (text) => {
    count++;
    listen(text);
  });
  await (await SnowFlake.lease(url, { ...OPTIONS, ttl: 60_000 })).close();
  for (const command of ['slots', 'recover']) {
    const { code, said } = await run([command, url]);
    assert.equal(code, 0, said);
  }
  assert.ok(count > 10, `${count} statements`);
}

const oneLine = (text) => text.replace(/\s+/g, ' ').trim();

/** The statements of the list for a dialect. */
function statementsFor(dialect) {
  const list = readFileSync(join(__dirname, '../..', LIST), 'utf8');
  const parts = list.split(/^-- dialect: (\w+)$/m);
  const statements = parts[parts.indexOf(dialect) + 1].replace(/^--.*$/gm, '').split(';');
  return statements.map(oneLine).filter((text) => text !== '');
}

for (const [dialect, { engine, open }] of Object.entries(CLIENTS)) {
  describe(`on ${dialect}`, { skip: engine && missing(engine), concurrency: 1 }, () => {
    let server;
    let client;
    let namespaces = 0;
    const newNamespace = () => `any-${namespaces++}`;
    before(async () => {
      server = engine && (await Server.start(engine));
      client = await open(server?.url);
    });
    after(async () => {
      await client?.end();
      await server?.stop();
    });
    const storeOf = (query, options = { namespace: newNamespace() }) =>
      sql({ dialect, query }, options);

    test(`all statements of a lease's life are in ${LIST}, and no others`, async (t) => {
      const own = await open(server?.url);
      t.after(() => own.end());
      const sent = new Set();
      const note = (text) => sent.add(oneLine(text).replaceAll('`mysql`', '`app`'));
      const heard = (text, values) => {
        note(text);
        return own.query(text, values);
      };
      const options = { namespace: newNamespace() };
      const stores = [[storeOf(heard, options), storeOf(own.query, options)]];
      if (own.native) {
        const other = await open(server.url);
        t.after(() => other.end());
        other.onSend(note);
        const options = { namespace: newNamespace() };
        stores.push([other.native(options), storeOf(own.query, options)]);
      }
      if (engine) await client.query('DROP TABLE IF EXISTS snowdrift_records', []);
      for (const [store, sibling] of stores) {
        const flake = await SnowFlake.lease(store, { ...OPTIONS, scope: 'process' });
        await until(() => flake.lease.renewals > 1);
        await flake.close();
        // What somebody else has written meanwhile.
        await sibling.write('9/9', record(), undefined, SIGNAL);
        for (const before of [undefined, record().token]) {
          const { isWritten } = await store.write('9/9', record(), before, SIGNAL);
          assert.equal(isWritten, false);
        }
        await store.namespaces(SIGNAL);
        await store.schemas(SIGNAL);
        await store.now(SIGNAL);
      }
      if (engine) await runCommands(t, dialect, `${server.url}?namespace=${newNamespace()}`, note);
      assert.deepEqual([...sent].sort(), statementsFor(dialect).sort());
    });

    test('a write is confirmed though another one has replaced its record at once', async () => {
      const options = { namespace: newNamespace() };
      const other = storeOf(client.query, options);
      let replacing;
      const store = storeOf(async (text, values) => {
        const rows = await client.query(text, values);
        if (!/^(INSERT|UPDATE .* SET token = [?$])/.test(text)) return rows;
        const before = values.find((value) => value === replacing);
        for (let n = 0, last = before; before !== undefined && n < 3; n++) {
          const next = record(`replaced ${n}`);
          assert.ok((await other.write('a', next, last, SIGNAL)).isWritten);
          last = next.token;
        }
        return rows;
      }, options);
      let present;
      for (const text of ['created', 'updated']) {
        const written = record(text);
        replacing = written.token;
        assert.ok((await store.write('a', written, present, SIGNAL)).isWritten, text);
        const { record: found } = await store.read('a', SIGNAL);
        assert.equal(found.text, 'replaced 2');
        const late = await store.write('a', written, present, SIGNAL);
        assert.deepEqual([late.isWritten, late.found], [false, found], 'a token counts once');
        present = found.token;
      }
    });

    test('a write whose reply was lost is confirmed, and one that failed is not', async () => {
      const options = { namespace: newNamespace() };
      const isWrite = (text) => /^(INSERT|UPDATE .* SET token = [?$])/.test(text);
      let fault;
      const store = storeOf(async (text, values) => {
        if (isWrite(text) && fault === 'before') throw new Error('it was cut off');
        const rows = await client.query(text, values);
        if (isWrite(text) && fault === 'after') throw new Error('it was cut off');
        return rows;
      }, options);
      let present;
      for (let n = 0; n < 2; n++) {
        fault = 'before';
        await assert.rejects(store.write('a', record(), present, SIGNAL), /it was cut off/);
        fault = 'after';
        const written = record(`of ${n}`);
        assert.ok((await store.write('a', written, present, SIGNAL)).isWritten);
        const { isWritten, found } = await store.write('a', record(), present, SIGNAL);
        assert.deepEqual([isWritten, found], [false, written]);
        present = written.token;
      }
    });

    test('its table is that of the migration', async (t) => {
      const own = await open(server?.url);
      t.after(() => own.end());
      if (engine) await own.query('DROP TABLE IF EXISTS snowdrift_records', []);
      await own.query(migration(dialect).replace(';', ''), []);
      const sent = [];
      const store = storeOf((text, values) => {
        sent.push(text);
        return own.query(text, values);
      });
      await (await SnowFlake.lease(store, { ...OPTIONS, ttl: 60_000 })).close();
      assert.ok(!sent.some((text) => text.startsWith('CREATE')));
    });

    test('a transaction is refused, and its lease gets a slot afterwards', async (t) => {
      const begins = ['BEGIN', ...(dialect === 'mysql' ? ['SET autocommit = 0'] : [])];
      for (const begin of begins) {
        const single = await (engine ? open(server.url, 1) : client);
        if (engine) t.after(() => single.end());
        const options = { namespace: newNamespace() };
        const store = storeOf(single.query, options);
        const other = storeOf(client.query, options);
        const first = record('first');
        await other.write('a', first, undefined, SIGNAL);
        await single.query(begin, []);
        const uncommitted = /does not commit a lease's records: its connection is inside a/;
        for (const [key, before] of Object.entries({ a: first.token, b: undefined })) {
          const call = store.write(key, record('uncommitted'), before, SIGNAL);
          const { message } = await rejects(call, 'ERR_SNOWFLAKE_CONFIG');
          assert.match(message, uncommitted);
        }
        // It would see what is not committed.
        const read = await rejects(store.read('a', SIGNAL), 'ERR_SNOWFLAKE_CONFIG');
        assert.match(read.message, uncommitted);
        const leased = SnowFlake.lease(store, OPTIONS);
        assert.match((await rejects(leased, 'ERR_SNOWFLAKE_CONFIG')).message, uncommitted);
        await single.query('ROLLBACK', []);
        assert.deepEqual((await other.read('a', SIGNAL)).record, first);
        assert.equal((await other.read('b', SIGNAL)).record, undefined);
        if (begin !== 'BEGIN') continue;
        await (await SnowFlake.lease(store, OPTIONS)).close();
      }
    });

    if (engine === undefined) return;

    test('it needs the rights of the other store, and asks for the table that is missing', {
      skip: dialect === 'postgres' ? undefined : 'rights by a connection are those of PostgreSQL',
    }, async (t) => {
      const query = (text) => client.query(text, []);
      await query('CREATE ROLE limited');
      await query('REVOKE CREATE ON SCHEMA public FROM PUBLIC');
      await query('DROP TABLE IF EXISTS snowdrift_records');
      const url = new URL(server.url);
      url.searchParams.set('options', '-c role=limited');
      const limited = await open(url.href);
      t.after(() => limited.end());
      const store = storeOf(limited.query);
      const { message } = await rejects(SnowFlake.lease(store, OPTIONS), 'ERR_SNOWFLAKE_STORE');
      assert.match(
        message,
        /^sql:postgres:any-\d+ has no table "public"\.snowdrift_records, and this user may not create it \(42501\): have its owner run/,
      );
      await query(migration(dialect));
      await query('GRANT SELECT, INSERT, UPDATE ON snowdrift_records TO limited');
      await (await SnowFlake.lease(store, OPTIONS)).close();
    });

    test('it shares its table with the other store', async () => {
      const options = { namespace: newNamespace() };
      const stores = [storeOf(client.query, options), client.native(options)];
      let present;
      for (let n = 0; n < 8; n++) {
        const [one, other] = n % 2 === 0 ? stores : [...stores].reverse();
        const written = record(`\u{1f9ca}\ufeff ${n}`);
        assert.ok((await one.write('a', written, present, SIGNAL)).isWritten);
        assert.deepEqual((await other.read('a', SIGNAL)).record, written);
        const { isWritten, found } = await other.write('a', record(), present, SIGNAL);
        assert.deepEqual([isWritten, found], [false, written]);
        present = written.token;
      }
    });
    test('a transaction is refused by rows of bytes, too, and a lease needs no texts', async (t) => {
      const single = await open(server.url, 1);
      t.after(() => single.end());
      const toBytes = (value) => (typeof value === 'string' ? Buffer.from(value) : value);
      const ofBytes = (row) =>
        Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toBytes(value)]));
      async function query(text, values) {
        const rows = await single.query(text, values);
        return Array.isArray(rows) ? rows.map(ofBytes) : rows;
      }
      const namespace = newNamespace();
      const [{ home }] = await single.query(
        dialect === 'mysql' ? 'SELECT DATABASE() AS home' : 'SELECT current_schema() AS home',
        [],
      );
      const store = storeOf(query, { namespace, schema: home });
      await (await SnowFlake.lease(store, OPTIONS)).close();
      await single.query('BEGIN', []);
      await rejects(store.write('a', record(), undefined, SIGNAL), 'ERR_SNOWFLAKE_CONFIG');
      await single.query('ROLLBACK', []);
      assert.ok((await store.write('a', record(), undefined, SIGNAL)).isWritten);
      await (await SnowFlake.lease(storeOf(query, { namespace }), OPTIONS)).close();
    });
  });
}

describe('a client', () => {
  const lease = (query, options) =>
    SnowFlake.lease(sql({ dialect: 'postgres', query }), { ...OPTIONS, ...options });
  /** A row with what each statement selects. */
  const row = {
    ...{ token: '0'.repeat(16), text: '', now: String(Date.now()), writes: '', began: '1' },
    ...{ namespace: 'default', home: 'public' },
  };
  const throwing = (name) =>
    Object.defineProperty({ ...row }, name, {
      get() {
        throw new Error(`no ${name}`);
      },
    });
  const revoked = Proxy.revocable([], {});
  revoked.revoke();

  const RETURNED = {
    undefined: undefined,
    null: null,
    'a number': 7,
    'a result of pg': { rows: [row] },
    'no rows': [],
    'a result of mysql2': [[row], []],
    'a row of null': [null],
    'a row of text': ['x'],
    'an empty row': [{}],
    'a number as a schema': [{ ...row, home: 7 }],
    'a schema as a list': [{ ...row, home: ['x'] }],
    'a time that is none': [{ ...row, now: 'soon' }],
    'a time that is infinite': [{ ...row, now: Infinity }],
    'a token as a number': [{ ...row, token: 7 }],
    'a token that is none': [{ ...row, token: "'; DROP TABLE users; --" }],
    'a text that is not hexadecimal': [{ ...row, text: 'g' }],
    'half a byte': [{ ...row, text: '0' }],
    'a text of SQL': [{ ...row, text: "0'0" }],
    'a schema of SQL': [{ ...row, home: '"; DROP TABLE users; --' }],
    'a schema with a placeholder': [{ ...row, home: 'why?' }],
    'a getter that throws': [throwing('home')],
    'another getter that throws': [throwing('token')],
    'a proxy that is revoked': revoked.proxy,
    'rows of a revoked proxy': [revoked.proxy],
    'a million rows': Array(1e6).fill(row),
    'a text of 16 MB': [{ ...row, text: '00'.repeat(8e6) }],
    'an object that is no text': [{ ...row, home: { toString: () => 'public' } }],
  };

  for (const [what, rows] of Object.entries(RETURNED)) {
    test(`that returns ${what} is an error that says so`, async () => {
      for (const query of [() => rows, async () => rows]) {
        const { code, message } = await lease(query, { callTimeout: 3000 }).then(
          () => assert.fail('it leased'),
          (failure) => failure,
        );
        assert.match(code, /^ERR_SNOWFLAKE_(STORE|CONFIG)$/, message);
        assert.match(message, /sql:postgres:default/);
        assert.ok(message.length < 2000, message.length);
      }
    });
  }

  test('that returns no rows gets an error that says what to return', async () => {
    const { message } = await rejects(
      lease(async () => ({ rows: [] })),
      'ERR_SNOWFLAKE_CONFIG',
    );
    assert.equal(
      message,
      'sql:postgres:default got [Object]: query must return the rows of a statement, an array of objects, as in (text, values) => client.query(text, values).then(({ rows }) => rows)',
    );
  });

  const THROWN = { 'an error': new Error('away'), undefined: undefined, text: 'away', 7: 7 };
  for (const [what, thrown] of Object.entries(THROWN)) {
    test(`that throws ${what} is an error of the store`, async () => {
      const throws = () => {
        throw thrown;
      };
      for (const query of [throws, async () => throws()]) {
        const { message } = await rejects(lease(query), 'ERR_SNOWFLAKE_STORE');
        assert.match(message, /sql:postgres:default failed to/);
      }
    });
  }

  test('that does not answer ends each call in time', async () => {
    const query = () => new Promise(() => {});
    const { message } = await rejects(lease(query, { callTimeout: 100 }), 'ERR_SNOWFLAKE_STORE');
    assert.match(message, /sql:postgres:default did not answer within 100 ms/);
  });

  test('whose error has a password in its text does not show it', async () => {
    const query = async () => {
      throw new Error('cannot connect to postgres://app:k7Xq2-mPz9@db/app?password=k7Xq2-mPz9');
    };
    const failure = await rejects(lease(query), 'ERR_SNOWFLAKE_STORE');
    assert.ok(!inspect(failure).includes('k7Xq2-mPz9'), inspect(failure));
    assert.match(failure.message, /cannot connect to/);
  });

  test('is called outside of the transaction in whose callback a lease is taken', async () => {
    const transactions = new AsyncLocalStorage();
    const client = await CLIENTS.sqlite.open();
    const seen = new Set();
    const query = (text, values) => {
      seen.add(transactions.getStore());
      return client.query(text, values);
    };
    const store = sql({ dialect: 'sqlite', query });
    await transactions.run('a transaction', async () => {
      const flake = await SnowFlake.lease(store, { ...OPTIONS, scope: 'process' });
      await until(() => flake.lease.renewals > 1);
      await flake.close();
    });
    assert.deepEqual([...seen], [undefined]);
  });

  test('may call the store within a call', async () => {
    const { open } = CLIENTS.sqlite;
    const own = await open();
    let isInside = false;
    const store = sql({
      dialect: 'sqlite',
      async query(text, values) {
        if (!isInside) {
          isInside = true;
          await store.read('a', SIGNAL);
          await store.write('b', record(), undefined, SIGNAL);
          isInside = false;
        }
        return own.query(text, values);
      },
    });
    assert.ok((await store.write('a', record(), undefined, SIGNAL)).isWritten);
  });

  test('whose transactions conflict is asked again, however it words that', async () => {
    const own = await CLIENTS.sqlite.open();
    const failures = [
      Object.assign(new Error('restart transaction'), { code: '40001' }),
      Object.assign(new Error('Failed query'), { cause: { code: '40P01' } }),
      Object.assign(new Error('Deadlock'), { parent: { errno: 1213 }, original: {} }),
      Object.assign(new Error('Raw query failed'), { code: 'P2010', meta: { code: '40001' } }),
      new Error('x', { cause: new Error('y', { cause: { sqlState: '40001' } }) }),
      new Error('SQLITE_BUSY: database is locked'),
    ];
    let next = 0;
    const store = sql({
      dialect: 'sqlite',
      async query(text, values) {
        if (next % 2 === 0 && next < failures.length * 2) throw failures[next++ / 2];
        next++;
        return own.query(text, values);
      },
    });
    for (let n = 0; n < failures.length; n++) {
      assert.ok((await store.write(`0/${n}`, record(), undefined, SIGNAL)).isWritten);
    }
    assert.ok(next > failures.length * 2);
  });

  test('gets the placeholders that it names', async () => {
    const sent = [];
    const query = async (text) => {
      sent.push(text);
      return [row];
    };
    for (const [dialect, placeholder, expected] of [
      ['postgres', undefined, 'namespace = $1 AND name = $2'],
      ['postgres', '?', 'namespace = ? AND name = ?'],
      ['mysql', undefined, 'namespace = ? AND name = ?'],
      ['sqlite', '$1', 'namespace = $1 AND name = $2'],
    ]) {
      await sql({ dialect, query, placeholder })
        .read('a', SIGNAL)
        .catch(() => {});
      assert.ok(sent.at(-1).includes(expected), sent.at(-1));
    }
  });

  test('that is none is refused', () => {
    const query = async () => [];
    for (const [client, said] of [
      [undefined, /the client of sql\(\{ dialect, query \}\) must be an object/],
      [query, /the client of sql\(\{ dialect, query \}\) must be an object/],
      [{ query }, /a dialect must be one of 'postgres', 'mysql', 'sqlite'; it is undefined/],
      [{ query, dialect: 'oracle' }, /a dialect must be one of/],
      [{ query, dialect: '__proto__' }, /a dialect must be one of/],
      [{ query, dialect: ['mysql'] }, /a dialect must be one of/],
      [{ dialect: 'mysql' }, /query of sql\(\) must be a function; it is undefined/],
      [{ dialect: 'mysql', query: 'SELECT' }, /query of sql\(\) must be a function/],
      [{ dialect: 'mysql', query, placeholder: ':1' }, /must be '\?' or '\$1'; it is ':1'/],
      [
        { dialect: 'mysql', query, namespace: 'x' },
        /the client of sql\(\{ dialect, query \}\) has no 'namespace'/,
      ],
    ]) {
      const { message } = refuses(() => sql(client), 'ERR_SNOWFLAKE_CONFIG');
      assert.match(message, said);
    }
    const given = { dialect: 'sqlite', query };
    const { message } = refuses(() => sql(given, { schema: 'ids' }), 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /SQLite has no schemas: leave schema out/);
  });
});
