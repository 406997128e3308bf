'use strict';
// What people see of a lease: the public `lease`, and warnings of lost slots.

const { unixNow } = require('../runtime/time.js');
const { warnOfNamespaceLoss, warnOfNewSlot } = require('../messages/warnings.js');
const { ownOf } = require('../ids/properties.js');

/** Owners of the lost slots that this thread has warned of. */
const warned = new Set();

/**
 * The public `lease`.
 * @param page what the slot's page says: `ended`, if it has
 * @param more its state as its holder knows it: `held`, `failing`, `lost` or `released`; and `lost`, `failure` and others, if any
 */
function leaseInfo(store, { ended, ...page }, { state, lost: known, ...more }) {
  const lost = state === 'held' ? ended : state === 'lost' ? known : undefined;
  const hasPassed = state !== 'released' && unixNow() > page.ceiling;
  const given = Object.entries(more).filter(([, value]) => value !== undefined);
  return {
    store,
    ...page,
    state: lost === undefined ? (hasPassed ? 'expired' : state) : 'lost',
    ...(lost === undefined ? {} : { lost }),
    ...Object.fromEntries(given),
  };
}

/**
 * Warns once of each lost slot.
 * @param store has the store's `name`
 */
class Losses {
  #store;
  #before;
  #lost;

  constructor(store) {
    this.#store = store;
  }

  /** Notes a loss. @param reach how far ahead of the store's clock the namespace's floor may be then, ms */
  note(page, lost, reach) {
    this.#before = ownOf(page);
    this.#lost = lost;
    if (lost === 'reverted') this.#warnOnce(warnOfNamespaceLoss, { reach });
  }

  /** Notes the slot that follows. */
  noteNext(newWorkerId) {
    this.#warnOnce(warnOfNewSlot, { newWorkerId });
  }

  #warnOnce(warnOf, more) {
    const { owner, slot, scope } = this.#before;
    if (warned.has(owner)) return;
    warned.add(owner);
    const { workerId } = slot;
    warnOf(this.#store, { workerId, lost: this.#lost, isShared: scope === 'host', ...more });
  }
}

module.exports = { Losses, leaseInfo };
