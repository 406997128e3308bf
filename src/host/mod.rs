//! One sequence per host: [`crate::shared`]'s cells in memory that all processes of a user map.
//!
//! | file | what it is |
//! |---|---|
//! | `directory` | where the pages are: a directory per user, and who may write there |
//! | `page` | a node's page: its file, header, creation, checks, and the map |
//! | `processes` | the table of the processes that use a page, for people |
//! | `home` | the cells that a generator draws from, and a new page once the old one is gone |
//! | `system` | what the operating system decides: users, files, running processes |
//!
//! What keeps two pages of one node from issuing one ID (`tests/host`):
//!
//! 1. A page is complete before it has its name, and is never replaced, truncated or grown. Creation
//!    never replaces a page, so of two processes that create one at once, both use the first.
//! 2. Any process may remove a page at any time: each process checks, after it read the clock and
//!    before it swaps the word, that the page still has its name, once in each millisecond that the
//!    clock shows. So nothing is issued from a page after the millisecond in which it lost its name.
//! 3. A page is linked not begun. Who begins it reads the clock after the page had its name, and counts
//!    that tick as exhausted. So it issues only ticks that no earlier page of the node reached.
//!
//! 4. A page of another boot is removed. It lies on a disk, which may have kept less than was issued.
//!    Where boots have no ID, a page stays, and nobody who opens it issues anything of the clock's tick.
//!
//! Linux has its pages in memory. On other systems they are files of a disk: `scope: 'host'` uses them,
//! and by default the scope is the process. Windows does not delete a file that is mapped, so a page in
//! use keeps its name there unless it, or a directory above it, is renamed.
//!
//! Not covered: a clock that rolls back between the loss of a page and the start of the next one, when
//! the next one is begun; a process that keeps a removed page and puts it back.

mod directory;
mod home;
mod page;
mod processes;
mod system;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::node::Node;

pub use directory::{Directory, Found};
pub use home::{Halt, Home, HostSequence, Opened, Reading};
pub use page::{BootId, Header, Kind, Origin, Page, Snapshot};
pub use processes::Process;

/// Whether the scope is the host unless an option says otherwise: only where processes were killed on the
/// real system, and issued nothing twice.
pub const IS_DEFAULT: bool = cfg!(target_os = "linux");

/// Why a host's page cannot be used. None of them is a reason to share less.
#[derive(Debug, Error)]
pub enum HostError {
    /// What is there is not what it should be. It is left as it is.
    #[error("{} {what}", place.display())]
    Unusable {
        /// The file or directory.
        place: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The page is of a format that this version does not know.
    #[error(
        "{} is a page of format {format}, and this snowdrift uses format {known}: use one version of \
         snowdrift for all processes of this node",
        place.display()
    )]
    OtherFormat {
        /// The page.
        place: PathBuf,
        /// What it says of itself.
        format: u32,
        /// What this version uses.
        known: u32,
    },
    /// The node's other processes have another `maxAhead`.
    #[error(
        "maxAhead is {ours_ms} ms here, and {theirs_ms} ms for the processes that share {} (process \
         {pid} opened it first): give all processes of a node the same maxAhead",
        place.display()
    )]
    OtherMaxAhead {
        /// The page.
        place: PathBuf,
        /// Who made the page.
        pid: u32,
        /// The page's value.
        theirs_ms: i64,
        /// The value asked for.
        ours_ms: i64,
    },
    /// The node's other processes use it with `state`, or without.
    #[error("{}", other_kind(place, *pid, *is_durable))]
    OtherKind {
        /// The page.
        place: PathBuf,
        /// One of them, if that is known.
        pid: Option<u32>,
        /// Whether theirs is recorded on a disk.
        is_durable: bool,
    },
    /// The node's other processes record it in another directory.
    #[error(
        "{} is recorded in another state directory by {}: give all processes of a node the same state, or \
         use another workerId",
        place.display(),
        process(*pid)
    )]
    OtherRecord {
        /// The page.
        place: PathBuf,
        /// One of them, if that is known.
        pid: Option<u32>,
    },
    /// A page that processes use cannot be reset.
    #[error("{} is used by {}: end all processes of this node first", place.display(), process(*pid))]
    InUse {
        /// The page.
        place: PathBuf,
        /// One of them, if that is known.
        pid: Option<u32>,
    },
    /// The file system refused.
    #[error("cannot {doing} {}: {cause}{}", place.display(), advice(cause))]
    Io {
        /// The operation.
        doing: &'static str,
        /// On which file.
        place: PathBuf,
        /// Its answer.
        cause: io::Error,
    },
}

impl HostError {
    fn unusable(place: &Path, what: impl Into<String>) -> Self {
        HostError::Unusable { place: place.to_owned(), what: what.into() }
    }

    /// For `map_err`.
    fn io(doing: &'static str, place: &Path) -> impl Fn(io::Error) -> Self {
        move |cause| HostError::Io { doing, place: place.to_owned(), cause }
    }
}

impl Directory {
    /// Other users who have the same node, and so issue the same IDs: what to warn of.
    pub fn second_users(&self, node: &Node) -> Vec<String> {
        let (datacenter_id, worker_id) = (node.datacenter_id(), node.worker_id());
        let warn = |OtherUser { path, uid }| {
            format!(
                "User {uid} of this machine has datacenterId {datacenter_id} and workerId \
                 {worker_id} of the same layout, too ({}). Users do not share a sequence, so the IDs \
                 of both may be equal: give each user a workerId of its own",
                path.display()
            )
        };
        self.other_users(node).into_iter().map(warn).collect()
    }
}

/// Another user's page of a node: both users issue the same IDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherUser {
    /// The page.
    pub path: PathBuf,
    /// Who owns it.
    pub uid: u32,
}

fn other_kind(place: &Path, pid: Option<u32>, is_durable: bool) -> String {
    let (theirs, ours) = if is_durable { ("with", "without") } else { ("without", "with") };
    format!(
        "{} is used {theirs} state by {}, and this process opens it {ours}: give all processes of a node \
         the same state, or close the others first",
        place.display(),
        process(pid)
    )
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// What to do about an answer of the file system.
fn advice(cause: &io::Error) -> &'static str {
    match cause.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            ". Let this process's user write there, or name another directory in SNOWDRIFT_SHARED"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            ". A page needs 4096 bytes: remove files from this file system, or enlarge it"
        }
        _ => "",
    }
}
