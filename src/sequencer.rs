//! The rule that makes two IDs of one node differ, as a pure state machine: no clock, no I/O, no
//! lock. Time is an argument.
//!
//! Invariant, kept by [`Sequencer::reserve`]: **a pair (counter, tick) is used in one run of rising
//! sequence numbers only.** A run starts only where the tick lies above the counter's high mark, and
//! starting it raises the mark; it goes on only while it is the current one.
//!
//! | `now` is | what happens |
//! |---|---|
//! | above the high mark of a counter no larger than the current one | a run under the smallest such counter |
//! | the tick of the current run | the run goes on; used up: [`Stall::SequenceUsedUp`] |
//! | below the high mark of the current counter | a step back: a run under the smallest counter whose mark lies below, if `may_raise`; else [`Stall::ClockBehind`] |
//! | up to `max_ahead` below the current run's tick | the current run goes on, then the tick after it |
//!
//! So the counter falls back by itself once the clock has passed the old high marks. It must not
//! fall back merely because the clock passed the highest tick of all: a later step back would meet
//! the earlier run of counter 1 (`tests/every_clock_path.rs` finds that path).

use crate::layout::{Layout, MAX_COUNTERS, Tick};

/// The high mark of a counter under which nothing was issued yet.
pub const NEVER: Tick = -1;

/// For each value of the clock-back counter, the highest tick ever issued under it.
///
/// It is all that a restart must remember: a sequencer that starts from the marks of an earlier one
/// repeats none of its IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighMarks {
    /// By counter value; [`NEVER`] where nothing was issued.
    pub marks: [Tick; MAX_COUNTERS],
    /// The counter in use.
    pub current: usize,
}

impl HighMarks {
    /// The highest tick issued under any counter; [`NEVER`] at first.
    pub fn highest(&self) -> Tick {
        self.marks.into_iter().max().unwrap_or(NEVER)
    }
}

impl Default for HighMarks {
    fn default() -> Self {
        HighMarks { marks: [NEVER; MAX_COUNTERS], current: 0 }
    }
}

/// The ticks (floor, ceiling] that may be issued at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Nothing at or below this tick is issued.
    pub floor: Tick,
    /// Nothing above this tick is issued.
    pub ceiling: Tick,
}

impl Window {
    /// No bound but the layout's own.
    pub const OPEN: Window = Window { floor: NEVER, ceiling: Tick::MAX };
    /// No tick at all.
    pub const CLOSED: Window = Window { floor: NEVER, ceiling: NEVER };
}

/// Where the sequence numbers of a tick start.
#[derive(Clone, Debug)]
pub enum SequenceStart {
    /// At 0.
    Zero,
    /// Anywhere in the lower half of the range, so that `id % n` is not skewed at low rates.
    Random(fastrand::Rng),
}

/// What a sequencer may do, apart from counting.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Whether a step of the clock back may be answered with a larger counter value.
    pub may_raise: bool,
    /// How many ticks ahead of the clock may be taken rather than waited for.
    pub max_ahead: Tick,
    /// Where a tick's sequence starts.
    pub start: SequenceStart,
}

/// Consecutive IDs of one tick, reserved in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Their tick.
    pub tick: Tick,
    /// Their clock-back counter.
    pub counter: usize,
    /// The first sequence number.
    pub first: u64,
    /// How many there are; at least 1.
    pub len: u64,
}

/// Why nothing can be issued now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// Every sequence number of this tick is taken, and of those that may be taken ahead.
    SequenceUsedUp {
        /// First tick of the clock at which IDs can be issued again.
        until: Tick,
    },
    /// The clock stands below what was issued, and no counter value is left for it.
    ClockBehind {
        /// The earliest tick at which IDs can be issued again; it may turn out to be full.
        until: Tick,
    },
    /// The clock stands before the epoch.
    BeforeEpoch,
    /// At or below the window's floor.
    AtFloor {
        /// First tick at which IDs can be issued again.
        until: Tick,
    },
    /// Above the window's ceiling.
    AboveCeiling {
        /// The last tick that may be issued.
        ceiling: Tick,
    },
    /// Past the layout's last tick. Nothing ends this.
    TimeEnded,
}

/// Decides which IDs of one node come next.
#[derive(Clone, Debug)]
pub struct Sequencer {
    high: HighMarks,
    /// The next sequence number of the current run; past `last_sequence` when it is used up.
    next: u64,
    window: Window,
    rules: Rules,
    counters: usize,
    last_sequence: u64,
    last_tick: Tick,
}

impl Sequencer {
    /// A sequencer that remembers what an earlier one issued. With [`HighMarks::default`], a first one.
    pub fn new(layout: &Layout, rules: Rules, high: HighMarks) -> Self {
        Sequencer {
            high,
            // Which numbers of the current run were issued is not remembered: it counts as used up.
            next: layout.last_sequence() + 1,
            window: Window::OPEN,
            rules,
            counters: layout.counters(),
            last_sequence: layout.last_sequence(),
            last_tick: layout.last_tick(),
        }
    }

    /// What a restart must remember.
    pub fn high_marks(&self) -> &HighMarks {
        &self.high
    }

    /// The counter in use, and the last tick issued under it; [`NEVER`] at first.
    pub fn current(&self) -> (usize, Tick) {
        (self.high.current, self.high.marks[self.high.current])
    }

    /// Other rules from now on; what was issued stays remembered.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// The ticks that may be issued at present.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Another window from now on.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// Reserves up to `want` (at least 1) consecutive IDs of the tick `now`.
    pub fn reserve(&mut self, now: Tick, want: u64) -> Result<Block, Stall> {
        if now < 0 {
            return Err(Stall::BeforeEpoch);
        }
        let tick = self.tick_in_use(now);
        match self.reserve_at(tick, want) {
            Err(Stall::SequenceUsedUp { until }) => {
                let by_clock = until - self.rules.max_ahead;
                if now >= by_clock {
                    self.reserve_at(until, want)
                } else {
                    Err(Stall::SequenceUsedUp { until: by_clock })
                }
            }
            answer => answer,
        }
    }

    /// As [`Sequencer::reserve`], but ticks are counted on from the last one rather than taken from the
    /// clock, so that a step of the clock is not seen: as long as they lie no more than `max_lag` ticks
    /// behind it, and no more than `max_ahead` before it.
    pub fn reserve_counting(
        &mut self,
        now: Tick,
        want: u64,
        max_lag: Tick,
    ) -> Result<Block, Stall> {
        let (_, last) = self.current();
        if last < now && last >= now.saturating_sub(max_lag) {
            for tick in [last, last + 1] {
                if let Ok(block) = self.reserve_at(tick, want) {
                    return Ok(block);
                }
            }
        }
        self.reserve(now, want)
    }

    /// Takes back the last `unused` IDs of a block, which were never handed out and never will be.
    /// Says whether they will be issued again; they are not where a later block follows them.
    ///
    /// Call it once for a block at the most.
    pub fn give_back(&mut self, block: &Block, unused: u64) -> bool {
        debug_assert!(unused <= block.len);
        let is_last =
            self.current() == (block.counter, block.tick) && self.next == block.first + block.len;
        if is_last {
            self.next -= unused;
        }
        is_last
    }

    /// The tick to issue at: the clock's, or the current run's where that is ahead within bounds.
    fn tick_in_use(&self, now: Tick) -> Tick {
        let (_, current) = self.current();
        if current > now && current - now <= self.rules.max_ahead { current } else { now }
    }

    fn reserve_at(&mut self, tick: Tick, want: u64) -> Result<Block, Stall> {
        if tick > self.last_tick {
            return Err(Stall::TimeEnded);
        }
        if tick <= self.window.floor {
            return Err(Stall::AtFloor { until: self.window.floor + 1 });
        }
        if tick > self.window.ceiling {
            return Err(Stall::AboveCeiling { ceiling: self.window.ceiling });
        }
        let (counter, first) = self.place_for(tick)?;
        let len = want.clamp(1, self.last_sequence - first + 1);
        self.high.marks[counter] = tick;
        self.high.current = counter;
        self.next = first + len;
        Ok(Block { tick, counter, first, len })
    }

    /// The smallest counter that may be used at `tick`, and the sequence number to go on from.
    fn place_for(&mut self, tick: Tick) -> Result<(usize, u64), Stall> {
        let HighMarks { ref marks, current } = self.high;
        let counters = if self.rules.may_raise { self.counters } else { current + 1 };
        for (counter, &mark) in marks[..counters].iter().enumerate() {
            if counter > current && marks[current] == tick {
                // The clock did not step back, the tick is full. Another counter value would give
                // more IDs, at the price of the next step back.
                break;
            }
            if mark < tick {
                return Ok((counter, self.first_sequence()));
            }
            if counter == current && mark == tick && self.next <= self.last_sequence {
                return Ok((counter, self.next));
            }
        }
        if marks[current] == tick {
            return Err(Stall::SequenceUsedUp { until: tick + 1 });
        }
        let lowest = marks[..counters].iter().copied().min().unwrap_or(NEVER);
        Err(Stall::ClockBehind { until: lowest + 1 })
    }

    fn first_sequence(&mut self) -> u64 {
        match &mut self.rules.start {
            SequenceStart::Zero => 0,
            SequenceStart::Random(random) => random.u64(0..=self.last_sequence / 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 counter bits and 2 sequence bits: 4 counters, 4 IDs a tick, ticks 0 to 255.
    const SMALL: Layout = Layout {
        timestamp_bits: 8,
        datacenter_bits: 0,
        worker_bits: 0,
        clock_back_bits: 2,
        sequence_bits: 2,
        tick_ms: 1,
        epoch_ms: 0,
    };
    const RULES: Rules = Rules { may_raise: true, max_ahead: 0, start: SequenceStart::Zero };

    fn sequencer(rules: Rules) -> Sequencer {
        Sequencer::new(&SMALL, rules, HighMarks::default())
    }

    fn block(tick: Tick, counter: usize, first: u64, len: u64) -> Result<Block, Stall> {
        Ok(Block { tick, counter, first, len })
    }

    #[test]
    fn a_tick_gives_its_sequence_once_and_then_stalls_until_the_next() {
        let mut s = sequencer(RULES);
        assert_eq!(s.reserve(7, 1), block(7, 0, 0, 1));
        assert_eq!(s.reserve(7, 2), block(7, 0, 1, 2));
        assert_eq!(s.reserve(7, 9), block(7, 0, 3, 1));
        assert_eq!(s.reserve(7, 1), Err(Stall::SequenceUsedUp { until: 8 }));
        assert_eq!(s.reserve(8, 1), block(8, 0, 0, 1));
    }

    #[test]
    fn a_step_back_takes_the_next_counter_until_the_clock_has_caught_up() {
        let mut s = sequencer(RULES);
        assert_eq!(s.reserve(10, 1), block(10, 0, 0, 1));
        assert_eq!(s.reserve(9, 1), block(9, 1, 0, 1));
        assert_eq!(s.reserve(10, 1), block(10, 1, 0, 1), "tick 10 of counter 0 was used");
        assert_eq!(s.reserve(11, 1), block(11, 0, 0, 1), "past the mark of counter 0");
    }

    #[test]
    fn three_steps_back_at_one_time_are_tolerated_the_fourth_stalls() {
        let mut s = sequencer(RULES);
        for (counter, tick) in [40, 30, 20, 10].into_iter().enumerate() {
            assert_eq!(s.reserve(tick, 1), block(tick, counter, 0, 1));
        }
        assert_eq!(s.reserve(9, 1), Err(Stall::ClockBehind { until: 11 }));
        assert_eq!(s.reserve(10, 1), block(10, 3, 1, 1));
        assert_eq!(s.reserve(21, 1), block(21, 2, 0, 1));
        assert_eq!(s.reserve(41, 1), block(41, 0, 0, 1));
    }

    #[test]
    fn a_used_up_tick_does_not_spend_a_counter() {
        let mut s = sequencer(RULES);
        s.reserve(5, 4).unwrap();
        assert_eq!(s.reserve(5, 1), Err(Stall::SequenceUsedUp { until: 6 }));
        assert_eq!(s.high_marks().current, 0);
    }

    #[test]
    fn without_may_raise_a_step_back_stalls_until_the_mark_is_passed() {
        let mut s = sequencer(Rules { may_raise: false, ..RULES });
        s.reserve(10, 1).unwrap();
        assert_eq!(s.reserve(9, 1), Err(Stall::ClockBehind { until: 11 }));
        assert_eq!(s.reserve(10, 1), block(10, 0, 1, 1));
    }

    #[test]
    fn without_may_raise_a_raised_counter_of_an_earlier_life_is_still_used() {
        let mut high = HighMarks { current: 1, ..HighMarks::default() };
        high.marks[0] = 90;
        high.marks[1] = 10;
        let mut s = Sequencer::new(&SMALL, Rules { may_raise: false, ..RULES }, high);
        assert_eq!(s.reserve(11, 1), block(11, 1, 0, 1), "the clock did not step back again");
        assert_eq!(s.reserve(5, 1), Err(Stall::ClockBehind { until: 12 }));
    }

    #[test]
    fn a_restart_goes_on_above_the_marks_it_remembers() {
        let mut before = sequencer(RULES);
        before.reserve(10, 2).unwrap();
        let mut after = Sequencer::new(&SMALL, RULES, *before.high_marks());
        assert_eq!(after.reserve(10, 1), Err(Stall::SequenceUsedUp { until: 11 }));
        assert_eq!(after.reserve(4, 1), block(4, 1, 0, 1), "a step back across a restart");
        assert_eq!(after.reserve(11, 1), block(11, 0, 0, 1));
    }

    #[test]
    fn time_outside_the_layout_stalls_at_its_exact_bounds() {
        let mut s = sequencer(RULES);
        assert_eq!(s.reserve(-1, 1), Err(Stall::BeforeEpoch));
        assert_eq!(s.reserve(0, 1), block(0, 0, 0, 1));
        assert_eq!(s.reserve(255, 1), block(255, 0, 0, 1));
        assert_eq!(s.reserve(256, 1), Err(Stall::TimeEnded));
        assert_eq!(s.reserve(Tick::MAX, 1), Err(Stall::TimeEnded));
        s.reserve(255, 9).unwrap();
        assert_eq!(s.reserve(255, 1), Err(Stall::SequenceUsedUp { until: 256 }));
    }

    #[test]
    fn a_window_bounds_what_is_issued_from_both_sides() {
        let mut s = sequencer(RULES);
        s.set_window(Window { floor: 10, ceiling: 12 });
        assert_eq!(s.reserve(10, 1), Err(Stall::AtFloor { until: 11 }));
        assert_eq!(s.reserve(11, 1), block(11, 0, 0, 1));
        assert_eq!(s.reserve(12, 1), block(12, 0, 0, 1));
        assert_eq!(s.reserve(13, 1), Err(Stall::AboveCeiling { ceiling: 12 }));
    }

    #[test]
    fn ticks_ahead_are_taken_up_to_the_bound_and_remembered() {
        let mut s = sequencer(Rules { max_ahead: 2, ..RULES });
        assert_eq!(s.reserve(5, 4), block(5, 0, 0, 4));
        assert_eq!(s.reserve(5, 4), block(6, 0, 0, 4));
        assert_eq!(s.reserve(5, 3), block(7, 0, 0, 3));
        assert_eq!(s.reserve(5, 3), block(7, 0, 3, 1));
        assert_eq!(s.reserve(5, 1), Err(Stall::SequenceUsedUp { until: 6 }), "8 may be taken at 6");
        assert_eq!(s.reserve(6, 1), block(8, 0, 0, 1));
        assert_eq!(s.reserve(5, 1), block(5, 1, 0, 1), "8 is 3 ahead of 5: a step back");
    }

    #[test]
    fn ids_ahead_never_pass_the_ceiling_or_the_end_of_time() {
        let mut s = sequencer(Rules { max_ahead: 9, ..RULES });
        s.set_window(Window { floor: NEVER, ceiling: 5 });
        s.reserve(5, 4).unwrap();
        assert_eq!(s.reserve(5, 1), Err(Stall::AboveCeiling { ceiling: 5 }));
        s.set_window(Window::OPEN);
        s.reserve(255, 4).unwrap();
        assert_eq!(s.reserve(255, 1), Err(Stall::TimeEnded));
    }

    #[test]
    fn what_is_given_back_is_issued_next_unless_a_later_block_follows() {
        let mut s = sequencer(RULES);
        let first = s.reserve(3, 3).unwrap();
        assert!(s.give_back(&first, 2));
        assert_eq!(s.reserve(3, 1), block(3, 0, 1, 1));
        assert!(!s.give_back(&first, 2), "a block follows");
        let old = s.reserve(3, 2).unwrap();
        s.reserve(4, 1).unwrap();
        assert!(!s.give_back(&old, 1), "the tick has passed");
    }

    #[test]
    fn a_random_start_lies_in_the_lower_half_and_varies() {
        let random = SequenceStart::Random(fastrand::Rng::with_seed(1));
        let layout = Layout { sequence_bits: 12, timestamp_bits: 40, ..SMALL };
        let rules = Rules { start: random, ..RULES };
        let mut s = Sequencer::new(&layout, rules, HighMarks::default());
        let firsts: Vec<u64> = (0..1000).map(|tick| s.reserve(tick, 1).unwrap().first).collect();
        assert!(firsts.iter().all(|first| (0..2048).contains(first)));
        assert!(
            firsts.iter().any(|first| *first < 200) && firsts.iter().any(|first| *first > 1848)
        );
    }
}
