//! The sequencer that threads and processes share. It applies the rule of `tests/rule.rs` to a few atomic words, in a
//! page of shared memory or in the process's own memory. It takes no lock and allocates nothing: a process that is
//! stopped or killed at any instruction blocks no other.
//!
//! | file | content |
//! |---|---|
//! | `cells` | the atomics, the encoding of runs, ceilings and marks, and the present state |
//! | `deciding` | the rule: the next tick, counter value and number |
//! | `reserving` | reservations by the rule: one compare-and-swap of the word, which encodes the current run |
//! | `windows` | the beginning, raising and end of a window |
//!
//! Invariants (`tests/shared` runs this code step by step, in every order):
//!
//! 1. Ticks only rise under one counter value. Numbers only rise within a tick, except when a caller gives numbers
//!    back. So a word never returns after a word of another tick or counter value. If a swap succeeds, every number
//!    issued since the load was given back.
//! 2. The mark of a counter value that is not current is at least the highest tick of its runs.
//! 3. The floor only rises, and rises before its ceiling. Readers load the ceiling first. So a reader that sees a
//!    ceiling also sees its floor.
//! 4. The ceiling only rises within a window, so it can be outside the word. Every other change of a window changes the
//!    word.

mod cells;
mod deciding;
mod reserving;
mod windows;

pub use cells::{Cells, Run, Sequence};
pub use deciding::Rules;
pub use reserving::Time;
pub use windows::{Closed, NotBegun};
