//! The operating system's part.
//!
//! | name | content |
//! |---|---|
//! | `IN_MEMORY` | whether all files that processes share are of this boot, as in a memory file system |
//! | `default_parent`, `check_parent` | where each user has a directory for them |
//! | `user`, `user_of`, `outer_user`, `directory_name` | users, and their directories there |
//! | `traits` | owner, group and permissions of a file |
//! | `is_locked` | whether any user's process has a lock on a file |
//! | `create_directory`, `set_directory_mode`, `private`, `set_private`, `open` | directories and files with their modes |
//! | `boot_id` | the ID of the machine's boot |
//! | `start_of` | the start of a process, if it runs |

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::*;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub use macos::*;

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub use unix::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::*;

use std::io;
use std::path::Path;

use crate::core::fault::{Fault, fault};

/// Owner, group and permissions of a file or directory.
pub struct Traits {
    /// The user who owns it.
    pub owner: u32,
    /// Its group.
    pub group: u32,
    /// The permissions of owner, group and others, as `chmod` takes them.
    pub mode: u32,
    /// The number of its names.
    pub names: u64,
}

/// A user's number outside of this process's user namespace: only Linux has these.
#[cfg(not(target_os = "linux"))]
pub fn outer_user(uid: u32) -> u32 {
    uid
}

/// Whether any process has a lock on this file, which may be another user's: only Linux tells.
#[cfg(not(target_os = "linux"))]
pub fn is_locked(_: &std::fs::Metadata) -> Option<bool> {
    None
}

/// For `map_err`: the system does not tell what kind of directory this is, so nobody knows who shares it.
fn unchecked(place: &Path) -> impl Fn(io::Error) -> Fault {
    move |cause| fault!("unchecked-place", place, cause: cause.to_string())
}

/// The system names no directory of the user's own.
#[cfg(not(target_os = "linux"))]
fn no_parent() -> Fault {
    fault!("no-user-directory")
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
compile_error!(
    "snowdrift builds for Linux, macOS and Windows; another system needs a file beside macos.rs"
);

#[cfg(all(test, any(target_os = "linux", target_os = "macos")))]
mod tests {
    #[test]
    fn one_boot_has_one_id() {
        let id = super::boot_id().unwrap();
        assert_eq!(id.trim().len(), 36);
        assert_eq!(super::boot_id(), Some(id));
    }
}
