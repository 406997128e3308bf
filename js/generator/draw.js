'use strict';
// The hot path: draws IDs from a block. Native code fills `ids` with a block of consecutive IDs; drawing an ID is a
// read. A block is valid in two cases:
//
// - *Checked*: in any turn, while the clock shows the ms in which the block was reserved. Date.now() takes a third of
//   the time of a native call.
// - *Unchecked*: within the turn that reserved it, without a clock reading. A turn is one callback of the event loop
//   with the microtasks that follow it. Detecting its end takes as long as 25 clock readings, so only a turn that has
//   drawn dozens of IDs does it (src/generator/pace.rs). At its end it gives back the rest of the block.
//
// So no ID is older than the start of the turn that returns it, and each of the first 16 IDs of a turn has the ms in
// which it is drawn. The reservation of a block makes its IDs unique, whenever they are drawn:
//
// - If this page loses its name, the node's next page begins above the clock's tick at that time. This page still had
//   its name when the clock showed the ms of the block (src/pages/names.rs). So the block's IDs are below the next
//   page's, whenever they are drawn.
// - A window that closes records the tick of the last reservation, which covers all blocks. If this instance releases
//   or loses its slot, its block ends at once (`reserved[0]` becomes NaN).
// - If the clock rolls back, then returns to the ms of the block, the block is valid again: it is of that ms.
// - Native code writes the ms of its own clock reading. If JavaScript's clock is stopped or differs, it does not show
//   that ms, and each ID takes a native call.

const { fromCaller } = require('../messages/errors.js');
const { createReporter } = require('../runtime/events.js');
const { ownOf } = require('../ids/properties.js');
const { writeBase32 } = require('../ids/text.js');
const { Halves, Ids, Times } = require('../runtime/originals.js');
const { blockNow, callAtEndOfTurn } = require('../runtime/time.js');
const { widthOf } = require('../ids/presets.js');
const { copyIds, exactNumber, lengthOf, readId } = require('./arguments.js');
const { Base32Speller } = require('./base32.js');
const { Speller } = require('./digits.js');
const { createOwnClock, createQueue } = require('./waiting.js');

const refusals = () => require('../messages/refusals.js');

/** @import { Reporter } from '../runtime/events.js' */
/** @import { Channel, Lease, OpenSettings, Refusal } from '../types.js' */
/** @import { OwnClock, Queue } from './waiting.js' */
/** @typedef {'wait' | 'throw' | ((error: Error) => unknown)} OnRejected */
/**
 * @typedef {{
 *   length: number, [index: number]: bigint | string, slice(from: number, to: number): Iterable<bigint | string>
 * }} Batch
 */

/** Offsets in a channel's memory, in units of 8 and of 4 bytes: src/generator/caller.rs. */
const RESERVED_MS = 256;
const [UNUSED, IS_WATCHED, MOST_CHECKED, ADVICE] = [514, 515, 516, 517];
const [WATCH, FREE] = [1, 2];

/** A batch with fewer IDs is faster from the block than by a native call. */
const FEW_IDS = 65;

// Without a clock each ID takes a native call, and the rest of a booked block is given back.
const now = blockNow ?? (() => Number.NaN);

/**
 * Draws the IDs of one instance.
 *
 * Code of the application (a channel's subscribers, `clock`, `onRejectedTake`) may call any of these functions. So each
 * function commits its state before it calls the application, and reads it again afterwards.
 */
class Drawer {
  // Own properties, since Object.prototype may be polluted.
  ids;
  halves;
  /** The ms of the block. Native code ends the block by writing NaN. */
  reserved;
  // ids[next] to ids[end - 1] are left in the block.
  next = 0;
  end = 0;
  /** Whether each draw reads the clock first. */
  isChecked = true;
  isWatched = false;
  /** Whether the last reservation left events to publish. */
  hasNews = false;
  channel;
  refillOf;
  settings;
  lease;
  onRejected;
  speller;
  base32;
  /**
   * Reserves by the application's clock, if there is one.
   * @type {OwnClock | undefined}
   */
  own;
  // Created on first use.
  /** @type {Reporter | undefined} */
  reporter;
  /** @type {Queue | undefined} */
  queue;
  // Functions that work without `this`.
  nextId;
  nextIdString;
  nextIdBase32;
  /** Only for layouts of at most 53 bits. */
  nextIdNumber;

  /**
   * @param {Channel} channel a channel of native `open`
   * @param {OpenSettings} settings the result of `readOptions`
   * @param {Lease | undefined} lease the lease of its slot, if there is one
   * @param {OnRejected} [onRejected] what to do if no ID is available: 'wait', 'throw', or a function that returns an ID
   */
  constructor(channel, settings, lease, onRejected = 'wait') {
    const { memory } = channel;
    const ids = new Ids(memory);
    const halves = new Halves(memory);
    const reserved = new Times(memory, RESERVED_MS * 8, 1);
    this.ids = ids;
    this.halves = halves;
    this.reserved = reserved;
    this.channel = channel;
    this.refillOf = channel.refill;
    this.settings = settings;
    this.lease = lease;
    this.onRejected = onRejected;
    this.speller = new Speller(ids, halves);
    this.base32 = new Base32Speller(halves);
    if (blockNow === undefined) halves[MOST_CHECKED] = 1;
    if (settings.clock) {
      const drop = () => this.drop();
      this.own = createOwnClock(channel, settings, reserved, drop, () => this.getReporter());
    }
    this.nextId = () => {
      if (this.next === this.end || (this.isChecked && now() !== reserved[0])) {
        const refusal = this.draw();
        if (refusal !== undefined) return this.refuse(refusal);
      }
      return ids[this.next++];
    };
    this.nextIdString = () => {
      if (this.next === this.end || (this.isChecked && now() !== reserved[0])) {
        const refusal = this.draw();
        if (refusal !== undefined) return String(this.refuse(refusal));
      }
      return this.takeString();
    };
    this.nextIdBase32 = () => {
      const refusal = this.isSpent() ? this.draw() : undefined;
      if (refusal !== undefined) return writeBase32(this.refuse(refusal));
      return this.base32.spell(this.next++);
    };
    this.nextIdNumber = () => {
      const refusal = this.isSpent() ? this.draw() : undefined;
      if (refusal !== undefined) return exactNumber(this.refuse(refusal));
      const at = 2 * this.next++;
      return halves[at + 1] * 2 ** 32 + halves[at];
    };
  }

  /** Whether the next ID needs another block. */
  isSpent() {
    return this.next === this.end || (this.isChecked && now() !== this.reserved[0]);
  }

  take() {
    return this.ids[this.next++];
  }

  takeString() {
    return this.speller.spell(this.next++);
  }

  /**
   * Reserves a block, and publishes the events. Returns the refusal, if there is one.
   * @param {boolean} [mayWait]
   * @returns {Refusal | undefined}
   */
  draw(mayWait = this.onRejected === 'wait') {
    const refusal = this.reserve(mayWait);
    if (!this.hasNews) return refusal;
    this.getReporter().report();
    // Subscribers may have drawn the whole block. Events of this second reservation wait for the next draw, since
    // publishing them here might never end.
    return refusal === undefined && this.next === this.end ? this.reserve(mayWait) : refusal;
  }

  /**
   * @param {boolean} mayWait
   * @returns {Refusal | undefined}
   */
  reserve(mayWait) {
    this.leave();
    const length = this.refill(mayWait);
    this.next = 0;
    this.end = Math.abs(length);
    this.speller.reset();
    this.hasNews = length <= 0;
    if (this.end === 0) return this.readRefusal();
    const advice = this.halves[ADVICE];
    this.isChecked = advice !== FREE;
    if (advice === WATCH && !this.isWatched) this.watch();
    return undefined;
  }

  /** @param {boolean} mayWait */
  refill(mayWait) {
    const { channel, own, refillOf } = this;
    if (own !== undefined) return mayWait ? own.refillOrWait() : own.refill();
    return mayWait ? refillOf(channel.memory) : channel.tryRefill(channel.memory);
  }

  /** Leaves the block. The next native call gives back the rest of it. */
  leave() {
    this.halves[UNUSED] = this.end - this.next;
    this.next = this.end;
  }

  readRefusal() {
    const refusal = ownOf(this.channel.refusal());
    // Requests a renewal for the next caller.
    if (refusal.kind === 'ceiling') this.lease?.wantRenewal?.();
    return refusal;
  }

  /**
   * Handles a refusal: throws, or returns an ID of the application.
   * @param {Refusal} refusal
   * @returns {bigint}
   */
  refuse(refusal) {
    const { onRejected, settings } = this;
    const error = fromCaller(this.errorOf(refusal), this.refuse);
    if (typeof onRejected !== 'function') throw error;
    return readId(onRejected(error), widthOf(settings.layout));
  }

  /** @param {Refusal} refusal */
  errorOf(refusal) {
    return refusals().refusalError(refusal, this.settings, this.lease?.report());
  }

  getReporter() {
    this.reporter ??= createReporter(this.channel, this.settings, this.lease);
    return this.reporter;
  }

  watch() {
    this.isWatched = true;
    this.halves[IS_WATCHED] = 1;
    callAtEndOfTurn(() => this.endTurn());
  }

  endTurn() {
    this.isWatched = false;
    this.halves[IS_WATCHED] = 0;
    this.isChecked = true;
    this.drop();
  }

  /** Gives back the rest of the block. */
  drop() {
    if (this.next === this.end) return;
    const unused = this.end - this.next;
    this.next = this.end;
    this.channel.giveBack(this.channel.memory, unused);
  }

  /**
   * @param {number} count
   * @returns {BigUint64Array}
   */
  nextIds(count) {
    const batch = new BigUint64Array(count);
    if (count >= FEW_IDS && this.own === undefined) return this.fill(batch);
    const isEmpty = this.isSpent();
    const { ids, next } = this;
    if (isEmpty || count > this.end - next)
      return /** @type {BigUint64Array} */ (this.drawEach(batch, false, isEmpty));
    for (let n = 0; n < count; n++) batch[n] = ids[next + n];
    this.next = next + count;
    return batch;
  }

  /**
   * Fills an array of the application. After a refusal it has zeros.
   * @param {BigUint64Array} array
   */
  fillIds(array) {
    return this.own === undefined ? this.fill(array) : this.fillEach(array);
  }

  /**
   * Fills a batch by one native call, with the IDs of as many ticks as it takes. After a refusal the batch is empty.
   * @param {BigUint64Array} batch
   * @returns {BigUint64Array}
   */
  fill(batch) {
    const { channel, onRejected } = this;
    // The batch begins with the rest of the block.
    this.leave();
    const filled = channel.fill(channel.memory, batch, onRejected === 'wait');
    if (filled > 0) return batch;
    const refusal = filled === 0 ? this.readRefusal() : undefined;
    this.getReporter().report();
    if (refusal === undefined) return batch;
    if (typeof onRejected !== 'function') throw fromCaller(this.errorOf(refusal), this.fill);
    return this.fillEach(batch);
  }

  /** @param {BigUint64Array} array */
  fillEach(array) {
    const drawn = this.drawEach(new BigUint64Array(lengthOf(array)), false, this.isSpent());
    copyIds(array, /** @type {BigUint64Array} */ (drawn), this.channel);
    return array;
  }

  /**
   * Draws a batch one by one. If it throws, it gives back all IDs. It reads the clock once.
   * @param {Batch} batch
   * @param {boolean} isText
   * @param {boolean} startsEmpty
   */
  drawEach(batch, isText, startsEmpty) {
    /**
     * The indices of IDs that the application returned.
     * @type {Set<number> | undefined}
     */
    let others;
    let n = 0;
    let isEmpty = startsEmpty;
    try {
      for (; n < batch.length; n++) {
        const refusal = isEmpty || this.next === this.end ? this.draw() : undefined;
        isEmpty = false;
        if (refusal !== undefined) {
          const id = this.refuse(refusal);
          batch[n] = isText ? String(id) : id;
          others ??= new Set();
          others.add(n);
        } else {
          batch[n] = isText ? this.takeString() : this.take();
        }
      }
      return batch;
    } catch (failure) {
      this.drop();
      const drawn = [...batch.slice(0, n)].filter((_, index) => !others?.has(index));
      this.channel.takeBack(BigUint64Array.from(drawn, BigInt));
      throw failure;
    }
  }

  /**
   * @param {number} count
   * @returns {string[]}
   */
  nextIdStrings(count) {
    const batch = new Array(count);
    const isEmpty = this.isSpent();
    if (isEmpty || count > this.end - this.next)
      return /** @type {string[]} */ (this.drawEach(batch, true, isEmpty));
    for (let n = 0; n < count; n++) batch[n] = this.takeString();
    return batch;
  }

  /** @returns {Promise<bigint>} */
  nextIdAsync() {
    return this.queue?.isServing || this.isSpent()
      ? this.nextIdLater()
      : Promise.resolve(this.take());
  }

  /** @returns {Promise<bigint>} */
  nextIdLater() {
    // An exception in this function becomes a rejection.
    return new Promise((resolve, reject) => {
      if (!this.queue?.isServing && this.draw(false) === undefined) resolve(this.take());
      else this.getQueue().add(resolve, reject);
    });
  }

  getQueue() {
    this.queue ??= createQueue(this.settings, this.lease, {
      tryDraw: () => (this.isSpent() ? this.draw(false) : undefined),
      take: () => this.take(),
      refuse: (refusal) => this.refuse(refusal),
      getReporter: () => this.getReporter(),
    });
    return this.queue;
  }

  /** Gives back the rest of the block. Waiting calls retry, and find the channel closed. */
  close() {
    this.drop();
    this.queue?.wake();
  }
}

module.exports = { Drawer };
