//! The core of ID generation: no disk, no network. Time is a parameter.

/// The atomics of [`sequence`] and of the ring. Their tests substitute others.
pub(crate) mod atomic {
    pub use std::sync::atomic::{AtomicU64, Ordering};
}
pub mod clock;
pub mod fault;
pub mod layout;
pub mod listeners;
pub mod node;
pub mod sequence;
pub mod sequencer;
