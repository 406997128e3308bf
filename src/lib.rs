//! The core of snowdrift: 64-bit Snowflake IDs that never repeat.
//!
//! Read in this order; each file imports only from those above it.
//!
//! | file | what it is |
//! |---|---|
//! | `layout` | how 63 bits are cut, and what a cut allows |
//! | `sequencer` | the pure state machine that decides which IDs come next |
//! | `clock` | where the time comes from |
//! | `generator` | sequencer and clock behind a lock, and the waiting |
//! | `registry` | one generator a node for the whole process |
//! | `binding` | Node-API; the only part that knows Node exists |

pub mod clock;
pub mod generator;
pub mod layout;
pub mod registry;
pub mod sequencer;

#[cfg(feature = "binding")]
mod binding;
