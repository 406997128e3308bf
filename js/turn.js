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
const { clearTimeout, setTimeout } = require('./time.js');

const { nextTick } = process;

/** How often a lease that is being renewed is looked at again, ms. */
const RENEWAL_MS = 5;

/** An ID's decimal digits are spelled in two parts: the low four, and the rest. */
const LOW_DIGITS = 10_000;
const HIGH_HALF = 2 ** 32;

/** Below this, strings are drawn one by one sooner than as a batch. */
const FEW = 32;

/** '0000' to '9999'. */
let lowDigits;

/** The table takes a ms to create, and not every application uses strings. */
function createLowDigits() {
  lowDigits = Array.from({ length: LOW_DIGITS }, (_, n) => String(n).padStart(4, '0'));
}

/** The rest of the digits of `halves[at + 1] * 2^32 + halves[at]`, as a number: every step is exact. */
function highDigitsOf(halves, at) {
  const above = Math.floor(halves[at + 1] / LOW_DIGITS);
  return above * HIGH_HALF + Math.floor(remainderOf(halves, at) / LOW_DIGITS);
}

function lowDigitsOf(halves, at) {
  return remainderOf(halves, at) % LOW_DIGITS;
}

function remainderOf(halves, at) {
  return (halves[at + 1] % LOW_DIGITS) * HIGH_HALF + halves[at];
}

/** The decimal strings of IDs that mostly follow each other. */
function stringsOf(ids) {
  if (lowDigits === undefined) createLowDigits();
  const halves = new Uint32Array(ids.buffer, ids.byteOffset, ids.length * 2);
  const strings = new Array(ids.length);
  let high = 0;
  let digits = '';
  for (let n = 0; n < ids.length; n++) {
    const before = high;
    high = highDigitsOf(halves, 2 * n);
    if (high !== before) digits = String(high);
    const low = lowDigitsOf(halves, 2 * n);
    strings[n] = high === 0 ? String(low) : digits + lowDigits[low];
  }
  return strings;
}

/**
 * The functions of one instance.
 *
 * Whatever calls the application (a channel's subscribers, `clock`, `onRejectedTake`) may be called back
 * from there, by any of these functions. So state is committed before, and looked at anew after.
 *
 * @param channel what native `open` returned
 * @param settings what `readOptions` returned
 * @param onRejected 'wait', 'throw' or a function that returns an ID: for when there is none at once
 */
function openTurn(channel, settings, onRejected = 'wait') {
  const { memory, tryRefill, giveBack } = channel;
  const { clock } = settings;
  const mayWait = onRejected === 'wait';
  const ids = new BigUint64Array(memory);
  const halves = new Uint32Array(memory);
  const tryOnce = clock === undefined ? tryRefill : refillByOwnClock;
  const byClock = mayWait ? channel.refill : tryRefill;
  const refill = clock === undefined ? byClock : waitForOwnClock;

  // ids[next] to ids[end - 1] are left of the block.
  let next = 0;
  let end = 0;
  // The decimal digits of ids[i] are `high` and then lowDigits[low + i], where that is in the table.
  let high = '';
  let low = LOW_DIGITS;
  let endNoticed = false;

  function nextId() {
    if (next === end) {
      const refusal = draw(refill);
      if (refusal !== undefined) return refuse(refusal);
    }
    return ids[next++];
  }

  function nextIdString() {
    if (next === end) {
      const refusal = draw(refill);
      if (refusal !== undefined) return String(refuse(refusal));
    }
    return takeString();
  }

  function take() {
    return ids[next++];
  }

  function takeString() {
    const index = low + next;
    if (index >= LOW_DIGITS) return spell();
    next++;
    return high + lowDigits[index];
  }

  /** The next ID's string where the table ends, or the block is new. */
  function spell() {
    if (lowDigits === undefined) createLowDigits();
    const rest = highDigitsOf(halves, 2 * next);
    // Without high digits the table's zeros would be too many.
    if (rest === 0) return String(ids[next++]);
    high = String(rest);
    low = lowDigitsOf(halves, 2 * next) - next;
    return high + lowDigits[low + next++];
  }

  /** Reserves a block, and publishes what it met. Returns why there is none, if so. */
  function draw(fill) {
    const refusal = reserve(fill);
    if (!hasNews) return refusal;
    report();
    // Subscribers may have drawn all of it. What comes then is published later, or this might never end.
    return refusal === undefined && next === end ? reserve(fill) : refusal;
  }

  /** Whether the last reservation met anything to publish. */
  let hasNews = false;

  function reserve(fill) {
    const length = fill();
    next = 0;
    end = Math.abs(length);
    low = LOW_DIGITS;
    hasNews = length <= 0;
    if (end > 1 && !endNoticed) {
      endNoticed = true;
      nextTick(endTurn);
      afterMicrotasks(endTurn);
    }
    return end === 0 ? whyNot() : undefined;
  }

  function whyNot() {
    const refusal = channel.refusal();
    // The next caller may find it renewed.
    if (refusal.kind === 'ceiling') channel.wantRenewal?.();
    return refusal;
  }

  /** There is no ID: throws, or has the application return one. */
  function refuse(refusal) {
    const error = refused(refusal, settings, channel.lease());
    if (typeof onRejected !== 'function') throw error;
    return readId(onRejected(error));
  }

  function endTurn() {
    endNoticed = false;
    drop();
  }

  /** Gives back what is left of the block. */
  function drop() {
    if (next === end) return;
    const unused = end - next;
    next = end;
    giveBack(unused);
  }

  /** What was waited for here and is neither counted nor published yet. */
  const waited = [];
  let isReporting = false;

  /** Publishes clock rollbacks and waits. */
  function report() {
    // A subscriber draws: what it meets is published at the next draw.
    if (isReporting) return;
    isReporting = true;
    try {
      const news = channel.takeNews();
      if (news?.step) {
        warnOfStep(news.step, settings.layout);
        tellStep(news.step, slot);
      }
      if (news?.waits) tellWait({ ...news.waits, blocking: true }, slot);
      for (const wait of waited.splice(0)) {
        channel.noteWaits(wait.waits, wait.waitedMs);
        tellWait(wait, slot);
      }
    } finally {
      isReporting = false;
    }
  }

  function slot() {
    const { datacenterId, workerId } = channel.lease()?.slot ?? settings;
    return { datacenterId, workerId };
  }

  function noteWaits(reason, waits, waitedMs, blocking) {
    if (waits > 0) waited.push({ reason, waits, waitedMs, blocking });
  }

  /** Reads the application's clock for each ID. */
  function refillByOwnClock() {
    const now = readClock(clock);
    // What the clock itself has drawn from this instance and left.
    drop();
    channel.setClock(now);
    return tryRefill();
  }

  /** Waits in real time, since it may be any clock. */
  function waitForOwnClock() {
    let reason;
    let waits = 0;
    for (; ; waits++) {
      const length = refillByOwnClock();
      const refusal = length === 0 ? channel.refusal() : undefined;
      if (refusal === undefined || !mayWaitFor(refusal, settings.maxWait - waits)) {
        noteWaits(reason, waits, waits, true);
        return waits > 0 ? -Math.abs(length) : length;
      }
      reason = refusal.kind;
      native.sleep(1);
    }
  }

  function mayWaitFor({ kind, retryAfterMs }, ms) {
    return retryAfterMs <= ms && !(kind === 'clock-back' && settings.clockBack === 'throw');
  }

  function nextIds(count) {
    // What is left of the block comes before what is reserved now.
    drop();
    const batch = new BigUint64Array(count);
    if (clock !== undefined) return drawEach(batch, take);
    if (channel.fill(batch, mayWait)) {
      report();
      return batch;
    }
    const refusal = whyNot();
    report();
    if (typeof onRejected === 'function') return drawEach(batch, take);
    throw refused(refusal, settings, channel.lease());
  }

  /** Draws a batch one by one. All of it or, if refused, nothing. */
  function drawEach(batch, takeOne) {
    /** Those that the application has returned. */
    const others = new Set();
    let n = 0;
    try {
      for (; n < batch.length; n++) {
        const refusal = next === end ? draw(refill) : undefined;
        if (refusal !== undefined) {
          const id = refuse(refusal);
          batch[n] = takeOne === take ? id : String(id);
          others.add(n);
        } else {
          batch[n] = takeOne();
        }
      }
      return batch;
    } catch (failure) {
      drop();
      const drawn = [...batch.slice(0, n)].filter((_, index) => !others.has(index));
      channel.takeBack(BigUint64Array.from(drawn, BigInt));
      throw failure;
    }
  }

  function nextIdStrings(count) {
    return count < FEW ? drawEach(new Array(count), takeString) : stringsOf(nextIds(count));
  }

  /** Calls of nextIdAsync() that wait, in the order in which they came. */
  const queue = new Set();
  let isServing = false;
  /** All waits of `serve()` so far: how many, how long, how much of that counts towards maxWait. */
  const sum = { reason: undefined, waits: 0, ms: 0, spent: 0 };
  let wake = () => {};

  function nextIdAsync() {
    // What is thrown in here is a rejection.
    return new Promise((resolve, reject) => {
      if (!isServing && (next !== end || draw(tryOnce) === undefined)) {
        resolve(ids[next++]);
        return;
      }
      queue.add({ resolve, reject, before: { ...sum } });
      if (!isServing) serve();
    });
  }

  /** Serves the calls that wait, first come first served. */
  async function serve() {
    isServing = true;
    // Visits those that are added meanwhile, too.
    for (const call of queue) {
      for (let wait = settle(call); wait !== undefined; wait = settle(call)) {
        report();
        await pause(wait);
      }
      queue.delete(call);
    }
    isServing = false;
    report();
  }

  /** Gives a call its ID or its error. Returns what to wait for first, if so. */
  function settle({ resolve, reject, before }) {
    try {
      const refusal = next === end ? draw(tryOnce) : undefined;
      const wait = refusal && waitFor(refusal, settings.maxWait - (sum.spent - before.spent));
      if (wait !== undefined) return wait;
      resolve(refusal === undefined ? ids[next++] : refuse(refusal));
    } catch (failure) {
      reject(failure);
    }
    noteWaits(sum.reason, sum.waits - before.waits, sum.ms - before.ms, false);
    return undefined;
  }

  /** How long to wait until the next try; undefined if that is too long. */
  function waitFor(refusal, left) {
    const { kind } = refusal;
    // A store does not say how long it takes.
    if (kind === 'ceiling' && channel.wantRenewal) refusal.retryAfterMs ??= RENEWAL_MS;
    const ms = refusal.retryAfterMs;
    // An exhausted tick ends by itself. Anything else is waited for as nextId() would.
    if (kind === 'used-up' && ms !== undefined) return { kind, ms, spent: 0 };
    return mayWaitFor(refusal, left) ? { kind, ms, spent: ms } : undefined;
  }

  async function pause({ kind, ms, spent }) {
    sum.reason = kind;
    sum.waits++;
    sum.ms += ms;
    sum.spent += spent;
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Gives back what is left; calls that wait try again, and find the channel closed. */
  function close() {
    drop();
    wake();
  }

  return { nextId, nextIdString, nextIds, nextIdStrings, nextIdAsync, drop, close };
}

async function afterMicrotasks(callback) {
  await undefined;
  callback();
}

module.exports = { openTurn };
