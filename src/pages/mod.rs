//! One sequence per host: [`crate::core::sequence`]'s cells in memory that all processes of a user map.
//!
//! | file | content |
//! |---|---|
//! | `own` | this user's directory of pages and the files in it: nobody else may write to them |
//! | `header` | a page's header, which records the node and the use of the page; its name |
//! | `processes` | the table of the processes that use a page, for people |
//! | `kept` | the words of a page beside its cells: the record's file, jumps, the lease |
//! | `contents` | the bytes of a page |
//! | `page` | a page, mapped: its locks, its name, its removal |
//! | `joining` | checks of an existing page that a process wants to use |
//! | `directory` | the directory of pages: location, owner; finds, creates and replaces pages |
//! | `sweep` | removes unused pages where there are many |
//! | `other_users` | other users' pages of a node, to warn of |
//! | `lease` | pages of slots that a store has leased to this host |
//! | `durable_lease` | pages of slots that this host has leased from directories: search and removal |
//! | `leases_lock` | a lock: one process at a time looks for the host's leased slot |
//! | `opened` | the cells that a generator draws from, with the check of their page's name |
//! | `sequence` | the successive cells of a node: a new page after the loss of the old one |
//!
//! Invariants that keep two pages of one node from issuing the same ID (`tests/host`):
//!
//! 1. A page is complete before it has its name, and is never truncated or grown. Creation never replaces a page, so
//!    two processes that create one at once both use the first.
//! 2. Any process may remove a page at any time. So each process checks, after it read the clock and before it swaps
//!    the word, that the page still has its name. It checks once in each millisecond that the clock shows. So nothing
//!    is issued from a page after the millisecond in which it lost its name.
//! 3. A page is linked before it is begun. The process that begins it reads the clock after the page had its name, and
//!    counts that tick as exhausted. So the page issues only ticks that no earlier page of the node reached. Exception:
//!    the node's first page in a boot begins within the current tick if ticks are longer than 1 ms.
//! 4. A process that changes its user leaves its plain pages for the new user's, by the check of 2. A page is not the
//!    node's first one where another user has a page of the node.
//! 5. A page of another boot is removed: the disk may have kept less than was issued. Where boots have no ID, the page
//!    stays, and a process that opens it issues nothing at the clock's tick.
//!
//! On Linux, pages are in memory. On other systems they are files on a disk. Windows does not delete a mapped file, so a
//! page in use keeps its name there unless it, or a directory above it, is renamed.
//!
//! Not covered: a clock rollback between the loss of a page and the beginning of the next one; a process that keeps a
//! removed page and puts it back.

mod contents;
mod directory;
mod durable_lease;
mod header;
mod kept;
mod lease;
mod leases_lock;
mod life;
mod other_users;
mod own;
mod page;
mod processes;
mod reading;
mod sweep;

pub use directory::{Directory, Found};
pub use header::{Authority, BootId, Header, Terms};
pub use kept::{Grant, Kept, Leasing, Loss};
pub use leases_lock::LeasesLock;
pub use other_users::OtherUser;
pub use page::{Memory, Page, Snapshot};
pub use processes::Process;
pub use reading::{Halt, Reading};
