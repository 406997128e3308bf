'use strict';
// A lease from a directory. A native thread takes and renews it: this code follows it from slot to slot, and publishes reports.

const { moveChannel } = require('../runtime/channel.js');
const { describe } = require('../messages/errors.js');
const { createLeasePublisher } = require('../runtime/events.js');
const { textOf } = require('../messages/faults.js');
const { ownOf } = require('../ids/properties.js');
const { Losses, leaseInfo } = require('./report.js');

/**
 * @import {
 *   Channel, DirectoryLeaseState, Lease, LeaseInfo, Loss, OpenSettings, PageLease,
 * } from '../types.js'
 */

/** @implements {Lease} */
class DirectoryLease {
  #channel;
  #settings;
  /** The directory, as errors name it. */
  #store = { name: '' };
  #losses = new Losses(this.#store);
  #publishChange = createLeasePublisher();
  /** @type {LeaseInfo['state']} */
  #state = 'held';
  /** The kind of loss. @type {Loss | undefined} */
  #lost;
  /** Why the present slot of the lease cannot be used. @type {string | undefined} */
  #failure;
  /** The last report, once released. @type {LeaseInfo | undefined} */
  #last;
  /**
   * Native code renews early by itself. An own property: somebody may have put another on Object.prototype.
   * @type {undefined}
   */
  wantRenewal;

  /**
   * @param {Channel} channel whose `lease()` returns the state of the lease
   * @param {OpenSettings} settings
   */
  constructor(channel, settings) {
    this.#channel = channel;
    this.#settings = settings;
  }

  get workerId() {
    return (this.#last ?? this.#read().page).slot.workerId;
  }

  /** @param {DirectoryLeaseState} [read] what was just read */
  report(read) {
    if (this.#last !== undefined) return this.#last;
    const { store, failure: fault, page } = read ?? this.#read();
    const failure = fault ? textOf(fault) : this.#failure;
    const isFailing = this.#state === 'held' && failure !== undefined;
    const state = isFailing ? 'failing' : this.#state;
    return leaseInfo(store, page, { state, lost: this.#lost, failure });
  }

  /** Publishes a report, now and after each change. */
  publish() {
    // The listener does not keep an abandoned instance alive.
    const lease = new WeakRef(this);
    this.#channel.onRenewed(() => {
      const found = lease.deref();
      if (found !== undefined) found.#follow();
    });
    this.#follow();
  }

  /** Reports the release. The channel gives the lease up when it closes. */
  release() {
    this.#state = 'released';
    this.#last = this.report();
    this.#publish();
  }

  get #isReleased() {
    return this.#state === 'released';
  }

  #read() {
    const lease = /** @type {DirectoryLeaseState} */ (this.#channel.lease());
    this.#store.name = lease.store;
    return { __proto__: null, ...lease, page: ownOf(lease.page) };
  }

  /** Notes what the thread has done. A subscriber to its reports may close the lease meanwhile. */
  #follow() {
    if (this.#isReleased) return;
    const read = this.#read();
    const { lost, hasMoved, page, reach } = read;
    // A loss and the next slot may have come together.
    if (this.#state === 'held' && (hasMoved || lost !== undefined)) {
      this.#lose(page, lost ?? page.ended ?? 'page', reach);
      if (this.#isReleased) return;
    }
    if (hasMoved) this.#move();
    // It uses the page again that it had left.
    else if (lost === undefined) this.#hold();
    // Reading takes long, and an opening waits for it.
    this.#publish(hasMoved || lost !== undefined ? undefined : read);
  }

  /**
   * @param {PageLease} page
   * @param {Loss} lost
   * @param {number} reach
   */
  #lose(page, lost, reach) {
    this.#lost = lost;
    this.#state = 'lost';
    this.#losses.note(page, lost, reach);
    this.#publish();
  }

  /** Draws from the slot that the lease has now. */
  #move() {
    try {
      moveChannel(this.#channel, this.#settings, { isLeased: true });
    } catch (failure) {
      this.#failure = describe(failure);
      return;
    }
    this.#failure = undefined;
    this.#hold();
  }

  /** Notes that it has a slot. */
  #hold() {
    if (this.#state === 'held') return;
    this.#state = 'held';
    this.#losses.noteNext(this.workerId);
  }

  /** @param {DirectoryLeaseState} [read] what was just read */
  #publish(read) {
    this.#publishChange(this.report(read));
  }
}

module.exports = { DirectoryLease };
