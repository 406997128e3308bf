//! Stores record slots: no holder issues the IDs of an earlier one, and a slot has one holder at a time. A slot is a
//! worker ID in a store.
//!
//! Every store keeps these rules:
//!
//! 1. A holder issues ticks in (floor, ceiling] only. Its floor is the ceiling recorded before its start, or a lower
//!    one, if the store hands over the high marks of all IDs issued above that.
//! 2. A recorded ceiling never falls, except by its owner's release, to the last tick it issued.
//! 3. Checking the owner and raising the ceiling is one atomic operation.
//! 4. A generator's ceiling moves only after the store has confirmed it.
//!
//! So no two holders of a slot share a (tick, counter), whatever their clocks and pauses are. This module is the
//! embedded store; [`crate::lease::durable`] binds its records to pages. The other stores are in `js/lease`.
//!
//! | file | content |
//! |---|---|
//! | `record` | a slot's record in its file |
//! | `checks` | checks of slot files, and the errors that they return |
//! | `slot` | a slot's file: its records and locks |
//! | `file` | a directory with one file per slot |

pub(crate) mod checks;
pub mod file;
pub mod record;
pub mod slot;

use std::path::Path;

use crate::core::fault::{Class, Failure, Fault, Value, fault};
use crate::core::layout::Tick;

/// A slot's holder, or a process that wants to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The random ID of one holding.
    pub token: u128,
    /// Its process.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// Start of the process, Unix ms.
    pub started_ms: i64,
}

/// A slot that a store has a record of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The worker ID.
    pub worker_id: u64,
    /// The highest tick that may have been issued. None if the record is unusable: acquiring the slot returns the
    /// reason.
    pub ceiling: Option<Tick>,
}

/// The failure of a slot that another holder has, if readable.
pub fn in_use(place: &Path, holder: Option<&Holder>) -> Failure {
    let named = |holder: &Holder| {
        let Holder { pid, host, started_ms, .. } = holder;
        fault!("holder", worker: Value::None, pid: *pid, host: host.as_str(), started: *started_ms)
    };
    let holders: Vec<Fault> = holder.into_iter().map(named).collect();
    Failure::new(Class::InUse, fault!("slot-in-use", place, holders))
}
