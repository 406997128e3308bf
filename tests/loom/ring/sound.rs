//! The ring on loom's atomics.

#[allow(dead_code)]
#[path = "../../../src/ring/buffer.rs"]
pub mod buffer;

mod atomic {
    pub use loom::sync::atomic::Ordering;

    pub type AtomicU64 = crate::explored::AtomicU64<true, true>;
}
