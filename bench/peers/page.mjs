// Writes docs/comparison.md and the README's table from results/peers.json and results/latest.json. What is no figure is
// in prose.mjs.

import { ALL, NAMES, nameOf } from '../names.mjs';
import { conditions, paragraphs, read, useOthers } from './prose.mjs';

const row = (...cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) =>
  [row(...head), row(...head.map(() => '---')), ...rows.map((cells) => row(...cells))].join('\n');

const thousands = (number, digits = 0) =>
  number.toLocaleString('en-US', { maximumFractionDigits: digits });

function percent(share) {
  if (share === 0) return '0%';
  return share < 0.001 ? 'under 0.1%' : `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`;
}

function rate(perSecond) {
  if (perSecond >= 1e6) return `${(perSecond / 1e6).toFixed(1)} million`;
  return thousands(Number(perSecond.toPrecision(2)));
}

/** The time of a call. */
export const time = (ns) => `${thousands(ns < 1000 ? ns : Number(ns.toPrecision(3)))} ns`;

function ratio(value) {
  return thousands(Number(value.toPrecision(2)), 4);
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
    repeats: `**${percent(result.repeated / result.after)} duplicates**`,
    lower: 'continues with lower IDs, no duplicates',
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

/** ns of one ID per callback, by kind; a round trip is one callback's. */
export const nsPerCallback = ({ turns: { lone, roundTrip } }) => ({
  snowdrift: lone.nextId,
  ...lone,
  ...roundTrip,
});

/** ns of an ID in a loop, by kind. */
const nsInLoop = ({ ns, sustained, turns: { roundTrip } }) => ({
  ...ns,
  snowdrift: 1e9 / sustained.bigint.perSecond,
  ...roundTrip,
});

/** A row of the table below; `own`: each process has a number of its own. */
function summaryRow(name, kind, own, { sizes, loop, order, duplicates }, nsByKind) {
  const count = own ? duplicates.own[kind] : duplicates.processes[kind];
  const many = own ? order.own[kind] : order.asShown[kind];
  return [
    name,
    sizes.postgres ? sizes.postgres[kind].index.toFixed(0) : 'not measured',
    `${percent(loop[kind].outOfOrder)} / ${percent(many)}`,
    nsByKind[kind] === undefined ? 'not measured' : time(nsByKind[kind]),
    count === undefined ? '0: the database counts' : repeats(count),
  ];
}

/** The table for the README: Markdown, a row for each kind, and two for snowdrift. */
export function summary(peers, measured) {
  const { amounts, kinds, duplicates } = peers;
  const nsByKind = nsPerCallback(measured);
  const row = (name, kind, own) => summaryRow(name, kind, own, peers, nsByKind);
  const all = thousands(amounts.processes * amounts.count);
  return table(
    [
      '',
      'PostgreSQL primary-key index, bytes per row',
      'Not above the ID before, 1 process / 4 processes',
      'Time per ID, one per callback',
      `Duplicates among ${all} IDs of ${amounts.processes} processes`,
    ],
    [
      row('snowdrift, one worker ID for all processes', 'snowdrift', false),
      row('snowdrift, a worker ID for each process', 'snowdrift', true),
      ...Object.keys(NAMES)
        .filter((kind) => kinds[kind] && kind !== 'snowdrift')
        .map((kind) => row(nameOf(kind), kind, duplicates.own[kind] !== undefined)),
    ],
  );
}

function conditionTable(results) {
  return table(
    ['', 'Unique if', 'Needs', 'The clock goes back 5 s'],
    Object.keys(NAMES)
      .filter((kind) => results.kinds[kind])
      .map((kind) => [nameOf(kind), ...conditions[kind], rollbackText(results, kind)]),
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

function rateTable(measured) {
  const [loops, calls] = [nsInLoop(measured), nsPerCallback(measured)];
  const kinds = ALL.filter((kind) => loops[kind] !== undefined);
  return table(
    ['', 'IDs per second in a loop', 'of snowdrift', 'one ID per callback', 'of snowdrift'],
    kinds.map((kind) => [
      nameOf(kind),
      rate(1e9 / loops[kind]),
      ratio(loops.snowdrift / loops[kind]),
      time(calls[kind]),
      ratio(calls[kind] / calls.snowdrift),
    ]),
  );
}

function orderTable({ loop, order }) {
  return table(
    [
      '',
      'loop, 1 process',
      '... duplicates',
      '4 processes, as the README shows',
      '... a number each',
    ],
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

/**
 * @param results the content of results/peers.json
 * @param measured the content of results/latest.json
 */
export function page(results, measured) {
  const { amounts, date, kinds, machine, sizes } = results;
  const servers = [machine.postgres, machine.mysql].filter(Boolean).join(', ');
  const shared = ({ numbers }) => percent(chanceOfShared(amounts.processes, numbers));
  return `# Comparison: UUIDv7, ULID, TSID, autoincrement and other Snowflakes

Why use snowdrift, and when not to. All figures and behaviours in the tables were measured here. Run it yourself:
\`npm run bench -- --save\`, then \`npm run bench -- peers --save\`.

${summary(results, measured)}

Measured on ${date}: ${machine.cpu}, ${machine.cores} cores, ${machine.os}, Node ${machine.node}, ${servers}. Each process
has a number of its own (worker, node or instance ID) if the generator takes one, unless the row says otherwise. A unique
index rejects what is **bold**. [How each column is measured](#how-it-is-measured).

${conditionTable(results)}

Each generator is configured as its README's first example shows, for the last column.

${useOthers}

## Each in a paragraph

${paragraphs({ tsid: shared(kinds.tsid), wasm: shared(kinds['nodejs-snowflake']) }, amounts)}

## The kinds

${kindTable(results)}

The text of snowdrift and TSID is base32. In decimal, their IDs have 18 or 19 characters, as those of the other Snowflakes.

## Size in the index

${Object.entries(sizes)
  .map(([server, all]) => `### ${machine[server]}\n\n${sizeTable(all, amounts.rows)}`)
  .join('\n\n')}

A foreign key repeats the size of the key that it refers to, in its table and in its index. MariaDB keeps the rows in the
index of the primary key. The index there is that of an \`int\`, which holds the primary key, too. It grows by whole
extents of 1 MB, so small differences are not real.

## Speed

${rateTable(measured)}

Measured on ${measured.date}, in one run with [the other speeds](benchmarks.md), by Node ${measured.machine.node}. In a loop
snowdrift reaches the limit of its default layout, 4,096 IDs per millisecond. A layout with more bits of sequence allows more:
[benchmarks](benchmarks.md). flake-idgen has 4,096 numbers per millisecond, too, and waits here for the next one;
nodejs-snowflake has 1,024. @sapphire/snowflake has 4,096, and generates duplicates beyond. Version 14 of \`uuid\` asks for
random bytes at each call. Autoincrement is a round trip to a server on the same machine, for each row.

## Order

The share of IDs that are not above the ID generated before them:

${orderTable(results)}

snowdrift's processes share one sequence if they have one number. At higher rates a process reserves several IDs of a
millisecond at once: the order between processes is then kept from one millisecond to the next, not within it. With a
number each they sort by millisecond, as the others do. \`crypto.randomUUIDv7()\` has no order within a millisecond.

## Duplicates

Equal IDs among ${thousands(amounts.processes * amounts.count)}, generated by ${amounts.processes} processes or threads at once:

${duplicatesTable(results)}

## Clock rollback

${results.rollback ? rollbackTable(results) : 'Not measured on this system.'}

How many of the IDs generated after the rollback were generated before, too.

## How it is measured

- **Each kind as its README's first example shows it**, by the version of its package [above](#the-kinds). snowdrift has one
  \`datacenterId\` and \`workerId\` for all processes. "A number each" gives each process a worker, node or instance ID of its
  own, where the package takes one.
- **Index**: rows of the key and an \`int\`, inserted in batches of 1,000 in the order in which their IDs were generated. All
  kinds take turns, each in a table of its own.
- **Not above the ID before, 1 process**: neighbours in a loop of ${thousands(amounts.count)} IDs. **4 processes**: each generates an ID
  every 1 to 2 ms. Only IDs whose calls did not overlap are compared.
- **Time per ID**: medians of ${measured.rounds} rounds, in which all candidates take turns. One per callback is the case of a
  server that generates one ID per request. The time of the callback itself is subtracted. In a loop flake-idgen throws
  when a millisecond is full, and is called again.
- **Duplicates**: ${thousands(amounts.count)} IDs from each process, in loops that run at once. Found by comparing all IDs.
- **The clock goes back**: a process generates IDs for ${amounts.ms} ms in a loop, and one when its clock shows 5 s later. A preloaded
  library then sets the clock back to the same milliseconds, and the process generates more. *Restart*: another process generates IDs at that
  time, with the number that the first one had.
- **Continues with lower IDs**: the IDs are lower than those generated before the rollback.
- \`__test__/package/comparison.test.js\` repeats the behaviours, and compares them with this page: in CI, order and rollback
  every night.

## Read, not measured

${read}
`;
}
