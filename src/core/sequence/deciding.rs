//! The rule of `tests/rule.rs`: decides the next tick, counter value and number.

use std::borrow::Borrow;

use super::cells::{Cells, Run, Sequence};
use crate::core::layout::Tick;
use crate::core::sequencer::{Stall, Window};

/// The rules of one caller. `max_ahead` is equal for all callers that share the cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Whether a clock rollback may raise the counter value.
    pub may_raise: bool,
    /// The number of ticks ahead of the clock that may be issued without waiting.
    pub max_ahead: Tick,
    /// Whether the sequence of a tick starts at random in the lower half of its range, rather than at 0.
    pub random_start: bool,
}

impl<M: Borrow<Cells>> Sequence<M> {
    /// Decides where a reservation starts: at the clock's tick, or ahead of it within `max_ahead` or `horizon`.
    ///
    /// A tick above the clock means a rollback only if the clock is below the tick minus its lead (the clock when the
    /// tick was taken), and below the tick minus `max_ahead`.
    pub(super) fn decide(
        &self,
        rules: &Rules,
        seen: &Run,
        now: Tick,
        horizon: Tick,
    ) -> Result<Run, Stall> {
        if now < 0 {
            return Err(Stall::BeforeEpoch);
        }
        let reach = rules.max_ahead.max(horizon);
        let current = seen.mark();
        let ahead = current.saturating_sub(now);
        let is_ahead = ahead > 0 && ahead <= seen.lead.max(rules.max_ahead);
        if is_ahead && ahead > reach {
            // Other callers booked further ahead than this caller may.
            let until = if seen.next > self.shape.last_sequence { current + 1 } else { current };
            return Err(Stall::SequenceExhausted { until: until - reach });
        }
        match self.decide_at(rules, seen, if is_ahead { current } else { now }) {
            Err(Stall::SequenceExhausted { until }) if now >= until - reach => {
                self.decide_at(rules, seen, until)
            }
            // `max_ahead` applies to a floor as to an exhausted tick.
            Err(Stall::AtFloor { until }) if now >= until - rules.max_ahead => {
                self.decide_at(rules, seen, until)
            }
            Err(Stall::AtFloor { until }) => Err(Stall::AtFloor { until: until - rules.max_ahead }),
            Err(Stall::SequenceExhausted { until }) => {
                Err(Stall::SequenceExhausted { until: until - reach })
            }
            decided => decided,
        }
    }

    pub(super) fn decide_at(&self, rules: &Rules, seen: &Run, tick: Tick) -> Result<Run, Stall> {
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
                // The tick is exhausted. No rollback occurred.
                break;
            }
            let mark = self.mark(seen, counter);
            if mark < tick {
                return Ok(Run { tick, counter, next: 0, lead: 0 });
            }
            if counter == seen.counter && seen.tick == tick && seen.next <= self.shape.last_sequence
            {
                return Ok(*seen);
            }
            lowest = lowest.min(mark);
        }
        if current == tick {
            return Err(Stall::SequenceExhausted { until: tick + 1 });
        }
        Err(Stall::ClockBehind { until: lowest + 1 })
    }
}
