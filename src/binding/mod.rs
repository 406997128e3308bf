//! Node-API: what `js/` calls. Nothing else knows napi.
//!
//! `js/` has checked the type of every value that arrives here, and knows how to word an error; what
//! a value means is checked by the core. What can go wrong as a matter of course is an answer (a
//! [`Fault`], a refusal), not an exception.

mod channel;
mod ids;
mod opening;
mod options;
mod pages;
mod records;
mod ring;

use std::time::Duration;

use napi_derive::napi;

use crate::host::HostError;
use crate::layout::LayoutError;
use crate::store::{Holder, StoreError};

/// Why a call was not carried out.
#[napi(object)]
pub struct Fault {
    /// `ERR_SNOWFLAKE_...`
    pub code: String,
    /// What happened, to what value.
    pub message: String,
    /// Who holds what was asked for, as far as that is known.
    pub holders: Vec<HolderRecord>,
}

/// Who holds a slot.
#[napi(object)]
pub struct HolderRecord {
    pub pid: u32,
    pub host: String,
    /// When the process started, Unix ms.
    pub started: f64,
    /// Where it is one of several: of which slot.
    pub worker_id: Option<f64>,
}

impl HolderRecord {
    fn new(holder: &Holder, worker_id: Option<u64>) -> Self {
        HolderRecord {
            pid: holder.pid,
            host: holder.host.clone(),
            started: holder.started_ms as f64,
            worker_id: worker_id.map(|id| id as f64),
        }
    }
}

impl Fault {
    fn new(code: &str, message: String) -> Self {
        Fault { code: code.to_owned(), message, holders: Vec::new() }
    }

    fn no_directory() -> Self {
        Fault::new(
            "ERR_SNOWFLAKE_CONFIG",
            "scope 'host' needs a directory in memory that the host's processes see, and this system \
             has none at /dev/shm: mount a tmpfs there, name one in SNOWDRIFT_SHARED, or use scope \
             'process' and give each process a workerId of its own"
                .to_owned(),
        )
    }
}

impl From<HostError> for Fault {
    fn from(error: HostError) -> Self {
        let code = match error {
            HostError::OtherFormat { .. } => "ERR_SNOWFLAKE_IN_USE",
            HostError::OtherMaxAhead { .. }
            | HostError::OtherKind { .. }
            | HostError::OtherRecord { .. } => "ERR_SNOWFLAKE_CONFLICT",
            HostError::InUse { .. } => "ERR_SNOWFLAKE_IN_USE",
            HostError::Unusable { .. } | HostError::Io { .. } => "ERR_SNOWFLAKE_STORE",
        };
        Fault::new(code, error.to_string())
    }
}

impl From<LayoutError> for Fault {
    fn from(error: LayoutError) -> Self {
        let code = match error {
            LayoutError::Range { .. } | LayoutError::TooWide(_) => "ERR_SNOWFLAKE_CONFIG",
            LayoutError::Field { .. } | LayoutError::Time { .. } => "ERR_SNOWFLAKE_ARGUMENT",
            LayoutError::IdTooWide { .. } | LayoutError::BeyondDate(_) => {
                "ERR_SNOWFLAKE_INVALID_ID"
            }
        };
        Fault::new(code, error.to_string())
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::InUse { holder, .. } => Fault {
                holders: holder.iter().map(|holder| HolderRecord::new(holder, None)).collect(),
                ..Fault::new("ERR_SNOWFLAKE_IN_USE", message)
            },
            StoreError::NoSlot { holders, .. } => {
                let known = holders.iter().filter_map(|(worker_id, holder)| {
                    Some(HolderRecord::new(holder.as_ref()?, Some(*worker_id)))
                });
                Fault { holders: known.collect(), ..Fault::new("ERR_SNOWFLAKE_NO_SLOT", message) }
            }
            _ => Fault::new("ERR_SNOWFLAKE_STORE", message),
        }
    }
}

/// Holds the calling thread. `js/` bounds it by `maxWait`.
#[napi]
pub fn sleep(ms: f64) {
    std::thread::sleep(Duration::from_secs_f64(ms.clamp(0.0, 60_000.0) / 1000.0));
}
