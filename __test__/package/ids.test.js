'use strict';
// The IDs in pages, declarations and help. Each decodes to what is said of it here, and to the node that the code beside it
// names. An ID that is not listed fails.

const assert = require('node:assert/strict');
const { readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const { fromBase32, isBase32, isId, parse } = require('../../js/id.js');

const ROOT = join(__dirname, '../..');

/** docs/api.md is made of the declarations. */
const GENERATED = ['docs/api.md'];

function filesBelow(folder, pattern) {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .map((name) => join(folder, name).replaceAll('\\', '/'))
    .filter((path) => pattern.test(path) && !path.includes('node_modules'));
}

const PAGES = [
  ...readdirSync(ROOT).filter((name) => /\.(md|d\.ts)$/.test(name)),
  ...['docs', 'npm', 'packages'].flatMap((folder) => filesBelow(folder, /\.(md|html|d\.ts)$/)),
  ...filesBelow('js', /\.(js|ts)$/),
].filter((page) => !GENERATED.includes(page));

/** The time of most IDs here. */
const date = '2026-11-21T03:41:18.145Z';
const node = { datacenterId: 1, workerId: 3, clockBack: 0, sequence: 0, date };
const first = { ...node, workerId: 0 };
const second = { ...node, workerId: 2 };
const served = { ...node, workerId: 1, date: '2026-11-21T11:50:34.379Z' };
const border = { date: '2027-08-22T03:22:59.101Z' };
/** By page, the fields of each ID, and its layout if it is not 'node'; or why it is none. */
const STATED = {
  'README.md': {
    '900710334548410368': first,
    '900710334548459520': node,
    '900710334577819648': { ...node, date: '2026-11-21T03:41:18.152Z' },
  },
  'docs/boundaries.md': {
    '900710334548459520': node,
    '0900710334548459520': 'has a leading zero',
    '900710334548459521': { ...node, sequence: 1 },
    900710334548459500: 'is that ID as a number',
  },
  'docs/deployment.md': { '900710334548410368': first, '900710334548459520': node },
  'docs/how-it-works.md': {
    '501276370534961151': {
      timestamp: 1700000000000,
      datacenterId: 1,
      workerId: 2,
      sequence: 4095,
    },
  },
  'docs/id.md': {
    '900710334548459520': node,
    '0RZZQ8VR4HG00': node,
    '175928847299117063': {
      layout: 'discord',
      datacenterId: 1,
      workerId: 0,
      sequence: 7,
      date: '2016-04-30T11:18:25.796Z',
    },
    1000000000000000000: border,
    '999999999999999999': border,
  },
  'docs/operations.md': { '900833463518117888': served },
  'docs/playground.html': { '900710334548459520': node },
  'docs/public-ids.md': {
    '900710334548443136': second,
    '900710334548443137': { ...second, sequence: 1 },
  },
  'docs/public-ids-format.md': {
    '900710334548443136': second,
    '9223372036854775807': 'the largest ID',
  },
  'docs/sql.md': { '900710334548459520': node },
  'docs/testing.md': {
    '900710334548459520': node,
    '900654641971249159': {
      datacenterId: 0,
      workerId: 3,
      sequence: 7,
      timestamp: Date.UTC(2026, 10, 21),
    },
  },
  'docs/tools.md': {
    '900710334548459521': { ...node, sequence: 1 },
    900710334548459500: 'is that ID as a number',
  },
  'docs/troubleshooting.md': {
    '900710334548459520': node,
    '3200169789968523265': 'shows how a number rounds',
  },
  'index.d.ts': {
    '900710334548459520': node,
    '900710334548459521': { ...node, sequence: 1 },
    '0RZZQ8VR4HG00': node,
  },
  'js/cli/parse.js': { '900833463518117888': served },
  'js/cli/public.js': { '900833463518117888': served },
  'js/server/openapi.js': { '900833463518117888': served },
  'js/cli/serve.js': { '900833463518117888': served },
  'js/id.d.ts': {
    '501276370537314304': { date: '2023-11-14T22:13:20.000Z', datacenterId: 5, workerId: 17 },
  },
  'js/orm/typeorm/sqlite.js': { '9007199254740993': 'is 2^53 + 1' },
  'js/public.d.ts': { '900710334548443136': second },
  'js/schema.d.ts': {
    '501276370537314304': { date: '2023-11-14T22:13:20.000Z', datacenterId: 5, workerId: 17 },
  },
};

/** The IDs of a text, each with where it starts. 13 digits alone are a time. */
function idsIn(text) {
  const found = text.matchAll(
    /(?<![\w.])(?:(\d{15,19})n?|(?!\d{13})[0-7][\dA-HJKMNP-TV-Z]{12})(?!\w)/g,
  );
  return Array.from(found, ({ 0: whole, 1: decimal = whole, index }) => ({ id: decimal, index }));
}

/** The code around a place of a page: a fenced block, in Markdown or in a comment. Empty in prose. */
function codeAround(text, index) {
  const fences = Array.from(text.matchAll(/^.*```.*$/gm), (fence) => fence.index);
  const before = fences.filter((fence) => fence <= index);
  return before.length % 2 === 0 ? '' : text.slice(before.at(-1), fences[before.length]);
}

/** The one value that code gives a name, as in `workerId: 3` and `workerId=3`; undefined for none or several. */
function valueIn(code, name) {
  const values = new Set(
    Array.from(code.matchAll(new RegExp(`\\b${name}(?:=|: )(\\d+)\\b`, 'g')), ([, one]) => one),
  );
  return values.size === 1 ? Number([...values][0]) : undefined;
}

const decode = (id, layout) => parse(isBase32(id) && !isId(id) ? fromBase32(id) : id, layout);

for (const page of PAGES) {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const ids = idsIn(text);
  const stated = STATED[page] ?? {};
  if (ids.length === 0 && STATED[page] === undefined) continue;
  test(`the IDs of ${page}`, () => {
    assert.deepEqual(
      [...new Set(ids.map(({ id }) => id))].sort(),
      Object.keys(stated).sort(),
      'IDs of the page, and those listed here',
    );
    for (const { id, index } of ids) {
      if (typeof stated[id] === 'string') continue;
      const { layout = 'node', date: at, ...fields } = stated[id];
      const parsed = decode(id, layout);
      for (const [name, value] of Object.entries(fields)) assert.equal(parsed[name], value, id);
      if (at !== undefined) assert.equal(parsed.date.toISOString(), at, id);
      if (layout !== 'node') continue;
      const code = codeAround(text, index);
      for (const name of ['datacenterId', 'workerId']) {
        const beside = valueIn(code, name);
        if (beside !== undefined) assert.equal(parsed[name], beside, `${name} of ${id}:\n${code}`);
      }
    }
  });
}

test('each listed page exists', () => {
  assert.deepEqual(
    Object.keys(STATED).filter((page) => !PAGES.includes(page)),
    [],
  );
});

test('an ID of another node than the code beside it, and one that nobody listed, are found', () => {
  const page = 'Text\n```js\nopen({ datacenterId: 1, workerId: 3 }); // 900710334548443136n\n```\n';
  const [{ id, index }] = idsIn(page);
  assert.equal(id, '900710334548443136');
  assert.deepEqual([decode(id).workerId, valueIn(codeAround(page, index), 'workerId')], [2, 3]);
  assert.equal(valueIn('workerId: 1\nworkerId: 2', 'workerId'), undefined);
  assert.deepEqual(
    idsIn('1580486400000 `0DX746G00H401` "18446744073709551616" 501276370534961151n').map(
      (one) => one.id,
    ),
    ['0DX746G00H401', '501276370534961151'],
  );
});
