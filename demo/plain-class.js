'use strict';
// The class that many projects copy: right in one process, for one process only.

const EPOCH = 1_580_486_400_000;
const SEQUENCES = 4096;

class PlainSnowFlake {
  #node;
  #last = 0;
  #sequence = 0;

  constructor({ datacenterId, workerId }) {
    this.#node = (BigInt(datacenterId) << 19n) | (BigInt(workerId) << 14n);
  }

  nextId() {
    let now = Date.now();
    while (now < this.#last) now = Date.now();
    if (now > this.#last) this.#sequence = 0;
    else if (++this.#sequence === SEQUENCES) {
      while (now <= this.#last) now = Date.now();
      this.#sequence = 0;
    }
    this.#last = now;
    return (BigInt(now - EPOCH) << 22n) | this.#node | BigInt(this.#sequence);
  }

  nextIdString() {
    return String(this.nextId());
  }
}

module.exports = { PlainSnowFlake };
