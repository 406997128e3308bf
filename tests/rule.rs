//! The rule that makes two IDs of one node differ, as a plain state machine of one thread, which the
//! tests hold `src/core/sequence/mod.rs` against. Time is an argument.
//!
//! Invariant, kept by [`Sequencer::reserve`]: **a pair (counter, tick) is used in one run of rising
//! sequence numbers only.** A run starts only where the tick lies above the counter's high mark, and
//! starting it raises the mark; it goes on only while it is the current one.
//!
//! | `now` is | what happens |
//! |---|---|
//! | above the high mark of a counter no larger than the current one | a run under the smallest such counter |
//! | the tick of the current run | the run goes on; used up: [`Stall::SequenceExhausted`] |
//! | below the high mark of the current counter | a step back: a run under the smallest counter whose mark lies below, if `may_raise`; else [`Stall::ClockBehind`] |
//! | up to `max_ahead` below the current run's tick | the current run goes on, then the tick after it |
//! | up to `max_ahead` below the tick above the floor | a run at that tick |
//!
//! So the counter falls back by itself once the clock has passed the old high marks. It must not
//! fall back merely because the clock passed the highest tick of all: a later step back would meet
//! the earlier run of counter 1 (`tests/every_clock_path.rs` finds that path).

use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::sequencer::{Block, HighMarks, NEVER, Stall, Window};

/// Decides which IDs of one node come next.
#[derive(Clone, Debug)]
pub struct Sequencer {
    high: HighMarks,
    /// The next sequence number of the current run; past `last_sequence` when it is used up.
    next: u64,
    window: Window,
    /// Whether a clock rollback may raise the counter.
    may_raise: bool,
    /// How many ticks ahead of the clock may be taken rather than waited for.
    max_ahead: Tick,
    counters: usize,
    last_sequence: u64,
    last_tick: Tick,
}

impl Sequencer {
    /// A first one.
    pub fn new(layout: &Layout, may_raise: bool, max_ahead: Tick) -> Self {
        Sequencer {
            high: HighMarks::default(),
            next: layout.last_sequence() + 1,
            window: Window::OPEN,
            may_raise,
            max_ahead,
            counters: layout.counters(),
            last_sequence: layout.last_sequence(),
            last_tick: layout.last_tick(),
        }
    }

    /// The last tick issued under each counter value.
    pub fn high_marks(&self) -> &HighMarks {
        &self.high
    }

    /// The counter in use, and the last tick issued under it; [`NEVER`] at first.
    pub fn current(&self) -> (usize, Tick) {
        (self.high.current, self.high.marks[self.high.current])
    }

    /// Counts a tick as issued.
    pub fn start_above(&mut self, tick: Tick) {
        self.high.marks[0] = tick;
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
            Err(Stall::SequenceExhausted { until }) => {
                let by_clock = until - self.max_ahead;
                if now >= by_clock {
                    self.reserve_at(until, want)
                } else {
                    Err(Stall::SequenceExhausted { until: by_clock })
                }
            }
            Err(Stall::AtFloor { until }) => {
                let by_clock = until - self.max_ahead;
                if now >= by_clock {
                    self.reserve_at(until, want)
                } else {
                    Err(Stall::AtFloor { until: by_clock })
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
        if current > now && current - now <= self.max_ahead { current } else { now }
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
    fn place_for(&self, tick: Tick) -> Result<(usize, u64), Stall> {
        let HighMarks { marks, current } = self.high;
        let counters = if self.may_raise { self.counters } else { current + 1 };
        for (counter, &mark) in marks[..counters].iter().enumerate() {
            if counter > current && marks[current] == tick {
                // The clock did not step back, the tick is full. Another counter value would give
                // more IDs, at the price of the next step back.
                break;
            }
            if mark < tick {
                return Ok((counter, 0));
            }
            if counter == current && mark == tick && self.next <= self.last_sequence {
                return Ok((counter, self.next));
            }
        }
        if marks[current] == tick {
            return Err(Stall::SequenceExhausted { until: tick + 1 });
        }
        let lowest = marks[..counters].iter().copied().min().unwrap_or(NEVER);
        Err(Stall::ClockBehind { until: lowest + 1 })
    }
}
