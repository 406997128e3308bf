//! Unix systems on which no page was tried: the scope is the process.

use std::path::{Path, PathBuf};

/// Not asked for: there are no pages.
pub const IN_MEMORY: bool = false;

/// None on this system.
pub fn default_place() -> Option<PathBuf> {
    None
}

/// Why this directory cannot hold pages.
pub fn unfit(_: &Path) -> Option<&'static str> {
    Some(
        "cannot hold pages: processes of this system share no sequence. Unset SNOWDRIFT_SHARED, and \
         give each process a workerId of its own",
    )
}

/// Not known.
pub fn start_of(_: u32) -> Option<u64> {
    None
}

/// There are no user namespaces.
pub fn outer_user(uid: u32) -> u32 {
    uid
}
