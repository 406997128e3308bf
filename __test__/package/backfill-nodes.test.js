'use strict';
// docs/migration-uuid.md on the nodes of its backfill: two tables that are filled by one node get equal IDs.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const { compose, parse } = require('../../js/id.js');
const { amount } = require('../support/amount.js');
const { blocksOf } = require('../support/page.js');

const PAGE = 'docs/migration-uuid.md';

/** The page's function that gives the ID of a row, for a node. */
function idAfterOf(node) {
  const [{ code }] = blocksOf(PAGE).filter((block) => block.code.includes('function idAfter('));
  const [text] = /^function idAfter\([\s\S]*?^\}/m.exec(code);
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

test('tables that are filled by one node have IDs in common', () => {
  const node = { datacenterId: 7, workerId: 31 };
  assert.deepEqual(idsOf(node, times), idsOf(node, times));
});
