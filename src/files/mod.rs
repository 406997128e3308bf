//! Files of any content: their paths, locks, owners and creation, and the operating system's part.
//!
//! | file | content |
//! |---|---|
//! | `path` | canonical paths, the paths in a directory, and the identities of files |
//! | `lock` | locks on single bytes of a file |
//! | `system` | the operating system's part: users, directories, creating and opening files, running processes |
//! | `named` | a directory that an application names, and its files |
//! | `whole` | creates files atomically, under a temporary name first |
//! | `cursor` | writes and reads the fields of a record |
//! | `access` | checks of owners and permissions |
//! | `bounded` | waits for a disk within a time limit |

/// The file system. Tests replace it.
pub use std::fs;

pub mod access;
pub mod bounded;
pub mod cursor;
pub mod lock;
pub mod named;
pub mod path;
pub mod system;
pub mod whole;
