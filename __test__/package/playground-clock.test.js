'use strict';
// The clock rollbacks of docs/playground.html: its sequencer follows the addon's rule, and in headless Chromium the
// counter rises and returns to 0.

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');

const { Sequencer } = require('../../scripts/playground/sequencer.js');
const { amount, seed } = require('../support/amount.js');
const { missingBrowser } = require('../support/chromium.js');
const { playground } = require('../support/playground.js');
const { SnowFlake, layouts, seeded, standing, until } = require('../support/support.js');
const id = require('snowdrift/id');

// Each clock rollback warns.
process.removeAllListeners('warning');

test('the simulation follows the rule of the sequencer, under any clock', async (t) => {
  const from = seed ?? Math.floor(Math.random() * 2 ** 31);
  t.diagnostic(`TESTS_SEED=${from}`);
  const random = seeded(from);
  const below = (n) => Math.floor(random() * n);
  const seen = new Set();
  for (let n = 0; n < amount(60, 600); n++) {
    // So short that both ends are reached, and each tick's sequence is exhausted.
    const narrow = { timestampBits: 7, clockBackBits: below(4), sequenceBits: 1 + below(3) };
    const layout = { ...layouts.node, ...narrow };
    const clock = standing(layout.epoch + below(128));
    const flake = new SnowFlake({ datacenterId: 1, workerId: 3, layout, clock, maxWait: 0 });
    const model = new Sequencer(layout);
    for (let draw = 0; draw < 80; draw++) {
      clock.now += [0, 0, 1, 1, 2, -1, -below(20), below(20)][below(8)];
      const tick = clock.now - layout.epoch;
      const expected = model.draw(tick);
      seen.add(expected.code ?? expected.counter);
      let drawn;
      try {
        const { clockBack, sequence, timestamp } = flake.parse(flake.nextId());
        assert.equal(timestamp, clock.now);
        drawn = { counter: clockBack, sequence };
      } catch ({ code }) {
        drawn = { code };
      }
      assert.deepEqual(drawn, expected, `seed ${from}, layout ${n}, draw ${draw}, tick ${tick}`);
    }
    flake.close();
  }
  assert.deepEqual([...seen].map(String).sort(), [
    ...'01234567',
    'ERR_SNOWFLAKE_BEFORE_EPOCH',
    'ERR_SNOWFLAKE_CLOCK_BACK',
    'ERR_SNOWFLAKE_EXHAUSTED',
    'ERR_SNOWFLAKE_TIME_ENDED',
  ]);
});

describe('in Chromium', { skip: missingBrowser() }, () => {
  const { click, set, text, texts } = playground();

  test('a clock rollback raises the counter, and it returns to 0 when the clock has caught up', async () => {
    const counter = async () => Number(await text('#counter'));
    const newest = async () => (await texts('#issued code'))[0];
    const ids = [await newest()];
    assert.equal(await counter(), 0);
    await set('back', 5);
    for (const expected of [1, 2, 3]) {
      await click('roll');
      ids.push(await newest());
      assert.equal(await counter(), expected);
      assert.equal(id.parse(ids.at(-1)).clockBack, expected);
      assert.match(await text('#clock-message'), new RegExp(`under counter ${expected}\\.$`));
    }
    await click('roll');
    assert.match(await text('#clock-message'), /^No ID .*ERR_SNOWFLAKE_CLOCK_BACK/);
    assert.equal(await newest(), ids.at(-1));
    const counters = [];
    // 20 s behind the first high mark, and one more to pass it.
    for (let n = 0; n < 21; n++) {
      await click('draw');
      counters.push(await counter());
      if ((await newest()) !== ids.at(-1)) ids.push(await newest());
    }
    const times = (count, value) => Array(count).fill(value);
    assert.deepEqual(counters, [...times(10, 3), ...times(5, 2), ...times(5, 1), 0]);
    assert.match(await text('#clock-message'), /passed the high mark of counter 0/);
    assert.equal(new Set(ids).size, ids.length);
    await click('run');
    const running = await text('#clock');
    await until(async () => (await text('#clock')) !== running);
    await click('run');
    await click('restart');
    assert.equal(await counter(), 0);
    // Without a counter, IDs are refused until the clock has caught up.
    await set('own-layout', 'discord');
    await click('roll');
    assert.match(await text('#clock-message'), /^No ID .*ERR_SNOWFLAKE_CLOCK_BACK/);
  });
});
