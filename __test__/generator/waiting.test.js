'use strict';
// The queue of nextIdAsync(): what a waiting call waits for, and for how long.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { createQueue } = require('../../js/generator/waiting.js');
const { gate, isQuick } = require('../support/amount.js');
const { missing, underShiftedClock } = require('../support/machine.js');

/** The result of one call. Its first tries find the channel closed. */
function callOf({ state, triesInVain }) {
  let tries = 0;
  const lease = { report: () => ({ state }), wantRenewal() {} };
  const drawing = {
    tryDraw: () => (tries++ < triesInVain ? { kind: 'closed' } : undefined),
    take: () => 7n,
    refuse({ kind }) {
      throw new Error(kind);
    },
    getReporter: () => ({ noteWaits() {}, report() {} }),
  };
  const queue = createQueue({ maxWait: 1000, clockBack: 'counter' }, lease, drawing);
  return new Promise((resolve, reject) => queue.add(resolve, reject));
}

test('a call waits while a lease that lost its slot has no other yet', async () => {
  assert.equal(await callOf({ state: 'lost', triesInVain: 3 }), 7n);
});

test('a call to a closed instance is refused at once', async () => {
  await assert.rejects(callOf({ state: 'released', triesInVain: 3 }), { message: 'closed' });
});

const [HOUR, DAY] = [3_600_000, 86_400_000];

/**
 * A call in virtual time, of a tick that is exhausted until the clock shows `until`. Timers are a tenth of a ms late.
 * @param clock what the clock shows after that time, in ms
 * @param lateAt when another call comes, if one does
 * @param every the longest wait that a refusal names, ms: ticks of this length, which are exhausted, too
 * @param stopped returns for how long the process is stopped beside a look at the clock, ms
 * @returns the ID or the refusal, how long the call waited, and its longest timer; `late` has the other call's
 */
async function waitFor({ clock, until, maxWait, lateAt, every = Infinity, stopped = () => 0 }) {
  let now = 0;
  let longest = 0;
  let late;
  const timers = {
    monotonic: () => now,
    areTimersFake: () => false,
    clearTimeout() {},
    setTimeout(callback, ms) {
      longest = Math.max(longest, ms);
      const end = now + ms + 0.1;
      if (now < lateAt && lateAt < end) {
        now = lateAt;
        late = settled().then((answer) => ({ answer, waited: now - lateAt }));
      }
      now = end;
      queueMicrotask(callback);
    },
  };
  const drawing = {
    tryDraw() {
      now += stopped();
      const shown = Math.floor(clock(now));
      now += stopped();
      if (shown >= until) return undefined;
      return { kind: 'exhausted', now: shown, retryAfterMs: Math.min(until - shown, every) };
    },
    take: () => 7n,
    refuse(refusal) {
      throw refusal;
    },
    getReporter: () => ({ noteWaits() {}, report() {} }),
  };
  const queue = createQueue({ maxWait, clockBack: 'counter' }, undefined, drawing, timers);
  const settled = () => new Promise(queue.add).catch((refusal) => refusal);
  const answer = await settled();
  const waited = now;
  return { answer, waited, longest, late: await late };
}

/** The longest pause, and what timers are late. */
const MORE = 1100;

for (const maxWait of [0, 10, 100, 60_000]) {
  test(`a process that is stopped beside its looks at the clock waits, with maxWait ${maxWait}`, async () => {
    for (const most of [2, 3, 5]) {
      let looks = 0;
      const stopped = () => (looks++ % most === 1 ? 20 : 0);
      const call = { clock: (ms) => ms, until: 3000, every: 1, maxWait, stopped };
      assert.equal((await waitFor(call)).answer, 7n);
    }
  });

  for (const [until, tick] of [
    [1, 'a ms'],
    [3000, '3 s'],
    [HOUR, 'an hour'],
  ]) {
    test(`a tick of ${tick} is waited for while the clock runs, with maxWait ${maxWait}`, async () => {
      // At a rate of 0.6 to 2: a clock that is slewed.
      for (const rate of [0.6, 0.9, 1, 2]) {
        for (const since of [0, 0.999]) {
          const clock = (ms) => since + ms * rate;
          const { answer, waited, longest } = await waitFor({ clock, until, maxWait });
          assert.equal(answer, 7n, `rate ${rate}`);
          assert.ok(waited <= until / rate + MORE, `${waited} ms`);
          assert.ok(longest <= 1000, `a timer of ${longest} ms`);
        }
      }
    });

    // It looks at the clock every ms.
    const skip = until === 1 && maxWait === 60_000 ? gate : undefined;
    test(`a clock that does not run to a tick of ${tick} is refused after maxWait ${maxWait}`, {
      skip,
    }, async () => {
      const CLOCKS = {
        stands: () => 0,
        'stops in mid-tick': (ms) => Math.min(ms, until / 2),
        'goes to and fro': (ms) => (ms % 7 < 3 ? 0 : until / 2),
        'runs backwards': (ms) => -ms,
        'is set back all the time': (ms) => (until / 2) * ((ms / MORE) % 1) - ms,
      };
      for (const [name, clock] of Object.entries(CLOCKS)) {
        const { answer, waited, longest } = await waitFor({ clock, until, maxWait });
        assert.equal(answer.isStanding, true, name);
        assert.ok(waited <= until + 4 * maxWait + 3 * MORE, `${name}: ${waited} ms`);
        assert.ok(longest <= 1000, `${name}: a timer of ${longest} ms`);
      }
    });
  }

  test(`a call that comes late in a pause waits for maxWait ${maxWait}, too`, async () => {
    const { late } = await waitFor({ clock: () => 0, until: HOUR, maxWait, lateAt: 995 });
    assert.equal(late.answer.isStanding, true);
    assert.ok(late.waited >= maxWait, `${late.waited} ms`);
  });

  test(`a tick that is 60 days off is no timer of 60 days, with maxWait ${maxWait}`, async () => {
    const { answer, longest } = await waitFor({ clock: () => 0, until: 60 * DAY, maxWait });
    assert.equal(answer.isStanding, true);
    assert.ok(longest <= 1000, `a timer of ${longest} ms`);
  });

  test(`a clock that jumps forwards ends a wait within a second, with maxWait ${maxWait}`, async () => {
    const clock = (ms) => (ms < 5000 ? ms : ms + HOUR);
    const { answer, waited } = await waitFor({ clock, until: HOUR, maxWait });
    assert.equal(answer, 7n);
    assert.ok(waited >= 5000 && waited <= 5000 + MORE, `${waited} ms`);
  });
}

test('every call settles, and no ID repeats, when the clock is set while a booking is pending', {
  skip: missing(),
}, async () => {
  const waits = isQuick ? [10, 60_000] : [0, 10, 100, 60_000];
  const steps = isQuick ? [1000, HOUR, -HOUR] : [1000, HOUR, 60 * DAY, -HOUR];
  const { rounds, duplicates, warned } = await underShiftedClock(`
    // 16 IDs a ms: most calls wait.
    const layout = { ...layouts.node, timestampBits: 49, sequenceBits: 4 };
    const rounds = [];
    let duplicates = 0;
    let workerId = 0;
    for (const clockBack of ['counter', 'wait', 'throw']) {
      for (const maxWait of [${waits}]) {
        for (const back of [${steps}, 'stands']) {
          if (back === 'stands' && maxWait > 100) continue;
          stand(0);
          shift(0);
          const node = { layout, datacenterId: workerId >> 5, workerId: workerId++ & 31 };
          const flake = new SnowFlake({ ...node, clockBack, maxWait });
          const calls = Array.from({ length: 300 }, () => flake.nextIdAsync());
          if (back === 'stands') stand(Date.now());
          else shift(-back);
          // It takes the booking over, and shows what is due to the calls.
          const refusal = maxWait === 10 ? thrown(flake.nextId)?.code : undefined;
          const settled = await Promise.allSettled(calls);
          const ids = settled.filter(({ value }) => value).map(({ value }) => value);
          stand(0);
          if (back > 0) shift(0);
          // The times of the bookings come.
          for (let n = 0; n < 100; n++) ids.push(await flake.nextIdAsync());
          await flake.close();
          duplicates += countDuplicates(ids);
          const codes = new Set(settled.map(({ reason }) => reason?.code ?? 'an ID'));
          rounds.push({ clockBack, maxWait, back, refusal, last: [...codes].pop(), count: ids.length });
        }
      }
    }
    return { rounds, duplicates, warned: [...new Set(warnings.map(({ code, name }) => code ?? name))] };`);
  assert.equal(duplicates, 0);
  assert.deepEqual(warned, ['SNOWFLAKE_CLOCK_BACK'], 'no timer overflows');
  // Of the longest maxWait, the clock does not stand.
  assert.equal(rounds.length, 3 * (waits.length * (steps.length + 1) - 1));
  for (const round of rounds) {
    const { clockBack, maxWait, back, last, count } = round;
    if (back === 'stands') {
      assert.match(last, /EXHAUSTED|CLOCK_BACK/, JSON.stringify(round));
    } else if (back < 0 || clockBack === 'counter' || (clockBack === 'wait' && back < maxWait)) {
      assert.deepEqual([last, count], ['an ID', 400], JSON.stringify(round));
    } else {
      assert.equal(last, 'ERR_SNOWFLAKE_CLOCK_BACK', JSON.stringify(round));
    }
  }
});
