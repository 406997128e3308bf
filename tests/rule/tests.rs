//! The plain rule, by examples. Those in `shared/plain.rs` check it, too, beside the shared sequencer.

use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::sequencer::{Block, HighMarks, NEVER, Stall, Window};

use super::{Rules, SequenceStart, Sequencer};

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
fn a_step_back_takes_the_next_counter_until_the_clock_has_caught_up() {
    let mut s = sequencer(RULES);
    assert_eq!(s.reserve(10, 1), block(10, 0, 0, 1));
    assert_eq!(s.reserve(9, 1), block(9, 1, 0, 1));
    assert_eq!(s.reserve(10, 1), block(10, 1, 0, 1), "tick 10 of counter 0 was used");
    assert_eq!(s.reserve(11, 1), block(11, 0, 0, 1), "past the mark of counter 0");
}

#[test]
fn a_used_up_tick_does_not_spend_a_counter() {
    let mut s = sequencer(RULES);
    s.reserve(5, 4).unwrap();
    assert_eq!(s.reserve(5, 1), Err(Stall::SequenceExhausted { until: 6 }));
    assert_eq!(s.high_marks().current, 0);
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
    assert_eq!(after.reserve(10, 1), Err(Stall::SequenceExhausted { until: 11 }));
    assert_eq!(after.reserve(4, 1), block(4, 1, 0, 1), "a step back across a restart");
    assert_eq!(after.reserve(11, 1), block(11, 0, 0, 1));
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
fn a_random_start_lies_in_the_lower_half_and_varies() {
    let random = SequenceStart::Random(fastrand::Rng::with_seed(1));
    let layout = Layout { sequence_bits: 12, timestamp_bits: 40, ..SMALL };
    let rules = Rules { start: random, ..RULES };
    let mut s = Sequencer::new(&layout, rules, HighMarks::default());
    let firsts: Vec<u64> = (0..1000).map(|tick| s.reserve(tick, 1).unwrap().first).collect();
    assert!(firsts.iter().all(|first| (0..2048).contains(first)));
    assert!(firsts.iter().any(|first| *first < 200) && firsts.iter().any(|first| *first > 1848));
}
