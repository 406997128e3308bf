//! One caller of a generator: reserves its next block, waits for it, and gives back unused IDs. Writes the IDs to
//! memory that `src/binding/draw.rs` shares with JavaScript.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::Duration;

use super::pace::{LARGEST_BLOCK, Pace};
use super::{Booking, Generator, Policies, Reserved, Stalled, UserPage, Waits};
use crate::core::layout::Tick;
use crate::core::sequencer::{Block, Stall};

/// A batch takes a tick in at least this many parts, if each has [`LARGEST_BLOCK`] IDs or more.
const PARTS_OF_TICK: u64 = 16;

/// The memory of a block, shared with JavaScript: `js/generator/draw.js` has the same offsets.
#[repr(C)]
pub struct BlockMemory {
    /// The block.
    pub ids: [u64; LARGEST_BLOCK as usize],
    /// The clock's Unix ms when the block was reserved. In later turns, JavaScript may draw from the block while its
    /// own clock shows that ms; never if it is NaN. Written by JavaScript before a call: the reading of the
    /// application's clock, if there is one.
    pub reserved_ms: f64,
    /// Written by JavaScript: the number of the block's IDs that it gives back with the next call.
    pub unused: u32,
    /// Written by JavaScript: whether a callback reports the end of this turn.
    pub is_watched: u32,
    /// The most IDs of a checked block; 1 if JavaScript cannot read the clock.
    pub most_checked: u32,
    /// An [`Advice`](super::pace::Advice), as a number.
    pub advice: u32,
    /// The number of the instance's channel.
    pub number: u32,
}

/// A user of a generator, such as a JavaScript instance, with its own policies.
pub struct Caller {
    /// The generator.
    pub generator: Arc<Generator>,
    user_page: UserPage,
    /// The policies of this caller.
    pub policies: Policies,
    /// The block; `None` if its IDs are a ring's.
    reserved: Cell<Option<Block>>,
    pace: Cell<Pace>,
    /// The booking of a call that did not wait, for the next call.
    booking: RefCell<Option<Booking>>,
    /// Waits that are not reported yet.
    pub waits: RefCell<Waits>,
}

// Functions are inlined where marked: otherwise the pace passes through memory, and a call takes 160 ns instead of 120.
impl Caller {
    /// A caller of this generator.
    pub fn new(generator: Arc<Generator>, policies: Policies) -> Caller {
        let (reserved, pace, booking, waits) = Default::default();
        Caller {
            user_page: generator.user_page(),
            generator,
            policies,
            reserved,
            pace,
            booking,
            waits,
        }
    }

    /// Reserves under this caller's policies: see [`Generator::try_reserve`].
    #[inline]
    pub fn try_reserve_next(&self, want: impl Fn(Tick) -> u64) -> Result<Reserved, Stalled> {
        self.generator.try_reserve(&self.user_page, &self.policies, want)
    }

    /// Reserves the next block and writes its IDs to the memory. Returns their number. The last block must have ended.
    #[inline(always)]
    pub fn refill(&self, memory: &mut BlockMemory, may_wait: bool) -> Result<u64, Stalled> {
        let pace = self.pace.get();
        let want = |tick| pace.at(self.ms_of(tick)).size();
        let reserved = self.reserve_or_book(may_wait, pace.booking_size(), want)?;
        Ok(self.write(memory, &reserved))
    }

    /// Like `refill`, but reserves one ID, and does not wait.
    pub fn refill_one(&self, memory: &mut BlockMemory) -> Result<u64, Stalled> {
        Ok(self.write(memory, &self.try_reserve_next(|_| 1)?))
    }

    /// Like `refill`, but with IDs of a ring, which `take` writes. They may be older than the block: the block's time
    /// is that of the call.
    pub fn refill_from_ring(
        &self,
        memory: &mut BlockMemory,
        take: impl FnOnce(&mut [u64]) -> Result<usize, Stalled>,
    ) -> Result<u64, Stalled> {
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
        // The booked tick passed while this thread slept. No later turn may draw from it.
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

    /// Ends the block, and gives back its last `unused` IDs. Returns their positions in the memory, for IDs of a ring.
    /// If `unused` exceeds the block's length, gives back nothing.
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

    /// Forgets the block and the booking, which belong to a window or a source that the instance leaves.
    pub fn lose(&self) {
        self.reserved.set(None);
        self.booking.take();
        let mut pace = self.pace.get();
        pace.forget_block();
        self.pace.set(pace);
    }

    /// Fills an array with IDs of as many ticks as it takes. If it is refused, gives back all of them.
    #[inline(always)]
    pub fn fill(&self, ids: &mut [u64]) -> Result<(), Stalled> {
        // A batch takes a tick in parts, so that other callers get IDs of the tick, too.
        let ids_a_tick = self.node().layout().last_sequence() + 1;
        let part = LARGEST_BLOCK.max(ids_a_tick / PARTS_OF_TICK);
        // Most batches are one block, so the list before it stays empty.
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

    /// Reserves up to `want(tick)` IDs, or books up to `most`. The IDs that an earlier call booked come first, so that
    /// IDs rise. If a call waits for them and they are lost, it has the rest of its `max_wait` for others.
    ///
    /// If the sequence is exhausted, a call that does not wait books IDs, and the next call returns them. So a caller
    /// that waits by itself is served in turn, too.
    #[inline(always)]
    fn reserve_or_book(
        &self,
        may_wait: bool,
        most: u64,
        want: impl Fn(Tick) -> u64,
    ) -> Result<Reserved, Stalled> {
        let (mut policies, mut reduced) = (&self.policies, self.policies);
        if self.booking.borrow().is_some() {
            if let Some(booked) = self.redeem(may_wait, &mut reduced.max_wait) {
                return booked;
            }
            policies = &reduced;
        }
        let attempt = || self.try_reserve_next(&want);
        if may_wait {
            let waits = &mut *self.waits.borrow_mut();
            return self.waiting(policies, waits, most, attempt, |reserved| reserved);
        }
        match attempt() {
            Err(refusal @ Stalled { stall: Stall::SequenceExhausted { .. }, .. }) => {
                self.book_next(most).unwrap_or(Err(refusal))
            }
            answer => answer,
        }
    }

    /// Books for the next call, and returns the IDs if their tick has begun by now.
    #[cold]
    fn book_next(&self, most: u64) -> Option<Result<Reserved, Stalled>> {
        let mut left = self.policies.max_wait;
        // At least the next tick, for which such a caller waits even if it exceeds `max_wait`.
        let horizon = self.ticks_within(left).max(1);
        self.booking.replace(Some(self.book(&self.policies, most, horizon).ok()?));
        self.redeem(false, &mut left)
    }

    /// The IDs that an earlier call booked; `None` if they are lost.
    #[cold]
    fn redeem(&self, may_wait: bool, left: &mut Duration) -> Option<Result<Reserved, Stalled>> {
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

    /// The Unix ms of the clock's tick. Reads the clock if ticks are longer than 1 ms.
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
