//! The sequencer that several processes share: its steps in every order (`explore`), and the lives of its pages
//! (`lives`); the code beside the plain sequencer (`plain`); and `src/core/sequence/mod.rs` itself on loom's atomics,
//! which tries the values that weaker memory may show (`weak`). With its orders left out, loom finds the duplicate. Loom
//! has no 64-bit atomics on 32-bit processors.

#![allow(clippy::duplicate_mod, reason = "the sequencer, each time on other atomics")]

#[path = "../amount/mod.rs"]
mod amount;
mod explore;
#[cfg(target_pointer_width = "64")]
#[path = "../ring/explored.rs"]
mod explored;
mod lives;
mod plain;
#[path = "../rule/mod.rs"]
mod rule;
mod search;
#[cfg(target_pointer_width = "64")]
mod sound;
#[cfg(target_pointer_width = "64")]
mod unordered;
#[cfg(target_pointer_width = "64")]
mod weak;

// What `src/core/sequence/mod.rs` imports, compiled here.
#[cfg(target_pointer_width = "64")]
use snowdrift::core::{self, layout, sequencer};
