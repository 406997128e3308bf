//! Node-API: the functions that `js/` calls. Only this folder depends on napi.
//!
//! `js/` has checked the type of every value that arrives here; the core checks its range. Failures are return values,
//! not exceptions: a [`Fault`](crate::core::fault::Fault) or a refusal, for which `js/` has the text. No input is known
//! to cause a panic. A panic that left a function would end the process, so each function catches it.
//!
//! | file | content |
//! |---|---|
//! | `values` | faults and reports for JavaScript; layouts, their ticks |
//! | `slots` | reports on the host's pages |
//! | `leases` | leases from stores: inputs in, reports and calls out |
//! | `records` | records of a store, for commands |
//! | `directories` | those of a directory |
//! | `disk` | promises of work that waits for a disk |
//! | `request` | requests for a generator |
//! | `source` | the source of an instance's IDs, opened from a request |
//! | `page_lease` | what a leased page says of its lease |
//! | `reports` | reports of an instance and its lease |
//! | `memory` | memory that JavaScript passes: that of a block, and the elements of an array |
//! | `draw` | the hot path: from the source to the block |
//! | `channel` | the channels of instances, and their JavaScript class |
//! | `calls` | the channels' calls on the hot path |
//! | `opening` | opens channels and leases |

mod calls;
mod channel;
mod directories;
mod disk;
mod draw;
mod leases;
mod memory;
mod opening;
mod page_lease;
mod records;
mod reports;
mod request;
mod slots;
mod source;
mod values;

use std::time::Duration;

use napi_derive::napi;

/// Blocks the calling thread. `js/` bounds the time by `maxWait`.
#[napi(catch_unwind)]
pub fn sleep(ms: f64) {
    // `as` turns NaN into 0.
    std::thread::sleep(Duration::from_millis((ms as u64).min(60_000)));
}
