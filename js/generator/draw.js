'use strict';
// The hot path: IDs drawn from a block. Native code fills `ids` with a block of consecutive IDs; drawing one
// is a read. A block is valid in two cases:
//
// - *Checked.* In any turn, while the clock shows the ms in which the block was reserved. Date.now() takes a
//   third of the time of a native call.
// - *Unchecked.* Within the turn that reserved it, without reading the clock. A turn is one callback of the
//   event loop with the microtasks that follow it. Detecting its end takes as long as 25 reads of the clock,
//   so this is for loops: only a turn that has drawn some dozen IDs gets there (src/core/pace.rs). It gives
//   back the rest of the block when it ends.
//
// So no ID is older than the start of the turn that returns it, and each of the first 16 IDs of a turn is of
// the ms in which it is drawn. The reservation of a block makes its IDs unique: nobody else has its numbers,
// whenever they are drawn. In detail:
//
// - Another page of the node begins above the tick of the clock at which this page had lost its name. This
//   page still had its name after the clock showed the ms of the block (src/pages/page.rs). A draw in the same
//   ms adds nothing to that: the block is of that ms or before, wherever it is drawn.
// - A window that closes records the tick of the last reservation, so the record is above all blocks. A block
//   of a slot that this instance has released or lost ends at once (`reserved[0]` becomes NaN).
// - If the clock rolls back and returns to the ms of a block that nobody has drawn from since, the block
//   shows that very ms.
// - Native code writes the ms that it has read itself. A JavaScript clock that stands still or differs does
//   not show that ms, and each ID takes a call.

const { createReporter } = require('../events.js');
const { writeBase32 } = require('../ids/text.js');
const { blockNow, callAtEndOfTurn } = require('../time.js');
const { widthOf } = require('../ids/presets.js');
const { refusalError } = require('../refusals.js');
const { copyIds, exactNumber, lengthOf, readId } = require('./arguments.js');
const { createBase32Speller } = require('./base32.js');
const { createSpeller } = require('./digits.js');
const { createOwnClock, createQueue } = require('./waiting.js');

/** The offsets in a channel's memory, in units of 8 bytes and of 4: src/binding/memory.rs. */
const RESERVED_MS = 256;
const [UNUSED, IS_WATCHED, MOST_CHECKED, ADVICE] = [514, 515, 516, 517];
const [WATCH, FREE] = [1, 2];

/** Not those that a later patch puts in their place: it would see the memory. */
const { BigUint64Array: Ids, Float64Array: Times, Uint32Array: Halves } = globalThis;

/** Fewer IDs are drawn faster one by one than by a call for the batch. */
const FEW_IDS = 65;

/**
 * The functions of one instance.
 *
 * Code of the application (a channel's subscribers, `clock`, `onRejectedTake`) may call any of these
 * functions. So each function commits its state before it calls the application, and reads it anew after.
 *
 * @param channel a channel of native `open`
 * @param settings the result of `readOptions`
 * @param lease the lease of its slot, if there is one
 * @param onRejected when no ID is available at once: 'wait', 'throw' or a function that returns an ID
 */
function createDrawer(channel, settings, lease, onRejected = 'wait') {
  const { memory, refill: refillOf } = channel;
  const { clock } = settings;
  const mayWait = onRejected === 'wait';
  const ids = new Ids(memory);
  const halves = new Halves(memory);
  const { reset, spell } = createSpeller(ids, halves);
  const spellBase32 = createBase32Speller(halves);
  /** The ms of the block. Native code may end the block. */
  const reserved = new Times(memory, RESERVED_MS * 8, 1);
  // Without a clock each ID takes a call: the rest of a booked block is given back.
  const now = blockNow ?? (() => Number.NaN);
  if (blockNow === undefined) halves[MOST_CHECKED] = 1;
  const own = clock && createOwnClock(channel, settings, reserved, drop, getReporter);
  const tryOnce = own?.refill ?? (() => channel.tryRefill(memory));
  const refill = own?.refillOrWait ?? (mayWait ? () => refillOf(memory) : tryOnce);
  /** Created on first use. */
  let reporter;
  let queue;

  // ids[next] to ids[end - 1] are left in the block.
  let next = 0;
  let end = 0;
  /** Whether each draw reads the clock first. */
  let isChecked = true;
  let isWatched = false;

  function nextId() {
    if (next === end || (isChecked && now() !== reserved[0])) {
      const refusal = draw(refill);
      if (refusal !== undefined) return refuse(refusal);
    }
    return ids[next++];
  }

  function nextIdString() {
    if (next === end || (isChecked && now() !== reserved[0])) {
      const refusal = draw(refill);
      if (refusal !== undefined) return String(refuse(refusal));
    }
    return takeString();
  }

  function nextIdBase32() {
    const refusal = isSpent() ? draw(refill) : undefined;
    return refusal === undefined ? spellBase32(next++) : writeBase32(refuse(refusal));
  }

  /** Of a layout of at most 53 bits. */
  function nextIdNumber() {
    const refusal = isSpent() ? draw(refill) : undefined;
    if (refusal !== undefined) return exactNumber(refuse(refusal));
    const at = 2 * next++;
    return halves[at + 1] * 2 ** 32 + halves[at];
  }

  /** Whether the next ID needs another block. */
  function isSpent() {
    return next === end || (isChecked && now() !== reserved[0]);
  }

  function take() {
    return ids[next++];
  }

  function takeString() {
    return spell(next++);
  }

  /** Whether the last reservation has events to publish. */
  let hasNews = false;

  /** Reserves a block, and publishes the events. Returns the refusal, if there is one. */
  function draw(fill) {
    const refusal = reserve(fill);
    if (!hasNews) return refusal;
    getReporter().report();
    // Subscribers may have drawn the whole block. Later events wait for the next draw: else this may not end.
    return refusal === undefined && next === end ? reserve(fill) : refusal;
  }

  function reserve(fill) {
    leave();
    const length = fill();
    next = 0;
    end = Math.abs(length);
    reset();
    hasNews = length <= 0;
    if (end === 0) return readRefusal();
    const advice = halves[ADVICE];
    isChecked = advice !== FREE;
    if (advice === WATCH && !isWatched) watch();
    return undefined;
  }

  /** The next native call gives back the rest of the block. */
  function leave() {
    halves[UNUSED] = end - next;
    next = end;
  }

  function readRefusal() {
    const refusal = channel.refusal();
    // The next caller may find the lease renewed.
    if (refusal.kind === 'ceiling') lease?.wantRenewal?.();
    return refusal;
  }

  /** Without an ID: throws, or returns an ID of the application. */
  function refuse(refusal) {
    const error = errorOf(refusal);
    if (typeof onRejected !== 'function') throw error;
    return readId(onRejected(error), widthOf(settings.layout));
  }

  function errorOf(refusal) {
    return refusalError(refusal, settings, lease?.report());
  }

  function getReporter() {
    reporter ??= createReporter(channel, settings, lease);
    return reporter;
  }

  function watch() {
    isWatched = true;
    halves[IS_WATCHED] = 1;
    callAtEndOfTurn(endTurn);
  }

  function endTurn() {
    isWatched = false;
    halves[IS_WATCHED] = 0;
    isChecked = true;
    drop();
  }

  /** Gives back the rest of the block. */
  function drop() {
    if (next === end) return;
    const unused = end - next;
    next = end;
    channel.giveBack(memory, unused);
  }

  function nextIds(count) {
    const batch = new BigUint64Array(count);
    if (count >= FEW_IDS && clock === undefined) return fill(batch);
    const isEmpty = isSpent();
    if (isEmpty || count > end - next) return drawEach(batch, take, isEmpty);
    for (let n = 0; n < count; n++) batch[n] = ids[next + n];
    next += count;
    return batch;
  }

  /** Fills an array of the application. If refused, the array holds zeros. */
  function fillIds(array) {
    return clock === undefined ? fill(array) : fillEach(array);
  }

  /** One native call, across as many ticks as it takes: all of the batch or, if refused, nothing. */
  function fill(batch) {
    // The rest of the block comes before newly reserved IDs.
    leave();
    const filled = channel.fill(memory, batch, mayWait);
    if (filled > 0) return batch;
    const refusal = filled === 0 ? readRefusal() : undefined;
    getReporter().report();
    if (refusal === undefined) return batch;
    if (typeof onRejected !== 'function') throw errorOf(refusal);
    return fillEach(batch);
  }

  function fillEach(array) {
    const drawn = drawEach(new BigUint64Array(lengthOf(array)), take, isSpent());
    copyIds(array, drawn, channel);
    return array;
  }

  /** Draws all of a batch, one by one; if refused, nothing. One call reads the clock once. */
  function drawEach(batch, takeOne, startsEmpty) {
    /** The indices of IDs that the application has returned. */
    let others;
    let n = 0;
    let isEmpty = startsEmpty;
    try {
      for (; n < batch.length; n++) {
        const refusal = isEmpty || next === end ? draw(refill) : undefined;
        isEmpty = false;
        if (refusal !== undefined) {
          const id = refuse(refusal);
          batch[n] = takeOne === take ? id : String(id);
          others ??= new Set();
          others.add(n);
        } else {
          batch[n] = takeOne();
        }
      }
      return batch;
    } catch (failure) {
      drop();
      const drawn = [...batch.slice(0, n)].filter((_, index) => !others?.has(index));
      channel.takeBack(BigUint64Array.from(drawn, BigInt));
      throw failure;
    }
  }

  function nextIdStrings(count) {
    const batch = new Array(count);
    const isEmpty = isSpent();
    if (isEmpty || count > end - next) return drawEach(batch, takeString, isEmpty);
    for (let n = 0; n < count; n++) batch[n] = takeString();
    return batch;
  }

  function nextIdAsync() {
    return queue?.isServing || isSpent() ? nextIdLater() : Promise.resolve(ids[next++]);
  }

  function nextIdLater() {
    // An exception in here becomes a rejection.
    return new Promise((resolve, reject) => {
      if (!queue?.isServing && draw(tryOnce) === undefined) resolve(ids[next++]);
      else getQueue().add(resolve, reject);
    });
  }

  function getQueue() {
    const tryDraw = () => (isSpent() ? draw(tryOnce) : undefined);
    queue ??= createQueue(settings, lease, { tryDraw, take, refuse, getReporter });
    return queue;
  }

  /** Gives back the rest of the block. Waiting calls try again, and find the channel closed. */
  function close() {
    drop();
    queue?.wake();
  }

  return {
    ...{ nextId, nextIdString, nextIdBase32, nextIdNumber, nextIds, fillIds, nextIdStrings },
    ...{ nextIdAsync, drop, close },
  };
}

module.exports = { createDrawer };
