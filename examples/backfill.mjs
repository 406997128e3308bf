// Gives each row of the table orders without a sid one of the time of its created_at: docs/migration.md has the steps before and
// after. It may run again, and beside the application.
import pg from 'pg';
import { compose, parse } from 'snowdrift/id';

const NODE = { datacenterId: 7, workerId: 31 }; // no generator has it

/** The first ID of a row's time, or the one after the last. */
function idAfter(last, time) {
  const first = compose({ ...NODE, timestamp: time });
  if (first > last) return first;
  const { timestamp, sequence } = parse(last);
  return sequence < 4095 ? last + 1n : compose({ ...NODE, timestamp: timestamp + 1 });
}

const client = new pg.Client(process.env.DATABASE_URL);
await client.connect();
const select = `SELECT id, created_at FROM orders
  WHERE sid IS NULL AND created_at >= $1 ORDER BY created_at, id LIMIT 1000`;
const update = `UPDATE orders SET sid = filled.sid
  FROM unnest($1::uuid[], $2::bigint[]) AS filled (id, sid) WHERE orders.id = filled.id`;
let filled = 0;
let rows;
do {
  await client.query('BEGIN');
  const [state] = (await client.query('SELECT last FROM backfill FOR UPDATE')).rows;
  let last = BigInt(state.last);
  ({ rows } = await client.query(select, [rows?.at(-1)?.created_at ?? new Date(0)]));
  const ids = rows.map(({ id }) => id);
  const sids = rows.map(({ created_at }) => (last = idAfter(last, created_at)));
  await client.query(update, [ids, sids]);
  await client.query('UPDATE backfill SET last = $1', [last]);
  await client.query('COMMIT');
  filled += rows.length;
} while (rows.length === 1000);
console.log(`${filled} rows`);
await client.end();
