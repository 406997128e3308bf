//! The holder of a slot, and a store's answers about slots.

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
