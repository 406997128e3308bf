//! The shared sequencer on loom's atomics.

#[allow(dead_code, unused_imports)]
#[path = "../../../src/core/sequence/mod.rs"]
pub mod shared;

mod atomic {
    pub use loom::sync::atomic::Ordering;

    pub type AtomicU64 = crate::explored::AtomicU64<true, true>;
}
