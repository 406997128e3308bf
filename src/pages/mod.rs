//! Pages: the words that all who issue a node's IDs share, [`crate::core::sequence`]'s cells, in the process's own memory or
//! in a file of the host that all processes of a user map.
//!
//! | file | content |
//! |---|---|
//! | `header` | a page's header: the node, the terms that its users agree on; its names |
//! | `processes` | the table of the processes that use a page, for people |
//! | `contents` | the bytes of a page: beside its cells, the page before it, jumps, the lease |
//! | `own` | this user's directory of pages and the files in it: nobody else may write to them |
//! | `page` | a page: its memory, locks, name and end |
//! | `directory` | the directory of pages: location, owner, content; other users' pages of a node, to warn of |
//! | `sweep` | removes unused pages where there are many |
//! | `life` | how a process obtains a node's page, and what follows a page that has lost its name |
//! | `tokens` | the tokens of a leased page: the known one, and those that processes announce |
//! | `lease` | pages of slots that this host has leased, from a store or a directory: search, removal, and a lock for a search |
//!
//! Invariants that keep two pages of one node from issuing the same ID (`tests/host`, `tests/shared`):
//!
//! 1. A page is complete before it has its name, and is never truncated or grown. Creation never replaces a page, so
//!    two processes that create one at once both use the first.
//! 2. Any process may remove a page at any time. So each process checks, after it read the clock and before it swaps
//!    the word, that the page still has both its names. It checks once in each millisecond that the clock shows. So nothing
//!    is issued from a page after the millisecond in which it lost its name. Who notices ends the page for all.
//! 3. A page is begun under both its names, after the page before it was ended and what that has issued was noted. The
//!    process that begins it reads the clock then, and counts that tick as exhausted. So the page issues only ticks that
//!    no earlier page of the node reached. Exception: the node's first page in a boot begins within the current tick if
//!    ticks are longer than 1 ms. A lease that may run ahead of the clock begins above what it may take ahead, unless it knows
//!    the page before: that of another namespace may have been as far ([`Page::earlier`]).
//! 4. A page that is the only record of what it has issued runs never ahead of the clock.
//! 5. A process that changes its user leaves its free pages for the new user's, by the check of 2. A page is not the
//!    node's first one where another user has a page of the node.
//! 6. A page of another boot is removed: the disk may have kept less than was issued. Where boots have no ID, the page
//!    stays, and a process that opens it issues nothing at the clock's tick.
//!
//! On Linux, pages are in memory. On other systems they are files on a disk. Windows does not delete a mapped file, so a
//! page in use keeps its name there unless it, or a directory above it, is renamed.
//!
//! Not covered: a clock rollback between the loss of both names and the beginning of the next page; a directory that is
//! away and back while no user of the page looks.

mod contents;
mod directory;
mod header;
mod lease;
mod life;
mod own;
mod page;
mod processes;
mod sweep;
mod tokens;

pub use contents::{Kept, Leasing, Loss};
pub use directory::Directory;
pub use header::{Authority, BootId, Header, Terms};
pub use lease::LeasesLock;
pub use life::Earlier;
pub use page::{Memory, Page, Snapshot};
pub use processes::Process;
pub use tokens::Announcer;
