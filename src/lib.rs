//! The core of snowdrift: 64-bit Snowflake IDs without duplicates.
//!
//! Read in this order; each folder imports only from those above it.
//!
//! | folder | what it is |
//! |---|---|
//! | `core` | layouts, nodes, the clock, and the sequencer that decides which IDs come next |
//! | `files` | files of any content: paths, locks, owners, creation, the operating system's part |
//! | `pages` | pages: the memory in which threads and a host's processes share a node's sequence; places, terms |
//! | `generator` | a node's present page with its clock, window and waits |
//! | `lease` | the protocol of leases, without input and output: `js/lease` makes the calls that it wants |
//! | `register` | a directory as a register of leases |
//! | `registry` | one generator per node for the whole process |
//! | `ring` | IDs generated ahead, taken by many threads without a lock |
//! | `binding` | Node-API; only this folder depends on Node |

#[cfg(not(test))]
mod binding;
pub mod core;
mod files;
pub mod generator;
pub mod lease;
pub mod pages;
pub mod register;
pub mod registry;
pub mod ring;
