'use strict';
// Time that a simulation sets: events in the order of their time, and of their creation where that is the
// same. A binary heap, since fleets have many.

class VirtualTime {
  now;
  #events = [];
  #created = 0;

  constructor(now) {
    this.now = now;
  }

  /** Has an event happen in so many ms. Returns it. */
  schedule(event, ms) {
    event.at = this.now + ms;
    event.order = this.#created++;
    this.#events.push(event);
    this.#up(this.#events.length - 1);
    return event;
  }

  /** When the next event is; Infinity if there is none. */
  get peek() {
    return this.#events[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  /** Takes the next event, and moves on to its time. */
  next() {
    const [first] = this.#events;
    const last = this.#events.pop();
    if (this.#events.length > 0) {
      this.#events[0] = last;
      this.#down(0);
    }
    this.now = first.at;
    return first;
  }

  #isBefore(one, other) {
    const [a, b] = [this.#events[one], this.#events[other]];
    return a.at < b.at || (a.at === b.at && a.order < b.order);
  }

  #swap(one, other) {
    const events = this.#events;
    [events[one], events[other]] = [events[other], events[one]];
  }

  #up(at) {
    const parent = (at - 1) >> 1;
    if (at === 0 || !this.#isBefore(at, parent)) return;
    this.#swap(at, parent);
    this.#up(parent);
  }

  #down(at) {
    const children = [2 * at + 1, 2 * at + 2].filter((child) => child < this.#events.length);
    const least = children.reduce((one, other) => (this.#isBefore(other, one) ? other : one), at);
    if (least === at) return;
    this.#swap(at, least);
    this.#down(least);
  }
}

module.exports = { VirtualTime };
