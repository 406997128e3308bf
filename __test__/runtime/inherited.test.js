'use strict';
// A property that somebody put on Object.prototype is no option, no variable and no answer: nothing of the package
// reads it. `npm run storms -- core` looks at all tests of some folders, too.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { readFileSync, readdirSync, writeFileSync } = require('node:fs');
const { join, sep } = require('node:path');
const { test } = require('node:test');

const { storm } = require('../support/amount.js');
const { createDirectory } = require('../support/own-directory.js');
const { ROOT, propertyNames } = require('../support/inherited/names.js');
const { SnowFlake, refuses } = require('../support/support.js');

const PRELOAD = require.resolve('../support/inherited/preload.js');
const SCENE = require.resolve('../support/inherited/scene.js');

/** By file of js/: its lines. */
const sources = readdirSync(join(ROOT, 'js'), { recursive: true })
  .filter((path) => path.endsWith('.js'))
  .map((path) => join('js', path).replaceAll(sep, '/'))
  .map((path) => [path, readFileSync(join(ROOT, path), 'utf8').split('\n')]);

/** The lines that a pattern finds, as path:line. */
const found = (pattern) =>
  sources.flatMap(([path, lines]) =>
    lines.flatMap((line, at) =>
      pattern.test(line.replace(/^\s*(\/\/|\*|\/\*).*/, '')) ? [`${path}:${at + 1}`] : [],
    ),
  );

test('one file reads the environment, and asks whether the variable is its own', () => {
  const files = new Set(
    found(/\bprocess\.env\b|\benv\b.* = process\b/).map((place) => place.split(':')[0]),
  );
  assert.deepEqual([...files], ['js/runtime/environment.js']);
});

test('no default object has a prototype', () => {
  assert.deepEqual(found(/(\?\?|\|\|) \{\}|= \{\}(?! *;)/), []);
});

/** Runs a file with the preload. Returns the reads that it noted. @param isTest whether it may fail: it may look at Object.prototype */
function inheritedReads(args, isTest = false) {
  const file = join(createDirectory(), 'reads');
  writeFileSync(file, '');
  const { status, stderr } = spawnSync(process.execPath, ['--require', PRELOAD, ...args], {
    env: {
      ...process.env,
      datacenterId: '1',
      workerId: '4',
      TESTS: undefined,
      INHERITED_READS: file,
    },
    encoding: 'utf8',
  });
  if (!isTest) assert.equal(status, 0, stderr);
  return readFileSync(file, 'utf8').split('\n').filter(Boolean);
}

test('no property of Object.prototype is read where IDs are generated, leased, decoded or refused', () => {
  assert.deepEqual(inheritedReads([SCENE]), []);
});

/** Tests that pass with the preload; clients of most servers do not. */
const TESTS =
  'generator/cached generator/ready host/state lease/lease lease/worker-node app/nestjs'.split(' ');

test('no property of Object.prototype is read in these tests', { skip: storm }, () => {
  for (const name of TESTS) {
    const file = join(ROOT, '__test__', `${name}.test.js`);
    // A register's contract is a test of its own.
    const reads = inheritedReads([file], true).filter(
      (read) => !read.startsWith('js/stores/contract'),
    );
    assert.deepEqual(reads, [], name);
  }
});

/** So many names at a time: none may do anything, so that none hides what another one does. */
const TOGETHER = 30;

test('no name on Object.prototype changes the node, its IDs or a refusal', () => {
  const before = { datacenterId: process.env.datacenterId, workerId: process.env.workerId };
  Object.assign(process.env, { datacenterId: '2', workerId: '9' });
  try {
    const names = propertyNames();
    for (let at = 0; at < names.length; at += TOGETHER) {
      const group = names.slice(at, at + TOGETHER);
      for (const value of [true, 7]) {
        let drawn;
        let refusal;
        try {
          for (const name of group) Object.prototype[name] = value;
          const flake = new SnowFlake();
          drawn = { ...flake.parse(flake.nextId()), of: [flake.datacenterId, flake.workerId] };
          flake.close();
          refusal = refuses(() => new SnowFlake({ workerId: 32 }), 'ERR_SNOWFLAKE_CONFIG').message;
        } finally {
          for (const name of group) delete Object.prototype[name];
        }
        const { datacenterId, workerId, of } = drawn;
        assert.deepEqual([datacenterId, workerId, ...of], [2, 9, 2, 9], `${group}: ${value}`);
        assert.equal(refusal, 'workerId must be a whole number from 0 to 31; it is 32', `${group}`);
      }
    }
  } finally {
    for (const [name, text] of Object.entries(before)) {
      if (text === undefined) delete process.env[name];
      else process.env[name] = text;
    }
  }
});
