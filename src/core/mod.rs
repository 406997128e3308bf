//! ID generation without a disk or a network. Time is a parameter.

/// The atomics of [`sequence`] and of the ring. Tests replace them.
pub(crate) mod atomic {
    pub use std::sync::atomic::{AtomicU64, Ordering};
}
pub mod clock;
pub mod fault;
pub mod layout;
pub mod listeners;
pub mod loss;
pub mod node;
pub mod random;
pub mod sequence;
pub mod sequencer;
