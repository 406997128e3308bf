'use strict';
// `snowdrift sql`: what it prints, run by PostgreSQL, MariaDB and SQLite, against `snowdrift/id`.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { after, before, describe, test } = require('node:test');

const fc = require('fast-check');

const { floorId, fromBase32, isBase32, isId, parse, toBase32 } = require('../../js/id.js');
const { amount } = require('../support/amount.js');
const { json, run } = require('../support/cli.js');
const { LARGEST_ID, ids } = require('../support/layouts.js');
const { missing } = require('../support/lease/servers.js');
const { DATABASES, LAST_MS, LAYOUTS, endsOf, flagsOf } = require('../support/sql-databases.js');

const SAMPLES = amount(15, 200);

/** The IDs to try: the edges of a layout, and any. */
function idsOf(layout) {
  const { lastId } = endsOf(layout);
  const second = floorId(layout.epoch + layout.tickMs, layout);
  const edges = [0n, 1n, second - 1n, second, lastId - 1n, lastId, lastId + 1n, LARGEST_ID];
  const none = [-1n, -(2n ** 63n)];
  return [...edges.filter((id) => id <= LARGEST_ID), ...none, ...fc.sample(ids, SAMPLES)];
}

/** The times to try, Unix ms. */
function timesOf({ epoch, tickMs }, { last }) {
  const any = fc.sample(fc.integer({ min: epoch, max: last }), SAMPLES);
  const edges = [epoch - 1, epoch, epoch + tickMs - 1, epoch + tickMs, last - 1, last, last + 1];
  return [...edges, 0, ...any].filter((ms) => ms >= Date.parse('0001-01-01') && ms <= LAST_MS);
}

const iso = (ms) => new Date(ms).toISOString().slice(0, -1);

const TEXTS = [
  ...['', ' ', '0', '000000000000', '00000000000000', '8000000000000', 'Z000000000000'],
  ...['I000000000000', '000000L000000', '000000O000000', 'U000000000000', '0RZZQ8VR4HG0U'],
  ...['0rzzq8vr4hg00', '0RZZQ8VR4HG0o', '0RZZ-8VR4HG00', '0RZZQ8VR4HG0 ', ' RZZQ8VR4HG00'],
  ...['0RZZQ8VR4HG00 ', ' 0RZZQ8VR4HG00', '0RZZQ8VR4HG00\n', '0RZZQ8VR4HG0\n', '0RZZQ8VR4HG0É'],
  ...['０RZZQ8VR4HG00', '0RZZQ8VR4HG😀', "0RZZQ8VR4HG0'", '0RZZQ8VR4HG0]', '0RZZQ8VR4HG0*'],
  ...['900710334548459520', '0RZZQ8VR4HG00', '7ZZZZZZZZZZZZ', '0000000000000', '1234567890123'],
];

for (const [name, open] of Object.entries(DATABASES)) {
  describe(`on ${name}`, { skip: name === 'sqlite' ? undefined : missing(name) }, () => {
    let database;
    before(async () => {
      database = await open();
    });
    after(() => database?.stop());

    for (const [title, layout] of Object.entries(LAYOUTS)) {
      test(`${title}: times of IDs, and smallest IDs of times`, async () => {
        const ends = endsOf(layout);
        await database.use(await json('sql', '--for', name, ...flagsOf(layout)));
        let refused = 0;
        for (const id of idsOf(layout)) {
          const isTimed = isId(id, layout) && parse(id, layout).timestamp <= LAST_MS;
          const expected = isTimed ? `${iso(parse(id, layout).timestamp)}000` : undefined;
          assert.equal(await database.time(id), expected, `${title}, ${id}`);
          if (!isTimed) refused++;
        }
        assert.ok(refused > 0);
        for (const ms of timesOf(layout, ends)) {
          const isIn = ms >= layout.epoch && ms <= ends.last;
          const expected = isIn ? String(floorId(ms, layout)) : undefined;
          assert.equal(await database.floorId(iso(ms)), expected, `${title}, ${iso(ms)}`);
          // Parts of a millisecond. SQLite rounds them.
          if (name === 'sqlite') continue;
          assert.equal(await database.floorId(`${iso(ms)}999`), expected, `${iso(ms)}999`);
        }
      });
    }

    test('base32 both ways, and only its own form', async () => {
      await database.use(await json('sql', '--for', name));
      for (const id of [
        0n,
        31n,
        32n,
        LARGEST_ID,
        -1n,
        -(2n ** 63n),
        ...fc.sample(ids, 4 * SAMPLES),
      ]) {
        const text = id < 0n ? undefined : toBase32(id);
        assert.equal(await database.toBase32(id), text, String(id));
        if (text !== undefined) assert.equal(await database.fromBase32(text), String(id));
      }
      for (const text of TEXTS) {
        const expected = isBase32(text) ? String(fromBase32(text)) : undefined;
        assert.equal(await database.fromBase32(text), expected, JSON.stringify(text));
      }
    });

    test('NULL gives NULL', async () => {
      const missing = name === 'sqlite' ? undefined : null;
      for (const call of ['time', 'floorId', 'toBase32', 'fromBase32']) {
        assert.equal(await database[call](null), missing, call);
      }
    });
    if (name === 'sqlite') sqliteTests(() => database);
    else serverTests(name, () => database);
  });
}

function sqliteTests(database) {
  test('what is no integer has no time: text must be cast', async () => {
    for (const id of ["'900710334548459520'", '1.5', "x'30'"]) {
      assert.equal(await database().time(id), undefined, id);
      assert.equal(await database().toBase32(id), undefined, id);
    }
    const cast = await database().time("CAST('900710334548459520' AS INTEGER)");
    assert.equal(cast, '2026-11-21T03:41:18.145000');
    assert.equal(await database().floorId('yesterday'), undefined);
    for (const value of [1234567890123, '0RZZQ8VR4HG00\0', '0RZZQ8V\0R4HG0', '0RZZQ8VR4HG0\0']) {
      assert.equal(await database().fromBase32(value), undefined, JSON.stringify(value));
    }
  });

  test('the time is a generated column, and an index finds rows by the smallest ID', async () => {
    const { time, floor_id } = await json('sql', '--for', 'sqlite');
    const { query } = database();
    await query(`CREATE TABLE users (id INTEGER PRIMARY KEY, created_at TEXT AS (${time}))`);
    await query('INSERT INTO users (id) VALUES (900710334548459520)');
    const where = `FROM users WHERE id >= ${floor_id}`;
    const moment = { ':moment': '2026-11-21' };
    assert.deepEqual(await query(`SELECT created_at ${where}`, moment), [
      ['2026-11-21T03:41:18.145Z'],
    ]);
    const plan = await query(`EXPLAIN QUERY PLAN SELECT id ${where}`, moment);
    assert.match(JSON.stringify(plan), /SEARCH users USING INTEGER PRIMARY KEY \(rowid>\?\)/);
  });
}

function serverTests(name, database) {
  test('an error names the value, and what is right', async () => {
    const { query, use } = database();
    await use(await json('sql', '--for', name));
    for (const [sql, said] of [
      ['snowflake_time(-5)', /the ID -5 is not one of this layout: 0 to 9223372036854775807/],
      [
        "snowflake_floor_id('2020-01-31')",
        /the time 2020-01-31 .* is outside this layout: 2020-01-31T16:00:00\.000Z to 2089-10-07/,
      ],
      ['snowflake_to_base32(-5)', /the ID -5 is out of range: 0 to 9223372036854775807/],
      ["snowflake_from_base32('0rzzq8vr4hg00')", /"0rzzq8vr4hg00" is not an ID in base32: 13 of/],
    ]) {
      await assert.rejects(query(`SELECT ${sql}`), said);
    }
  });

  test('functions of another layout replace none', async () => {
    const { query, use } = database();
    const statements = await json('sql', '--for', name);
    await use(statements);
    await assert.rejects(query(statements.snowflake_time), /already exists/);
  });

  test('an index finds rows by the smallest ID of a time', async () => {
    const { query, use } = database();
    await use(await json('sql', '--for', name));
    await query('CREATE TABLE users (id bigint PRIMARY KEY, more text)');
    const insert = Array.from({ length: 2000 }, (_, n) => `(${n + 1}, 'x')`).join();
    await query(`INSERT INTO users VALUES ${insert}, (900710334548459520, 'x')`);
    await query(name === 'mysql' ? 'ANALYZE TABLE users' : 'ANALYZE users');
    const plan = await query(
      "EXPLAIN SELECT * FROM users WHERE id >= snowflake_floor_id('2026-11-21 00:00:00')",
    );
    if (name === 'mysql') assert.deepEqual([plan[0].type, Number(plan[0].rows)], ['range', 1]);
    else assert.match(JSON.stringify(plan), /Index Cond: \(id >= '900\d+'::bigint\)/);
  });
}

test('on mysql, its client runs the script', { skip: missing('mysql') }, async () => {
  const database = await DATABASES.mysql();
  try {
    await database.use([]);
    const { stdout } = await run(['sql', '--for', 'mysql']);
    const input = `${stdout}SELECT snowflake_to_base32(900710334548459520);`;
    const args = ['--no-defaults', '-h127.0.0.1', `-P${database.port}`, '-uroot', '-N', 'app'];
    assert.equal(execFileSync('mariadb', args, { input, encoding: 'utf8' }), '0RZZQ8VR4HG00\n');
  } finally {
    await database.stop();
  }
});

test('on postgres, the script is one query, and infinity is no time', {
  skip: missing('postgres'),
}, async () => {
  const database = await DATABASES.postgres();
  try {
    await database.query((await run(['sql', '--for', 'postgres'])).stdout);
    assert.equal(await database.toBase32('900710334548459520'), '0RZZQ8VR4HG00');
    for (const time of ['infinity', '-infinity', '4713-01-01 BC', '294276-01-01']) {
      const call = database.query(`SELECT snowflake_floor_id('${time}')`);
      await assert.rejects(call, /is outside this layout/);
    }
  } finally {
    await database.stop();
  }
});

test('wrong usage exits with 2 and says what to do', async () => {
  const table = ['--partitions', 'events'];
  const postgres = ['--for', 'postgres'];
  for (const [args, said] of [
    [[], /sql needs --for: postgres, mysql \(MariaDB, too\) or sqlite/],
    [['--for', 'oracle'], /--for must be postgres, .*; it is 'oracle'/],
    [['--for', 'toString'], /--for must be postgres, .*; it is 'toString'/],
    [['--for'], /--for.*snowdrift sql --help/s],
    [[...postgres, 'node'], /sql takes no argument; remove 'node'/],
    [[...postgres, '--layout', 'mastodon'], /the layout must be node, twitter/],
    [[...postgres, '--epoch', 'soon'], /--epoch must be Unix ms or a date; it is 'soon'/],
    [[...postgres, '--epoch=-8640000000000000'], /years 1 to 9999; .* is -271821-04-20T00/],
    [[...postgres, '--epoch', '300000000000000'], /years 1 to 9999; .* is \+011476-/],
    [[...postgres, '--from', '2026-11'], /--from goes with --partitions TABLE/],
    [[...postgres, '--months', '3'], /--months goes with --partitions TABLE/],
    [['--for', 'sqlite', ...table], /SQLite has no partitions: leave out --partitions/],
    [[...postgres, '--partitions', 'a;b'], /--partitions must be a table .*; it is 'a;b'/],
    [[...postgres, '--partitions', 'a.b.c'], /--partitions must be a table .*; it is 'a\.b\.c'/],
    [[...postgres, '--partitions', 'x'.repeat(56)], /at most 55 characters/],
    [[...postgres, ...table, '--from', '2026-13'], /--from must be a month, .*; it is '2026-13'/],
    [[...postgres, ...table, '--from', '2026-1'], /--from must be a month/],
    [[...postgres, ...table, '--months', '0'], /--months must be .* from 1 to 1200; it is '0'/],
    [[...postgres, ...table, '--months', 'x'], /--months must be .* from 1 to 1200; it is 'x'/],
    [
      [...postgres, ...table, '--from', '2019-12', '--months', '2'],
      /this layout has IDs from 2020-01 to 2089-10; the months are 2019-12 to 2020-01/,
    ],
    [
      [...postgres, ...table, '--from', '2089-10', '--months', '2'],
      /the months are 2089-10 to 2089-11/,
    ],
  ]) {
    const answer = await run(['sql', ...args]);
    assert.deepEqual([answer.code, answer.stdout], [2, ''], args.join(' '));
    assert.match(answer.stderr, said);
  }
});
