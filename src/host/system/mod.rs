//! What the operating system decides: where pages are by default, which file systems can hold them, who
//! may write to them, and which processes run.
//!
//! | name | what it is |
//! |---|---|
//! | `IN_MEMORY` | whether a page can only be of this boot, as in a memory file system |
//! | `default_place`, `unfit` | the directory that holds the user's own one |
//! | `user`, `user_of`, `is_file_of`, `directory_name`, `create_directory`, `private`, `set_private`, `create_private` | users and their files |
//! | `open`, `identity_at`, `is_at`, `Identity` | a page's file, and which file has its name |
//! | `start_of` | when a process started, if it runs |

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

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
mod elsewhere;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
pub use elsewhere::*;
