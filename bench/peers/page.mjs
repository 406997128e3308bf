// Writes docs/comparison.md from the results of a run. What is no figure is in prose.mjs.

import { conditions, paragraphs, read, useOthers } from './prose.mjs';

/** In the order of the table. */
const NAMES = {
  snowdrift: 'snowdrift',
  uuidv7: 'UUIDv7 (`uuid`)',
  ulid: 'ULID (`ulid`)',
  tsid: 'TSID (`tsid-ts`)',
  autoincrement: 'autoincrement (`pg`)',
  'nodejs-snowflake': 'nodejs-snowflake',
  '@sapphire/snowflake': '@sapphire/snowflake',
  'flake-idgen': 'flake-idgen',
};
/** In the figures alone. */
const OTHERS = { 'ulid, monotonic': '`monotonicFactory()` of `ulid`', uuidv4: 'UUIDv4 (Node)' };
const nameOf = (kind) => NAMES[kind] ?? OTHERS[kind];

const row = (...cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) =>
  [row(...head), row(...head.map(() => '---')), ...rows.map((cells) => row(...cells))].join('\n');

const thousands = (number) => number.toLocaleString('en-US', { maximumFractionDigits: 0 });

function percent(share) {
  if (share === 0) return '0%';
  return share < 0.001 ? 'under 0.1%' : `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`;
}

function rate(perSecond) {
  if (perSecond >= 1e6) return `${(perSecond / 1e6).toFixed(1)} million`;
  return thousands(Number(perSecond.toPrecision(2)));
}

function time(ns) {
  if (ns < 1000) return `${(ns / 1000).toFixed(2)} us`;
  return ns < 1e6 ? `${(ns / 1000).toFixed(1)} us` : `${(ns / 1e6).toFixed(1)} ms`;
}

function ratio(value) {
  return value >= 10 ? thousands(value) : String(Number(value.toPrecision(2)));
}

/** What a generator does after its clock went back: 'refuses', 'repeats', 'lower' or 'rises'. */
export function outcome({ after, failures, repeated, below }) {
  if (repeated > 0) return 'repeats';
  if (Object.keys(failures).length > 0) return after === 0 ? 'refuses' : 'refuses some';
  return below > 0 ? 'lower' : 'rises';
}

function outcomeText(result) {
  return {
    refuses: 'refuses',
    'refuses some': 'refuses some',
    repeats: `**repeats ${percent(result.repeated / result.after)}**`,
    lower: 'continues below, no repeats',
    rises: 'continues in order',
  }[outcome(result)];
}

function rollbackText({ rollback, restart }, kind) {
  if (rollback === undefined) return 'not measured';
  if (rollback[kind] === undefined) return 'has no clock';
  const [now, later] = [outcomeText(rollback[kind]), outcomeText(restart[kind])];
  return now === later ? `${now}, also after a restart` : `${now}; after a restart ${later}`;
}

const repeats = (result) => (result.duplicates === 0 ? '0' : `**${thousands(result.duplicates)}**`);

function duplicatesText({ duplicates: { processes, own } }, kind) {
  if (processes[kind] === undefined) return '0: the database counts';
  if (own[kind] === undefined) return repeats(processes[kind]);
  if (kind === 'snowdrift') return `${repeats(processes[kind])} with one number for all`;
  return `${repeats(processes[kind])}; with a number each ${repeats(own[kind])}`;
}

function orderText({ loop, order }, kind) {
  const many =
    kind === 'snowdrift' ? order.asShown[kind] : (order.own[kind] ?? order.asShown[kind]);
  return `${percent(loop[kind].outOfOrder)} / ${percent(many)}`;
}

const indexText = ({ sizes }, kind) =>
  sizes.postgres ? `${sizes.postgres[kind].index.toFixed(0)} bytes` : 'not measured';

/** The table for the README: markdown, of a row for each kind. */
export function summary(results) {
  const { amounts, kinds, rates } = results;
  const all = thousands(amounts.processes * amounts.count);
  return table(
    [
      '',
      'Index of the primary key, a row',
      'Out of order: 1 process / 4',
      'One ID a turn; in a loop, a second',
      `Repeats of ${all} IDs from ${amounts.processes} processes`,
      'The clock goes back 5 s',
      'Unique if. Needs',
    ],
    Object.entries(NAMES)
      .filter(([kind]) => kinds[kind])
      .map(([kind, name]) => [
        name,
        indexText(results, kind),
        orderText(results, kind),
        `${time(rates[kind].turnNs)}; ${rate(rates[kind].perSecond)}`,
        duplicatesText(results, kind),
        rollbackText(results, kind),
        conditions[kind],
      ]),
  );
}

/** The chance that some of `processes` take the same one of `numbers` at random. */
export function chanceOfShared(processes, numbers) {
  let apart = 1;
  for (let i = 0; i < processes; i++) apart *= 1 - i / numbers;
  return 1 - apart;
}

function sizeTable(sizes, rows) {
  const least = Math.min(...Object.values(sizes).map(({ index }) => index));
  return table(
    ['', 'column', 'index', 'of the least', 'table and indexes', 'insert of a row'],
    Object.entries(sizes).map(([kind, { column, index, whole, insertUs }]) => [
      nameOf(kind),
      `\`${column}\``,
      `${index.toFixed(1)}`,
      (index / least).toFixed(2),
      `${whole.toFixed(1)}`,
      `${insertUs.toFixed(1)} us`,
    ]),
  ).concat(`\n\nBytes a row, of ${thousands(rows)} rows.`);
}

function rateTable({ rates }) {
  const { snowdrift } = rates;
  return table(
    ['', 'IDs a second in a loop', 'of snowdrift', 'one ID a turn', 'of snowdrift'],
    Object.entries(rates).map(([kind, { perSecond, turnNs }]) => [
      nameOf(kind),
      rate(perSecond),
      ratio(perSecond / snowdrift.perSecond),
      time(turnNs),
      ratio(turnNs / snowdrift.turnNs),
    ]),
  );
}

function orderTable({ loop, order }) {
  return table(
    ['', 'loop, 1 process', '... repeats', '4 processes, as the README shows', '... a number each'],
    Object.keys(loop).map((kind) => [
      nameOf(kind),
      percent(loop[kind].outOfOrder),
      `${repeats(loop[kind])} of ${thousands(loop[kind].ids)}`,
      percent(order.asShown[kind]),
      order.own[kind] === undefined ? '' : percent(order.own[kind]),
    ]),
  );
}

function duplicatesTable({ duplicates: { processes, threads, own, same } }) {
  const given = (result) => (result === undefined ? '' : repeats(result));
  return table(
    [
      '',
      'processes, as the README shows',
      'threads',
      'processes, a number each',
      'the same number',
    ],
    Object.keys(processes).map((kind) => [
      nameOf(kind),
      ...[processes, threads, own, same].map((results) => given(results[kind])),
    ]),
  );
}

function rollbackTable({ rollback, sparseRollback, restart }) {
  const of = (result) => {
    const failed = Object.keys(result.failures)[0];
    if (failed) return `${outcomeText(result)}: "${failed}"`;
    return `${outcomeText(result)} (${thousands(result.repeated)} of ${thousands(result.after)})`;
  };
  return table(
    ['', 'in a loop', 'one ID a ms', 'a loop in a process that starts after it'],
    Object.keys(rollback).map((kind) => [
      nameOf(kind),
      ...[rollback, sparseRollback, restart].map((results) => of(results[kind])),
    ]),
  );
}

function kindTable({ kinds }) {
  return table(
    ['', 'version', 'bits', 'characters as text', 'numbers for generators', 'example'],
    Object.entries(kinds).map(([kind, { version, bits, text, numbers, example }]) => [
      nameOf(kind),
      version,
      bits,
      text,
      numbers === 0 ? '' : thousands(numbers),
      `\`${example}\``,
    ]),
  );
}

/** @param results the content of results/peers.json */
export function page(results) {
  const { amounts, date, kinds, machine, sizes } = results;
  const servers = [machine.postgres, machine.mysql].filter(Boolean).join(', ');
  const shared = ({ numbers }) => percent(chanceOfShared(amounts.processes, numbers));
  return `# Comparison: UUIDv7, ULID, TSID, autoincrement and other Snowflakes

Why use snowdrift, and when not to. All figures and behaviours in the tables were measured here. Run it yourself:
\`npm run bench -- peers\`.

${summary(results)}

Measured on ${date}: ${machine.cpu}, ${machine.cores} cores, ${machine.os}, Node ${machine.node}, ${servers}. **Bold** is
what a unique index refuses. [What each column means](#how-it-is-measured).

${useOthers}

## Each in a paragraph

${paragraphs({ tsid: shared(kinds.tsid), wasm: shared(kinds['nodejs-snowflake']) }, amounts)}

## The kinds

${kindTable(results)}

## Size in the index

${Object.entries(sizes)
  .map(([server, all]) => `### ${machine[server]}\n\n${sizeTable(all, amounts.rows)}`)
  .join('\n\n')}

A foreign key repeats the size of the key that it refers to, in its table and in its index. MariaDB keeps the rows in the
index of the primary key. The index there is that of an \`int\`, which holds the primary key, too. It grows by whole
extents of 1 MB, so small differences are not real.

## Rate

${rateTable(results)}

The ceiling of snowdrift's default layout is 4,096 IDs a millisecond, in a loop, too. A layout with more bits of sequence
allows more: [benchmarks](benchmarks.md). flake-idgen and @sapphire/snowflake have 4,096 numbers a millisecond, too, and
nodejs-snowflake 1,024. Version 14 of \`uuid\` asks for random bytes at each call. Version 11 asks for
those of 16 IDs at once, and took a quarter of the time when tried by hand. Autoincrement is a round trip to a server on the
same machine, for each row.

## Order

The share of IDs that are not above the ID drawn before them:

${orderTable(results)}

snowdrift's processes draw from one sequence if they have one number. At higher rates a process reserves several IDs of a
millisecond at once: the order between processes is then kept from one millisecond to the next, not within it. With a
number each they sort by millisecond, as the others do.

## Duplicates

Equal IDs among ${thousands(amounts.processes * amounts.count)}, drawn by ${amounts.processes} processes or threads at once:

${duplicatesTable(results)}

## Clock rollback

${results.rollback ? rollbackTable(results) : 'Not measured on this system.'}

How many of the IDs drawn after the rollback were drawn before, too.

## How it is measured

- **Each kind as its README's first example shows it**, by the version of its package [above](#the-kinds). snowdrift has one
  \`datacenterId\` and \`workerId\` for all processes. "A number each" gives each process a worker, node or instance ID of its
  own, where the package takes one.
- **Index**: rows of the key and an \`int\`, inserted in batches of 1,000 in the order in which their IDs were drawn. All
  kinds take turns, each in a table of its own.
- **Out of order, 1 process**: neighbours in a loop of ${thousands(amounts.count)} IDs. **4 processes**: each draws an ID
  every 1 to 2 ms. Only IDs whose draws did not overlap are compared. In the first table with a number each, except for
  snowdrift.
- **Rate**: medians of ${amounts.rounds} rounds, in which all kinds take turns. One ID a turn is the case of a server that
  draws one ID a request, without the time of the turn itself. flake-idgen throws when a millisecond is full, and is called
  again. Other work ran on the machine, so compare the kinds with each other rather than with other machines.
- **Repeats**: ${thousands(amounts.count)} IDs from each process, in loops that run at once. Found by comparing all IDs.
- **The clock goes back**: a process draws for ${amounts.ms} ms in a loop. The clock of the process then jumps back, by a
  preloaded library, to the same milliseconds, and it draws again. *Restart*: another process draws at that time, with
  the number that the first one had.
- **Continues below**: the IDs are lower than those drawn before the rollback.
- \`__test__/package/comparison.test.js\` repeats the behaviours, and compares them with this page: in CI, order and rollback
  every night.

## Read, not measured

${read}
`;
}
