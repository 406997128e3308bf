//! Node-API: the functions that `js/` calls. No other part knows napi.
//!
//! `js/` has checked the type of every value that arrives here; the core checks its meaning. Ordinary failures are
//! return values, not exceptions: a [`Fault`](crate::core::fault::Fault) or a refusal, which `js/` words. A panic, which no
//! input is known to cause, would end the process if it left a function: each catches it.
//!
//! | file | content |
//! |---|---|
//! | `fault` | faults, and properties of objects |
//! | `layout` | layouts, ticks and times |
//! | `report` | reports: objects for JavaScript |
//! | `leases` | reports on leases and their pages |
//! | `request` | requests for a generator |
//! | `slots` | reports on the host's pages and a directory's slots, and their resets |
//! | `ring` | a ring, as one instance takes IDs from it |
//! | `source` | the source of an instance's IDs, opened from a request |
//! | `records` | reports of an instance |
//! | `memory` | memory that JavaScript passes: that of a block, and the elements of an array |
//! | `draw` | the hot path: from the source to the block |
//! | `channel` | channels, and their JavaScript class |
//! | `calls` | their calls of the hot path |
//! | `opening` | opens channels |

mod calls;
mod channel;
mod draw;
mod fault;
mod layout;
mod leases;
mod memory;
mod opening;
mod pages;
mod records;
mod report;
mod request;
mod ring;
mod slots;
mod source;

use std::time::Duration;

use napi_derive::napi;

/// Blocks the calling thread. `js/` bounds it by `maxWait`.
#[napi(catch_unwind)]
pub fn sleep(ms: f64) {
    // `as` makes 0 of what is no number.
    std::thread::sleep(Duration::from_millis((ms as u64).min(60_000)));
}
