//! The core of snowdrift: 64-bit Snowflake IDs that never repeat.
//!
//! Read in this order; each folder imports only from those above it.
//!
//! | folder | what it is |
//! |---|---|
//! | `core` | layouts, nodes, the clock, and the sequencer that decides which IDs come next |
//! | `files` | files, whatever they contain: paths, locks, owners, creation, the operating system's part |
//! | `store` | slot files: the records of slots, for the next process and against other hosts |
//! | `host` | pages: the shared memory in which a host's processes share a node's sequence |
//! | `generator` | a sequence with its clock, window and waits |
//! | `lease` | a page bound to its record on a disk, and the thread that renews it; resets |
//! | `registry` | one generator per node for the whole process |
//! | `ring` | IDs filled ahead, drained by many threads without a lock |
//! | `binding` | Node-API; the only part that knows Node exists |

pub mod core;
mod files;
pub mod generator;
pub mod lease;
pub mod pages;
pub mod registry;
pub mod ring;
pub mod store;

#[cfg(feature = "binding")]
mod binding;
