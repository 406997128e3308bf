//! Node-API: what `js/` calls. Nothing else knows napi.
//!
//! `js/` has checked the type of every value that arrives here, and knows how to word an error; what
//! a value means is checked by the core. What can go wrong as a matter of course is an answer (a
//! [`Fault`], a refusal), not an exception.

mod channel;
mod ids;
mod options;

use std::time::Duration;

use napi_derive::napi;

use crate::layout::LayoutError;

/// Why a call was not carried out.
#[napi(object)]
pub struct Fault {
    /// `ERR_SNOWFLAKE_...`
    pub code: String,
    /// What happened, to what value.
    pub message: String,
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
        Fault { code: code.to_owned(), message: error.to_string() }
    }
}

/// Holds the calling thread. `js/` bounds it by `maxWait`.
#[napi]
pub fn sleep(ms: f64) {
    std::thread::sleep(Duration::from_secs_f64(ms.clamp(0.0, 60_000.0) / 1000.0));
}
