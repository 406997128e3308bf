//! The ring: two takers and the padder, on a ring that wraps around. With a fault planted in its atomics the same check
//! finds it.

mod sound;
mod uncompared;
mod unordered;

use std::panic::catch_unwind;

use crate::check;

/// What a run checks, for one of the rings.
macro_rules! two_takers_and_the_padder {
    ($ring:ident) => {{
        use $ring::buffer::ring;

        // Five IDs through four slots, or two: so slots are used again while takers look at them.
        check(3, || {
            let (mut padder, ring) = ring(2);
            padder.put(1, 2);
            let take = |most: usize| {
                let ring = ring.clone();
                move || {
                    let mut ids = vec![0; most];
                    let taken = ring.take(&mut ids, 0);
                    ids.truncate(taken.count);
                    ids
                }
            };
            let takers = [loom::thread::spawn(take(2)), loom::thread::spawn(take(1))];
            let mut next = 3;
            for _ in 0..2 {
                let count = padder.room().min(5 - next);
                if count > 0 {
                    padder.put(next, count);
                    next += count;
                }
            }
            let mut taken: Vec<u64> =
                takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect();
            // What nobody took is still there.
            let mut id = [0];
            while ring.take(&mut id, 0).count > 0 {
                taken.extend(id);
            }
            taken.sort_unstable();
            assert!(taken.iter().copied().eq(1..next), "{taken:?} of 1..{next}");
        });
    }};
}

/// The same where what is in the ring is dropped meanwhile: by the padder, since what comes does not rise
/// above it, and by a taker to whom it is too old.
macro_rules! two_takers_and_what_is_dropped {
    ($ring:ident) => {{
        use $ring::buffer::ring;

        check(2, || {
            let (mut padder, ring) = ring(2);
            padder.put(10, 2);
            let take = |oldest: u64| {
                let ring = ring.clone();
                move || {
                    let mut ids = vec![0; 2];
                    let taken = ring.take(&mut ids, oldest);
                    ids.truncate(taken.count);
                    (ids, taken.dropped)
                }
            };
            let takers = [loom::thread::spawn(take(0)), loom::thread::spawn(take(11))];
            padder.room();
            let mut dropped = padder.put(1, 1);
            let mut taken = Vec::new();
            for taker in takers {
                let (ids, too_old) = taker.join().unwrap();
                taken.extend(ids);
                dropped += too_old;
            }
            let mut id = [0];
            while ring.take(&mut id, 0).count > 0 {
                taken.extend(id);
            }
            taken.sort_unstable();
            let count = taken.len();
            taken.dedup();
            assert_eq!(taken.len(), count, "{taken:?}");
            assert!(taken.iter().all(|id| [1, 10, 11].contains(id)), "{taken:?}");
            assert_eq!(count as u64 + dropped, 3, "{taken:?} and {dropped} dropped");
        });
    }};
}

#[test]
fn what_is_dropped_is_taken_by_nobody() {
    two_takers_and_what_is_dropped!(sound);
}

#[test]
fn a_cursor_that_is_not_compared_is_found_there_too() {
    let found = catch_unwind(|| two_takers_and_what_is_dropped!(uncompared));
    assert!(found.is_err(), "an ID that was dropped and taken");
}

#[test]
fn whatever_the_interleaving_each_id_is_taken_once() {
    two_takers_and_the_padder!(sound);
}

#[test]
fn a_cursor_that_is_not_compared_is_found() {
    let found = catch_unwind(|| two_takers_and_the_padder!(uncompared));
    assert!(found.is_err(), "an ID that two have taken");
}

#[test]
fn an_order_that_is_not_kept_is_found() {
    let found = catch_unwind(|| two_takers_and_the_padder!(unordered));
    assert!(found.is_err(), "a slot that was read before its ID was written");
}
