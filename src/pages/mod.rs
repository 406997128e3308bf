//! Pages: the shared words of a node, with the cells of [`crate::core::sequence`]. A page is in the process's own
//! memory, or in a file of the host that all processes of a user map.
//!
//! | file | content |
//! |---|---|
//! | `header` | a page's header, with node and terms; its file names |
//! | `processes` | the table of the processes that use a page, for people |
//! | `contents` | the bytes of a page: beside its cells, notes on the previous page and the lease |
//! | `own` | checks and writes this user's directory of pages and the files in it |
//! | `page` | a page: memory and locks |
//! | `names` | checks of a page's names and user before it issues |
//! | `directory` | the directory of pages: location, owner, content; warnings of other users with the same node |
//! | `sweep` | removes unused pages if there are many |
//! | `life` | obtains and replaces a node's page |
//! | `begin` | begins a page above the ticks of earlier pages, and ends it |
//! | `word` | the lease word of a leased page, for `lease` |
//! | `lease` | pages of slots leased from a store or a directory: joining, removal, and a lock for the search |
//!
//! Invariants that prevent duplicates between two pages of one node (`tests/host`, `tests/shared`):
//!
//! 1. A page is complete before it has its name, and its length never changes. Creation never replaces a page: if two
//!    processes create one at once, both use the first.
//! 2. Any process may remove a page at any time. So each process checks that the page still has both its names, after
//!    it reads the clock and before it swaps the word, once in each millisecond that the clock shows. So nothing is
//!    issued from a page after the millisecond in which it lost a name. The process that notices ends the page for all.
//! 3. A page begins under both its names, after the previous page was ended and its last tick was noted. The process
//!    that begins it then reads the clock, and counts that tick as exhausted. So the page issues only ticks that no
//!    earlier page of the node reached. Exception: the node's first page in a boot begins within the current tick if
//!    ticks are longer than 1 ms. A leased page that may run ahead of the clock begins `max_ahead` above it, unless it
//!    knows the previous page: a page of another namespace may have been that far ahead ([`Page::earlier`]).
//! 4. A page that is the only record of its IDs never runs ahead of the clock.
//! 5. A process that changes its user leaves its free pages for the new user's, by the check of 2. A new page is not
//!    the node's first if another user has a page of the node.
//! 6. A page of another boot is removed, since the disk may lack its last IDs. Where boots have no ID, the page stays,
//!    and a process that opens it issues nothing at or below the clock's tick.
//!
//! On Linux, pages are in memory. On other systems they are files on a disk. Windows does not delete a mapped file, so
//! a page in use loses its name there only if it, or a directory above it, is renamed.
//!
//! Not covered: a clock rollback between the loss of both names and the beginning of the next page; a directory that is
//! moved away and back between two checks of all users of its pages.

mod begin;
mod contents;
mod directory;
mod header;
mod lease;
mod life;
mod names;
mod own;
mod page;
mod processes;
mod sweep;
mod word;

pub use begin::Earlier;
pub use contents::{LeaseStatus, Notes};
pub use directory::Directory;
pub use header::{BootId, Header, Terms};
pub use lease::LeasesLock;

pub use page::{Page, PageMemory, Snapshot};
pub use processes::Process;
