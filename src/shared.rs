//! The sequencer that threads and processes share: the rule of `tests/rule` over a few atomic words,
//! in a page of shared memory or in the process's own. No lock, no allocation: a process that is stopped or
//! killed at any instruction stops nobody else.
//!
//! The word holds the current run, and a reservation is one compare-and-swap of it (`cells`).
//!
//! Invariants (`tests/shared` searches every interleaving of these steps, and finds each planted fault):
//!
//! 1. Under one counter value ticks only rise, and numbers only rise within a tick but for what is
//!    given back. So a word that was left for another tick or counter never comes back, and a swap
//!    succeeds only if nothing happened since the load.
//! 2. Of a counter that is not current, the mark is at least the highest tick its runs had.
//! 3. The floor only rises, and is raised before the ceiling that belongs to it; readers read the ceiling
//!    first. So a reader that sees a ceiling sees its floor.
//! 4. Within a window the ceiling only rises, so it need not be in the word. Whatever else ends or
//!    begins a window changes the word.

#[path = "shared/cells.rs"]
mod cells;
#[path = "shared/windows.rs"]
mod windows;

use std::borrow::Borrow;

use super::atomic::{Ordering::AcqRel, Ordering::Acquire};
use crate::layout::{Layout, Tick};
use crate::sequencer::{Block, HighMarks, Stall, Window};
pub use cells::{Cells, Run, mark_code};
use cells::{Shape, ceiling_of};
pub use windows::{Closed, Ended, NotReopened, WindowNumber};

/// How many waiters one tick serves, at least, before it is exhausted again.
const WAITERS_IN_A_TICK: u64 = 16;

/// What a caller may do, apart from counting. `max_ahead` is the same for all who share the cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Whether a clock rollback may be answered with a larger counter value.
    pub may_raise: bool,
    /// How many ticks ahead of the clock may be issued rather than waited for.
    pub max_ahead: Tick,
    /// Whether a tick's sequence starts in the lower half of the range, at random, rather than at 0.
    pub random_start: bool,
}

/// How [`Sequence::begin`] begins cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// After others, which may have issued anything up to the clock's tick.
    After,
    /// As the first ones. The clock's tick is exhausted all the same.
    First,
    /// As the first ones, from the clock's tick on.
    Fresh,
}

/// Tells the time to a reservation.
pub trait Time {
    /// What ends a reservation: a stall, or what [`Time::now`] met.
    type Refusal: From<Stall>;

    /// The tick now. It is asked after the word was loaded, and again after a lost race, unless the winner
    /// has only drawn from the same run. On a page it checks that the page is still linked, after the clock
    /// was read.
    fn now(&mut self) -> Result<Tick, Self::Refusal>;

    /// The clock seems to have rolled back. Whether to load the word and read the clock again first.
    fn doubts(&mut self) -> bool {
        false
    }

    /// The word is 0, as memory is that was cleared: ends the reservation if it was.
    fn is_cleared(&mut self) -> Result<(), Self::Refusal> {
        Ok(())
    }

    /// The swap that comes next leaves `left` and begins `run`: who must note its tick somewhere does so
    /// here, before anyone can draw of it. The swap may yet fail; then the time is asked again.
    fn begins(&mut self, _left: &Run, _run: &Run) {}
}

impl<F: FnMut() -> Tick> Time for F {
    type Refusal = Stall;

    fn now(&mut self) -> Result<Tick, Stall> {
        Ok(self())
    }
}

/// A node's sequencer over shared [`Cells`].
pub struct Sequence<M> {
    cells: M,
    shape: Shape,
}

impl<M: Borrow<Cells>> Sequence<M> {
    /// The sequencer of the cells, which all who share them open with one layout.
    pub fn new(cells: M, layout: &Layout) -> Self {
        Sequence { cells, shape: Shape::of(layout) }
    }

    fn cells(&self) -> &Cells {
        self.cells.borrow()
    }

    /// The current run.
    pub fn run(&self) -> Run {
        self.shape.unpack(self.cells().word.0.load(Acquire))
    }

    /// The counter in use, and the last tick issued under it; [`NEVER`] at first.
    pub fn current(&self) -> (usize, Tick) {
        let run = self.run();
        (run.counter, run.mark())
    }

    /// How many numbers of the current run's tick are used; none where nothing is issued until the cells
    /// are begun or reopened.
    pub fn used(&self) -> Option<u64> {
        let next = self.run().next;
        (next != self.shape.closed()).then_some(next)
    }

    /// Whether nothing is issued until the cells are begun or reopened.
    pub fn is_closed(&self) -> bool {
        self.used().is_none()
    }

    /// The highest tick issued under each counter value.
    pub fn high_marks(&self) -> HighMarks {
        self.marks_beside(&self.run())
    }

    fn marks_beside(&self, run: &Run) -> HighMarks {
        let mut high = HighMarks { current: run.counter, ..HighMarks::default() };
        for (counter, mark) in high.marks[..self.shape.counters].iter_mut().enumerate() {
            *mark = self.mark(run, counter);
        }
        high
    }

    /// The ticks that may be issued at present.
    pub fn window(&self) -> Window {
        if self.is_closed() { Window::CLOSED } else { self.bounds() }
    }

    /// Nothing at or below it is issued, also where no window is open.
    pub fn floor(&self) -> Tick {
        self.cells().floor.load(Acquire) as Tick - 1
    }

    /// Whether it was ever begun or reopened.
    pub fn is_begun(&self) -> bool {
        let not_begun = Run { next: self.shape.closed(), ..Run::default() };
        self.run() != not_begun
    }

    /// In this order, by invariant 3.
    fn bounds(&self) -> Window {
        let ceiling = ceiling_of(self.cells().window.load(Acquire));
        let floor = self.cells().floor.load(Acquire) as Tick - 1;
        Window { floor, ceiling }
    }

    /// By invariant 2 this is exact enough, if the mark is read after the word.
    fn mark(&self, run: &Run, counter: usize) -> Tick {
        if counter == run.counter {
            run.mark()
        } else {
            self.cells().marks[counter].load(Acquire) as Tick - 1
        }
    }

    /// The highest tick under a counter when it was left; [`crate::sequencer::NEVER`] if it was not.
    pub fn mark_left(&self, counter: usize) -> Tick {
        self.cells().marks[counter].load(Acquire) as Tick - 1
    }

    /// Reserves up to `want` (at least 1) consecutive IDs of the clock's tick.
    pub fn reserve<T: Time>(
        &self,
        rules: &Rules,
        time: &mut T,
        want: impl Fn(Tick) -> u64,
    ) -> Result<Block, T::Refusal> {
        self.swap(rules, time, |now, _| want(now), |seen, now| self.place(rules, seen, now, 0))
    }

    /// As [`Sequence::reserve`], but where the tick is exhausted, IDs of a coming tick are reserved, up to
    /// `horizon` ticks ahead of the clock. They may be handed out once that tick has begun; and on a page,
    /// once the link was checked after that. What is not handed out is lost.
    ///
    /// So waiters are served in the order of their bookings. One booking takes a share of a tick, and a
    /// smaller one the longer the line is, so that many waiters find their numbers within the horizon.
    pub fn book<T: Time>(
        &self,
        rules: &Rules,
        time: &mut T,
        want: u64,
        horizon: Tick,
    ) -> Result<Block, T::Refusal> {
        // A longer lead than the word holds would pass for a rollback.
        let longest = rules.max_ahead.max(self.shape.last_lead as Tick);
        let horizon = rules.max_ahead.saturating_add(horizon).min(longest);
        let share = (self.shape.last_sequence + 1) / WAITERS_IN_A_TICK;
        let want = |now: Tick, tick: Tick| {
            let line = (tick - now - rules.max_ahead).max(1) as u64;
            want.min(share / line).max(1)
        };
        self.swap(rules, time, want, |seen, now| self.place(rules, seen, now, horizon))
    }

    /// As [`Sequence::reserve`], but ticks are counted on from the last one rather than taken from the
    /// clock, so that a clock jump is not seen: as long as they lie no more than `max_lag` ticks behind
    /// it, and no more than `max_ahead` before it.
    pub fn reserve_counting<T: Time>(
        &self,
        rules: &Rules,
        time: &mut T,
        want: u64,
        max_lag: Tick,
    ) -> Result<Block, T::Refusal> {
        self.swap(
            rules,
            time,
            |_, _| want,
            |seen, now| {
                let last = seen.mark();
                if last < now && last >= now.saturating_sub(max_lag) {
                    for tick in [last, last + 1] {
                        if let Ok(next) = self.place_at(rules, seen, tick) {
                            return Ok(next);
                        }
                    }
                }
                self.place(rules, seen, now, 0)
            },
        )
    }

    /// Load, clock, decide, mark, swap: in this order. A clock that was read before the load may lie below
    /// a tick that another has drawn meanwhile. A mark that was raised after the swap could be missed by
    /// a process that sees the new counter. What is decided on is read after the load, so a swap that succeeds
    /// had it right; [`Sequence::go_on`] says why it may keep the clock's reading.
    #[inline]
    fn swap<T: Time>(
        &self,
        rules: &Rules,
        time: &mut T,
        want: impl Fn(Tick, Tick) -> u64,
        place: impl Fn(&Run, Tick) -> Result<Run, Stall>,
    ) -> Result<Block, T::Refusal> {
        let loaded = self.cells().word.0.load(Acquire);
        let now = time.now()?;
        match self.go_on(loaded, now, &want) {
            Some(block) => Ok(block),
            None => self.swap_from(loaded, now, rules, time, want, place),
        }
    }

    /// The rest of it: of a word and a time that were read in this order.
    #[inline(never)]
    fn swap_from<T: Time>(
        &self,
        mut loaded: u64,
        mut now: Tick,
        rules: &Rules,
        time: &mut T,
        want: impl Fn(Tick, Tick) -> u64,
        place: impl Fn(&Run, Tick) -> Result<Run, Stall>,
    ) -> Result<Block, T::Refusal> {
        loop {
            if loaded == 0 {
                time.is_cleared()?;
            }
            let seen = self.shape.unpack(loaded);
            match place(&seen, now) {
                Ok(start) if start.counter > seen.counter && time.doubts() => {}
                Ok(start) => {
                    if let Some(block) = self.swap_to(start, loaded, now, rules, time, &want) {
                        return Ok(block);
                    }
                }
                Err(Stall::ClockBehind { .. }) if time.doubts() => {}
                Err(stall) => return Err(stall.into()),
            }
            loaded = self.cells().word.0.load(Acquire);
            now = time.now()?;
            if let Some(block) = self.go_on(loaded, now, &want) {
                return Ok(block);
            }
        }
    }

    /// Marks and swaps; none where the race was lost.
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
            // Its tick, though nothing of it may be issued: so the run never comes back (invariant 1).
            marks[seen.counter].fetch_max(mark_code(seen.tick), AcqRel);
        }
        if start.next == 0 {
            time.begins(&seen, &start);
        }
        let first = if start.next == 0 && rules.random_start {
            fastrand::u64(0..=self.shape.last_sequence / 2)
        } else {
            start.next
        };
        let len = want(now, start.tick).clamp(1, self.shape.last_sequence - first + 1);
        let lead = start.tick.saturating_sub(now);
        let next = self.shape.pack(Run { next: first + len, lead, ..start });
        let swapped = word.0.compare_exchange(loaded, next, AcqRel, Acquire);
        swapped.is_ok().then_some(Block { tick: start.tick, counter: start.counter, first, len })
    }

    /// Goes on with the run of counter 0 at the clock's tick, if it is the current one and has numbers
    /// left. It is the usual case, on the packed word for speed; the rest of the rule says the same of it.
    ///
    /// After a lost race it goes on from where the winner left the run, and reads no clock: the run's tick is
    /// still the one that the clock showed, so nothing was decided that a later reading could change.
    #[inline(always)]
    fn go_on(
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
            // Of a run that was not begun the first number may be a random one.
            if !is_run || next == 0 || left.wrapping_sub(1) > self.shape.last_sequence {
                return None;
            }
            let Window { floor, ceiling } = self.bounds();
            if now <= floor || now > ceiling {
                return None;
            }
            let len = want(now, now).clamp(1, left);
            match self.cells().word.0.compare_exchange(loaded, loaded + len, AcqRel, Acquire) {
                Ok(_) => return Some(Block { tick: now, counter: 0, first: next, len }),
                Err(seen) => loaded = seen,
            }
        }
    }

    /// Where a reservation begins by the clock's tick, as `tests/rule` has it; ahead of it within
    /// `max_ahead`, or within `horizon`.
    ///
    /// A tick above the clock is a rollback only if the clock stands below where it stood when that tick
    /// was taken: its tick minus its lead.
    fn place(&self, rules: &Rules, seen: &Run, now: Tick, horizon: Tick) -> Result<Run, Stall> {
        if now < 0 {
            return Err(Stall::BeforeEpoch);
        }
        let reach = rules.max_ahead.max(horizon);
        let current = seen.mark();
        let ahead = current.saturating_sub(now);
        let is_ahead = ahead > 0 && ahead <= seen.lead.max(rules.max_ahead);
        if is_ahead && ahead > reach {
            // Booked by others, further ahead than this caller may go.
            let until = if seen.next > self.shape.last_sequence { current + 1 } else { current };
            return Err(Stall::SequenceUsedUp { until: until - reach });
        }
        match self.place_at(rules, seen, if is_ahead { current } else { now }) {
            Err(Stall::SequenceUsedUp { until }) if now >= until - reach => {
                self.place_at(rules, seen, until)
            }
            Err(Stall::SequenceUsedUp { until }) => {
                Err(Stall::SequenceUsedUp { until: until - reach })
            }
            place => place,
        }
    }

    fn place_at(&self, rules: &Rules, seen: &Run, tick: Tick) -> Result<Run, Stall> {
        if tick > self.shape.last_tick {
            return Err(Stall::TimeEnded);
        }
        let is_closed = seen.next == self.shape.closed();
        let Window { floor, ceiling } = if is_closed { Window::CLOSED } else { self.bounds() };
        if tick <= floor {
            return Err(Stall::AtFloor { until: floor + 1 });
        }
        if tick > ceiling {
            return Err(Stall::AboveCeiling { ceiling });
        }
        let current = seen.mark();
        let counters = if rules.may_raise { self.shape.counters } else { seen.counter + 1 };
        let mut lowest = Tick::MAX;
        for counter in 0..counters {
            if counter > seen.counter && current == tick {
                // The clock did not roll back, the tick is exhausted.
                break;
            }
            let mark = self.mark(seen, counter);
            if mark < tick {
                return Ok(Run { tick, counter, next: 0, lead: 0 });
            }
            if counter == seen.counter && seen.tick == tick && seen.next <= self.shape.last_sequence
            {
                return Ok(Run { tick, ..*seen });
            }
            lowest = lowest.min(mark);
        }
        if current == tick {
            return Err(Stall::SequenceUsedUp { until: tick + 1 });
        }
        Err(Stall::ClockBehind { until: lowest + 1 })
    }

    /// Takes back the last `unused` IDs of a block, which were never handed out and never will be. Says
    /// whether they will be issued again; they are not where a later block follows them.
    ///
    /// The word names a number at most once as given back: call it once for a block.
    pub fn give_back(&self, block: &Block, unused: u64) -> bool {
        debug_assert!(unused <= block.len);
        let word = &self.cells().word.0;
        let loaded = word.load(Acquire);
        let seen = self.shape.unpack(loaded);
        let is_last = (seen.counter, seen.tick) == (block.counter, block.tick)
            && seen.next == block.first + block.len;
        let back = Run { next: seen.next.wrapping_sub(unused), ..seen };
        is_last && word.compare_exchange(loaded, self.shape.pack(back), AcqRel, Acquire).is_ok()
    }

    /// Begins cells that were linked as [`Cells::not_begun`]. What another page of the node may have
    /// issued is not above the clock, if that is read after this one was linked: pages follow each other,
    /// and none is issued from after it was unlinked. So the tick of the clock counts as exhausted.
    /// Of cells that were begun it changes nothing.
    ///
    /// The floor keeps a later rollback above what an earlier page issued. Of the node's first page a
    /// rollback is like any other.
    pub fn begin<T: Time>(&self, time: &mut T, how: Beginning) -> Result<(), T::Refusal> {
        let Cells { word, floor, .. } = self.cells();
        let not_begun = Run { next: self.shape.closed(), ..Run::default() };
        let loaded = word.0.load(Acquire);
        if loaded == self.shape.pack(not_begun) {
            let now = time.now()?.min(self.shape.last_tick);
            if how == Beginning::After {
                floor.fetch_max(mark_code(now), AcqRel);
            }
            let next = if how == Beginning::Fresh { 0 } else { self.shape.last_sequence + 1 };
            let run = match now {
                ..0 => Run::default(),
                tick => Run { tick, next, ..Run::default() },
            };
            // Who else has begun them read the clock, too.
            let _ = word.0.compare_exchange(loaded, self.shape.pack(run), AcqRel, Acquire);
        }
        Ok(())
    }
}
