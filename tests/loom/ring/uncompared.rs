//! The ring with a cursor that is moved without a look whether it still stands where it was.

#[allow(dead_code)]
#[path = "../../../src/ring/buffer.rs"]
pub mod buffer;

mod atomic {
    pub use loom::sync::atomic::Ordering;

    pub type AtomicU64 = crate::explored::AtomicU64<false, true>;
}
