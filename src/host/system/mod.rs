//! The operating system's part: default parent of pages, suitable file systems, users' files, running processes.
//!
//! | name | content |
//! |---|---|
//! | `IN_MEMORY` | whether all pages are of this boot, as in a memory file system |
//! | `default_parent`, `check_parent` | the parent of the user's directory |
//! | `user`, `user_of`, `is_file_of`, `outer_user`, `directory_name`, `create_directory`, `check_directory`, `private`, `set_private`, `create_private` | users and their files |
//! | `open`, `identity_at`, `is_at`, `Identity` | a page's file, and the file that has its name |
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

use crate::core::fault::{Class, Failure, fault};

/// For `map_err`: the system does not tell what kind of directory this is, so nobody knows who shares it.
fn unchecked(place: &Path) -> impl Fn(io::Error) -> Failure {
    move |cause| {
        Failure::new(Class::Page, fault!("unchecked-place", place, cause: cause.to_string()))
    }
}

/// The system names no directory of the user's own.
#[cfg(not(target_os = "linux"))]
fn no_parent() -> Failure {
    Failure::new(Class::Page, fault!("no-user-directory"))
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
