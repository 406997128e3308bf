//! A generator on a clock that is set by hand.

use std::sync::Arc;

use super::*;
use crate::clock::ManualClock;

const START: i64 = 1_700_000_000_000;
const POLICIES: Policies = Policies {
    clock_back: ClockBack::Counter,
    max_wait: Duration::from_millis(10),
    random_start: false,
};

/// A generator, and a caller's policies.
struct Caller {
    generator: Generator,
    policies: Policies,
}

impl Caller {
    fn reserve(&self, want: impl Fn(Tick) -> u64) -> Result<Reserved, Refusal> {
        self.generator.reserve(&self.policies, want)
    }

    fn try_reserve(&self, want: impl Fn(Tick) -> u64) -> Result<Reserved, Refusal> {
        self.generator.try_reserve(&self.policies, want)
    }
}

impl std::ops::Deref for Caller {
    type Target = Generator;

    fn deref(&self) -> &Generator {
        &self.generator
    }
}

fn generator(layout: Layout, policies: Policies) -> (Caller, Arc<ManualClock>) {
    ahead(layout, policies, 0)
}

fn ahead(layout: Layout, policies: Policies, max_ahead_ms: i64) -> (Caller, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(START));
    let node = Node::new(layout, 1, 2).unwrap();
    let generator = Generator::new(node, max_ahead_ms, Box::new(clock.clone()));
    (Caller { generator, policies }, clock)
}

#[test]
fn ids_decode_to_their_node_and_time() {
    let (generator, _) = generator(Layout::NODE, POLICIES);
    let reserved = generator.reserve(|_| 3).unwrap();
    let last = Layout::NODE.decode(reserved.first_id + 2).unwrap();
    assert_eq!(Layout::NODE.tick_start_ms(last.tick), START);
    assert_eq!((last.datacenter_id, last.worker_id, last.clock_back, last.sequence), (1, 2, 0, 2));
}

#[test]
fn a_used_up_tick_is_waited_for_within_max_wait() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    generator.reserve(|_| 4096).unwrap();
    let next = generator.reserve(|_| 1).unwrap();
    assert_eq!(clock.now().ms, START + 1);
    assert_eq!(next.block.first, 0);
    assert_eq!((generator.stats().waits, generator.stats().waited), (1, Duration::from_millis(1)));
}

#[test]
fn a_wait_longer_than_max_wait_is_refused_with_the_time_to_stay_away() {
    let (generator, clock) =
        generator(Layout { tick_ms: 1000, epoch_ms: START - 250, ..Layout::NODE }, POLICIES);
    generator.reserve(|_| 4096).unwrap();
    let refusal = generator.reserve(|_| 1).unwrap_err();
    assert_eq!(refusal.stall, Stall::SequenceUsedUp { until: 1 });
    assert_eq!(refusal.retry_after, Some(Duration::from_millis(750)));
    assert_eq!(clock.now().ms, START, "it did not wait in vain");
}

#[test]
fn each_policy_answers_a_step_back_its_own_way() {
    for (clock_back, back_ms, goes_on) in [
        (ClockBack::Counter, 5000, true),
        (ClockBack::Wait, 9, true),
        (ClockBack::Wait, 10, false),
        (ClockBack::Throw, 1, false),
    ] {
        let (generator, clock) = generator(Layout::NODE, Policies { clock_back, ..POLICIES });
        generator.reserve(|_| 4096).unwrap();
        clock.set(START - back_ms);
        let answer = generator.reserve(|_| 1);
        assert_eq!(answer.is_ok(), goes_on, "{clock_back:?} {back_ms}");
        let waited = clock.now().ms - (START - back_ms);
        assert_eq!(waited > 0, goes_on && clock_back == ClockBack::Wait, "{clock_back:?}");
        if let Err(refusal) = answer {
            let caught_up = Duration::from_millis(back_ms as u64 + 1);
            assert_eq!(refusal.retry_after, Some(caught_up));
        }
    }
}

#[test]
fn a_step_back_is_reported_once_with_its_length_and_counter() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    generator.reserve(|_| 1).unwrap();
    clock.set(START - 7);
    generator.reserve(|_| 1).unwrap();
    assert!(generator.has_step_to_report());
    assert_eq!(generator.take_step(), Some(ClockStep { back_ms: 7, counter: 1, unreported: 0 }));
    generator.reserve(|_| 1).unwrap();
    assert!(!generator.has_step_to_report());
    assert_eq!(generator.take_step(), None);
    assert_eq!(generator.stats().steps, 1);
}

#[test]
fn a_refused_step_back_counts_once_however_often_it_is_tried() {
    let (generator, clock) =
        generator(Layout::NODE, Policies { clock_back: ClockBack::Throw, ..POLICIES });
    generator.reserve(|_| 1).unwrap();
    clock.set(START - 500);
    for _ in 0..5 {
        generator.reserve(|_| 1).unwrap_err();
    }
    assert_eq!(generator.take_step(), Some(ClockStep { back_ms: 500, counter: 0, unreported: 0 }));
    assert_eq!(generator.stats().steps, 1);
}

#[test]
#[cfg_attr(miri, ignore = "takes so long there that another report is due")]
fn a_clock_that_steps_all_the_time_is_reported_ten_times_and_counted_always() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    let mut reports = 0;
    for step in 0..100 {
        clock.set(START + step * 10);
        generator.reserve(|_| 1).unwrap();
        clock.set(START + step * 10 - 5);
        generator.reserve(|_| 1).unwrap();
        reports += u32::from(generator.take_step().is_some());
    }
    assert_eq!((reports, generator.stats().steps), (10, 100));
}

#[test]
fn what_is_given_back_is_not_counted_as_issued() {
    let (generator, _) = generator(Layout::NODE, POLICIES);
    let reserved = generator.reserve(|_| 256).unwrap();
    generator.give_back(&reserved.block, 255);
    assert_eq!(generator.stats().issued, 1);
    assert_eq!(generator.reserve(|_| 1).unwrap().first_id, reserved.first_id + 1);
}

#[test]
fn nothing_is_waited_for_that_never_comes() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    clock.set(Layout::NODE.end_ms());
    let refusal = generator.reserve(|_| 1).unwrap_err();
    assert_eq!((refusal.stall, refusal.retry_after), (Stall::TimeEnded, None));
    clock.set(Layout::NODE.end_ms() - 1);
    generator.reserve(|_| 4096).unwrap();
    let refusal = generator.reserve(|_| 1).unwrap_err();
    assert_eq!(refusal.retry_after, None, "the tick used up was the last");
}

fn terms(floor_ms: i64, ceiling_ms: i64) -> Terms {
    let tick = |ms| Layout::NODE.tick_at(START + ms);
    Terms { floor: tick(floor_ms), ceiling: tick(ceiling_ms), high: HighMarks::default() }
}

#[test]
fn nothing_is_issued_outside_the_window() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    generator.begin_window(&terms(0, 5));
    for (ms, is_within) in [(0, false), (1, true), (5, true), (6, false)] {
        clock.set(START + ms);
        assert_eq!(generator.try_reserve(|_| 1).is_ok(), is_within, "{ms}");
    }
}

#[test]
fn a_floor_is_waited_for_as_the_clock_is() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    generator.begin_window(&terms(9, 100));
    generator.reserve(|_| 1).unwrap();
    assert_eq!(clock.now().ms, START + 10);
    generator.begin_window(&terms(30, 100));
    let refusal = generator.reserve(|_| 1).unwrap_err();
    assert_eq!(refusal.retry_after, Some(Duration::from_millis(21)));
}

#[test]
fn a_ceiling_that_is_raised_in_time_is_waited_for() {
    let (generator, clock) =
        generator(Layout::NODE, Policies { max_wait: Duration::from_secs(10), ..POLICIES });
    let id = generator.begin_window(&terms(0, 5));
    clock.set(START + 500);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            generator.await_demand(Duration::from_secs(10));
            generator.raise_ceiling(id, generator.next_ceiling(Duration::from_secs(1)));
        });
        assert!(generator.reserve(|_| 1).is_ok());
    });
    assert_eq!(generator.stats().waits, 1);
}

#[test]
fn a_ceiling_that_cannot_be_raised_is_refused_until_the_next_try() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    let id = generator.begin_window(&terms(0, 5));
    generator.ceiling_not_raised(id, Duration::from_secs(3));
    clock.set(START + 6);
    let retry_after = generator.reserve(|_| 1).unwrap_err().retry_after.unwrap();
    assert!(retry_after > Duration::from_secs(2) && retry_after <= Duration::from_secs(3));
}

#[test]
fn a_late_answer_does_not_move_the_next_window() {
    let (generator, _) = generator(Layout::NODE, POLICIES);
    let first = generator.begin_window(&terms(-9, -5));
    assert!(generator.end_window(first).is_some());
    let second = generator.begin_window(&terms(-9, -5));
    generator.raise_ceiling(first, Tick::MAX);
    assert!(generator.try_reserve(|_| 1).is_err());
    assert_eq!(generator.end_window(first), None);
    generator.raise_ceiling(second, Tick::MAX);
    assert!(generator.try_reserve(|_| 1).is_ok());
}

#[test]
fn what_this_process_issued_unrecorded_counts_when_it_is_recorded_later() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    let before = generator.reserve(|_| 3).unwrap();
    generator.begin_window(&terms(-9, 900));
    let after = generator.reserve(|_| 1).unwrap();
    assert!(after.first_id > before.first_id + 2);
    assert_eq!(clock.now().ms, START + 1, "the rest of its tick counts as used up");
}

#[test]
fn the_next_ceiling_covers_what_may_be_taken_ahead_and_what_was() {
    let (generator, clock) = ahead(Layout::NODE, POLICIES, 70);
    let ttl = Duration::from_millis(100);
    let now = Layout::NODE.tick_at(START);
    assert_eq!(generator.next_ceiling(ttl), now + 170);
    generator.reserve(|_| 1).unwrap();
    clock.set(START - 5000);
    assert_eq!(generator.next_ceiling(ttl), now, "the clock stepped back");
    clock.set(Layout::NODE.end_ms() - 1);
    assert_eq!(generator.next_ceiling(ttl), Layout::NODE.last_tick());
}

#[test]
fn more_windows_follow_each_other_than_the_sequencer_has_numbers_for() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    let first = generator.begin_window(&terms(-9, -5));
    // Miri takes a minute for twice as many as there are numbers.
    for n in 0..if cfg!(miri) { 1100 } else { 3000 } {
        let window = generator.begin_window(&terms(n, n + 5));
        generator.raise_ceiling(first, Tick::MAX);
        clock.set(START + n + 6);
        assert!(generator.try_reserve(|_| 1).is_err(), "window {n}: above its ceiling");
        clock.set(START + n + 5);
        assert!(generator.try_reserve(|_| 1).is_ok(), "window {n}");
        assert_eq!(generator.end_window(window), Some(Layout::NODE.tick_at(START + n + 5)));
    }
}

#[test]
fn what_is_issued_is_counted_across_ticks_windows_and_random_starts() {
    for random_start in [false, true] {
        let (generator, clock) = generator(Layout::NODE, Policies { random_start, ..POLICIES });
        let first = generator.reserve(|_| 5).unwrap();
        generator.reserve(|_| 1).unwrap();
        generator.give_back(&first.block, 2);
        assert_eq!(generator.stats().issued, 4, "though a later block followed");
        clock.set(START + 1);
        generator.reserve(|_| 3).unwrap();
        let window = generator.begin_window(&terms(0, 9));
        clock.set(START + 3);
        generator.reserve(|_| 2).unwrap();
        assert_eq!(generator.stats().issued, 9);
        generator.end_window(window);
        assert_eq!(generator.stats().issued, 9);
    }
}

#[test]
fn a_window_that_begins_after_a_rollback_issues_under_the_next_counter() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    generator.reserve(|_| 1).unwrap();
    clock.set(START - 500);
    generator.begin_window(&terms(-900, 900));
    assert_eq!(generator.try_reserve(|_| 1).unwrap().block.counter, 1);
    assert_eq!(generator.stats().steps, 1);
}

fn booking(caller: &Caller, want: u64) -> Booking {
    let horizon = caller.ticks_within(caller.policies.max_wait);
    caller.book(&caller.policies, want, horizon).unwrap()
}

fn redeemed(caller: &Caller, booking: &Booking) -> Option<Block> {
    match caller.redeem(booking) {
        Redeemed::Ids(reserved) => Some(reserved.block),
        _ => None,
    }
}

#[test]
fn waiters_are_served_in_the_order_of_their_bookings() {
    let (caller, clock) = generator(Layout::NODE, POLICIES);
    caller.reserve(|_| 4096).unwrap();
    let bookings: Vec<_> = (0..3).map(|_| booking(&caller, 100)).collect();
    for booking in &bookings {
        let Redeemed::Early(refusal) = caller.redeem(booking) else { panic!("before its tick") };
        assert_eq!(refusal.retry_after, Some(Duration::from_millis(1)));
    }
    clock.set(START + 1);
    // One that comes when the tick has begun is behind them.
    let late = caller.try_reserve(|_| 100).unwrap();
    let firsts = bookings.iter().map(|booking| redeemed(&caller, booking).unwrap().first);
    assert_eq!(firsts.collect::<Vec<_>>(), [0, 100, 200]);
    assert_eq!(late.block.first, 300);
    assert_eq!(caller.stats().issued, 4096 + 400);
}

#[test]
fn a_booking_takes_a_sixteenth_of_a_tick_at_most_and_less_in_a_long_line() {
    let (caller, clock) = generator(Layout::NODE, POLICIES);
    caller.reserve(|_| 4096).unwrap();
    let blocks: Vec<_> = (0..60).map(|_| booking(&caller, 4096)).collect();
    clock.set(START + 10);
    let mut lens = blocks.iter().map(|booking| redeemed(&caller, booking).unwrap().len);
    assert!(lens.by_ref().take(16).all(|len| len == 256), "16 waiters a tick");
    assert!(lens.by_ref().take(32).all(|len| len == 128), "then 32");
    assert_eq!(lens.next(), Some(4096 / 16 / 3));
}

#[test]
fn nothing_is_booked_further_ahead_than_the_caller_would_wait() {
    let layout = Layout { timestamp_bits: 49, sequence_bits: 4, ..Layout::NODE };
    for (max_wait_ms, last) in [(0, None), (1, Some(1)), (10, Some(10)), (1000, Some(255))] {
        let policies = Policies { max_wait: Duration::from_millis(max_wait_ms), ..POLICIES };
        let (caller, clock) = generator(layout, policies);
        let now = caller.reserve(|_| 16).unwrap().block.tick;
        let horizon = caller.ticks_within(policies.max_wait);
        let mut booked = None;
        while let Ok(booking) = caller.book(&policies, 256, horizon) {
            booked = Some(booking);
        }
        clock.set(START + 1000);
        let booked = booked.map(|booking| redeemed(&caller, &booking).unwrap().tick - now);
        assert_eq!(booked, last, "maxWait {max_wait_ms}: the lead has 8 bits");
    }
}

#[test]
fn a_booking_is_lost_when_the_clock_rolls_back_further_than_the_caller_waits() {
    let (caller, clock) = generator(Layout::NODE, POLICIES);
    caller.reserve(|_| 4096).unwrap();
    let (kept, lost) = (booking(&caller, 5), booking(&caller, 5));
    let mut waits = Waits::default();
    clock.set(START - 3);
    let mut left = Duration::from_millis(10);
    let reserved = caller.await_turn(&kept, &mut left, &mut waits).unwrap();
    assert_eq!((clock.now().ms, left), (START + 1, Duration::from_millis(6)));
    assert_eq!((reserved.block.first, waits.count), (0, 1));
    clock.set(START - 3);
    let mut left = Duration::from_millis(3);
    assert_eq!(caller.await_turn(&lost, &mut left, &mut waits), None);
    assert_eq!(caller.stats().issued, 4096 + 5, "what is lost was issued to nobody");
    // Under the next counter value, and not of what was booked.
    assert_eq!(caller.try_reserve(|_| 1).unwrap().block.counter, 1);
}

#[test]
fn with_max_ahead_a_booking_is_handed_out_as_far_ahead_as_other_ids() {
    let (caller, clock) = ahead(Layout::NODE, POLICIES, 2);
    for _ in 0..3 {
        caller.reserve(|_| 4096).unwrap();
    }
    let booked = booking(&caller, 7);
    assert!(matches!(caller.redeem(&booked), Redeemed::Early(_)));
    clock.set(START + 1);
    let tick = Layout::NODE.tick_at(START);
    assert_eq!(redeemed(&caller, &booked).unwrap().tick, tick + 3);
}

#[test]
fn a_layout_without_bits_for_a_lead_waits_for_the_tick_instead() {
    let full = Layout {
        timestamp_bits: 46,
        datacenter_bits: 0,
        worker_bits: 0,
        sequence_bits: 15,
        ..Layout::NODE
    };
    let clock = Arc::new(ManualClock::at(START));
    let node = Node::new(full, 0, 0).unwrap();
    let generator = Generator::new(node, 0, Box::new(clock.clone()));
    generator.reserve(&POLICIES, |_| 1 << 15).unwrap();
    assert!(generator.book(&POLICIES, 1, 10).is_err());
    assert_eq!(generator.reserve(&POLICIES, |_| 1).unwrap().block.first, 0);
    assert_eq!((clock.now().ms, generator.stats().waits), (START + 1, 1));
}
