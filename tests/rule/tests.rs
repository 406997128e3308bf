//! The plain rule, by example.

use snowdrift::layout::{Layout, Tick};
use snowdrift::sequencer::{Block, HighMarks, NEVER, Stall, Window};

use crate::rule::{Rules, SequenceStart, Sequencer};

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
    assert!(firsts.iter().any(|first| *first < 200) && firsts.iter().any(|first| *first > 1848));
}
