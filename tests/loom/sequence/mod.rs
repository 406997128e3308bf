//! The shared sequencer on weak memory. With its orders left out, loom finds the duplicate.

mod sound;
mod unordered;

use std::panic::catch_unwind;

use crate::{check, layout, sequencer};

/// One process rolls back to counter 1, another sees that and a clock that shows an earlier tick again:
/// whether it uses counter 0 there depends on its mark.
macro_rules! a_rollback_beside_a_draw {
    ($atomics:ident) => {{
        use $atomics::shared::{Cells, Rules, Sequence};

        check(3, || {
            let layout = layout::Layout::new([4, 0, 0, 1, 1], 1, 0);
            let sequence = loom::sync::Arc::new(Sequence::new(Box::new(Cells::default()), &layout));
            let rules = Rules { may_raise: true, ..Rules::default() };
            let draw = move |sequence: &Sequence<Box<Cells>>, now| {
                sequence.reserve(&rules, &mut || now, |_| 1).ok()
            };
            let mut blocks = vec![draw(&sequence, 4), draw(&sequence, 5)];
            let threads = [3, 4].map(|now| {
                let sequence = sequence.clone();
                loom::thread::spawn(move || draw(&sequence, now))
            });
            blocks.extend(threads.map(|thread| thread.join().unwrap()));
            let mut ids: Vec<_> =
                blocks.iter().flatten().map(|one| (one.tick, one.counter, one.first)).collect();
            let count = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), count, "{blocks:?}");
        });
    }};
}

/// One process draws, another closes, releases and reopens in a window that ends lower.
macro_rules! a_window_that_ends_beside_a_draw {
    ($atomics:ident) => {{
        use $atomics::shared::{Cells, Rules, Sequence};

        check(3, || {
            let layout = layout::Layout::new([4, 0, 0, 0, 1], 1, 0);
            let sequence = loom::sync::Arc::new(Sequence::new(Box::new(Cells::default()), &layout));
            let drawing = sequence.clone();
            let drawer = loom::thread::spawn(move || {
                let now = 14;
                drawing.reserve(&Rules::default(), &mut || now, |_| 1).ok()
            });
            let ended = sequence.end();
            let closed = sequence.closed().unwrap();
            // Another host has had the ticks up to 10.
            let window = sequencer::Window { floor: 10, ceiling: 12 };
            sequence.begin(&closed, window, None).unwrap();
            if let Some(block) = drawer.join().unwrap() {
                assert!(block.tick <= ended.highest(), "{block:?} after {ended:?}");
            }
        });
    }};
}

#[test]
fn on_weak_memory_no_id_repeats() {
    a_rollback_beside_a_draw!(sound);
}

#[test]
fn on_weak_memory_nothing_is_issued_above_what_was_released() {
    a_window_that_ends_beside_a_draw!(sound);
}

#[test]
fn an_order_that_is_not_kept_is_found() {
    let found = catch_unwind(|| a_rollback_beside_a_draw!(unordered));
    assert!(found.is_err(), "a mark that was missed");
    let found = catch_unwind(|| a_window_that_ends_beside_a_draw!(unordered));
    assert!(found.is_err(), "a ceiling that was missed");
}
