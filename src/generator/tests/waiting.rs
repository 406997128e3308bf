//! Bookings: callers are served in turn.

use super::*;

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
    // A caller that comes after the tick has begun is behind them.
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

    let layout = Layout { timestamp_bits: 50, sequence_bits: 3, ..Layout::NODE };
    let (caller, clock) = generator(layout, POLICIES);
    caller.reserve(|_| 8).unwrap();
    let booked = booking(&caller, 8);
    clock.set(START + 1);
    assert_eq!(redeemed(&caller, &booked).unwrap().len, 1, "a tick has fewer than 16 numbers");
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
    // A new ID has the next counter value and no booked number.
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
