//! The sequencer that threads and processes share: the rule of `tests/rule.rs` over a few atomic words, in a page of
//! shared memory or in the process's own memory. It takes no lock and allocates nothing, so a process stopped or killed
//! at any instruction blocks nobody.
//!
//! | file | content |
//! |---|---|
//! | `cells` | the atomics, how they hold runs, ceilings and marks, and their present state |
//! | `reserving` | the rule, and reservations by it: one compare-and-swap of the word, which holds the current run |
//! | `windows` | the beginning, raising and end of a window |
//!
//! Invariants (`tests/shared` searches every interleaving of these steps, and finds each planted fault):
//!
//! 1. Under one counter value ticks only rise. Within a tick numbers only rise, except when numbers are given back. So
//!    a word replaced by another tick or counter value never returns. A swap succeeds only if every number issued since
//!    the load was given back.
//! 2. The mark of a counter value that is not current is at least the highest tick of its runs.
//! 3. The floor only rises, and rises before the ceiling that belongs to it. Readers load the ceiling first. So a
//!    reader that sees a ceiling also sees its floor.
//! 4. Within a window the ceiling only rises, so it can be kept outside the word. Every other change of a window
//!    changes the word.

mod cells;
mod reserving;
mod windows;

pub use cells::{Cells, Run, Sequence, mark_code, mark_of};
pub use reserving::{Rules, Time};
pub use windows::{Closed, Ended, NotBegun, WindowNumber};
