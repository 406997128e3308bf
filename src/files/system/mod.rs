//! The operating system's part.
//!
//! | name | content |
//! |---|---|
//! | `IN_MEMORY` | whether shared files are in memory, so that all are of this boot |
//! | `default_parent`, `check_parent` | the parent of each user's directory of shared files |
//! | `user`, `user_of`, `outer_user`, `directory_name` | users, and the names of their directories |
//! | `ownership` | owner, group and mode of a file |
//! | `is_locked` | whether a process of any user has locked a file |
//! | `create_directory`, `set_directory_mode`, `private`, `set_private`, `open` | creates and opens directories and files |
//! | `monotonic_ms` | the host's monotonic clock |
//! | `boot_id` | the ID of the present boot |
//! | `start_of` | the start time of a running process |

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

/// Owner, group and mode of a file or directory.
pub struct Ownership {
    /// The owner's user ID.
    pub owner: u32,
    /// The group's ID.
    pub group: u32,
    /// The permission bits, as `chmod` takes them.
    pub mode: u32,
    /// The number of hard links.
    pub links: u64,
}

/// The user's ID outside of this process's user namespace: only Linux has user namespaces.
#[cfg(not(target_os = "linux"))]
pub fn outer_user(uid: u32) -> u32 {
    uid
}

/// Whether any process, also of another user, has locked this file: only Linux reports it.
#[cfg(not(target_os = "linux"))]
pub fn is_locked(_: &std::fs::Metadata) -> Option<bool> {
    None
}

/// For `map_err`: the system does not report the kind of this directory, so who shares it is unknown.
fn unchecked(place: &Path) -> impl Fn(io::Error) -> Fault {
    move |cause| fault!("unchecked-place", place, cause: cause.to_string())
}

/// The fault of a system without a directory of the user's own.
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
