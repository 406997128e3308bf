'use strict';
// What people see of a lease: the public `lease`, and warnings of lost slots.

const { unixNow } = require('../runtime/time.js');
const { warnOfNamespaceLoss, warnOfNewSlot } = require('../messages/warnings.js');
const { ownOf } = require('../ids/properties.js');

/** @import { LeaseInfo, Loss, PageLease } from '../types.js' */

/** Owners of the lost slots that this thread has warned of. @type {Set<string>} */
const warned = new Set();

/**
 * The public `lease`.
 * @param {string} store
 * @param {PageLease} page
 * @param {Pick<LeaseInfo, 'state' | 'lost' | 'clockSkew' | 'failure'>} more its state as its holder knows it, never `expired`
 * @returns {LeaseInfo}
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

/** Warns once of each lost slot. */
class Losses {
  #store;
  /** @type {{ page: PageLease, lost: Loss } | undefined} */
  #last;

  /** @param {{ name: string }} store */
  constructor(store) {
    this.#store = store;
  }

  /**
   * Notes a loss.
   * @param {PageLease} page
   * @param {Loss} lost
   * @param {number} reach how far ahead of this machine's clock the namespace's floor may be then, ms
   */
  note(page, lost, reach) {
    this.#last = { page: ownOf(page), lost };
    if (lost === 'reverted') this.#warnOnce(warnOfNamespaceLoss, { reach });
  }

  /** Notes the slot that follows. @param {number} newWorkerId */
  noteNext(newWorkerId) {
    this.#warnOnce(warnOfNewSlot, { newWorkerId });
  }

  /**
   * @template More
   * @param {(
   *   store: { name: string },
   *   loss: { workerId: number, lost: Loss, isShared: boolean } & More,
   * ) => void} warnOf
   * @param {More} more
   */
  #warnOnce(warnOf, more) {
    if (this.#last === undefined) return;
    const { page, lost } = this.#last;
    const { owner, slot, scope } = page;
    if (warned.has(owner)) return;
    warned.add(owner);
    const { workerId } = slot;
    warnOf(this.#store, { workerId, lost, isShared: scope === 'host', ...more });
  }
}

module.exports = { Losses, leaseInfo };
