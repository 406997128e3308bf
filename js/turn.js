'use strict';
// The hot path: IDs drawn from a block that lives no longer than the turn that reserved it.
//
// A turn is one callback of the event loop with the microtasks that follow it. Native code fills
// `ids` with a block of consecutive IDs; drawing one is a read. A lone draw in a turn gets a block of
// one, so it reads the real clock. A turn that draws more gets larger blocks, and gives back what is
// left when it ends, so no ID is older than the start of the turn that returns it.
//
// Timers and queueMicrotask are what test frameworks replace by fakes. The end of a turn is therefore
// noticed by an await, which nothing can replace, and by a process.nextTick taken before any test
// runs. The tick comes first where the turn is a plain callback: microtasks that waited before the
// block was reserved then find it gone, too.

const { refused, warnOfStep } = require('./errors.js');
const { tellStep, tellWait } = require('./events.js');
const native = require('./native.js');
const { readClock, readId } = require('./options.js');

const { nextTick } = process;
const { setTimeout } = require('node:timers');

/** How often it is looked whether a lease was renewed, ms. */
const RENEWAL_MS = 5;

/** The four low digits of an ID, which alone differ within a block: '0000' to '9999'. */
let lowDigits;

/** Made at the first string, since it takes a ms and not everyone wants strings. */
function makeLowDigits() {
  const pairs = [];
  for (let tens = 0; tens < 10; tens++) {
    for (let ones = 0; ones < 10; ones++) pairs.push(`${tens}${ones}`);
  }
  lowDigits = [];
  for (const high of pairs) for (const low of pairs) lowDigits.push(high + low);
}

/**
 * The functions of one instance.
 * @param channel what native `open` answered
 * @param settings what `readOptions` answered
 * @param onRejected 'wait', 'throw' or a function that returns an ID: when there is none at once
 */
function openTurn(channel, settings, onRejected = 'wait') {
  const { memory, tryRefill, giveBack } = channel;
  const { clock } = settings;
  const mayWait = onRejected === 'wait';
  const ids = new BigUint64Array(memory, 0, memory.byteLength / 8 - 2);
  const digits = new Float64Array(memory, memory.byteLength - 16, 2);
  const byClock = mayWait ? channel.refill : tryRefill;
  const refill = clock === undefined ? byClock : refillByOwnClock;

  // ids[next] to ids[end - 1] are left of the block.
  let next = 0;
  let end = 0;
  // The decimal digits of ids[i] are `high` and then lowDigits[low + i]. undefined: not spelled yet.
  let high;
  let low = 0;
  let endNoticed = false;

  function nextId() {
    if (next === end) draw();
    return ids[next++];
  }

  function nextIdString() {
    if (next === end) draw();
    if (high === undefined) spell();
    const index = low + next;
    if (index >= 10_000) return carried();
    next++;
    return high + lowDigits[index];
  }

  function draw() {
    if (!tryDraw(refill)) reject();
  }

  /** There is no ID: throws, or has the application give one instead. */
  function reject() {
    const refusal = refused(whyNot(), settings, channel.lease());
    if (typeof onRejected !== 'function') throw refusal;
    ids[0] = readId(onRejected(refusal));
    digits[0] = Number(ids[0] / 10_000n);
    digits[1] = Number(ids[0] % 10_000n);
    end = 1;
  }

  function whyNot() {
    const refusal = channel.refusal();
    // Of a lease from an engine. The next caller may find it renewed.
    if (refusal.kind === 'ceiling') channel.wantRenewal?.();
    return refusal;
  }

  /** Reserves a block. Says whether there was one to be had. */
  function tryDraw(fill) {
    next = end = 0;
    high = undefined;
    let length = fill();
    if (length <= 0) {
      length = -length;
      report();
    }
    end = length;
    if (length > 1 && !endNoticed) {
      endNoticed = true;
      nextTick(endTurn);
      afterMicrotasks(endTurn);
    }
    return length > 0;
  }

  function endTurn() {
    endNoticed = false;
    drop();
  }

  /** Gives back what is left of the block. */
  function drop() {
    if (next === end) return;
    const unused = end - next;
    next = end = 0;
    giveBack(unused);
  }

  function spell() {
    if (lowDigits === undefined) makeLowDigits();
    high = String(digits[0]);
    // Without high digits the table's zeros would be too many: every index is past its end then.
    low = digits[0] === 0 ? 10_000 : digits[1];
  }

  /** The next ID's string where the table ends. */
  function carried() {
    if (digits[0] === 0) return String(ids[next++]);
    digits[0] += 1;
    digits[1] -= 10_000;
    spell();
    return high + lowDigits[low + next++];
  }

  /** Tells of a step of the clock, and of what was waited for. */
  function report() {
    const news = channel.takeNews();
    if (!news) return;
    const { step, waits } = news;
    if (step) {
      warnOfStep(step, settings.layout);
      tellStep(step, slot);
    }
    if (waits) tellWait({ ...waits, blocking: true }, slot);
  }

  function slot() {
    const { datacenterId, workerId } = channel.lease()?.slot ?? settings;
    return { datacenterId, workerId };
  }

  /** Reads the application's clock for each ID; waits in real time, since it may be any clock. */
  function refillByOwnClock() {
    let reason;
    let waited = 0;
    for (; ; waited++) {
      channel.setClock(readClock(clock));
      const length = tryRefill();
      const refusal = length === 0 ? channel.refusal() : undefined;
      if (refusal === undefined || !mayWaitFor(refusal, settings.maxWait - waited)) {
        tellWaits(reason, waited, waited, true);
        return length;
      }
      reason = refusal.kind;
      native.sleep(1);
    }
  }

  function tellWaits(reason, waits, waitedMs, blocking) {
    if (waits > 0) tellWait({ reason, waits, waitedMs, blocking }, slot);
  }

  function mayWaitFor({ kind, retryAfterMs }, ms) {
    return retryAfterMs <= ms && !(kind === 'clock-back' && settings.clockBack === 'throw');
  }

  function nextIds(count) {
    // What is left of the block comes before what is reserved now.
    drop();
    const batch = new BigUint64Array(count);
    if (clock !== undefined) {
      for (let i = 0; i < count; i++) batch[i] = nextId();
      return batch;
    }
    const filled = channel.fill(batch, mayWait);
    report();
    if (filled) return batch;
    if (typeof onRejected !== 'function') {
      throw refused(whyNot(), settings, channel.lease());
    }
    return batch.map(nextId);
  }

  async function nextIdAsync() {
    let reason;
    let waits = 0;
    let waited = 0;
    /** Of maxWait. */
    let spent = 0;
    for (; ; waits++) {
      if (next !== end) break;
      if (clock !== undefined) channel.setClock(readClock(clock));
      if (tryDraw(tryRefill)) break;
      const refusal = whyNot();
      // The engine does not say how long it takes.
      if (refusal.kind === 'ceiling' && channel.wantRenewal) refusal.retryAfterMs ??= RENEWAL_MS;
      // A used-up tick ends by itself. Anything else is waited for as nextId() would.
      const usedUp = refusal.kind === 'used-up' && refusal.retryAfterMs !== undefined;
      if (!usedUp && !mayWaitFor(refusal, settings.maxWait - spent)) {
        tellWaits(reason, waits, waited, false);
        reject();
        return ids[next++];
      }
      if (!usedUp) spent += refusal.retryAfterMs;
      waited += refusal.retryAfterMs;
      reason = refusal.kind;
      await new Promise((resolve) => setTimeout(resolve, refusal.retryAfterMs));
    }
    tellWaits(reason, waits, waited, false);
    return ids[next++];
  }

  return { nextId, nextIdString, nextIds, nextIdAsync, drop };
}

async function afterMicrotasks(callback) {
  await undefined;
  callback();
}

module.exports = { openTurn };
