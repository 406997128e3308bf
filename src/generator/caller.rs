//! The draws of one caller: which block comes next, how long it is waited for, and what is given back. They write to memory
//! that `src/binding/draw.rs` shares with JavaScript.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::Duration;

use super::pace::{LARGEST_BLOCK, Pace};
use super::{Booking, Generator, Policies, Refusal, Reserved, Seat, Waits};
use crate::core::layout::Tick;
use crate::core::sequencer::{Block, Stall};

/// The fewest parts in which a batch takes a tick, if such a part has at least [`LARGEST_BLOCK`] IDs.
const PARTS_OF_TICK: u64 = 16;

/// The memory of a block, shared with JavaScript: `js/generator/draw.js` has the same offsets.
#[repr(C)]
pub struct BlockMemory {
    /// The block.
    pub ids: [u64; LARGEST_BLOCK as usize],
    /// The clock's Unix ms when the block was reserved. JavaScript may draw from the block in later turns while its
    /// own clock shows that ms. NaN where it may not. By JavaScript before a call: what the application's clock shows,
    /// if there is one.
    pub reserved_ms: f64,
    /// By JavaScript: the number of IDs of the block that it gives back with the next call.
    pub unused: u32,
    /// By JavaScript: whether it will notice the end of this turn.
    pub is_watched: u32,
    /// The most IDs of a block that JavaScript checks by its clock: 1 if it cannot.
    pub most_checked: u32,
    /// An [`Advice`](super::pace::Advice), as a number.
    pub advice: u32,
    /// The number of the instance's channel.
    pub number: u32,
}

/// A user of a generator, for one JavaScript instance for example: draws from a seat of its own, under its own policies.
pub struct Caller {
    /// The generator.
    pub generator: Arc<Generator>,
    seat: Seat,
    /// The policies of this caller.
    pub policies: Policies,
    /// The block; none for IDs of a ring.
    reserved: Cell<Option<Block>>,
    pace: Cell<Pace>,
    /// A booking by a draw that does not wait, for the next draw.
    booking: RefCell<Option<Booking>>,
    /// Waits that are not reported yet.
    pub waits: RefCell<Waits>,
}

// Inlined where marked so: out of line, the pace passes through memory, and a call takes 160 ns, not 120.
impl Caller {
    /// A caller of this generator.
    pub fn new(generator: Arc<Generator>, policies: Policies) -> Caller {
        let (reserved, pace, booking, waits) = Default::default();
        Caller { seat: generator.seat(), generator, policies, reserved, pace, booking, waits }
    }

    /// Reserves under this caller's policies: see [`Generator::try_reserve`].
    #[inline]
    pub fn try_reserve_next(&self, want: impl Fn(Tick) -> u64) -> Result<Reserved, Refusal> {
        self.generator.try_reserve(&self.seat, &self.policies, want)
    }

    /// Reserves the next block, after the end of the last one, and writes its IDs to the memory. Returns how many.
    #[inline(always)]
    pub fn refill(&self, memory: &mut BlockMemory, may_wait: bool) -> Result<u64, Refusal> {
        let pace = self.pace.get();
        let want = |tick| pace.at(self.ms_of(tick)).size();
        let reserved = self.reserve_or_book(may_wait, pace.booking_size(), want)?;
        Ok(self.write(memory, &reserved))
    }

    /// The same with one ID, and without waiting.
    pub fn refill_one(&self, memory: &mut BlockMemory) -> Result<u64, Refusal> {
        Ok(self.write(memory, &self.try_reserve_next(|_| 1)?))
    }

    /// The same with IDs of a ring, which `take` writes. They may be older: the time at which they are taken counts.
    pub fn refill_from_ring(
        &self,
        memory: &mut BlockMemory,
        take: impl FnOnce(&mut [u64]) -> Result<usize, Refusal>,
    ) -> Result<u64, Refusal> {
        let now = self.now_ms();
        let want = self.pace.get().at(now).size() as usize;
        let len = take(&mut memory.ids[..want])? as u64;
        self.begin(memory, now, len);
        Ok(len)
    }

    #[inline(always)]
    fn write(&self, memory: &mut BlockMemory, reserved: &Reserved) -> u64 {
        let Reserved { first_id, block, ms } = *reserved;
        self.begin(memory, ms, block.len);
        self.reserved.set(Some(block));
        for (id, slot) in (first_id..first_id + block.len).zip(&mut memory.ids) {
            *slot = id;
        }
        // No later turn draws from a booked tick that has passed while this thread slept.
        if block.tick < self.node().layout().tick_at(ms) {
            memory.reserved_ms = f64::NAN;
        }
        block.len
    }

    #[inline(always)]
    fn begin(&self, memory: &mut BlockMemory, ms: i64, len: u64) {
        let mut pace = self.pace.get().at(ms);
        memory.reserved_ms = ms as f64;
        memory.advice = pace.advice() as u32;
        pace.begin_block(len);
        self.pace.set(pace);
    }

    /// Ends the block, and gives back its last `unused` IDs. Returns their places in the memory, for IDs of a ring. A number
    /// above its length is an error: then no ID is issued again.
    #[inline(always)]
    pub fn end(&self, memory: &mut BlockMemory, unused: u64) -> Range<usize> {
        memory.unused = 0;
        let mut pace = self.pace.get();
        let len = pace.block_len();
        pace.note(unused, memory.is_watched != 0, memory.most_checked.into());
        self.pace.set(pace);
        let unused = if unused <= len { unused } else { 0 };
        if let Some(block) = self.reserved.take()
            && unused > 0
        {
            self.give_back(&block, unused);
        }
        (len - unused) as usize..len as usize
    }

    /// Forgets the block and a booking: they belong to a window or a source that the instance leaves.
    pub fn lose(&self) {
        self.reserved.set(None);
        self.booking.take();
        let mut pace = self.pace.get();
        pace.forget_block();
        self.pace.set(pace);
    }

    /// Fills an array with IDs, across as many ticks as it takes: all of it or, if refused, nothing.
    pub fn fill(&self, ids: &mut [u64]) -> Result<(), Refusal> {
        // A batch takes a tick in parts, so that others draw from it, too.
        let ids_a_tick = self.node().layout().last_sequence() + 1;
        let part = LARGEST_BLOCK.max(ids_a_tick / PARTS_OF_TICK);
        // Mostly there is one block, and none before it.
        let (mut blocks, mut last) = (Vec::new(), None);
        let mut rest = ids;
        while !rest.is_empty() {
            let want = part.min(rest.len() as u64);
            let reserved = self.reserve_or_book(true, want, |_| want);
            match reserved.map(|reserved| reserved.shortened(self, want)) {
                Ok(Reserved { first_id, block, .. }) => {
                    let (run, after) = rest.split_at_mut(block.len as usize);
                    for (n, slot) in run.iter_mut().enumerate() {
                        *slot = first_id + n as u64;
                    }
                    rest = after;
                    blocks.extend(last.replace(block));
                }
                Err(refusal) => {
                    for block in blocks.iter().chain(&last).rev() {
                        self.give_back(block, block.len);
                    }
                    return Err(refusal);
                }
            }
        }
        Ok(())
    }

    /// Reserves up to `want(tick)` IDs, or books up to `most`. The IDs that an earlier call has booked come before all others,
    /// so that IDs rise. A call that waits for them in vain has the rest of its `max_wait` for others.
    ///
    /// A call that does not wait books where the sequence is exhausted, and the next call returns the booked IDs: so a caller
    /// that waits by itself has its turn, too.
    #[inline(always)]
    fn reserve_or_book(
        &self,
        may_wait: bool,
        most: u64,
        want: impl Fn(Tick) -> u64,
    ) -> Result<Reserved, Refusal> {
        let mut policies = self.policies;
        if self.booking.borrow().is_some()
            && let Some(booked) = self.redeem(may_wait, &mut policies.max_wait)
        {
            return booked;
        }
        let attempt = || self.try_reserve_next(&want);
        if may_wait {
            let waits = &mut *self.waits.borrow_mut();
            return self.waiting(&policies, waits, most, attempt, |reserved| reserved);
        }
        let refusal = match attempt() {
            Err(refusal @ Refusal { stall: Stall::SequenceExhausted { .. }, .. }) => refusal,
            answer => return answer,
        };
        // The next tick at least: such a caller waits for it however long it takes.
        let horizon = self.ticks_within(policies.max_wait).max(1);
        let Ok(booking) = self.book(&policies, most, horizon) else {
            return Err(refusal);
        };
        self.booking.replace(Some(booking));
        self.redeem(false, &mut policies.max_wait).unwrap_or(Err(refusal))
    }

    /// The IDs that an earlier call has booked; none if they are lost.
    #[cold]
    fn redeem(&self, may_wait: bool, left: &mut Duration) -> Option<Result<Reserved, Refusal>> {
        let booking = self.booking.take()?;
        if may_wait {
            return self.await_turn(&booking, left, &mut self.waits.borrow_mut()).map(Ok);
        }
        let redeemed = self.generator.redeem(&booking);
        if redeemed.is_err() {
            self.booking.replace(Some(booking));
        }
        redeemed.transpose()
    }

    /// The Unix ms of the clock's tick. A tick longer than 1 ms does not determine it.
    fn ms_of(&self, tick: Tick) -> i64 {
        let layout = self.node().layout();
        if layout.tick_ms == 1 { layout.tick_start_ms(tick) } else { self.now_ms() }
    }
}

impl Deref for Caller {
    type Target = Generator;

    fn deref(&self) -> &Generator {
        &self.generator
    }
}
