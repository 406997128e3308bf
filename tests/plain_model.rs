//! The sequencer against the plainest statement of its rules, on random layouts and clocks.

use std::collections::HashSet;

use proptest::prelude::*;
use snowdrift::layout::{Layout, Tick};
use snowdrift::sequencer::{
    Block, HighMarks, NEVER, Rules, SequenceStart, Sequencer, Stall, Window,
};

#[derive(Clone, Debug)]
enum Event {
    /// The clock moves by so many ticks, forth or back, and so many IDs are asked for.
    Draw {
        step: Tick,
        want: u64,
    },
    /// The same, and all but one are given back.
    DrawOne {
        step: Tick,
        want: u64,
    },
    Restart,
    Window {
        floor: Tick,
        width: Tick,
    },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let step = prop_oneof![8 => -3..4i64, 1 => -40..41i64, 4 => Just(0)];
    prop::collection::vec(
        prop_oneof![
            10 => (step.clone(), 1..20u64).prop_map(|(step, want)| Event::Draw { step, want }),
            4 => (step, 1..20u64).prop_map(|(step, want)| Event::DrawOne { step, want }),
            1 => Just(Event::Restart),
            1 => (-1..60i64, 1..80i64).prop_map(|(floor, width)| Event::Window { floor, width }),
        ],
        1..150,
    )
}

fn layout(clock_back_bits: u8, sequence_bits: u8) -> Layout {
    Layout {
        timestamp_bits: 7,
        datacenter_bits: 0,
        worker_bits: 0,
        clock_back_bits,
        sequence_bits,
        tick_ms: 1,
        epoch_ms: 0,
    }
}

/// DESIGN's rule, word for word: the smallest counter that may be used. A counter may be used when
/// `tick` lies above its high mark, or when it is current, `tick` is its mark and numbers remain.
fn counter_by_rule(high: &HighMarks, counters: usize, tick: Tick, remain: bool) -> Option<usize> {
    (0..counters).find(|&counter| {
        let mark = high.marks[counter];
        tick > mark || (counter == high.current && tick == mark && remain)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_id_repeats_and_every_answer_is_the_rule_s(
        (back_bits, sequence_bits) in (0..3u8, 1..4u8),
        may_raise: bool,
        max_ahead in 0..4i64,
        random: Option<u64>,
        events in events(),
    ) {
        let layout = layout(back_bits, sequence_bits);
        let start = || match random {
            Some(seed) => SequenceStart::Random(fastrand::Rng::with_seed(seed)),
            None => SequenceStart::Zero,
        };
        let rules = || Rules { may_raise, max_ahead, start: start() };
        let mut sequencer = Sequencer::new(&layout, rules(), HighMarks::default());
        let mut window = Window::OPEN;
        let mut issued = HashSet::new();
        let mut now: Tick = 50;

        for event in events {
            let (step, want, use_one) = match event {
                Event::Draw { step, want } => (step, want, false),
                Event::DrawOne { step, want } => (step, want, true),
                Event::Restart => {
                    sequencer = Sequencer::new(&layout, rules(), *sequencer.high_marks());
                    sequencer.set_window(window);
                    continue;
                }
                Event::Window { floor, width } => {
                    window = Window { floor, ceiling: floor + width };
                    sequencer.set_window(window);
                    continue;
                }
            };
            now += step;
            let before = sequencer.clone();
            match sequencer.reserve(now, want) {
                Ok(block) => {
                    let Block { tick, counter, first, len } = block;
                    prop_assert!(tick >= now && tick <= now + max_ahead);
                    prop_assert!(tick > window.floor && tick <= window.ceiling);
                    prop_assert!(tick <= layout.last_tick());
                    prop_assert!(len >= 1 && len <= want && first + len - 1 <= layout.last_sequence());

                    let counters = if may_raise { layout.counters() } else { before.current().0 + 1 };
                    // That it went on is the proof that numbers remained.
                    let expected = counter_by_rule(before.high_marks(), counters, tick, true);
                    prop_assert_eq!(Some(counter), expected);

                    let used = if use_one { 1 } else { len };
                    for n in 0..used {
                        prop_assert!(issued.insert((counter, tick, first + n)), "{:?} repeats", block);
                    }
                    if use_one {
                        prop_assert!(sequencer.give_back(&block, len - 1));
                    }
                }
                Err(stall) => {
                    prop_assert_eq!(before.high_marks(), sequencer.high_marks(), "a stall changes nothing");
                    match stall {
                        Stall::BeforeEpoch => prop_assert!(now < 0),
                        Stall::AtFloor { until } => prop_assert_eq!(until, window.floor + 1),
                        Stall::AboveCeiling { ceiling } => prop_assert_eq!(ceiling, window.ceiling),
                        Stall::TimeEnded => prop_assert!(now + max_ahead > layout.last_tick()),
                        Stall::SequenceUsedUp { until } | Stall::ClockBehind { until } => {
                            prop_assert!(until > now);
                            let mut later = sequencer.clone();
                            later.set_window(Window::OPEN);
                            let answer = later.reserve(until, 1);
                            // `until` is the earliest moment. That tick may be full already: the
                            // current one, or one that was taken ahead. The next stall says so.
                            let may_be_full = max_ahead > 0 || sequencer.current().1 == until;
                            let on_time = match answer {
                                Ok(_) | Err(Stall::TimeEnded) => true,
                                Err(Stall::SequenceUsedUp { until: next }) => may_be_full && next > until,
                                Err(_) => false,
                            };
                            prop_assert!(on_time, "{:?} was to end at {}: {:?}", stall, until, answer);
                        }
                    }
                }
            }
            prop_assert!(sequencer.high_marks().marks[..].iter().all(|mark| *mark >= NEVER));
        }
    }

    #[test]
    fn whoever_counts_on_repeats_nothing_of_those_who_take_the_clocks_tick(
        (back_bits, sequence_bits) in (0..3u8, 1..4u8),
        may_raise: bool,
        max_ahead in 0..4i64,
        draws in prop::collection::vec((-6..9i64, 1..20u64, prop::option::of(0..30i64)), 1..200),
    ) {
        let layout = layout(back_bits, sequence_bits);
        let rules = Rules { may_raise, max_ahead, start: SequenceStart::Zero };
        let mut sequencer = Sequencer::new(&layout, rules, HighMarks::default());
        let mut issued = HashSet::new();
        let mut now: Tick = 50;
        for (step, want, max_lag) in draws {
            now += step;
            let (_, last) = sequencer.current();
            let answer = match max_lag {
                Some(max_lag) => sequencer.reserve_counting(now, want, max_lag),
                None => sequencer.reserve(now, want),
            };
            let Ok(Block { tick, counter, first, len }) = answer else { continue };
            for n in first..first + len {
                prop_assert!(issued.insert((counter, tick, n)), "{:?} repeats", (counter, tick, n));
            }
            let lag = max_lag.unwrap_or(0);
            prop_assert!(tick >= now - lag && tick <= now + max_ahead, "{} at {}", tick, now);
            if last < now && last >= now - lag {
                prop_assert!(tick == last || tick == last + 1, "{} was not counted on from {}", tick, last);
            }
        }
    }
}
