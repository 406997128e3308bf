'use strict';
// docs/migration.md on the Node SnowFlake class, whose datacenter ID is its worker ID: what a generator that follows the
// page issues never equals an ID of the class. The class is modelled by its arithmetic.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const { layouts } = require('../..');
const { parse } = require('../../js/id.js');

const { epoch } = layouts.node;
const page = readFileSync(join(__dirname, '../../docs/migration.md'), 'utf8');
const WORKERS = Array.from({ length: 32 }, (_, workerId) => workerId);

/** The class joins its fields, none of them masked, by one of these. */
const JOINS = { or: (a, b) => a | b, plus: (a, b) => a + b };

/** @param datacenterId the class has the worker ID in its place */
function classId(join, ms, workerId, clockBack = 0, sequence = 0, datacenterId = workerId) {
  const fields = [
    BigInt(ms - epoch) << 22n,
    BigInt(datacenterId) << 19n,
    BigInt(workerId) << 14n,
    BigInt(clockBack) << 12n,
    BigInt(sequence),
  ];
  return fields.reduce(join);
}

const nodeOf = (id) => {
  const { datacenterId, workerId } = parse(id);
  return [datacenterId, workerId];
};

/** The nodes of all that the class can issue with a worker ID of 5 bits, in ms of all kinds. */
const nodes = new Set();
for (const join of Object.values(JOINS)) {
  for (const workerId of WORKERS) {
    for (let n = 0; n < 64; n++) {
      for (const sequence of [0, 4095]) {
        nodes.add(String(nodeOf(classId(join, 1700000000000 + n, workerId, n % 4, sequence))));
      }
    }
  }
}

test('the model of the class gives the known IDs where its datacenter ID is right', () => {
  for (const join of Object.values(JOINS)) {
    assert.equal(classId(join, 1700000000000, 2, 0, 4095, 1), 501276370534961151n);
    assert.equal(classId(join, 1700000000000, 17, 3, 2048, 5), 501276370537314304n);
  }
});

test('the SQL of the page reads the node of an ID', () => {
  const [, ...fields] = /`SELECT DISTINCT ([^`]*), ([^`]*)`/.exec(page);
  for (const workerId of WORKERS) {
    const id = classId(JOINS.or, 1700000000000, workerId);
    const read = fields.map((field) => {
      const [, shift, mask] = /^\(id >> (\d+)\) & (\d+)$/.exec(field);
      return Number((id >> BigInt(shift)) & BigInt(mask));
    });
    assert.deepEqual(read, nodeOf(id));
  }
});

test('a node that is free by the page is none of the class, and one that no environment had may be', () => {
  const [, expression] = /configure\(\{ datacenterId: (.*), workerId \}\)/.exec(page);
  const datacenterOf = new Function('workerId', `return ${expression}`);
  for (const workerId of WORKERS) {
    const node = [datacenterOf(workerId), workerId];
    assert.ok(!nodes.has(String(node)), `worker ID ${workerId}`);
  }
  assert.ok(nodes.has('1,1'));
});
