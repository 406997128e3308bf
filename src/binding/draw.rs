//! The hot path: IDs of a source for one JavaScript instance on one thread.
//!
//! JavaScript reads IDs out of a [`Memory`] that [`Draws::refill`] has filled, so that a burst costs one native
//! call for up to [`LARGEST_BLOCK`] IDs. `js/generator/draw.js` is the other half. There a block lasts until the end of the
//! turn of the event loop that reserved it or the end of the ms, whichever is later.

use std::cell::{Cell, RefCell};
use std::ptr;

use napi::bindgen_prelude::{FromNapiValue, Unknown};
use napi::{Env, check_status, sys};

use super::memory::Memory;
use super::source::{RingShare, Source};
use crate::core::layout::{Layout, Tick};
use crate::core::sequencer::{Block, Stall};
use crate::generator::pace::{LARGEST_BLOCK, Pace, Told};
use crate::generator::{Booking, Generator, Policies, Redeemed, Refusal, Reserved, Waits};

/// The part of a tick's IDs that one instance may have reserved for later turns is 1 in 32, and 64 at most. So idle
/// instances do not exhaust a tick.
const CHECKED_PART: u64 = 32;
const MOST_CHECKED: u64 = 64;

/// The fewest parts in which a batch takes a tick, if such a part has at least [`LARGEST_BLOCK`] IDs.
const PARTS_OF_TICK: u64 = 16;

/// Reserved IDs, or the reason why there are none.
type Drawn = Result<Reserved, Refusal>;

/// The draws of one instance, and the block that it draws from. The block's memory is an argument of each native call
/// that draws. They must not outlive the env.
pub struct Draws {
    env: sys::napi_env,
    /// The array buffer of the memory, which lives as long as this.
    buffer: sys::napi_ref,
    /// The block; none for IDs of a ring.
    reserved: Cell<Option<Block>>,
    pace: Cell<Pace>,
    /// A booking by a draw that does not wait, for the next draw.
    booking: RefCell<Option<Booking>>,
    /// The reason why the last refused draw had no ID.
    pub refusal: Cell<Option<Refusal>>,
    /// Waits that are not reported yet.
    pub waits: RefCell<Waits>,
}

impl Draws {
    /// Draws without a block, and the array buffer of the memory.
    pub fn new<'env>(env: &Env, layout: &Layout) -> napi::Result<(Draws, Unknown<'env>)> {
        let env = env.raw();
        let (mut start, mut value, mut buffer) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let bytes = size_of::<Memory>();
        // SAFETY: calls on this thread's own env, and the out-pointers live. The reference is to the value just made.
        unsafe {
            let made = sys::napi_create_arraybuffer(env, bytes, &mut start, &mut value);
            check_status!(made, "no memory for a block of IDs")?;
            check_status!(sys::napi_create_reference(env, value, 1, &mut buffer))?;
        }
        let (reserved, pace, booking, refusal, waits) = Default::default();
        let draws = Draws { env, buffer, reserved, pace, booking, refusal, waits };
        let most_checked = ((layout.last_sequence() + 1) / CHECKED_PART).clamp(1, MOST_CHECKED);
        draws.change(|memory| memory.most_checked = most_checked as u32);
        // SAFETY: `value` is the one that the call above has just made.
        Ok((draws, unsafe { Unknown::from_napi_value(env, value)? }))
    }

    /// Notes the number of the channel for the calls that draw from it.
    pub fn set_number(&self, number: u32) {
        self.change(|memory| memory.number = number);
    }

    /// Whether JavaScript has detached the memory. Then no call can draw.
    pub fn is_detached(&self) -> bool {
        !self.change(|_| ())
    }

    /// Changes the memory in a call that has not been passed it. Returns false if it is detached.
    fn change(&self, change: impl FnOnce(&mut Memory)) -> bool {
        let mut buffer = ptr::null_mut();
        // SAFETY: the env and the reference live as long as this. A channel is used in calls of its own env only, and
        // none that has a reference to its memory calls this.
        let memory = unsafe {
            sys::napi_get_reference_value(self.env, self.buffer, &mut buffer);
            Memory::of_buffer(self.env, buffer)
        };
        memory.map(change).is_some()
    }

    /// From now on JavaScript draws from the block within this turn only. The rest of the block is lost, and so is a
    /// booking: they belong to a window or a source that the instance leaves.
    pub fn lose(&self) {
        self.reserved.set(None);
        self.booking.take();
        let mut pace = self.pace.get();
        pace.forget_block();
        self.pace.set(pace);
        self.change(|memory| memory.reserved_ms = f64::NAN);
    }

    /// Gives back the IDs of the last block that JavaScript has not drawn. Then reserves the next block and writes
    /// its IDs to the memory. Returns how many, negative if there is news to report; 0 if refused.
    // Inlined with the others marked so: out of line, the pace passes through memory, and a call takes 160 ns, not 120.
    #[inline(always)]
    pub fn refill(&self, source: &Source, memory: &mut Memory, may_wait: bool) -> i32 {
        self.end_unused(memory, source, memory.unused.into());
        let generator: &Generator = &source.share;
        let pace = self.pace.get();
        let want = |tick| pace.at(ms_of(generator, tick)).size();
        let reserved = match source {
            Source { ring: Some(ring), .. } => {
                return self.answer(source, self.take_from(source, ring, memory, may_wait));
            }
            // js/ reads such a clock for every ID, and waits for it.
            Source { clock: Some(clock), .. } => {
                clock.set(memory.reserved_ms as i64);
                source.try_reserve_next(|_| 1)
            }
            _ => match self.booked(source, may_wait, pace.booking_size(), want) {
                Some(booked) => booked,
                None if may_wait => {
                    self.wait_for(source, source.policies(), pace.booking_size(), want)
                }
                None => self.try_in_turn(source, pace.booking_size(), want),
            },
        };
        let written = reserved.map(|reserved| {
            self.write(memory, &reserved, generator.node().layout());
            reserved.block.len
        });
        self.answer(source, written)
    }

    /// Begins a block of consecutive IDs.
    fn write(&self, memory: &mut Memory, reserved: &Reserved, layout: &Layout) {
        let Reserved { first_id, block, ms } = *reserved;
        self.begin(memory, ms, block.len);
        self.reserved.set(Some(block));
        for (id, slot) in (first_id..first_id + block.len).zip(&mut memory.ids) {
            *slot = id;
        }
        // No later turn draws from a booked tick that has passed while this thread slept.
        if block.tick < layout.tick_at(ms) {
            memory.reserved_ms = f64::NAN;
        }
    }

    /// Begins a block of IDs of a ring: writes them by `take`, which returns how many.
    fn take_block<E>(
        &self,
        memory: &mut Memory,
        ms: i64,
        take: impl FnOnce(&mut [u64]) -> Result<usize, E>,
    ) -> Result<u64, E> {
        let want = self.pace.get().at(ms).size() as usize;
        let len = take(&mut memory.ids[..want])? as u64;
        self.begin(memory, ms, len);
        Ok(len)
    }

    fn begin(&self, memory: &mut Memory, ms: i64, len: u64) {
        let mut pace = self.pace.get().at(ms);
        memory.reserved_ms = ms as f64;
        memory.advice = pace.advice() as u32;
        pace.begin_block(len);
        self.pace.set(pace);
    }

    /// Ends the block, and gives back its last `unused` IDs. A number above its length is an error: then no ID is
    /// issued again.
    #[inline(always)]
    pub fn end_unused(&self, memory: &mut Memory, source: &Source, unused: u64) {
        memory.unused = 0;
        let mut pace = self.pace.get();
        let len = pace.block_len();
        pace.note(Told {
            unused,
            is_watched: memory.is_watched != 0,
            most_checked: u64::from(memory.most_checked),
        });
        self.pace.set(pace);
        let reserved = self.reserved.take();
        if !(1..=len).contains(&unused) {
            return;
        }
        match (&source.ring, reserved) {
            (Some(ring), _) => ring.keep(&memory.ids[(len - unused) as usize..len as usize]),
            (None, Some(block)) => source.give_back(&block, unused),
            _ => {}
        }
    }

    /// The IDs that an earlier call has booked, if any. They come before all others, so that IDs rise. A call that waits
    /// for a booking, and loses it, has the rest of its `max_wait` for other IDs.
    fn booked(
        &self,
        source: &Source,
        may_wait: bool,
        most: u64,
        want: impl Fn(Tick) -> u64,
    ) -> Option<Drawn> {
        if self.booking.borrow().is_none() {
            return None;
        }
        let booking = self.booking.take()?;
        if may_wait {
            let mut policies = *source.policies();
            let left = &mut policies.max_wait;
            let turn = source.await_turn(&booking, left, &mut self.waits.borrow_mut());
            return Some(match turn {
                Some(reserved) => Ok(reserved),
                None => self.wait_for(source, &policies, most, want),
            });
        }
        match source.redeem(&booking) {
            Redeemed::Ids(reserved) => Some(Ok(reserved)),
            Redeemed::Early(refusal) => {
                self.booking.replace(Some(booking));
                Some(Err(refusal))
            }
            Redeemed::Lost => None,
        }
    }

    /// Waits where the policies allow it.
    #[inline]
    fn wait_for(
        &self,
        source: &Source,
        policies: &Policies,
        most: u64,
        want: impl Fn(Tick) -> u64,
    ) -> Drawn {
        let attempt = || source.try_reserve_next(&want);
        let waits = &mut *self.waits.borrow_mut();
        source.waiting(policies, waits, most, attempt, |reserved| reserved)
    }

    /// Does not wait. On an exhausted sequence it books, and the next call returns the booked IDs: so a caller that
    /// waits by itself has its turn, too.
    fn try_in_turn(&self, source: &Source, most: u64, want: impl Fn(Tick) -> u64) -> Drawn {
        let refusal = match source.try_reserve_next(&want) {
            Err(refusal @ Refusal { stall: Stall::SequenceExhausted { .. }, .. }) => refusal,
            answer => return answer,
        };
        // The next tick at least: such a caller waits for it however long it takes.
        let horizon = source.ticks_within(source.policies().max_wait).max(1);
        let Ok(booking) = source.book(source.policies(), most, horizon) else {
            return Err(refusal);
        };
        self.booking.replace(Some(booking));
        self.booked(source, false, most, want).unwrap_or(Err(refusal))
    }

    fn take_from(
        &self,
        source: &Source,
        ring: &RingShare,
        memory: &mut Memory,
        may_wait: bool,
    ) -> Result<u64, Refusal> {
        let mut waits = self.waits.borrow_mut();
        // IDs of a ring may be older. The time at which they are taken counts.
        let now = source.now_ms();
        self.take_block(memory, now, |ids| ring.take(ids, may_wait.then_some(&mut waits)))
    }

    /// The number for JavaScript: negative if there is news to report; 0 if refused.
    fn answer(&self, source: &Source, reserved: Result<u64, Refusal>) -> i32 {
        match reserved {
            Ok(len) => {
                let has_news = source.has_rollback_to_report() || self.waits.borrow().count > 0;
                if has_news { -(len as i32) } else { len as i32 }
            }
            Err(refusal) => {
                self.refusal.set(Some(refusal));
                0
            }
        }
    }

    /// Fills an array with IDs, across as many ticks as it takes: all of it or, if refused, nothing. Returns 1, or -1
    /// if there is news to report; 0 if refused.
    pub fn fill(
        &self,
        source: &Source,
        memory: &mut Memory,
        ids: &mut [u64],
        may_wait: bool,
    ) -> i32 {
        self.end_unused(memory, source, memory.unused.into());
        let filled = match &source.ring {
            Some(ring) => {
                let mut waits = self.waits.borrow_mut();
                ring.fill(ids, may_wait.then_some(&mut waits))
            }
            None => self.fill_by_blocks(source, ids),
        };
        self.answer(source, filled.map(|()| 1))
    }

    fn fill_by_blocks(&self, source: &Source, ids: &mut [u64]) -> Result<(), Refusal> {
        let generator: &Generator = &source.share;
        // A batch takes a tick in parts, so that others draw from it, too.
        let ids_a_tick = generator.node().layout().last_sequence() + 1;
        let part = LARGEST_BLOCK.max(ids_a_tick / PARTS_OF_TICK);
        // Mostly there is one block, and none before it.
        let (mut blocks, mut last) = (Vec::new(), None);
        let mut rest = ids;
        while !rest.is_empty() {
            let want = part.min(rest.len() as u64);
            let reserved = self
                .booked(source, true, want, |_| want)
                .unwrap_or_else(|| self.wait_for(source, source.policies(), want, |_| want));
            match reserved.map(|reserved| reserved.shortened(generator, want)) {
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
                        generator.give_back(block, block.len);
                    }
                    return Err(refusal);
                }
            }
        }
        Ok(())
    }
}

/// The Unix ms of the clock's tick. A tick longer than 1 ms does not determine it.
fn ms_of(generator: &Generator, tick: Tick) -> i64 {
    let layout = generator.node().layout();
    if layout.tick_ms == 1 { layout.tick_start_ms(tick) } else { generator.now_ms() }
}

impl Drop for Draws {
    fn drop(&mut self) {
        // SAFETY: a channel is dropped by the call that made it or by the finalizer of its object: the env lives.
        unsafe { sys::napi_delete_reference(self.env, self.buffer) };
    }
}
