//! The sequencer that ships beside the plain statement of its rule, by examples and at random.

use std::collections::HashSet;

use proptest::prelude::*;
use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::sequence::{Cells, NotBegun, Rules, Sequence};
use snowdrift::core::sequencer::{Block, HighMarks, NEVER, Stall, Window};

use crate::model::{Both, Event as Happens, Model};

/// 2 counter bits and 2 sequence bits: 4 counters, 4 IDs a tick, ticks 0 to 255.
const SMALL: Layout = Layout::new([8, 0, 0, 2, 2], 1, 0);
const RAISING: Rules = Rules { may_raise: true, max_ahead: 0, random_start: false };

fn block(tick: Tick, counter: usize, first: u64, len: u64) -> Result<Block, Stall> {
    Ok(Block { tick, counter, first, len })
}

/// Cells that a page is linked with.
fn not_begun(layout: &Layout) -> Cells {
    let cells = Cells::default();
    cells.prepare(layout);
    cells
}

#[test]
fn a_tick_gives_its_sequence_once_and_then_stalls_until_the_next() {
    let mut s = Both::new(&SMALL, RAISING);
    assert_eq!((s.shared.run().counter, s.shared.run().mark()), (0, NEVER));
    assert_eq!(s.reserve(7, 1), block(7, 0, 0, 1));
    assert_eq!(s.reserve(7, 2), block(7, 0, 1, 2));
    assert_eq!(s.reserve(7, 9), block(7, 0, 3, 1));
    assert_eq!(s.reserve(7, 1), Err(Stall::SequenceExhausted { until: 8 }));
    assert_eq!(s.reserve(8, 1), block(8, 0, 0, 1));
}

#[test]
fn three_rollbacks_at_one_time_are_tolerated_the_fourth_stalls() {
    let mut s = Both::new(&SMALL, RAISING);
    for (counter, tick) in [40, 30, 20, 10].into_iter().enumerate() {
        assert_eq!(s.reserve(tick, 1), block(tick, counter, 0, 1));
    }
    assert_eq!(s.reserve(9, 1), Err(Stall::ClockBehind { until: 11 }));
    assert_eq!(s.reserve(10, 1), block(10, 3, 1, 1));
    assert_eq!(s.reserve(21, 1), block(21, 2, 0, 1));
    assert_eq!(s.reserve(41, 1), block(41, 0, 0, 1));
    assert_eq!(s.shared.high_marks(), *s.plain.high_marks());
}

#[test]
fn without_may_raise_a_rollback_stalls_until_the_mark_is_passed() {
    let mut s = Both::new(&SMALL, Rules { may_raise: false, ..RAISING });
    s.reserve(10, 1).unwrap();
    assert_eq!(s.reserve(9, 1), Err(Stall::ClockBehind { until: 11 }));
    assert_eq!(s.reserve(10, 1), block(10, 0, 1, 1));
}

#[test]
fn time_outside_the_layout_stalls_at_its_exact_bounds() {
    let mut s = Both::new(&SMALL, RAISING);
    assert_eq!(s.reserve(-1, 1), Err(Stall::BeforeEpoch));
    assert_eq!(s.reserve(0, 1), block(0, 0, 0, 1));
    assert_eq!(s.reserve(255, 1), block(255, 0, 0, 1));
    assert_eq!(s.reserve(256, 1), Err(Stall::TimeEnded));
    assert_eq!(s.reserve(Tick::MAX, 1), Err(Stall::TimeEnded));
    s.reserve(255, 9).unwrap();
    assert_eq!(s.reserve(255, 1), Err(Stall::SequenceExhausted { until: 256 }));
}

#[test]
fn a_window_bounds_what_is_issued_from_both_sides() {
    let mut s = Both::within(&SMALL, RAISING, Window { floor: 10, ceiling: 12 });
    assert_eq!(s.reserve(10, 1), Err(Stall::AtFloor { until: 11 }));
    assert_eq!(s.reserve(11, 1), block(11, 0, 0, 1));
    assert_eq!(s.reserve(12, 1), block(12, 0, 0, 1));
    assert_eq!(s.reserve(13, 1), Err(Stall::AboveCeiling { ceiling: 12 }));
    s.shared.raise_ceiling(13);
    // It changes nothing.
    s.shared.raise_ceiling(9);
    s.plain.set_window(Window { floor: 10, ceiling: 13 });
    assert_eq!(s.reserve(13, 1), block(13, 0, 0, 1));
}

#[test]
fn ticks_ahead_are_issued_up_to_the_bound_and_remembered() {
    let mut s = Both::new(&SMALL, Rules { max_ahead: 2, ..RAISING });
    assert_eq!(s.reserve(5, 4), block(5, 0, 0, 4));
    assert_eq!(s.reserve(5, 4), block(6, 0, 0, 4));
    assert_eq!(s.reserve(5, 3), block(7, 0, 0, 3));
    assert_eq!(s.reserve(5, 3), block(7, 0, 3, 1));
    assert_eq!(s.reserve(5, 1), Err(Stall::SequenceExhausted { until: 6 }), "8 may be taken at 6");
    assert_eq!(s.reserve(6, 1), block(8, 0, 0, 1));
    assert_eq!(s.reserve(5, 1), block(5, 1, 0, 1), "8 is 3 ahead of 5: a rollback");
}

#[test]
fn a_floor_ahead_of_the_clock_is_waited_for_beyond_the_bound_only() {
    let window = Window { floor: 10, ceiling: 20 };
    let mut s = Both::within(&SMALL, Rules { max_ahead: 2, ..RAISING }, window);
    assert_eq!(s.reserve(8, 1), Err(Stall::AtFloor { until: 9 }), "11 may be taken at 9");
    assert_eq!(s.reserve(9, 3), block(11, 0, 0, 3));
    assert_eq!(s.reserve(8, 1), Err(Stall::AtFloor { until: 9 }), "the clock rolled back");
    assert_eq!(s.reserve(9, 3), block(11, 0, 3, 1));
    assert_eq!(s.reserve(9, 1), Err(Stall::SequenceExhausted { until: 10 }));
    assert_eq!(s.reserve(10, 1), block(12, 0, 0, 1));
}

#[test]
fn what_is_given_back_is_issued_next_unless_a_later_block_follows() {
    let mut s = Both::new(&SMALL, RAISING);
    let first = s.reserve(3, 3).unwrap();
    assert!(s.give_back(&first, 2));
    assert_eq!(s.reserve(3, 1), block(3, 0, 1, 1));
    assert!(!s.give_back(&first, 2), "a block follows");
    let old = s.reserve(3, 2).unwrap();
    s.reserve(4, 1).unwrap();
    assert!(!s.give_back(&old, 1), "the tick has passed");
}

/// A layout that leaves bits for a lead.
const ROOMY: Layout = Layout::new([8, 2, 2, 1, 1], 1, 0);

#[test]
fn a_waiter_books_a_coming_tick_and_nobody_takes_it_for_a_rollback() {
    let sequence = Sequence::new(Box::<Cells>::default(), &ROOMY);
    let reserve = |now: Tick| sequence.reserve(&RAISING, &mut || now, |_| 2);
    let book = |now: Tick, horizon| sequence.book(&RAISING, &mut || now, 1, horizon);
    assert_eq!(book(5, 3), block(5, 0, 0, 1), "nothing to wait for");
    reserve(5).unwrap();
    assert_eq!(book(5, 3), block(6, 0, 0, 1));
    assert_eq!(reserve(5), Err(Stall::SequenceExhausted { until: 6 }), "6 has numbers left");
    assert_eq!(book(5, 3), block(6, 0, 1, 1));
    assert_eq!(reserve(5), Err(Stall::SequenceExhausted { until: 7 }));
    assert_eq!(book(5, 3), block(7, 0, 0, 1));
    assert_eq!(book(5, 1), Err(Stall::SequenceExhausted { until: 6 }), "7 is 2 ahead");
    assert_eq!(reserve(6), Err(Stall::SequenceExhausted { until: 7 }));
    assert_eq!(reserve(4), block(4, 1, 0, 2), "the clock stood at 5: a rollback");
    assert_eq!(reserve(7), block(7, 1, 0, 2), "numbers of counter 0 are lost, no ID repeats");
}

#[test]
fn a_booking_takes_a_16th_of_a_tick_and_less_the_longer_the_line() {
    let sequence = Sequence::new(Box::<Cells>::default(), &Layout::new([8, 2, 2, 1, 6], 1, 0));
    let book = || sequence.book(&RAISING, &mut || 5, 64, 3);
    sequence.reserve(&RAISING, &mut || 5, |_| 64).unwrap();
    for n in 0..16 {
        assert_eq!(book(), block(6, 0, 4 * n, 4));
    }
    assert_eq!(book(), block(7, 0, 0, 2), "the second in the line");
}

#[test]
fn a_booking_does_not_pass_the_ceiling() {
    let s = Both::within(&ROOMY, RAISING, Window { floor: NEVER, ceiling: 6 });
    for _ in 0..4 {
        s.shared.book(&RAISING, &mut || 5, 1, 9).unwrap();
    }
    let refused = s.shared.book(&RAISING, &mut || 5, 1, 9);
    assert_eq!(refused, Err(Stall::AboveCeiling { ceiling: 6 }));
}

#[test]
fn cells_begin_within_a_tick_of_which_some_numbers_are_used_unless_they_are_past_it() {
    let layout = Layout::NODE;
    let window = Window { floor: NEVER, ceiling: 1000 };
    let rules = Rules { may_raise: false, ..Rules::default() };
    let draw = |cells: Cells, used: Option<(Tick, u64)>, now: Tick| {
        let sequence = Sequence::new(cells, &layout);
        sequence.begin(&sequence.closed().unwrap(), window, used).unwrap();
        let block = sequence.reserve(&rules, &mut || now, |_| 1);
        block.map(|block| (block.tick, block.counter, block.first))
    };
    let fresh = || not_begun(&layout);
    assert_eq!(draw(fresh(), Some((70, 5)), 70), Ok((70, 0, 5)));
    assert_eq!(draw(fresh(), Some((70, 5)), 71), Ok((71, 0, 0)));
    let used_up = |until| Err(Stall::SequenceExhausted { until });
    assert_eq!(draw(fresh(), Some((70, 4096)), 70), used_up(71));
    assert_eq!(draw(fresh(), None, 1), Ok((1, 0, 0)));
    // Ended in that tick, and at number 0 of the next one.
    let past = |used: Option<(Tick, u64)>| {
        let cells = fresh();
        let sequence = Sequence::new(&cells, &layout);
        sequence.begin(&sequence.closed().unwrap(), window, used).unwrap();
        sequence.end();
        cells
    };
    assert_eq!(draw(past(Some((70, 5))), Some((69, 5)), 70), used_up(71));
    assert_eq!(draw(past(Some((70, 5))), None, 71), Ok((71, 0, 0)));
}

#[test]
fn a_floor_that_rises_to_the_tick_of_the_run_ends_it() {
    let sequence = Sequence::new(Box::<Cells>::default(), &SMALL);
    let reserve = |now: Tick| sequence.reserve(&RAISING, &mut || now, |_| 1);
    assert_eq!(reserve(7), block(7, 0, 0, 1));
    for (floor, answer) in [(6, block(7, 0, 1, 1)), (7, Err(Stall::AtFloor { until: 8 }))] {
        sequence.raise_floor(floor);
        assert_eq!(reserve(7), answer, "{floor}");
    }
    assert_eq!(reserve(8), block(8, 0, 0, 1));
}

#[test]
fn closing_tells_the_highest_tick_of_any_counter_and_reopening_starts_above() {
    let sequence = Sequence::new(Box::<Cells>::default(), &SMALL);
    let reserve = |now: Tick| sequence.reserve(&RAISING, &mut || now, |_| 1);
    reserve(90).unwrap();
    reserve(10).unwrap();
    assert_eq!(sequence.high_marks().marks[..2], [90, 10]);
    assert_eq!(sequence.end().highest(), 90);
    assert_eq!(reserve(95), Err(Stall::AboveCeiling { ceiling: NEVER }));
    let closed = sequence.closed().unwrap();
    assert_eq!(sequence.end().highest(), 90, "was closed");
    assert_eq!(sequence.closed(), Some(closed), "and did not change");
    let window = Window { floor: 90, ceiling: 99 };
    sequence.begin(&closed, window, None).unwrap();
    assert_eq!(sequence.begin(&closed, window, None), Err(NotBegun::Overtaken));
    assert_eq!(reserve(90), Err(Stall::AtFloor { until: 91 }));
    assert_eq!(reserve(100), Err(Stall::AboveCeiling { ceiling: 99 }));
    assert_eq!(reserve(91), block(91, 0, 0, 1));
    for ceiling in [110, 105] {
        sequence.raise_ceiling(ceiling);
        assert_eq!(reserve(111), Err(Stall::AboveCeiling { ceiling: 110 }), "it only rises");
    }
    assert_eq!(reserve(110), block(110, 0, 0, 1));
}

#[test]
fn the_windows_of_cells_come_to_an_end() {
    let sequence = Sequence::new(Box::<Cells>::default(), &Layout::NODE);
    let next = || {
        sequence.end();
        sequence.begin(&sequence.closed().unwrap(), Window::OPEN, None)
    };
    for n in 1..1024 {
        assert!(next().is_ok(), "window {n}");
    }
    assert_eq!(next(), Err(NotBegun::Ended));
}

#[test]
fn cells_that_end_before_they_begin_have_issued_nothing() {
    let ended = Sequence::new(Box::new(not_begun(&SMALL)), &SMALL).end();
    assert_eq!(ended, HighMarks::default());
}

#[test]
fn cells_reopen_at_the_last_tick() {
    let sequence = Sequence::new(Box::<Cells>::default(), &SMALL);
    sequence.end();
    sequence.begin(&sequence.closed().unwrap(), Window::OPEN, Some((254, 4))).unwrap();
    assert_eq!(sequence.reserve(&RAISING, &mut || 255, |_| 1), block(255, 0, 0, 1));
}

#[test]
fn cells_that_were_not_begun_issue_nothing_at_or_below_the_clock_then() {
    let sequence = Sequence::new(Box::new(not_begun(&SMALL)), &SMALL);
    let reserve = |now: Tick| sequence.reserve(&RAISING, &mut || now, |_| 1);
    assert_eq!(reserve(7), Err(Stall::AboveCeiling { ceiling: NEVER }));
    assert!(!sequence.is_begun());
    let [closed, late] = [sequence.closed().unwrap(); 2];
    let begin = |closed, floor: Tick| {
        sequence.begin(closed, Window { floor, ..Window::OPEN }, Some((floor, 4)))
    };
    begin(&closed, 7).unwrap();
    assert!(sequence.is_begun());
    assert_eq!(begin(&late, 7), Err(NotBegun::Overtaken));
    assert_eq!(reserve(7), Err(Stall::AtFloor { until: 8 }));
    assert_eq!(reserve(6), Err(Stall::AtFloor { until: 8 }), "nor under another counter");
    assert_eq!(reserve(8), block(8, 0, 0, 1));
}

#[test]
fn a_rollback_in_doubt_is_looked_at_again() {
    struct Flickers(Vec<Tick>, u32);
    impl snowdrift::core::sequence::Time for Flickers {
        type Error = Stall;
        fn now(&mut self) -> Result<Tick, Stall> {
            Ok(self.0.pop().unwrap())
        }
        fn rechecks(&mut self) -> bool {
            self.1 += 1;
            self.1 < 3
        }
    }
    let sequence = Sequence::new(Box::<Cells>::default(), &SMALL);
    let draw = |time: &mut Flickers| sequence.reserve(&RAISING, time, |_| 1);
    assert_eq!(draw(&mut Flickers(vec![9], 0)), block(9, 0, 0, 1));
    assert_eq!(draw(&mut Flickers(vec![9, 8, 8], 0)), block(9, 0, 1, 1));
    assert_eq!(draw(&mut Flickers(vec![8, 8, 8], 0)), block(8, 1, 0, 1));
    let strict = Rules { may_raise: false, ..RAISING };
    let draw = |time: &mut Flickers| sequence.reserve(&strict, time, |_| 1);
    assert_eq!(draw(&mut Flickers(vec![8, 7, 7], 0)), block(8, 1, 1, 1), "it was no refusal yet");
    assert_eq!(draw(&mut Flickers(vec![7, 7, 7], 0)), Err(Stall::ClockBehind { until: 9 }));
}

#[test]
fn a_random_start_lies_in_the_lower_half_and_varies() {
    let layout = Layout::new([40, 0, 0, 2, 12], 1, 0);
    let sequence = Sequence::new(Box::<Cells>::default(), &layout);
    let rules = Rules { random_start: true, ..RAISING };
    let first = |tick| sequence.reserve(&rules, &mut || tick, |_| 1).unwrap().first;
    let firsts: Vec<u64> = (0..1000).map(first).collect();
    assert!(firsts.iter().all(|first| (0..2048).contains(first)));
    assert!(firsts.iter().any(|first| *first < 200) && firsts.iter().any(|first| *first > 1848));
}

#[test]
fn threads_under_a_clock_that_leaps_never_share_an_id() {
    const DRAWS: u32 = if cfg!(miri) { 50 } else { 20_000 };
    let layout = Layout::new([20, 0, 0, 2, 4], 1, 0);
    let sequence = Sequence::new(Box::<Cells>::default(), &layout);
    let ids = std::thread::scope(|scope| {
        let draw = |seed| {
            let sequence = &sequence;
            move || {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut leaps = fastrand::Rng::with_seed(seed + 9);
                let (mut base, mut ids) = (500, Vec::new());
                for _ in 0..DRAWS {
                    base += random.i64(0..3);
                    let mut clock = || base + leaps.i64(-2..3);
                    let Ok(block) = sequence.book(&RAISING, &mut clock, 3, 0) else { continue };
                    let unused = random.u64(0..=1).min(block.len - 1);
                    sequence.give_back(&block, unused);
                    let numbers = block.first..block.first + block.len - unused;
                    ids.extend(numbers.map(|number| (block.tick, block.counter, number)));
                }
                ids
            }
        };
        let threads: Vec<_> = (0..4).map(|seed| scope.spawn(draw(seed))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(ids.len() > DRAWS as usize / 10);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
}

/// Every legal split of 63 bits or fewer fits the word: also where nothing is left for a lead.
#[test]
fn each_layout_s_last_numbers_of_its_last_tick_are_issued_and_then_stall() {
    for timestamp in 1..=62 {
        for counter in 0..=4 {
            for sequence in 1..=53 {
                let layout = Layout::new([timestamp, 0, 0, counter, sequence], 1, 0);
                if layout.checked().is_err() {
                    continue;
                }
                let (last, numbers) = (layout.last_tick(), layout.last_sequence() + 1);
                let s = Sequence::new(Box::<Cells>::default(), &layout);
                let draw = |want| s.reserve(&RAISING, &mut || last, |_| want);
                assert_eq!(draw(numbers - 1), block(last, 0, 0, numbers - 1), "{layout:?}");
                assert_eq!(draw(9), block(last, 0, numbers - 1, 1), "{layout:?}");
                assert_eq!(draw(1), Err(Stall::SequenceExhausted { until: last + 1 }));
                for used in 1..layout.counters().min(last as usize) {
                    let tick = last - used as Tick;
                    let rolled = s.reserve(&RAISING, &mut || tick, |_| numbers);
                    assert_eq!(rolled, block(tick, used, 0, numbers), "{layout:?}");
                }
                assert_eq!(s.end().highest(), last);
                assert!(s.is_closed());
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Event {
    Draw { step: i8, want: u64, unused: u64 },
    Close,
    Reopen { floor: i8, width: u8 },
    Raise(u8),
}

fn draw() -> impl Strategy<Value = Event> {
    let step = prop_oneof![8 => -3..4i8, 1 => -40..41i8, 4 => Just(0)];
    (step, 1..9u64, prop_oneof![Just(0), 0..9u64]).prop_map(|(step, want, unused)| Event::Draw {
        step,
        want,
        unused,
    })
}

fn happenings() -> impl Strategy<Value = Vec<Happens>> {
    let step = prop_oneof![8 => -3..4i8, 1 => -40..41i8, 4 => Just(0)];
    let unused = prop_oneof![Just(0), 0..20u32];
    let draw = (step, 1..20u32, unused, prop::option::of(0..30u8))
        .prop_map(|(step, want, unused, max_lag)| Happens::Draw { step, want, unused, max_lag });
    let window = (-60..60i8, 1..80u8).prop_map(|(from, width)| Happens::Window { from, width });
    let happens = prop_oneof![14 => draw, 1 => Just(Happens::Restart), 1 => window];
    prop::collection::vec(happens, 1..150)
}

fn small(clock_back_bits: u8, sequence_bits: u8) -> Layout {
    Layout { clock_back_bits, sequence_bits, timestamp_bits: 7, ..SMALL }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 1000 }, failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_answer_is_the_rule_s(
        (counter_bits, sequence_bits) in (0..3u8, 1..4u8),
        may_raise: bool,
        max_ahead in 0..4i64,
        random_start: bool,
        events in happenings(),
    ) {
        let rules = Rules { may_raise, max_ahead, random_start };
        let mut model = Model::new(small(counter_bits, sequence_bits), rules);
        for event in events {
            model.apply(event);
        }
    }

    #[test]
    fn no_id_repeats_and_none_is_outside_its_window(
        counter_bits in 0..3u8,
        horizon in 0..4i64,
        events in prop::collection::vec(prop_oneof![
            12 => draw(),
            1 => Just(Event::Close),
            2 => (-9..9i8, 1..40u8).prop_map(|(floor, width)| Event::Reopen { floor, width }),
            2 => (0..40u8).prop_map(Event::Raise),
        ], 1..150),
    ) {
        let layout = Layout { worker_bits: 5, ..small(counter_bits, 2) };
        let sequence = Sequence::new(Box::<Cells>::default(), &layout);
        let mut issued = HashSet::new();
        let mut window = Window::OPEN;
        let mut now: Tick = 50;
        for event in events {
            match event {
                Event::Draw { step, want, unused } => {
                    now += Tick::from(step);
                    let booked = sequence.book(&RAISING, &mut || now, want, horizon);
                    let Ok(block) = booked else { continue };
                    assert!(block.tick > window.floor && block.tick <= window.ceiling);
                    assert!(block.tick >= now && block.tick <= now + horizon);
                    let unused = unused.min(block.len);
                    for number in block.first..block.first + block.len - unused {
                        assert!(issued.insert((block.tick, block.counter, number)), "{block:?}");
                    }
                    sequence.give_back(&block, unused);
                }
                Event::Close => {
                    let ended = sequence.end();
                    assert!(issued.iter().all(|(tick, ..)| *tick <= ended.highest()));
                    window = Window::CLOSED;
                }
                Event::Reopen { floor, width } => if let Some(closed) = sequence.closed() {
                    let floor = now + Tick::from(floor);
                    let next = Window { floor, ceiling: floor + Tick::from(width) };
                    if sequence.begin(&closed, next, None).is_ok() {
                        window = next;
                    }
                }
                Event::Raise(to) => if window != Window::CLOSED {
                    window.ceiling = window.ceiling.max(now + Tick::from(to));
                    sequence.raise_ceiling(window.ceiling);
                }
            }
        }
    }
}
