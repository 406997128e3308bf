//! Bookings: callers are served in turn.

use parking_lot::Mutex;

use super::*;
use crate::core::clock::{Clock, UnixTime};

fn booking(caller: &Caller, want: u64) -> Booking {
    let horizon = caller.ticks_within(caller.policies.max_wait);
    caller.book(&caller.policies, want, horizon).unwrap()
}

fn redeemed(caller: &Caller, booking: &Booking) -> Option<Block> {
    match caller.redeem(booking) {
        Ok(Some(reserved)) => {
            assert_eq!(reserved.ms, caller.now_ms());
            Some(reserved.block)
        }
        _ => None,
    }
}

#[test]
fn waiters_are_served_in_the_order_of_their_bookings() {
    let (caller, clock) = generator(Layout::NODE, POLICIES);
    caller.reserve(|_| 4096).unwrap();
    let bookings: Vec<_> = (0..3).map(|_| booking(&caller, 100)).collect();
    for booking in &bookings {
        let refusal = caller.redeem(booking).unwrap_err();
        assert_eq!(refusal.retry_after, Some(Duration::from_millis(1)));
    }
    clock.set(START + 1);
    // A caller that comes after the tick has begun is served after them.
    let late = caller.try_reserve(|_| 100).unwrap();
    let firsts = bookings.iter().map(|booking| redeemed(&caller, booking).unwrap().first);
    assert_eq!(firsts.collect::<Vec<_>>(), [0, 100, 200]);
    assert_eq!(late.block.first, 300);
    assert_eq!(caller.stats().issued, 4096 + 400);
}

#[test]
fn a_booking_takes_a_sixteenth_of_a_tick_at_most_and_less_in_a_long_queue() {
    let (caller, clock) = generator(Layout::NODE, POLICIES);
    caller.reserve(|_| 4096).unwrap();
    let blocks: Vec<_> = (0..60).map(|_| booking(&caller, 4096)).collect();
    clock.set(START + 10);
    let mut lens = blocks.iter().map(|booking| redeemed(&caller, booking).unwrap().len);
    assert!(lens.by_ref().take(16).all(|len| len == 256), "16 waiters a tick");
    assert!(lens.by_ref().take(32).all(|len| len == 128), "then 32");
    assert_eq!(lens.next(), Some(4096 / 16 / 3));

    let layout = Layout { timestamp_bits: 50, sequence_bits: 3, ..Layout::NODE };
    let (caller, clock) = generator(layout, POLICIES);
    caller.reserve(|_| 8).unwrap();
    let booked = booking(&caller, 8);
    clock.set(START + 1);
    assert_eq!(redeemed(&caller, &booked).unwrap().len, 1, "a tick has fewer than 16 numbers");
}

#[test]
fn a_booking_is_within_max_wait() {
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

/// A booking is lost if the clock has rolled back below its reading at the booking.
#[test]
fn a_booking_is_lost_when_the_clock_shows_a_time_before_it() {
    for (later_ms, is_kept) in [(1, true), (0, true), (-1, false), (-3_600_000, false)] {
        let (caller, clock) = generator(Layout::NODE, POLICIES);
        caller.reserve(|_| 4096).unwrap();
        let booked = booking(&caller, 5);
        clock.set(START + later_ms);
        let redeemed = caller.redeem(&booked);
        assert_eq!(matches!(redeemed, Ok(None)), !is_kept, "{later_ms}");
        assert_eq!(matches!(redeemed, Ok(Some(_))), later_ms > 0, "{later_ms}");
        let issued = caller.stats().issued;
        assert_eq!(issued, if later_ms > 0 { 4096 + 5 } else { 4096 }, "IDs handed out");
        clock.set(START + 1);
        if later_ms == 0 {
            assert!(matches!(caller.redeem(&booked), Ok(Some(_))));
            assert_eq!(caller.stats().issued, 4096 + 5);
        }
    }
}

#[test]
fn a_waiter_without_its_booking_continues_like_other_callers() {
    for back_ms in [1, 1000, 3_600_000, 60 * 86_400_000] {
        let (caller, clock) = generator(Layout::NODE, POLICIES);
        caller.reserve(|_| 4096).unwrap();
        let booked = booking(&caller, 5);
        clock.set(START - back_ms);
        let (mut left, mut waits) = (Duration::from_millis(10), Waits::default());
        assert_eq!(caller.await_turn(&booked, &mut left, &mut waits), None);
        assert_eq!((left, waits.count), (Duration::from_millis(10), 0), "no wait");
        let block = caller.try_reserve(|_| 1).unwrap().block;
        let tick = Layout::NODE.tick_at(START - back_ms);
        assert_eq!((block.tick, block.counter, block.first), (tick, 1, 0));
        // The numbers of the lost booking are issued to no caller, even when the tick begins.
        clock.set(START + 1);
        let block = caller.try_reserve(|_| 4096).unwrap().block;
        assert_eq!((block.counter, block.first), (1, 0));
    }
}

/// A clock that never moves. Its waits only add up.
#[derive(Default)]
struct StoppedClock(Mutex<Duration>);

impl Clock for StoppedClock {
    fn now(&self) -> UnixTime {
        UnixTime { ms: START, ns: 999_000 }
    }

    fn wait(&self, duration: Duration) {
        *self.0.lock() += duration;
    }
}

#[test]
fn a_wait_for_a_stopped_clock_ends_within_max_wait() {
    // Each wait is 1 us long, and Miri takes some 50 ms for it.
    let most_us = if cfg!(miri) { 50 } else { 1_000_000 };
    for max_wait_us in [0, 50, 1000, 10_000, 1_000_000].into_iter().filter(|us| *us <= most_us) {
        let policies = Policies { max_wait: Duration::from_micros(max_wait_us), ..POLICIES };
        let clock = Arc::new(StoppedClock::default());
        let node = Node::new(Layout::NODE, 1, 2).unwrap();
        let generator = Generator::new(node, 0, Box::new(clock.clone()));
        reserve(&generator, &policies, |_| 4096).unwrap();
        let refusal = reserve(&generator, &policies, |_| 1).unwrap_err();
        assert!(matches!(refusal.stall, Stall::SequenceExhausted { .. }));
        let waited = *clock.0.lock();
        assert!(waited <= policies.max_wait, "{waited:?} of {max_wait_us} us");
        assert_eq!(generator.stats().issued, 4096);
    }
}

#[test]
fn with_max_ahead_a_booking_is_handed_out_as_far_ahead_as_other_ids() {
    let (caller, clock) = ahead(Layout::NODE, POLICIES, 2);
    for _ in 0..3 {
        caller.reserve(|_| 4096).unwrap();
    }
    let booked = booking(&caller, 4096);
    assert!(caller.redeem(&booked).is_err());
    clock.set(START + 1);
    let block = redeemed(&caller, &booked).unwrap();
    assert_eq!((block.tick, block.len), (Layout::NODE.tick_at(START) + 3, 256));
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
    reserve(&generator, &POLICIES, |_| 1 << 15).unwrap();
    assert!(generator.book(&POLICIES, 1, 10).is_err());
    assert_eq!(reserve(&generator, &POLICIES, |_| 1).unwrap().block.first, 0);
    assert_eq!((clock.now().ms, generator.stats().waits), (START + 1, 1));
}
