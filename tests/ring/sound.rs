//! The ring on loom's atomics.

#[allow(dead_code)]
#[path = "../../src/ring.rs"]
pub mod ring;

mod atomic {
    pub use loom::sync::atomic::Ordering;

    pub use crate::explored::AtomicU64;
}
