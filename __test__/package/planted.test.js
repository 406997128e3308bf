'use strict';
// Each planted fault can still be planted. `npm run planted` shows that its test finds it.

const assert = require('node:assert/strict');
const { test } = require('node:test');

test('each planted fault has its place, once, and its test', async () => {
  const { readFaults } = await import('../../scripts/planted.mjs');
  const faults = readFaults();
  assert.ok(faults.length > 0);
  // A cargo test has its own test file; those of __test__ are there (readFaults looks).
  for (const { name, test: path } of faults) assert.match(path, /^(__test__\/|cargo test)/, name);
});
