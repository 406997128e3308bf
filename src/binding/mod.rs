//! Node-API: the functions that `js/` calls. No other part knows napi.
//!
//! `js/` has checked the type of every value that arrives here; the core checks its meaning. Ordinary failures are
//! return values, not exceptions: a [`Fault`](crate::core::fault::Fault) or a refusal, which `js/` words.
//!
//! | file | content |
//! |---|---|
//! | `fault` | failed calls; holders of slots |
//! | `layout`, `ids` | layouts; decoding and encoding |
//! | `leases` | leases and their pages: requests and reports |
//! | `request` | requests for a generator |
//! | `pages`, `slots` | reports on the host's pages and a directory's slots, and their resets |
//! | `ring` | a ring, as one instance takes IDs from it |
//! | `source` | the source of an instance's IDs, opened from a request |
//! | `records` | reports of an instance |
//! | `block` | the block of IDs in memory that JavaScript reads |
//! | `draw` | the hot path: from the source to the block |
//! | `channel` | an instance's source, draws and listeners |
//! | `class`, `calls` | the JavaScript class of channels, and its calls of the hot path |
//! | `object` | the object that JavaScript draws from |
//! | `opening` | opens channels |

mod block;
mod calls;
mod channel;
mod class;
mod draw;
mod fault;
mod ids;
mod layout;
mod leases;
mod object;
mod opening;
mod pages;
mod records;
mod request;
mod ring;
mod slots;
mod source;

use std::time::Duration;

use napi_derive::napi;

/// Blocks the calling thread. `js/` bounds it by `maxWait`.
#[napi]
pub fn sleep(ms: f64) {
    std::thread::sleep(Duration::from_secs_f64(ms.clamp(0.0, 60_000.0) / 1000.0));
}
