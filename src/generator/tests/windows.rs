//! Windows of leased pages.

use super::*;
use crate::pages::Page;

fn window(floor_ms: i64, ceiling_ms: i64) -> Window {
    let tick = |ms| Layout::NODE.tick_at(START + ms);
    Window { floor: tick(floor_ms), ceiling: tick(ceiling_ms) }
}

/// A generator on a leased page whose ceiling a thread raises.
fn windowed(policies: Policies, bounds: Window) -> (Caller, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(START));
    let node = Node::new(Layout::NODE, 1, 2).unwrap();
    let page = Page::pending_in_process(node, 0, 1, 2);
    page.open_lease(bounds, 0);
    let generator = Generator::leased(page, Box::new(clock.clone()));
    generator.renewals.set_attended(true);
    (Caller::new(Arc::new(generator), policies), clock)
}

#[test]
fn nothing_is_issued_outside_the_window() {
    let (generator, clock) = windowed(POLICIES, window(0, 5));
    for (ms, is_within) in [(0, false), (1, true), (5, true), (6, false)] {
        clock.set(START + ms);
        assert_eq!(generator.try_reserve(|_| 1).is_ok(), is_within, "{ms}");
    }
}

#[test]
fn a_caller_waits_for_a_floor_as_for_the_clock() {
    let (generator, clock) = windowed(POLICIES, window(9, 100));
    generator.reserve(|_| 1).unwrap();
    assert_eq!(clock.now().ms, START + 10);
    let (generator, clock) = windowed(POLICIES, window(30, 100));
    clock.set(START + 10);
    let refusal = generator.reserve(|_| 1).unwrap_err();
    assert_eq!(refusal.retry_after, Some(Duration::from_millis(21)));
}

#[test]
fn a_caller_waits_for_a_ceiling_raised_in_time() {
    let policies = Policies { max_wait: Duration::from_secs(60), ..POLICIES };
    let (generator, clock) = windowed(policies, window(0, 5));
    clock.set(START + 500);
    let raised = generator.generator.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            raised.renewals.await_request(Duration::from_secs(60));
            raised.raise_ceiling(raised.tick_now() + 1000);
        });
        assert!(generator.reserve(|_| 1).is_ok());
    });
    assert_eq!(generator.stats().waits, 1);
}

#[test]
fn a_failed_renewal_refuses_until_the_next_try() {
    let (generator, clock) = windowed(POLICIES, window(0, 5));
    generator.renewals.note_failure(Duration::from_secs(300));
    clock.set(START + 6);
    let retry_after = generator.reserve(|_| 1).unwrap_err().retry_after.unwrap();
    assert!(retry_after > Duration::from_secs(200) && retry_after <= Duration::from_secs(300));
}

#[test]
fn the_floor_of_an_ended_window_does_not_count_as_issued() {
    let years = 10 * 365 * 86_400_000;
    let (generator, _) = windowed(POLICIES, window(years, years + 5));
    assert!(generator.try_reserve(|_| 1).is_err());
    for _ in 0..2 {
        assert!(generator.end_window() < Layout::NODE.tick_at(START));
        assert!(generator.highest() < Layout::NODE.tick_at(START));
    }
}

#[test]
fn a_late_confirmation_does_not_reopen_an_ended_window() {
    let (generator, _) = windowed(POLICIES, window(-9, 5));
    let issued = generator.reserve(|_| 1).unwrap().block.tick;
    assert_eq!(generator.end_window(), issued);
    generator.raise_ceiling(Tick::MAX);
    assert!(generator.try_reserve(|_| 1).is_err());
    assert_eq!(generator.end_window(), issued);
}

#[test]
fn a_window_begins_above_the_ids_that_the_process_issued_elsewhere() {
    let (alone, _) = generator(Layout::NODE, POLICIES);
    let before = alone.reserve(|_| 3).unwrap();
    let (generator, clock) = windowed(POLICIES, window(-9, 900));
    generator.start_above(alone.highest());
    let after = generator.reserve(|_| 1).unwrap();
    assert!(after.first_id > before.first_id + 2);
    assert_eq!(clock.now().ms, START + 1, "the rest of its tick counts as used up");
}

#[test]
fn max_ahead_is_rounded_down_to_whole_ticks() {
    let layout = Layout { tick_ms: 1000, ..Layout::NODE };
    let (generator, _) = ahead(layout, POLICIES, 3500);
    let now = layout.tick_at(START);
    for tick in now..=now + 3 {
        assert_eq!(generator.try_reserve(|_| 4096).unwrap().block.tick, tick);
    }
    assert!(generator.try_reserve(|_| 1).is_err());
}

#[test]
fn issued_ids_are_counted_across_ticks_and_random_starts() {
    for random_start in [false, true] {
        let (generator, clock) = generator(Layout::NODE, Policies { random_start, ..POLICIES });
        let first = generator.reserve(|_| 5).unwrap();
        generator.reserve(|_| 1).unwrap();
        generator.give_back(&first.block, 2);
        assert_eq!(generator.stats().issued, 4, "though a later block followed");
        clock.set(START + 1);
        generator.reserve(|_| 3).unwrap();
        clock.set(START + 3);
        generator.reserve(|_| 2).unwrap();
        assert_eq!(generator.stats().issued, 9);
        generator.end_window();
        assert_eq!(generator.stats().issued, 9);
    }
}

/// A caller of a leased page, and its booking of the next tick.
fn booked(page: Page, clock: &Arc<ManualClock>) -> (Caller, Booking) {
    let caller = Caller::new(Arc::new(Generator::leased(page, Box::new(clock.clone()))), POLICIES);
    let horizon = caller.ticks_within(POLICIES.max_wait);
    let booking = caller.book(&POLICIES, 5, horizon).unwrap();
    (caller, booking)
}

/// The original of a restored machine hands out what was booked before the snapshot; and a store that has lost data may have let
/// another host take the slot below.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn what_any_thread_or_process_has_booked_is_lost_with_a_page_whose_ids_are_disputed() {
    use crate::core::loss::Loss;
    use crate::pages::Directory;
    for (losses, is_kept) in [
        (&[Loss::Taken][..], true),
        (&[Loss::Released], true),
        (&[Loss::Restored], false),
        (&[Loss::Reverted], false),
        // It was lost just before the snapshot was taken.
        (&[Loss::Taken, Loss::Restored], false),
        (&[Loss::Released, Loss::Restored], false),
        (&[Loss::Reverted, Loss::Restored], false),
        (&[Loss::Restored, Loss::Released], false),
    ] {
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let directory = Directory::find(Some(memory.path())).unwrap().unwrap();
        let node = Node::new(Layout::NODE, 1, 2).unwrap();
        let page = directory.pending(&node, 0, 1, 2, None).unwrap();
        page.open_lease(window(-1, 1000), 0);
        let clock = Arc::new(ManualClock::at(START));
        page.sequence().reserve(&Default::default(), &mut || clock_tick(&clock), |_| 4096).unwrap();
        // Another process has a page of its own of the same file.
        let found = directory.leased(&Layout::NODE, 1, None, &mut Vec::new()).unwrap();
        let other = directory.join_leased(&found[0], 0).unwrap().unwrap();
        let (elsewhere, theirs) = booked(other, &clock);
        let (here, ours) = booked(page, &clock);
        for loss in losses {
            here.page().end_lease(*loss);
        }
        clock.set(START + 1);
        for (caller, booking) in [(here, ours), (elsewhere, theirs)] {
            // In a thread of its own.
            let redeem = move || (caller.redeem(&booking).unwrap(), caller.stats().issued);
            let (redeemed, issued) = std::thread::spawn(redeem).join().unwrap();
            assert_eq!((redeemed.is_some(), issued > 0), (is_kept, is_kept), "{losses:?}");
        }
    }
}

/// Nobody waits for a tick of which it gets nothing.
#[test]
fn a_booking_whose_ids_are_disputed_is_not_waited_for() {
    let clock = Arc::new(ManualClock::at(START));
    let node = Node::new(Layout::NODE, 1, 2).unwrap();
    let page = Page::pending_in_process(node, 0, 1, 2);
    page.open_lease(window(-1, 1000), 0);
    page.sequence().reserve(&Default::default(), &mut || clock_tick(&clock), |_| 4096).unwrap();
    let (caller, booking) = booked(page, &clock);
    caller.page().end_lease(crate::core::loss::Loss::Restored);
    let (mut left, mut waits) = (Duration::from_millis(10), Waits::default());
    assert_eq!(caller.await_turn(&booking, &mut left, &mut waits), None);
    assert_eq!((clock.now().ms, waits.count), (START, 0));
}

fn clock_tick(clock: &ManualClock) -> Tick {
    Layout::NODE.tick_at(clock.now().ms)
}
