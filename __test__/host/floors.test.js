'use strict';
// A slot of a directory whose last IDs are ahead of the clock: openings wait for the clock within bounds, and nextId() refuses
// what is further off.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { gate } = require('../support/amount.js');
const { missing, underShiftedClock } = require('../support/machine.js');

const skip = gate || missing();

/** A script that issues an ID and closes, has the clock roll back, and opens the node again by `open`. */
const reopened = (backMs, open) => `
  const { mkdtempSync, rmSync } = require('node:fs');
  const { tmpdir } = require('node:os');
  const { join } = require('node:path');
  const state = mkdtempSync(join(tmpdir(), 'snowdrift-floors-'));
  const layout = { ...layouts.node, workerBits: 0, sequenceBits: 17 };
  const options = { datacenterId: 1, layout };
  try {
    const first = await SnowFlake.lease('file://' + state, options);
    const last = first.nextId();
    await first.close();
    shift(-${backMs});
    const next = ${open};
    const { code, retryAfterMs } = thrown(() => { next.nextId(); }) ?? {};
    const isAbove = code === undefined && next.nextId() > last;
    await next.close();
    return { code, retryAfterMs, isAbove };
  } finally {
    rmSync(state, { recursive: true });
  }`;

const NOW = 'new SnowFlake({ ...options, workerId: 0, state })';
const LATER = "await SnowFlake.lease('file://' + state, options)";

for (const [name, back, open, waits] of [
  ['a constructor waits for a clock that is less than a second behind', 800, NOW, true],
  ['a constructor refuses with the time where it is further behind', 50_000, NOW, false],
  ['SnowFlake.lease() waits for a clock that is less than a minute behind', 2500, LATER, true],
  ['SnowFlake.lease() does not wait for one that is further behind', 200_000, LATER, false],
]) {
  test(name, { skip }, async () => {
    const { code, retryAfterMs, isAbove } = await underShiftedClock(reopened(back, open));
    assert.deepEqual([code, isAbove], waits ? [undefined, true] : ['ERR_SNOWFLAKE_WINDOW', false]);
    if (!waits) assert.ok(retryAfterMs > back / 50 && retryAfterMs <= back, String(retryAfterMs));
  });
}
