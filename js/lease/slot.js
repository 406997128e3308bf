'use strict';
// The slot of a lease and its native window: of one process, or in a page that the host's processes share.
// Invariant: the window's ceiling rises only after the store has confirmed the new one.

const { hostMonotonic } = require('../time.js');
const { RENEW_AFTER, TAKEOVER_DELAY } = require('./timing.js');

/** Scope 'process': a slot of one instance. */
class ProcessSlot {
  #channel;
  renewals = 0;
  renewedAt = hostMonotonic();
  loss = null;
  isNamed = true;

  constructor(channel, { owner, workerId, floor, ceiling, expires }) {
    this.#channel = channel;
    Object.assign(this, { owner, workerId, floor, ceiling, expires });
  }

  refresh() {
    return this;
  }

  confirm(ceiling, expires) {
    this.#channel.raiseCeiling(ceiling);
    Object.assign(this, { ceiling, expires, renewedAt: hostMonotonic() });
    this.renewals++;
  }

  /** Stops the slot's IDs. */
  end(loss) {
    this.#channel.endWindow();
    this.loss = loss;
  }

  /** Stops the slot's IDs. Returns the highest tick issued; undefined if the slot was lost. */
  leave() {
    const last = this.#channel.endWindow() ?? this.floor;
    return this.loss === null ? Math.max(last, this.floor) : undefined;
  }

  isDue(ttl) {
    return hostMonotonic() - this.renewedAt >= ttl * RENEW_AFTER;
  }
}

/** Scope 'host': a slot in a page. */
class HostSlot {
  #channel;
  /** `renewals` after the last renewal by this process. */
  #ownRenewals = -1;
  #takeoverDelay = TAKEOVER_DELAY[0] + Math.random() * (TAKEOVER_DELAY[1] - TAKEOVER_DELAY[0]);

  constructor(channel, { isNew }) {
    this.#channel = channel;
    this.refresh();
    if (isNew) this.#ownRenewals = this.renewals;
  }

  /** Copies the page's fields. After leave() they keep their last values. */
  refresh() {
    const { renewed, ...leasing } = this.#channel.leasing() ?? {};
    if (renewed !== undefined) Object.assign(this, { expires: null, loss: null }, leasing);
    this.renewedAt = renewed ?? this.renewedAt;
    return this;
  }

  confirm(ceiling, expires, ttl) {
    this.#channel.confirm(this.owner, ceiling, hostMonotonic(), expires ?? undefined, ttl);
    this.refresh();
    this.#ownRenewals = this.renewals;
  }

  /** @returns the highest tick issued; undefined if another process has ended the page */
  end(loss) {
    const last = this.#channel.endPage(loss) ?? undefined;
    this.refresh();
    return last;
  }

  /** @returns the highest tick issued; undefined if the slot was lost or other processes use it */
  leave() {
    this.refresh();
    return this.#channel.leave() ?? undefined;
  }

  /** Whether this process should renew. It gives the process that renewed last a head start. */
  isDue(ownTtl) {
    const elapsed = hostMonotonic() - this.renewedAt;
    // Processes of one host may have different ttls. The hold lasts for the one confirmed last.
    const ttl = Math.min(ownTtl, this.ttl);
    const delay = this.#ownRenewals === this.renewals ? 0 : this.#takeoverDelay * ttl;
    // In a Linux time namespace the monotonic clock differs from the other processes'.
    return elapsed < 0 || elapsed >= ttl * RENEW_AFTER + delay;
  }
}

module.exports = { HostSlot, ProcessSlot };
