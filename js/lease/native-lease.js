'use strict';
// A lease of a directory's slot. Native code renews it.

const { createLeasePublisher } = require('../events.js');
const { textOf } = require('../faults.js');

class NativeLease {
  #channel;
  #slot;
  #publishChange = createLeasePublisher();
  /** The last report, once released. */
  #last;

  /** @param channel whose `lease()` returns a record */
  constructor(channel, { datacenterId, workerId }) {
    this.#channel = channel;
    this.#slot = { datacenterId, workerId };
  }

  get workerId() {
    return this.#slot.workerId;
  }

  report() {
    if (this.#last !== undefined) return this.#last;
    const lease = this.#channel.lease();
    const scope = lease.renewer === undefined ? 'process' : 'host';
    const failure = lease.failure && { failure: textOf(lease.failure) };
    return { ...lease, ...failure, scope, slot: this.#slot, expires: null };
  }

  /** Publishes a report, now and after each renewal. */
  publish() {
    // The listener does not keep an abandoned instance alive.
    const lease = new WeakRef(this);
    this.#channel.onRenewed(() => lease.deref()?.#publish());
    this.#publish();
  }

  #publish() {
    this.#publishChange(this.report());
  }

  /** Reports the release. The channel releases the slot when it closes. */
  release() {
    this.#last = { ...this.report(), state: 'released' };
    this.#publish();
  }
}

module.exports = { NativeLease };
