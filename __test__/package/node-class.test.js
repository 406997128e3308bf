'use strict';
// docs/migration.md on the Node SnowFlake class, whose datacenter ID is its worker ID: what a generator that follows the
// page issues never equals an ID of the class. The class is modelled by its arithmetic.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

require('../support/own-directory.js');
const { SnowFlake, layouts } = require('../..');
const { parse } = require('../../js/id.js');

const { epoch } = layouts.node;
const page = readFileSync(join(__dirname, '../../docs/migration.md'), 'utf8');

/** The class joins its fields, none of them masked, by one of these. */
const JOINS = { or: (a, b) => a | b, plus: (a, b) => a + b };

/** The fields of an ID above the sequence. @param datacenterId the class has the worker ID in its place */
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

const WORKERS = Array.from({ length: 32 }, (_, workerId) => workerId);
const nodeOf = (id) => {
  const { datacenterId, workerId } = parse(id);
  return [datacenterId, workerId];
};

/** IDs above the sequence, so each stands for all 4,096 of them. */
const head = (id) => id >> 12n;

/** All that the class can issue from one time to another, with any worker ID of 5 bits and any counter. */
function issuedByClass(join, from, until) {
  const heads = new Set();
  for (let ms = from; ms <= until; ms++) {
    for (const workerId of WORKERS) {
      for (let clockBack = 0; clockBack < 4; clockBack++) {
        heads.add(head(classId(join, ms, workerId, clockBack)));
      }
    }
  }
  return heads;
}

function equalIds(node, count = 500) {
  const ids = new SnowFlake(node).nextIds(count);
  const times = [ids[0], ids.at(-1)].map((id) => parse(id).timestamp);
  const equals = Object.values(JOINS).map((join) => {
    const heads = issuedByClass(join, times[0] - 8, times[1]);
    return Array.from(ids).filter((id) => heads.has(head(id))).length;
  });
  return { equals, count };
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

test('a generator of a free node by the page issues no ID of the class', () => {
  const [, expression] = /configure\(\{ datacenterId: (.*), workerId \}\)/.exec(page);
  const datacenterOf = new Function('workerId', `return ${expression}`);
  for (const workerId of WORKERS) {
    const { equals } = equalIds({ datacenterId: datacenterOf(workerId), workerId });
    assert.deepEqual(equals, [0, 0], `worker ID ${workerId}`);
  }
});

test('a datacenter ID that no old process had in its environment is not free', () => {
  const { equals, count } = equalIds({ datacenterId: 1, workerId: 1 });
  assert.deepEqual(equals, [count, count]);
});
