'use strict';
// Finds a slot for a lease: joins the host's, or acquires one. The channel then draws from it.

const { moveChannel, openChannel, requestOf } = require('../channel.js');
const { unwrap } = require('../errors.js');
const native = require('../native.js');
const { hostMonotonic, monotonic, pause } = require('../time.js');
const { HostSlot, ProcessSlot } = require('./slot.js');
const { JOIN_MS, MAX_WAIT_CALLS, POLL_MS } = require('./timing.js');

class SlotFinder {
  #settings;
  #namespace;
  #slots;
  #isShared;
  #onOpen;
  /** Owners of this host's pages whose slots the store does not know. */
  #foreign = new Set();
  /** Undefined until the first slot, as is `slot`. */
  channel;
  slot;
  isReleased = false;

  /** @param onOpen called in the same synchronous step that opens a slot */
  constructor(settings, namespace, slots, { isShared, onOpen }) {
    this.#settings = settings;
    this.#namespace = namespace;
    this.#slots = slots;
    this.#isShared = isShared;
    this.#onOpen = onOpen;
  }

  /** Joins the host's slot, or acquires one. While none is free, tries until the deadline. */
  async joinOrAcquire(deadline) {
    await this.#namespace.open();
    if (!this.#isShared) return await this.#acquireUsable(deadline);
    // One process of the host acquires while the others wait. They stop waiting for a process that was
    // suspended: then the host has two slots for a while.
    const waitUntil = monotonic() + MAX_WAIT_CALLS * this.#settings.leasing.callTimeout;
    for (;;) {
      if (await this.#join()) return;
      const unlock = unwrap(native.lockLeases(requestOf(this.#settings), this.#namespace.id));
      if (unlock === undefined && monotonic() < waitUntil) {
        await pause(JOIN_MS);
        continue;
      }
      try {
        if (unlock !== undefined && (await this.#join())) return;
        if (this.#namespace.isLost) {
          await this.#slots.readClock();
          await this.#namespace.open();
        }
        return await this.#acquireUsable(monotonic());
      } catch (refusal) {
        if (refusal.code !== 'ERR_SNOWFLAKE_NO_SLOT' || monotonic() >= deadline) throw refusal;
      } finally {
        unlock?.();
      }
      await pause(POLL_MS);
    }
  }

  /** Joins the slot with the lowest worker ID, if the host has several. Returns false if it fails. */
  async moveToLowerSlot() {
    try {
      return await this.#join((other) => other.isUsed && other.workerId < this.slot.workerId);
    } catch {
      return false;
    }
  }

  /**
   * Joins the host's slot, if there is one and the store knows it. Copies of a store have the same namespace
   * ID, as staging restored from production's backup has. A page of the copy's slot must not be joined. Nobody can tell a
   * copy from a store that went back, which makes slots of other hosts look free: both count as lost.
   */
  async #join(isWanted = () => true) {
    const { inThread } = this.#settings.leasing;
    const page = { namespace: this.#namespace.id, inThread };
    for (;;) {
      this.#throwIfReleased();
      const except = [...this.#foreign];
      if (this.slot?.owner !== undefined) except.push(this.slot.owner);
      const join = { __proto__: null, ...page, except };
      const channel = openChannel(this.#settings, { join });
      if (channel === undefined) return false;
      const slot = new HostSlot(channel, { isNew: false });
      if (!isWanted(slot)) {
        channel.close();
        return false;
      }
      let lost;
      try {
        lost = await this.#slots.renew(channel, slot, () => this.isReleased);
        lost &&= await this.#slots.refineLoss(lost, slot);
        this.#throwIfReleased();
      } catch (failure) {
        channel.close();
        throw failure;
      }
      if (lost !== null) {
        this.#foreign.add(slot.owner);
        // A slot that another process has just released has a lower ceiling, too.
        if (lost !== 'taken' && slot.refresh().loss !== 'released') this.#namespace.isLost = true;
        channel.leave();
      } else if (this.channel === undefined) {
        this.channel = channel;
        this.#setSlot(slot);
        return true;
      } else {
        const before = this.slot;
        const same = { __proto__: null, ...page, owner: slot.owner, except: [] };
        let moved;
        try {
          moved = moveChannel(this.channel, this.#settings, { join: same });
        } finally {
          channel.close();
        }
        if (moved.hasMoved) {
          this.#setSlot(new HostSlot(this.channel, { isNew: false }));
          // The slot before was not lost, and this process was its last user.
          if (moved.last !== undefined) await this.#slots.release(before, moved.last);
          return true;
        }
      }
    }
  }

  /** A lease that was released while a slot was requested would never release that slot. */
  #throwIfReleased() {
    if (this.isReleased) throw new Error('the lease was released');
  }

  /** Synchronous with the opening, so that a close() from now on releases this slot. */
  #setSlot(slot) {
    this.slot = slot;
    this.#onOpen();
  }

  /** Opens a slot that this process has acquired. */
  #openSlot(hold) {
    this.#throwIfReleased();
    const { inThread, ttl } = this.#settings.leasing;
    const { owner, workerId, floor, ceiling, expires } = hold;
    if (!this.#isShared) {
      const window = { floor, ceiling: Math.max(floor, ceiling), inThread };
      this.#openChannel(workerId, { window });
      return this.#setSlot(new ProcessSlot(this.channel, hold));
    }
    const grant = {
      __proto__: null,
      ...{ namespace: this.#namespace.id, owner, floor, ceiling, ttl, inThread },
      ...{ expires: expires ?? undefined, now: hostMonotonic() },
    };
    this.#openChannel(workerId, { grant });
    this.#setSlot(new HostSlot(this.channel, { isNew: true }));
  }

  #openChannel(workerId, basis) {
    const settings = { ...this.#settings, workerId };
    if (this.channel === undefined) this.channel = openChannel(settings, basis);
    else moveChannel(this.channel, settings, basis);
  }

  /**
   * Acquires a free slot and opens it. The slot's node may be open on this host already, through another
   * namespace. Such slots stay held until a usable one is found, so that the store returns other slots.
   *
   * A slot that cannot be opened has issued nothing: its window or page begins last. So it is released, whatever the
   * failure.
   */
  async #acquireUsable(deadline) {
    const unusable = [];
    let conflict;
    try {
      for (;;) {
        const hold = await this.#slots.acquire(deadline);
        try {
          return this.#openSlot(hold);
        } catch (failure) {
          unusable.push(hold);
          if (failure.code !== 'ERR_SNOWFLAKE_CONFLICT') throw failure;
          conflict = failure;
        }
      }
    } catch (refusal) {
      throw refusal.code === 'ERR_SNOWFLAKE_NO_SLOT' ? (conflict ?? refusal) : refusal;
    } finally {
      await Promise.all(unusable.map((hold) => this.#slots.release(hold, hold.floor)));
    }
  }
}

module.exports = { SlotFinder };
