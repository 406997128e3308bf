'use strict';
// Decodes and encodes IDs by their 32-bit halves. Needs no addon and no Node API.
//
// src/core/node.rs has the same layout of bits; ids/codec.test.js decodes IDs that Rust issued.

const { argumentError, invalidId } = require('./error.js');
const { HALF, HIGH, LOW, halves, whole } = require('./halves.js');
const { DATE_LIMIT } = require('./presets.js');

/** @import { Layout } from '../types.js' */

/** Whole numbers below this are exact. */
const EXACT = 2 ** 53;

/** An ID's fields. In JSON the ID is a string, since JSON has no bigint. */
class ParsedId {
  /**
   * @param {bigint} id
   * @param {number} timestamp
   * @param {number} datacenterId
   * @param {number} workerId
   * @param {number} clockBack
   * @param {number} sequence
   */
  constructor(id, timestamp, datacenterId, workerId, clockBack, sequence) {
    this.id = id;
    this.timestamp = timestamp;
    this.date = new Date(timestamp);
    this.datacenterId = datacenterId;
    this.workerId = workerId;
    this.clockBack = clockBack;
    this.sequence = sequence;
  }

  toJSON() {
    return { ...this, id: String(this.id) };
  }
}

/**
 * A mask of this many bits, at most 32.
 * @type {(bits: number) => number}
 */
const maskOf = (bits) => (bits >= 32 ? -1 : 2 ** bits - 1);

/** The position of a field in the halves of an ID. */
class Field {
  #lowShift;
  #lowMask;
  #highShift;
  #highMask;
  /** The weight of the field's part in the high half. */
  #scale;

  /**
   * @param {number} shift
   * @param {number} bits
   */
  constructor(shift, bits) {
    const lowBits = Math.max(0, Math.min(bits, 32 - shift));
    this.#lowShift = Math.min(shift, 31);
    this.#lowMask = maskOf(lowBits);
    this.#highShift = Math.max(0, shift - 32);
    this.#highMask = maskOf(bits - lowBits);
    this.most = 2 ** bits - 1;
    this.#scale = 2 ** lowBits;
    /** The weight of the field in the low half and in the high half. */
    this.low = 2 ** shift;
    this.high = this.low / HALF;
  }

  /**
   * The field's value, rounded if it has more than 53 bits.
   * @param {number} low
   * @param {number} high
   */
  of(low, high) {
    const lowPart = ((low >>> this.#lowShift) & this.#lowMask) >>> 0;
    const highPart = (high >>> this.#highShift) & this.#highMask;
    return highPart * this.#scale + lowPart;
  }
}

/** Decodes and encodes the IDs of one layout. */
class Codec {
  #tickShift;
  /** The bits above those of an ID. */
  #lowAbove;
  #highAbove;

  /** @param {Layout} layout a checked layout */
  constructor(layout) {
    let shift = 0;
    /** @param {number} bits */
    const next = (bits) => {
      shift += bits;
      return new Field(shift - bits, bits);
    };
    this.sequence = next(layout.sequenceBits);
    this.clockBack = next(layout.clockBackBits);
    this.workerId = next(layout.workerBits);
    this.datacenterId = next(layout.datacenterBits);
    this.#tickShift = BigInt(shift);
    this.tick = next(layout.timestampBits);
    this.bits = shift;
    this.#lowAbove = ~maskOf(shift);
    this.#highAbove = ~maskOf(Math.max(0, shift - 32));
    this.tickMs = layout.tickMs;
    this.epoch = layout.epoch;
    this.layout = layout;
  }

  /**
   * Decodes an ID of 0 to 2^63 - 1.
   * @param {bigint} id
   */
  decode(id) {
    whole[0] = id;
    const low = halves[LOW];
    const high = halves[HIGH];
    if (((low & this.#lowAbove) | (high & this.#highAbove)) !== 0) {
      throw invalidId(
        `the ID ${id} is wider than this layout's ${this.bits} bits: parse it with the layout that issued it`,
      );
    }
    const ms = this.tick.of(low, high) * this.tickMs;
    // If the product was rounded, it is not below EXACT.
    const timestamp = ms < EXACT ? ms + this.epoch : this.#lateTimestamp(id);
    if (!(Math.abs(timestamp) <= DATE_LIMIT)) {
      throw invalidId(
        `the time of the ID ${id} is later than a Date can hold: check the layout's epoch and tickMs`,
      );
    }
    return new ParsedId(
      id,
      timestamp,
      this.datacenterId.of(low, high),
      this.workerId.of(low, high),
      this.clockBack.of(low, high),
      this.sequence.of(low, high),
    );
  }

  /**
   * Encodes fields that are in range. The timestamp, in Unix ms, may be any time in its tick.
   * @param {number} timestamp
   * @param {number} datacenterId
   * @param {number} workerId
   * @param {number} clockBack
   * @param {number} sequence
   */
  encode(timestamp, datacenterId, workerId, clockBack, sequence) {
    const ms = timestamp - this.epoch;
    const isLate = ms >= EXACT;
    // Exact, unlike the floor of a quotient.
    let tick = this.tickMs === 1 ? ms : (ms - (ms % this.tickMs)) / this.tickMs;
    if (isLate) tick = Number(this.#lateTick(timestamp));
    if (ms < 0 || tick > this.tick.most) {
      const end = this.epoch + (this.tick.most + 1) * this.tickMs;
      throw argumentError(
        `the time must lie in this layout's range, ${this.epoch} to ${Math.min(end - 1, DATE_LIMIT)} (Unix ms); it is ${timestamp}`,
      );
    }
    if (isLate) tick = 0;
    // All products are exact. `|` takes each modulo 2^32, without its fraction.
    const { tick: t, datacenterId: d, workerId: w, clockBack: c, sequence: s } = this;
    halves[LOW] =
      (tick * t.low) |
      (datacenterId * d.low) |
      (workerId * w.low) |
      (clockBack * c.low) |
      (sequence * s.low);
    halves[HIGH] =
      (tick * t.high) |
      (datacenterId * d.high) |
      (workerId * w.high) |
      (clockBack * c.high) |
      (sequence * s.high);
    return isLate ? whole[0] | (this.#lateTick(timestamp) << this.#tickShift) : whole[0];
  }

  /**
   * For times too far from the epoch for exact numbers.
   * @param {number} timestamp
   */
  #lateTick(timestamp) {
    return (BigInt(timestamp) - BigInt(this.epoch)) / BigInt(this.tickMs);
  }

  /** @param {bigint} id */
  #lateTimestamp(id) {
    return Number((id >> this.#tickShift) * BigInt(this.tickMs) + BigInt(this.epoch));
  }
}

module.exports = { Codec, ParsedId };
