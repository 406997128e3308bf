//! Files, whatever they contain: their paths, locks, owners and creation, and what the operating system says of them.
//!
//! | file | content |
//! |---|---|
//! | `path` | canonical paths, the paths in a directory, and the identities of files |
//! | `lock` | locks on single bytes of a file |
//! | `system` | the operating system's part: users, places, how files are created and opened, running processes |
//! | `whole` | writes files whole, under a temporary name first |
//! | `cursor` | the fields of a record in order |
//! | `access` | who may own a file or directory, and write to it |

pub mod access;
pub mod cursor;
pub mod lock;
pub mod path;
pub mod system;
pub mod whole;
