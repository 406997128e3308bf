//! The ring and the shared sequencer under the model checker loom, which tries the orders of their threads' steps, and
//! the values that weaker memory may show. Their very files are compiled here, each time with other atomics: with loom's
//! own nothing goes wrong; with a fault planted in them the same check finds it, so it is able to. Loom has no 64-bit
//! atomics on 32-bit processors.

#![cfg(target_pointer_width = "64")]
#![allow(clippy::duplicate_mod, reason = "the same files, each time on other atomics")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod explored;
mod ring;
mod sequence;

// What `src/core/sequence/mod.rs` imports, compiled here.
use snowdrift::core::{self, layout, sequencer};

/// Tries the orders with as many switches at the most, at moments when a thread could have gone on. With
/// LOOM_MAX_PREEMPTIONS=5 the first check of the ring takes a minute in a release build.
fn check(switches: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound.get_or_insert(switches);
    model.check(run);
}
