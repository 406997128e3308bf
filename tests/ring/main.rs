//! The ring: as the package has it (`plain`), and `src/ring/buffer.rs` itself under the model checker loom, which
//! tries the interleavings of its threads and the values that a load may return: two takers and the
//! padder, on a ring that wraps around.
//!
//! For that it is compiled three times more, each time with other atomics. With loom's own nothing is
//! ever taken twice, lost or torn. With a fault planted in them the same check finds it, so it is able
//! to. Loom has no 64-bit atomics on 32-bit processors.

#![cfg(target_pointer_width = "64")]
#![allow(clippy::duplicate_mod, reason = "the ring, each time on other atomics")]

mod explored;
mod plain;
mod sound;
mod uncompared;
mod unordered;

use std::panic::catch_unwind;

/// Tries the orders with as many switches at the most, at moments when a thread could have gone on. With
/// LOOM_MAX_PREEMPTIONS=5 the first of these checks takes a minute in a release build.
fn check(switches: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound.get_or_insert(switches);
    model.check(run);
}

/// What a run checks, for one of the rings.
macro_rules! two_takers_and_the_padder {
    ($ring:ident) => {{
        use $ring::ring::ring;

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
        use $ring::ring::ring;

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
