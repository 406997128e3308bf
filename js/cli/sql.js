'use strict';
// `snowdrift sql`

const { configError } = require('../errors.js');
const { floorId } = require('../id.js');
const { bitsOf } = require('../ids/layout-key.js');
const { layouts } = require('../ids/layouts.js');
const { widthOf } = require('../ids/presets.js');
const { readOptions } = require('../stores/options.js');
const { leaseScript, leaseTables } = require('./lease-tables.js');
const { LAYOUT_HELP, LAYOUT_OPTIONS, readLayoutFlags, readWholeNumber } = require('./flags.js');
const { DATABASES } = require('./sql-texts.js');

const MOST_MONTHS = 1200;
/** All databases have these times. */
const FIRST_MS = Date.parse('0001-01-01');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');
/** PostgreSQL's names have 63 characters; a partition's has a month behind the table's. */
const LONGEST_TABLE = 55;

const help = `Usage: snowdrift sql --for DATABASE [options]
       snowdrift sql --lease-tables [--for DATABASE] [--schema NAME]

Prints SQL functions for IDs: the time of an ID, the smallest ID of a time, base32 both ways. SQLite has no
SQL functions: for it, prints expressions. Times are UTC. With --partitions, prints a partition per month
instead. With --lease-tables, prints the table that leases use, and the least rights of their user: of one
database, or of all.

  --for DATABASE        postgres, mysql (MariaDB, too) or sqlite
  --partitions TABLE    prints statements that add monthly partitions, by ID, to a table, such as app.events
  --from MONTH          the first month, such as 2026-11; default: this month
  --months N            1 to ${MOST_MONTHS}, default 12
  --lease-tables        prints the table of leases
  --schema NAME         its schema, on MySQL and MariaDB its database: the option schema of the leases.
                        SQLite has none
  --json                prints the statements or expressions by name, for drivers, or the months with IDs
${LAYOUT_HELP}`;

const options = {
  ...LAYOUT_OPTIONS,
  for: { type: 'string' },
  partitions: { type: 'string' },
  from: { type: 'string' },
  months: { type: 'string' },
  'lease-tables': { type: 'boolean' },
  schema: { type: 'string' },
};

const iso = (ms) => new Date(ms).toISOString();

async function run(flags, positionals, { show, usage }) {
  if (positionals.length > 0) throw usage(`sql takes no argument; remove '${positionals[0]}'`);
  if (flags['lease-tables']) {
    showLeaseTables(flags, show, usage);
    return;
  }
  if (flags.schema !== undefined) throw usage('--schema goes with --lease-tables');
  const database = readDatabase(flags.for, usage);
  const layout = readLayout(flags);
  if (flags.partitions !== undefined) {
    const months = partitionsOf(database, layout, flags, usage);
    show(months, () => months.map(({ sql }) => `${sql};`).join('\n'));
    return;
  }
  for (const name of ['from', 'months']) {
    if (flags[name] !== undefined) throw usage(`--${name} goes with --partitions TABLE`);
  }
  const statements = database.texts(valuesOf(layout));
  show(statements, () => `${titleOf(layout)}\n\n${database.script(statements)}`);
}

function showLeaseTables(flags, show, usage) {
  const other = ['layout', 'epoch', 'partitions', 'from', 'months'].find(
    (name) => flags[name] !== undefined,
  );
  if (other !== undefined)
    throw usage(`--lease-tables goes with --for and --schema alone: leave out --${other}`);
  const { for: name, schema } = flags;
  if (name === 'sqlite' && schema !== undefined)
    throw usage('SQLite has no schemas: leave out --schema');
  const all = leaseTables(readOptions(schema === undefined ? {} : { schema }, ['schema']).schema);
  const tables = name === undefined ? all : { [name]: readDatabase(name, usage, all) };
  show(tables, () => Object.entries(tables).map(leaseScript).join('\n\n\n'));
}

function readDatabase(name, usage, databases = DATABASES) {
  const known = 'postgres, mysql (MariaDB, too) or sqlite';
  if (name === undefined) throw usage(`sql needs --for: ${known}`);
  if (Object.hasOwn(databases, name)) return databases[name];
  throw usage(`--for must be ${known}; it is '${name}'`);
}

function titleOf(layout) {
  const { tickMs, epoch } = layout;
  const bits = `${bitsOf(layout)} timestamp/datacenter/worker/clock-back/sequence`;
  return `-- Layout ${bits}, ticks of ${tickMs} ms, epoch ${iso(epoch)}`;
}

/** A layout by the flags, or the default one. */
function readLayout(flags) {
  const layout = readLayoutFlags(flags) ?? layouts.node;
  if (layout.epoch >= FIRST_MS && layout.epoch <= LAST_MS) return layout;
  throw configError(
    `databases have times of the years 1 to 9999; the layout's epoch is ${iso(layout.epoch)}`,
  );
}

/** Unix ms of the last time that has IDs of a layout, and that databases have. */
function lastTimeOf({ epoch, tickMs, timestampBits }) {
  return Math.min(epoch + 2 ** timestampBits * tickMs - 1, LAST_MS);
}

/** What the SQL of a layout needs. */
function valuesOf(layout) {
  const { epoch, tickMs, timestampBits } = layout;
  const lastMs = lastTimeOf(layout);
  const lastTick = BigInt(Math.floor((lastMs - epoch) / tickMs));
  const shift = widthOf(layout) - timestampBits;
  return {
    ...{ epoch, tickMs, shift, lastMs },
    tickIds: 2n ** BigInt(shift),
    lastId: ((lastTick + 1n) << BigInt(shift)) - 1n,
    epochIso: iso(epoch),
    lastIso: iso(lastMs),
  };
}

/** A month as the number of months since year 0. */
function readMonth(text) {
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text) ?? [];
  if (year !== undefined) return Number(year) * 12 + Number(month) - 1;
  throw configError(`--from must be a month, such as 2026-11; it is '${text}'`);
}

const startOf = (month) => new Date(0).setUTCFullYear(Math.floor(month / 12), month % 12, 1);
const nameOf = (month) => iso(startOf(month)).slice(0, -17);
const monthAt = (ms) => new Date(ms).getUTCFullYear() * 12 + new Date(ms).getUTCMonth();

/** For each month its IDs, from `first` up to but without `end`, and its statement. */
function partitionsOf(database, layout, flags, usage) {
  if (database.partition === undefined) {
    throw usage(`${database.title} has no partitions: leave out --partitions`);
  }
  const table = flags.partitions;
  if (!/^\w+(\.\w+)?$/.test(table) || table.split('.').at(-1).length > LONGEST_TABLE) {
    throw configError(
      `--partitions must be a table of letters, digits and _, at most ${LONGEST_TABLE} characters, such as events or app.events; it is '${table}'`,
    );
  }
  const count = readWholeNumber('--months', flags.months, 1, MOST_MONTHS) ?? 12;
  const from = readMonth(flags.from ?? nameOf(monthAt(Date.now())));
  const until = from + count - 1;
  const [first, last] = [layout.epoch, lastTimeOf(layout)].map(monthAt);
  if (from < first || until > last) {
    throw configError(
      `this layout has IDs from ${nameOf(first)} to ${nameOf(last)}; the months are ${nameOf(from)} to ${nameOf(until)}`,
    );
  }
  return Array.from({ length: count }, (_, n) => {
    const month = from + n;
    const bounds = {
      month: nameOf(month),
      first: String(floorId(Math.max(startOf(month), layout.epoch), layout)),
      // The last month has no end: the ID after the last one may be 2^63.
      end: month === last ? null : String(floorId(startOf(month + 1), layout)),
    };
    return { ...bounds, sql: database.partition(table, bounds) };
  });
}

module.exports = { help, options, run };
