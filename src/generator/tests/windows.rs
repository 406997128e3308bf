//! Windows that a store records.

use super::*;

fn window(floor_ms: i64, ceiling_ms: i64) -> Window {
    let tick = |ms| Layout::NODE.tick_at(START + ms);
    Window { floor: tick(floor_ms), ceiling: tick(ceiling_ms) }
}

#[test]
fn nothing_is_issued_outside_the_window() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    generator.begin_window(window(0, 5), true);
    for (ms, is_within) in [(0, false), (1, true), (5, true), (6, false)] {
        clock.set(START + ms);
        assert_eq!(generator.try_reserve(|_| 1).is_ok(), is_within, "{ms}");
    }
}

#[test]
fn a_floor_is_waited_for_as_the_clock_is() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    generator.begin_window(window(9, 100), true);
    generator.reserve(|_| 1).unwrap();
    assert_eq!(clock.now().ms, START + 10);
    generator.begin_window(window(30, 100), true);
    let refusal = generator.reserve(|_| 1).unwrap_err();
    assert_eq!(refusal.retry_after, Some(Duration::from_millis(21)));
}

#[test]
fn a_ceiling_that_is_raised_in_time_is_waited_for() {
    let (generator, clock) =
        generator(Layout::NODE, Policies { max_wait: Duration::from_secs(60), ..POLICIES });
    let id = generator.begin_window(window(0, 5), true);
    clock.set(START + 500);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            generator.renewals.await_demand(Duration::from_secs(60));
            generator.raise_ceiling(id, generator.next_ceiling(Duration::from_secs(1)));
        });
        assert!(generator.reserve(|_| 1).is_ok());
    });
    assert_eq!(generator.stats().waits, 1);
}

#[test]
fn a_ceiling_that_cannot_be_raised_is_refused_until_the_next_try() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    let id = generator.begin_window(window(0, 5), true);
    generator.renewals.note_failure(id, Duration::from_secs(300));
    clock.set(START + 6);
    let retry_after = generator.reserve(|_| 1).unwrap_err().retry_after.unwrap();
    assert!(retry_after > Duration::from_secs(200) && retry_after <= Duration::from_secs(300));
}

#[test]
fn the_floor_of_an_ended_window_is_not_taken_for_issued() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    let issued = generator.reserve(|_| 1).unwrap().first_id;
    let years = 10 * 365 * 86_400_000;
    let id = generator.begin_window(window(years, years + 5), true);
    assert!(generator.try_reserve(|_| 1).is_err());
    assert_eq!(generator.end_window(id), Some(Layout::NODE.tick_at(START)));
    generator.open_window();
    clock.set(START + 10);
    assert!(generator.try_reserve(|_| 1).unwrap().first_id > issued);
}

#[test]
fn a_late_answer_does_not_move_the_next_window() {
    let (generator, _) = generator(Layout::NODE, POLICIES);
    let first = generator.begin_window(window(-9, -5), true);
    assert!(generator.end_window(first).is_some());
    let second = generator.begin_window(window(-9, -5), true);
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
    generator.begin_window(window(-9, 900), true);
    let after = generator.reserve(|_| 1).unwrap();
    assert!(after.first_id > before.first_id + 2);
    assert_eq!(clock.now().ms, START + 1, "the rest of its tick counts as used up");
}

#[test]
fn a_generator_takes_as_many_whole_ticks_ahead_as_it_was_told_in_ms() {
    let layout = Layout { tick_ms: 1000, ..Layout::NODE };
    let (generator, _) = ahead(layout, POLICIES, 3500);
    let now = layout.tick_at(START);
    for tick in now..=now + 3 {
        assert_eq!(generator.try_reserve(|_| 4096).unwrap().block.tick, tick);
    }
    assert!(generator.try_reserve(|_| 1).is_err());
}

#[test]
fn the_next_ceiling_covers_what_may_be_taken_ahead_and_what_was() {
    let (generator, clock) = ahead(Layout::NODE, POLICIES, 70);
    let ttl = Duration::from_millis(100);
    let now = Layout::NODE.tick_at(START);
    assert_eq!(generator.next_ceiling(ttl), now + 100, "nothing is taken ahead");
    // From the end of the tick that was issued: ticks may be longer than the ttl.
    for ahead in [0, 1, 2, 69] {
        while generator.try_reserve(|_| 4096).unwrap().block.tick < now + ahead {}
        assert_eq!(generator.next_ceiling(ttl), now + ahead + 101);
    }
    while generator.try_reserve(|_| 4096).unwrap().block.tick < now + 70 {}
    assert_eq!(generator.next_ceiling(ttl), now + 170, "no more may be taken ahead");
    clock.set(START - 5000);
    assert_eq!(generator.next_ceiling(ttl), now + 70, "the clock stepped back");
    clock.set(Layout::NODE.end_ms() - 1);
    assert_eq!(generator.next_ceiling(ttl), Layout::NODE.last_tick());
}

#[test]
fn more_windows_follow_each_other_than_the_sequencer_has_numbers_for() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    let first = generator.begin_window(window(-9, -5), true);
    // Miri takes a minute for twice the number of window numbers.
    for n in 0..if cfg!(miri) { 1100 } else { 3000 } {
        let window = generator.begin_window(window(n, n + 5), true);
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
        let window = generator.begin_window(window(0, 9), true);
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
    generator.begin_window(window(-900, 900), true);
    assert_eq!(generator.try_reserve(|_| 1).unwrap().block.counter, 1);
    assert_eq!(generator.stats().rollbacks, 1);
}
