'use strict';
// docs/migration.md and examples/backfill.mjs on UUIDs: IDs of other tables and of live writers never equal those of the backfill,
// and the rows' order is that of their times.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

require('../support/own-directory.js');
const { compose, parse } = require('../../js/id.js');
const { amount, gate } = require('../support/amount.js');
const { Server, missing } = require('../support/lease/servers.js');
const { blocksOf, runProgram, runSql } = require('../support/page.js');

const PAGE = 'docs/migration.md';
const steps = blocksOf(PAGE).filter(({ code }) => /\bsid\b/.test(code));
const backfill = {
  page: PAGE,
  language: 'js',
  code: readFileSync(join(__dirname, '../../examples/backfill.mjs'), 'utf8'),
};

/** The program's function that gives the ID of a row, for a node. */
function idAfterOf(node) {
  const [text] = /^function idAfter\([\s\S]*?^\}/m.exec(backfill.code);
  return new Function('NODE', 'compose', 'parse', `${text}\nreturn idAfter;`)(node, compose, parse);
}

/** The IDs of rows by their times, as a backfill that begins anew gives them. */
function idsOf(node, times) {
  const idAfter = idAfterOf(node);
  let last = 0n;
  return times.map((time) => {
    last = idAfter(last, time);
    return last;
  });
}

const times = Array.from(
  { length: amount(5000, 20_000) },
  (_, row) => new Date(1_700_000_000_000 + row / 2),
);

test('tables that are filled by nodes of their own, as the page says, have no ID in common', () => {
  const [, first, next] =
    /`datacenterId` 7 and `workerId` (\d+)[\s\S]*?takes `workerId` (\d+)/.exec(
      readFileSync(join(__dirname, '../..', PAGE), 'utf8'),
    );
  assert.notEqual(first, next);
  const nodes = [first, next].map((workerId) => ({ datacenterId: 7, workerId: Number(workerId) }));
  const [orders, items] = nodes.map((node) => idsOf(node, times));
  const all = new Set([...orders, ...items]);
  assert.equal(all.size, 2 * times.length);
});

/** Before the program begins: writers of both versions, whose rows of one time come while it runs. */
const WRITERS = `
const { SnowFlake } = await import('snowdrift');
const pool = new (await import('pg')).default.Pool({ connectionString: process.env.DATABASE_URL });
let isWriting = true;
let written = 0;
async function write() {
  while (isWriting && written < 3000) {
    const sid = SnowFlake.nextIdString();
    const { date } = SnowFlake.parse(sid);
    const insert = 'INSERT INTO orders (id, created_at, sid) VALUES (gen_random_uuid(), $1, $2)';
    await pool.query(insert, [date, sid]);
    await pool.query(insert, [date, null]);
    written++;
  }
}
const writing = [write(), write(), write()];
`;

/** After it. */
const END = `
while (written < 20) await new Promise(setImmediate);
isWriting = false;
await Promise.all(writing);
await pool.end();
`;

/** After a second run: the IDs of all rows. */
const CHECKS = `
const { equal, ok } = await import('node:assert/strict');
const checked = new pg.Client(process.env.DATABASE_URL);
await checked.connect();
const orders = (await checked.query('SELECT sid, created_at FROM orders ORDER BY created_at, id')).rows;
await checked.end();
const parsed = orders.map((row) => ({ ...row, ...parse(row.sid) }));
equal(new Set(orders.map(({ sid }) => sid)).size, orders.length);
const isOurs = ({ datacenterId, workerId }) => datacenterId === NODE.datacenterId && workerId === NODE.workerId;
const live = parsed.filter((row) => !isOurs(row));
ok(live.length >= 20);
ok(live.every(({ datacenterId }) => datacenterId === 1));
// The rows before the writers': 4,999 and 5,000 of a millisecond each, in order
const old = parsed.slice(0, 9999);
ok(old.every(isOurs));
for (const [index, { id, timestamp, created_at }] of old.entries()) {
  ok(index === 0 || id > old[index - 1].id);
  ok(timestamp - created_at >= 0 && timestamp - created_at <= 1, String(timestamp - created_at));
}
equal(old[0].timestamp - old[0].created_at, 0);
const late = parsed.slice(9999).filter(isOurs);
equal(late.length, live.length);
for (const { timestamp, created_at } of late) ok(timestamp >= created_at.getTime());
`;

test('the program fills all rows beside writers of both versions, each once and in order', {
  skip: gate ?? missing('postgres'),
}, async () => {
  const server = await Server.start('postgres', { args: ['-c', 'autovacuum=off'] });
  try {
    const env = { datacenterId: '1', workerId: '3', DATABASE_URL: server.url };
    await runSql(steps[0], env);
    await runProgram({ ...backfill, given: WRITERS, code: `${backfill.code}${END}` }, env);
    await runProgram({ ...backfill, code: `${backfill.code}${CHECKS}` }, env);
    await runSql(steps.at(-1), env);
  } finally {
    await server.stop();
  }
});
