//! One generator per node for the whole process, so that instances and worker_threads that name the same node cannot
//! collide.
//!
//! | file | content |
//! |---|---|
//! | `request` | a request for a generator, and who allows it to issue IDs |
//! | `entry` | the process's entry for a node: its generators and their users |
//! | `share` | one user's share in a node's generator; what the last one releases |
//! | `open` | opens what a request names |
//! | `host` | this host, as the protocol of leases sees it |
//! | `host_pages` | the host's leased pages, for one lease |
//! | `host_page` | such a page, as one lease has it |
//! | `directories` | leases from directories, which callers in this process share |
//! | `executor` | what their threads do: calls, timers, reports |
//! | `keeper` | such a lease without a thread: driver, pages and register |
//! | `reasons` | why a lease has no slot |
//!
//! The process never forgets what it issues alone, not even after all instances are closed: a later opening must not
//! issue the same IDs again. A process names few nodes. The host's page remembers the IDs drawn from it.

mod directories;
mod entry;
mod executor;
mod host;
mod host_page;
mod host_pages;
mod keeper;
mod open;
mod reasons;
mod request;
mod share;

pub use directories::{DirectoryLease, DirectoryLeasing, release_all};
pub use executor::Leased;
pub use host_page::HostPage;
pub use host_pages::{HostPages, IsUsable};
pub use reasons::Reasons;
pub use request::{By, Request, Scope};
pub use share::Share;

#[cfg(test)]
mod tests;
