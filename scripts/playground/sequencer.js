'use strict';
// The sequencer's rule for one node. src/core/sequence is the real one; package/playground-clock.test.js compares
// the two.

const NEVER = -1;

class Sequencer {
  /** By value of the clock-back counter: the highest tick issued under it. */
  marks;
  current = 0;
  #next = 0;
  #size;
  #lastTick;

  constructor({ timestampBits, clockBackBits, sequenceBits }) {
    this.marks = Array(2 ** clockBackBits).fill(NEVER);
    this.#size = 2 ** sequenceBits;
    this.#lastTick = 2 ** timestampBits - 1;
  }

  /** @returns the counter value and sequence number of the next ID, or the `code` of the refusal */
  draw(tick) {
    if (tick < 0) return { code: 'ERR_SNOWFLAKE_BEFORE_EPOCH' };
    if (tick > this.#lastTick) return { code: 'ERR_SNOWFLAKE_TIME_ENDED' };
    const isCurrentTick = this.marks[this.current] === tick;
    const isExhausted = this.#next >= this.#size;
    const counter = this.marks.findIndex(
      (mark, counter) => mark < tick || (counter === this.current && mark === tick && !isExhausted),
    );
    // An exhausted sequence does not raise the counter.
    const isRaised = counter === -1 || (isCurrentTick && counter > this.current);
    if (isRaised && isCurrentTick) return { code: 'ERR_SNOWFLAKE_EXHAUSTED' };
    if (isRaised) return { code: 'ERR_SNOWFLAKE_CLOCK_BACK' };
    const continues = counter === this.current && isCurrentTick;
    const sequence = continues ? this.#next : 0;
    this.marks[counter] = tick;
    this.current = counter;
    this.#next = sequence + 1;
    return { counter, sequence };
  }
}

module.exports = { NEVER, Sequencer };
