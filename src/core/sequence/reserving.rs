//! Reservations. Each is one compare-and-swap of the word.

use std::borrow::Borrow;

use super::super::atomic::{Ordering::AcqRel, Ordering::Acquire};
use super::cells::{Cells, Run, Sequence, mark_code};
use super::deciding::Rules;
use crate::core::layout::Tick;
use crate::core::sequencer::{Block, Stall, Window};

/// The number of bookings that one tick has room for, at least.
const WAITERS_IN_A_TICK: u64 = 16;

/// The clock of a reservation.
pub trait Time {
    /// The reason that a reservation ended: a stall, or a failure of [`Time::now`].
    type Error: From<Stall>;

    /// The tick now. A reservation calls it after it loaded the word. After a lost race it calls it again, unless the
    /// winner only continued the same run. On a page this reads the clock, then checks that the page is still linked.
    fn now(&mut self) -> Result<Tick, Self::Error>;

    /// Whether to load the word and read the clock again before a rollback is accepted.
    fn rechecks(&mut self) -> bool {
        false
    }

    /// Called when the cells have a value that no sequencer writes. An error ends the reservation.
    fn note_damage(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Called before the swap that replaces the run `previous` by a new one. If the swap fails, [`Time::now`] is called
    /// again.
    fn begin_run(&mut self, _previous: &Run) {}
}

impl<F: FnMut() -> Tick> Time for F {
    type Error = Stall;

    fn now(&mut self) -> Result<Tick, Stall> {
        Ok(self())
    }
}

impl<M: Borrow<Cells>> Sequence<M> {
    /// Reserves up to `want` (at least 1) consecutive IDs of the clock's tick.
    pub fn reserve<T: Time>(
        &self,
        rules: &Rules,
        time: &mut T,
        want: impl Fn(Tick) -> u64,
    ) -> Result<Block, T::Error> {
        self.swap(rules, time, |now, _| want(now), |seen, now| self.decide(rules, seen, now, 0))
    }

    /// Like [`Sequence::reserve`], but if the tick is exhausted, books IDs of a coming tick, up to `horizon` ticks
    /// ahead of the clock. The caller may hand them out after that tick has begun and, on a page, after another check
    /// of the link. IDs that it does not hand out are lost.
    ///
    /// Waiters are served in the order of their bookings. A booking takes a share of a tick. The share shrinks as the
    /// queue grows, so that many waiters find numbers within the horizon.
    pub fn book<T: Time>(
        &self,
        rules: &Rules,
        time: &mut T,
        want: u64,
        horizon: Tick,
    ) -> Result<Block, T::Error> {
        // A lead that does not fit in the word would look like a rollback.
        let longest = rules.max_ahead.max(self.shape.last_lead as Tick);
        let booked = horizon.min(self.shape.most_booked);
        let horizon = rules.max_ahead.saturating_add(booked).min(longest);
        let share = (self.shape.last_sequence + 1) / WAITERS_IN_A_TICK;
        let want = |now: Tick, tick: Tick| {
            let line = (tick - now - rules.max_ahead).max(1) as u64;
            want.min(share / line).max(1)
        };
        self.swap(rules, time, want, |seen, now| self.decide(rules, seen, now, horizon))
    }

    /// Like [`Sequence::reserve`], but takes the tick after the last one instead of the clock's, which hides clock
    /// jumps. Ticks lag at most `max_lag` behind the clock, and lead it by at most `max_ahead`.
    pub fn reserve_counting<T: Time>(
        &self,
        rules: &Rules,
        time: &mut T,
        want: u64,
        max_lag: Tick,
    ) -> Result<Block, T::Error> {
        self.swap(
            rules,
            time,
            |_, _| want,
            |seen, now| {
                let last = seen.mark();
                if last < now && last >= now.saturating_sub(max_lag) {
                    for tick in [last, last + 1] {
                        if let Ok(next) = self.decide_at(rules, seen, tick) {
                            return Ok(next);
                        }
                    }
                }
                self.decide(rules, seen, now, 0)
            },
        )
    }

    /// Loads the word, reads the clock, decides, raises the mark, and swaps the word: in this order.
    ///
    /// - A clock read before the load may be below a tick that another caller has taken since.
    /// - A mark raised after the swap could be missed by a process that sees the new counter value.
    /// - Every input of the decision is read after the load, so the decision is valid if the swap succeeds.
    ///   [`Sequence::continue_run`] explains why it may reuse the clock reading.
    #[inline]
    fn swap<T: Time>(
        &self,
        rules: &Rules,
        time: &mut T,
        want: impl Fn(Tick, Tick) -> u64,
        decide: impl Fn(&Run, Tick) -> Result<Run, Stall>,
    ) -> Result<Block, T::Error> {
        let loaded = self.cells().word.load(Acquire);
        let now = time.now()?;
        match self.continue_run(loaded, now, &want) {
            Some(block) => Ok(block),
            None => self.swap_from(loaded, now, rules, time, want, decide),
        }
    }

    /// The slow path of [`Sequence::swap`], after it loaded the word and then read the clock.
    #[inline(never)]
    fn swap_from<T: Time>(
        &self,
        mut loaded: u64,
        mut now: Tick,
        rules: &Rules,
        time: &mut T,
        want: impl Fn(Tick, Tick) -> u64,
        decide: impl Fn(&Run, Tick) -> Result<Run, Stall>,
    ) -> Result<Block, T::Error> {
        loop {
            if !self.shape.is_possible(loaded, rules.max_ahead) {
                time.note_damage()?;
            }
            let seen = self.shape.unpack(loaded);
            match decide(&seen, now) {
                Ok(start) if start.counter > seen.counter && time.rechecks() => {}
                Ok(start) => {
                    if let Some(block) = self.swap_to(start, loaded, now, rules, time, &want) {
                        return Ok(block);
                    }
                }
                Err(Stall::ClockBehind { .. }) if time.rechecks() => {}
                Err(stall) => {
                    // An impossible mark counts as an issued tick, so it can only refuse.
                    if !self.are_marks_possible() {
                        time.note_damage()?;
                    }
                    return Err(stall.into());
                }
            }
            loaded = self.cells().word.load(Acquire);
            now = time.now()?;
            if let Some(block) = self.continue_run(loaded, now, &want) {
                return Ok(block);
            }
        }
    }

    /// Raises the mark and swaps the word. `None` if another caller swapped it first.
    #[inline(always)]
    fn swap_to<T: Time>(
        &self,
        start: Run,
        loaded: u64,
        now: Tick,
        rules: &Rules,
        time: &mut T,
        want: &impl Fn(Tick, Tick) -> u64,
    ) -> Option<Block> {
        let Cells { word, marks, .. } = self.cells();
        let seen = self.shape.unpack(loaded);
        if start.counter != seen.counter {
            // Raises the mark to the run's tick even if nothing of it was issued, so that the run never returns
            // (invariant 1).
            marks[seen.counter].fetch_max(mark_code(seen.tick), AcqRel);
        }
        if start.next == 0 {
            time.begin_run(&seen);
        }
        let first = if start.next == 0 && rules.random_start {
            fastrand::u64(0..=self.shape.last_sequence / 2)
        } else {
            start.next
        };
        let len = want(now, start.tick).clamp(1, self.shape.last_sequence - first + 1);
        let lead = start.tick.saturating_sub(now);
        let next = self.shape.pack(Run { next: first + len, lead, ..start });
        let swapped = word.compare_exchange(loaded, next, AcqRel, Acquire);
        swapped.is_ok().then_some(Block { tick: start.tick, counter: start.counter, first, len })
    }

    /// The fast path: continues the current run, if it is of counter 0 and of the clock's tick and has numbers left. It
    /// decides as the slow path does, but on the packed word, for speed.
    ///
    /// After a lost race it continues from the winner's word without another clock reading: the run is still of the
    /// tick that the first reading gave.
    #[inline(always)]
    fn continue_run(
        &self,
        mut loaded: u64,
        now: Tick,
        want: &impl Fn(Tick, Tick) -> u64,
    ) -> Option<Block> {
        loop {
            let next = loaded & self.shape.next_mask;
            let left = (self.shape.last_sequence + 1).wrapping_sub(next);
            let is_run = loaded ^ next == (now as u64) << self.shape.tick_at
                && (0..=self.shape.last_tick).contains(&now);
            // The slow path chooses the first number of a run, which may be random.
            if !is_run || next == 0 || left.wrapping_sub(1) > self.shape.last_sequence {
                return None;
            }
            let Window { floor, ceiling } = self.bounds();
            if now <= floor || now > ceiling {
                return None;
            }
            let len = want(now, now).clamp(1, left);
            match self.cells().word.compare_exchange(loaded, loaded + len, AcqRel, Acquire) {
                Ok(_) => return Some(Block { tick: now, counter: 0, first: next, len }),
                Err(seen) => loaded = seen,
            }
        }
    }

    /// Takes back the last `unused` IDs of a block, which the caller has not handed out and must not hand out later.
    /// Returns whether the sequence issues them again. It does not if a later block follows them.
    ///
    /// Call it at most once per block: a second call could take back numbers that were issued since.
    pub fn give_back(&self, block: &Block, unused: u64) -> bool {
        debug_assert!(unused <= block.len);
        let word = &self.cells().word;
        let loaded = word.load(Acquire);
        let seen = self.shape.unpack(loaded);
        let is_last = (seen.counter, seen.tick) == (block.counter, block.tick)
            && seen.next == block.first + block.len;
        let back = Run { next: seen.next.wrapping_sub(unused), ..seen };
        let back = self.shape.pack(back);
        is_last && back != 0 && word.compare_exchange(loaded, back, AcqRel, Acquire).is_ok()
    }
}
