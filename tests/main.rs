//! The core's tests, in one executable: one is quicker to build than many. What loom explores is another one: `loom`.
//!
//! | module | what |
//! |---|---|
//! | `every_clock_path` | the sequencer, on every path of a clock |
//! | `shared` | the sequencer and its pages, in every order of their steps |
//! | `host` | a host's pages, as they are and simulated |
//! | `storm` | processes that lease from a directory, killed and stopped |
//! | `ring` | the ring |
//! | `fuzz` | what fuzzing has found worth keeping |
//! | `rule`, `model` | the sequencer's rule in its plainest form, and the sequencer beside it |
//! | `search` with its `fingerprint`, `steering`, `amount` | what several of these use |

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod amount;
mod every_clock_path;
mod fingerprint;
mod fuzz;
#[cfg(target_os = "linux")]
mod host;
mod model;
mod ring;
mod rule;
mod search;
mod shared;
#[cfg(target_os = "linux")]
mod steering;
#[cfg(target_os = "linux")]
mod storm;

// What the code of `src` that `shared` compiles names so.
use shared::{core, files, generator, pages};
