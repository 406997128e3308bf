//! The ring with nothing said about the order of its reads and writes.

#[allow(dead_code)]
#[path = "../../../src/ring/buffer.rs"]
pub mod buffer;

mod atomic {
    pub use loom::sync::atomic::Ordering;

    pub type AtomicU64 = crate::explored::AtomicU64<true, false>;
}
