use std::sync::Arc;

use super::*;
use crate::core::clock::{Clock, ManualClock};
use crate::core::layout::Layout;
use crate::core::listeners::Listener;
use crate::core::node::Node;
use crate::core::sequencer::{NEVER, Stall, Window};
use crate::generator::{ClockBack, Generator, Policies, Waits};

const START: i64 = 1_700_000_000_000;
const CACHING: Caching =
    Caching { boost_power: 1, padding_factor: 50, schedule: None, max_age: 1000 };

fn generator(max_ahead_ms: i64) -> (Arc<Generator>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(START));
    let node = Node::new(Layout { sequence_bits: 4, ..Layout::NODE }, 1, 2).unwrap();
    (Arc::new(Generator::new(node, max_ahead_ms, Box::new(clock.clone()))), clock)
}

fn cached(max_ahead_ms: i64, caching: Caching) -> (Cached, Arc<ManualClock>) {
    let (generator, clock) = generator(max_ahead_ms);
    (Cached::new(generator, PATIENT, caching).unwrap(), clock)
}

/// The ticks of IDs taken one by one, in ms since the start.
fn ticks(cached: &Cached, count: usize) -> Vec<i64> {
    let node = *cached.0.generator.node();
    let mut id = [0];
    (0..count)
        .map(|_| {
            assert_eq!(cached.take(&mut id, None), Ok(1));
            node.layout().tick_start_ms(node.block_of(id[0]).unwrap().tick) - START
        })
        .collect()
}

const PATIENT: Policies = Policies {
    clock_back: ClockBack::Throw,
    max_wait: Duration::from_millis(100),
    random_start: false,
};

#[test]
fn ticks_follow_each_other_and_no_part_of_one_is_lost() {
    let (cached, clock) = cached(0, CACHING);
    clock.set(START + 500);
    // 16 per tick, from the first tick on, although the clock is far ahead.
    let expected: Vec<_> = (0..1000).map(|n| n / 16).collect();
    assert_eq!(ticks(&cached, 1000), expected);
}

#[test]
fn a_rollback_has_no_effect_while_ticks_lag_further_behind() {
    let (cached, clock) = cached(0, CACHING);
    clock.set(START + 500);
    ticks(&cached, 16 * 100);
    clock.set(START + 300);
    assert_eq!(ticks(&cached, 16), [100; 16], "with clockBack 'throw'");
}

/// Takes all IDs that the clock allows. Returns their number, and the stall that ended them.
fn drain(cached: &Cached) -> (usize, Stall) {
    let mut id = [0];
    for count in 0..100_000 {
        if let Err(refusal) = cached.take(&mut id, None) {
            return (count, refusal.stall);
        }
    }
    panic!("it generates IDs above the clock without an end")
}

/// A rollback has no effect if the ticks lag behind the clock by at least as much. Otherwise the IDs in the ring are
/// handed out, and `clockBack` decides about the next ones.
#[test]
fn a_rollback_longer_than_the_lag_is_noticed() {
    // The ring has room for 2 ticks of 16 IDs.
    for (tick_ms, drawn, back, is_seen) in [
        // All ticks up to the clock's are taken.
        (1, 501, 1, true),
        (1, 501, 500, true),
        (1, 501, 5000, true),
        (1000, 501, 1, true),
        (1000, 501, 5000, true),
        // The ticks lag by 400, minus those in the ring.
        (1, 101, 390, false),
        (1, 101, 405, true),
        (1, 101, 5000, true),
        (1000, 101, 390, false),
        (1000, 101, 405, true),
    ] {
        let clock = Arc::new(ManualClock::at(START));
        // UidGenerator's layout has no clock-back counter.
        let clock_back_bits = if tick_ms == 1 { 2 } else { 0 };
        let layout = Layout { tick_ms, clock_back_bits, sequence_bits: 4, ..Layout::NODE };
        let node = Node::new(layout, 1, 2).unwrap();
        let generator = Arc::new(Generator::new(node, 0, Box::new(clock.clone())));
        let cached = Cached::new(generator.clone(), PATIENT, CACHING).unwrap();
        clock.set(START + 500 * tick_ms);
        let mut ids = [0; 16];
        for _ in 0..drawn {
            assert_eq!(cached.take(&mut ids, None), Ok(16));
        }
        clock.set(START + (500 - back) * tick_ms);
        let (count, stall) = drain(&cached);
        let case = format!("{tick_ms} ms, {drawn} drawn, {back} back: {count}, {stall:?}");
        // At most the IDs in the ring, and a batch that its thread was about to put in.
        assert_eq!(count <= 3 * 16, is_seen, "{case}");
        assert_eq!(matches!(stall, Stall::ClockBehind { .. }), is_seen, "{case}");
        assert_eq!(generator.stats().rollbacks > 0, is_seen, "{case}");
    }
}

#[test]
fn ticks_run_ahead_of_the_clock_by_max_ahead_at_most() {
    for (max_ahead_ms, count) in [(0, 16), (5, 6 * 16)] {
        let (cached, _) = cached(max_ahead_ms, CACHING);
        assert_eq!(ticks(&cached, count).last(), Some(&max_ahead_ms));
        let refusal = cached.take(&mut [0], None).unwrap_err();
        assert_eq!(refusal.retry_after, Some(Duration::from_millis(1)));
        assert_eq!(cached.stats().rejected_takes, 1);
    }
}

#[test]
fn a_taker_of_an_empty_ring_waits_within_max_wait() {
    let (cached, clock) = cached(0, CACHING);
    ticks(&cached, 16);
    let mut waits = Waits::default();
    assert_eq!(cached.take(&mut [0], Some(&mut waits)), Ok(1));
    assert_eq!((waits.count, waits.time), (1, Duration::from_millis(1)));
    assert_eq!(clock.now().ms, START + 1);
}

#[test]
fn ids_older_than_max_age_are_dropped() {
    let (cached, clock) = cached(0, CACHING);
    ticks(&cached, 4);
    clock.set(START + 1001);
    assert_eq!(ticks(&cached, 1), [1001], "not older ones that could still be counted");
    assert!(cached.stats().dropped >= 12);
}

#[test]
fn a_scheduled_padding_drops_old_ids_or_rejects() {
    let (cached, clock) = cached(50, CACHING);
    assert_eq!(cached.stats().left, 32);
    let (send, told) = std::sync::mpsc::channel();
    let listener: Arc<Listener> = Arc::new(move || send.send(()).unwrap());
    cached.rejected_put().add(&listener);
    cached.0.refresh();
    assert_eq!((cached.stats().rejected_puts, told.try_recv()), (1, Ok(())));
    // Otherwise the ring's thread, which may start late, could fill it again.
    let _is_not_filled = cached.0.padder.lock();
    clock.set(START + 5000);
    cached.0.refresh();
    assert_eq!((cached.stats().rejected_puts, cached.stats().dropped), (1, 32));
}

#[test]
fn other_callers_of_the_generator_get_no_id_of_the_ring() {
    let (generator, clock) = generator(0);
    let cached = Cached::new(generator.clone(), PATIENT, CACHING).unwrap();
    clock.set(START + 40);
    let mut ids = Vec::new();
    let mut block = [0; 7];
    for n in 0..200 {
        clock.set(START + 40 + n / 10);
        if let Ok(count) = cached.take(&mut block, None) {
            ids.extend_from_slice(&block[..count]);
        }
        if let Ok(reserved) = generator.try_reserve(&generator.user_page(), &PATIENT, |_| 3) {
            ids.extend(reserved.first_id..reserved.first_id + reserved.block.len);
        }
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert!(count > 200, "{count}");
    assert_eq!(ids.len(), count);
}

#[test]
fn a_ring_that_needs_too_much_memory_is_refused() {
    let (generator, _) = generator(0);
    let caching = Caching { boost_power: 21, ..CACHING };
    let refused = fault!("ring-too-large", slots: 1u64 << 25, most: MOST_IDS);
    assert_eq!(Cached::new(generator, PATIENT, caching).err(), Some(refused));
}

/// What a ring has is handed out after a loss, too, unless another machine may hand it out.
#[test]
fn ids_of_a_page_are_dropped_where_they_are_disputed() {
    use crate::core::loss::Loss;
    use crate::pages::Page;
    for (loss, is_kept) in [
        (Loss::Taken, true),
        (Loss::Released, true),
        (Loss::Restored, false),
        (Loss::Reverted, false),
    ] {
        let clock = Arc::new(ManualClock::at(START));
        let node = Node::new(Layout { sequence_bits: 4, ..Layout::NODE }, 1, 2).unwrap();
        let page = Page::pending_in_process(node, 0, 1, 2);
        let now = node.layout().tick_at(START);
        page.open_lease(Window { floor: NEVER, ceiling: now + 1000 }, now - 10);
        let generator = Arc::new(Generator::leased(page, Box::new(clock)));
        let cached = Cached::new(generator.clone(), PATIENT, CACHING).unwrap();
        assert!(cached.stats().left > 0);
        generator.page().end_lease(loss);
        assert_eq!(cached.take(&mut [0], None).is_ok(), is_kept, "{loss:?}");
    }
}
