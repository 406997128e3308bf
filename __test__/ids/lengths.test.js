'use strict';
// The dates at which the IDs of a layout get a decimal digit more.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const fc = require('fast-check');

const { layouts } = require('../support/support.js');
const { layoutsOfAllKinds } = require('../support/layouts.js');
const { lengthChanges } = require('../../js/ids/lengths.js');
const { ceilingId } = require('../../js/id.js');

const iso = (ms) => new Date(ms).toISOString();
const digitsOf = (id) => String(id).length;

test('the default epoch reaches 19 digits on 2027-08-22', () => {
  const { digits, from } = lengthChanges(layouts.node).at(-1);
  assert.deepEqual([digits, iso(from)], [19, '2027-08-22T03:22:59.101Z']);
  assert.equal(digitsOf(ceilingId(from - 1)), 18);
  assert.equal(digitsOf(ceilingId(from)), 19);
});

test('each change is the first tick with an ID of that length, and none is left out', () => {
  fc.assert(
    fc.property(layoutsOfAllKinds, (layout) => {
      const changes = lengthChanges(layout);
      let longest = digitsOf(ceilingId(layout.epoch, layout));
      for (const { digits, from } of changes) {
        assert.equal(digits, longest + 1, 'none is left out');
        assert.equal(digitsOf(ceilingId(from - 1, layout)), longest);
        assert.equal(digitsOf(ceilingId(from, layout)), digits);
        longest = digits;
      }
      const end = layout.epoch + 2 ** layout.timestampBits * layout.tickMs;
      const last = end > 8.64e15 ? 8.64e15 : end - 1;
      if (last > layout.epoch) assert.equal(digitsOf(ceilingId(last, layout)), longest);
    }),
    { numRuns: 3000 },
  );
});
