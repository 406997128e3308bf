// The tables of README.md and docs/comparison.md, of results.json: each between comments that name it.

import { readFileSync, writeFileSync } from 'node:fs';

import kinds from './peers/kinds.cjs';

const PAGES = ['../README.md', '../docs/comparison.md'];
const here = (path) => new URL(path, import.meta.url);

const nameOf = (kind) => kinds.KINDS[kind]?.name ?? kind;
const row = (cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) => [head, head.map(() => '---'), ...rows].map(row).join('\n');

const measuredBy = ({ date, machine }) =>
  [date, machine.cpu, `${machine.cores} cores`, machine.os, `Node ${machine.node}`].join(', ');

/** Under a table: where it was measured, unless that stands under `first`. */
function under(part, first, ...others) {
  const by = measuredBy(part);
  const isNew = part === first || by !== measuredBy(first);
  const sentences = [isNew ? by : '', others.join(', ')].filter((each) => each !== '');
  return `\n\n${sentences.join('. ')}.`;
}

const thousands = (number) => number.toLocaleString('en-US', { maximumFractionDigits: 0 });

function percent(share) {
  if (share === 0 || share === 1) return `${share * 100}%`;
  return share < 0.001 ? 'under 0.1%' : `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`;
}

/** Below 100 ns with a decimal. */
const nanoseconds = (ns) => (ns < 100 ? ns.toFixed(1) : thousands(Number(ns.toPrecision(3))));

const bold = (count) => (count === 0 ? '0' : `**${thousands(count)}**`);

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
    lower: 'unique, lower',
    rises: 'unique, in order',
  }[outcome(result)];
}

/** The table for the README: a row for each kind, and two for snowdrift. */
function summary({ behaviour, sizes, speed }) {
  const { count, duplicates, loop, order, processes } = behaviour;
  const [index] = Object.values(sizes.databases);
  const ns = { snowdrift: speed.callback['snowdrift nextId()'], ...speed.callback };
  const cells = (name, kind, numbers) => [
    name,
    index?.[kind]?.index.toFixed(0) ?? 'not measured',
    `${percent(loop[kind])} / ${percent(order[numbers][kind])}`,
    ns[kind] === undefined ? 'not measured' : `${thousands(Number(ns[kind].toPrecision(3)))} ns`,
    duplicates[numbers][kind]
      ? bold(duplicates[numbers][kind].duplicates)
      : '0: the database counts',
  ];
  const others = Object.keys(loop).filter(
    (kind) => kind !== 'snowdrift' && !kinds.KINDS[kind].isMinor,
  );
  return table(
    [
      '',
      'PostgreSQL primary-key index, bytes per row',
      'IDs out of order, 1 process / 4 processes',
      'Time per ID, one per callback',
      `Duplicates among ${thousands(processes * count)} IDs of ${processes} processes`,
    ],
    [
      cells('snowdrift, one worker ID for all processes', 'snowdrift', 'asShown'),
      cells('snowdrift, a worker ID for each process', 'snowdrift', 'own'),
      ...others.map((kind) => cells(nameOf(kind), kind, kind in order.own ? 'own' : 'asShown')),
    ],
  );
}

/** Of the generators that take a number: what README.md's table leaves out. */
function duplicateTable({ behaviour }) {
  const { asShown, same } = behaviour.duplicates;
  const rows = Object.keys(same).map((kind) => [
    nameOf(kind),
    ...[asShown, same].map((results) => bold(results[kind].duplicates)),
    // Only where the clock can be set.
    ...[behaviour.rollback?.[kind], behaviour.restart?.[kind]].map((result) =>
      result === undefined ? '' : outcomeText(result),
    ),
  ]);
  const head = ['', 'as its README shows', 'one number'];
  head.push('rollback: the same process', 'a process that starts then');
  return table(head, rows) + under(behaviour, behaviour);
}

/** Of the kinds with 64 bits only snowdrift: the others are alike. */
function sizeTable({ behaviour, sizes }) {
  const databases = Object.entries(sizes.databases);
  const others = Object.keys(sizes.kinds).filter(
    (kind) => sizes.kinds[kind].bits !== 64 && !kinds.KINDS[kind].isMinor,
  );
  const rows = ['snowdrift', ...others].map((kind) => [
    nameOf(kind),
    ...databases.flatMap(
      ([
        ,
        {
          [kind]: { whole, insertUs },
        },
      ]) => [whole, insertUs].map((value) => value.toFixed(1)),
    ),
  ]);
  const columns = databases.flatMap(([name]) => [`${name.split(' ')[0]}: bytes`, 'us']);
  const by = under(sizes, behaviour, ...databases.map(([name]) => name));
  return table(['', ...columns], rows) + by;
}

function speedTable({ behaviour, speed }) {
  const { callback, loop, rounds } = speed;
  const shown = (ns) => (ns === undefined ? '' : nanoseconds(ns));
  const rows = Object.keys(loop)
    // README.md has the others.
    .filter((name) => /snowdrift|SnowFlake|JavaScript/.test(name))
    .sort((a, b) => loop[a] - loop[b])
    .map((name) => [nameOf(name), shown(loop[name]), shown(callback[name])]);
  const by = under(speed, behaviour, `Medians of ${rounds} rounds`);
  return table(['ns per ID', 'in a loop', 'one per callback'], rows) + by;
}

/** What an application pays for snowdrift, and how many targets were reached. */
function costs({ speed: { targets } }) {
  const cost = (name) => {
    const { value, unit } = targets.find(({ what }) => what === name);
    return `${value.toFixed(1)} ${unit}`;
  };
  const reached = targets.filter(({ target, value }) => {
    const [relation, limit] = target.split(' ');
    return relation === '>=' ? value >= Number(limit) : value <= Number(limit);
  });
  return [
    `- Loading: ${cost("require('snowdrift')")}`,
    `- The addon: ${cost('the addon')}`,
    `- Memory: ${cost('an instance of an open node, kept open: memory')} an instance, ${cost('an instance of a new node: memory')} the first of a node`,
    `- Targets that were reached: ${reached.length} of ${targets.length}. \`npm run bench\` prints them.`,
  ].join('\n');
}

/** Without the cases that ask less of a store than another one. */
function fleetTable({ fleets }) {
  const rows = fleets.rows.filter(
    ([what]) => !/^(all start again|rolling restart|the store is back)/.test(what),
  );
  return table(['', '1,000 hosts of 16 processes', '10,000 hosts of 1 process'], rows);
}

/** The tables by name. */
export const blocks = (results) => ({
  summary: summary(results),
  duplicates: duplicateTable(results),
  sizes: sizeTable(results),
  speed: speedTable(results),
  costs: costs(results),
  fleets: fleetTable(results),
});

/** A page with these tables. */
export function filled(page, tables) {
  const places = /(<!-- table: (\w+), .*-->\n)[\s\S]*?(<!-- end -->)/g;
  return page.replace(places, (_, start, name, end) => `${start}${tables[name]}\n\n${end}`);
}

export const read = () => JSON.parse(readFileSync(here('results.json'), 'utf8'));

export function write(results) {
  for (const path of PAGES) {
    const page = readFileSync(here(path), 'utf8');
    writeFileSync(here(path), filled(page, blocks(results)));
  }
}

/** Adds parts to results.json, and writes the tables. */
export function record(parts) {
  const results = { ...read(), ...parts };
  writeFileSync(here('results.json'), `${JSON.stringify(results, null, 1)}\n`);
  write(results);
  console.log('Saved bench/results.json, README.md and docs/comparison.md');
}
