'use strict';
// A lease of a directory's slot. Native code renews it.

const { createLeasePublisher } = require('../runtime/events.js');
const { textOf } = require('../messages/faults.js');
const { ownOf } = require('../ids/properties.js');

class NativeLease {
  #channel;
  #publishChange = createLeasePublisher();
  /** The last report, once released. */
  #last;
  /** Native code renews early by itself. An own property: somebody may have put another on Object.prototype. */
  wantRenewal;

  /** @param channel whose `lease()` returns a record */
  constructor(channel) {
    this.#channel = channel;
  }

  get workerId() {
    return this.#channel.workerId;
  }

  report() {
    if (this.#last !== undefined) return this.#last;
    const lease = this.#channel.lease();
    const { failure } = ownOf(lease);
    return failure ? { ...lease, failure: textOf(failure) } : lease;
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
