//! Where slots are recorded, so that what one process issued is not issued again by the next, and
//! two never issue at one time. A slot is a node's place in a store.
//!
//! Every store keeps these rules:
//!
//! 1. A holder issues ticks in (floor, ceiling] only. Its floor is the ceiling that was recorded
//!    before it came; or a lower one, where the store knows the high marks of all that was issued
//!    above that and hands them over.
//! 2. A recorded ceiling never falls, except by its owner's release, to the last tick it issued.
//! 3. Checking the owner and raising the ceiling is one atomic step.
//! 4. A generator's ceiling moves only after the store has confirmed it.
//!
//! So no two holders of a slot share a (tick, counter), whatever their clocks and pauses are. Here is the
//! embedded store; [`crate::durable`] binds its records to pages. The others are in `js/lease`.
//!
//! | file | what it is |
//! |---|---|
//! | `lock` | locks on single bytes of a file |
//! | `record` | what a slot's file says of it |
//! | `path` | one name for one directory, and which file has a name |
//! | `boot` | which boot of the machine this is |
//! | `file` | a directory with a file a slot |

mod boot;
pub mod file;
pub(crate) mod lock;
pub(crate) mod path;
pub mod record;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::layout::Tick;
use crate::sequencer::HighMarks;

pub use boot::boot_id;

/// Who holds a slot, or wants to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Tells one holding from every other.
    pub token: u128,
    /// Its process.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// When the process started, Unix ms.
    pub started_ms: i64,
}

/// A slot that a store has a record of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Which.
    pub worker_id: u64,
    /// Nothing was issued above it. None where the record cannot be used: acquiring it tells why.
    pub ceiling: Option<Tick>,
}

/// What a holder starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Nothing at or below this tick may be issued.
    pub floor: Tick,
    /// Nothing above this tick may be issued, until a renewal is confirmed.
    pub ceiling: Tick,
    /// What was issued above the floor.
    pub high: HighMarks,
}

/// Why a store did not do what it was asked for.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Someone else has the slot.
    #[error("{place} is held by another process")]
    InUse {
        /// Which slot.
        place: String,
        /// Who has it, if that could be read.
        holder: Option<Holder>,
    },
    /// Another thread of this process takes or gives the slot up, and does not come to an end.
    #[error(
        "another thread of this process has been taking or giving up {place} for {} s: look at its \
         disk, and try again",
        waited.as_secs()
    )]
    Busy {
        /// Which slot.
        place: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// Every slot is held.
    #[error("all slots of datacenterId {datacenter_id} in {store} are held{}", except(unusable))]
    NoSlot {
        /// The store's name.
        store: String,
        /// Of which datacenter.
        datacenter_id: u64,
        /// Who has which worker ID, as far as that could be read.
        holders: Vec<(u64, Option<Holder>)>,
        /// What is wrong with those that nobody holds.
        unusable: Vec<String>,
    },
    /// The slot is not this holder's any more.
    #[error("{0}")]
    Lost(String),
    /// What is there is not a record of this slot that can be used.
    #[error("{} {what}", place.display())]
    Unusable {
        /// The file.
        place: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// What is there is recorded for another cut of bits.
    #[error("{} {what}", place.display())]
    OtherLayout {
        /// The file.
        place: PathBuf,
        /// Which layouts, and what to do.
        what: String,
    },
    /// The file system refused.
    #[error("cannot {doing} {}: {cause}{}", place.display(), advice(cause))]
    Io {
        /// What it was asked to do.
        doing: &'static str,
        /// To which file.
        place: PathBuf,
        /// What it said.
        cause: io::Error,
    },
}

impl StoreError {
    /// Whether it concerns this slot's file alone, so that another slot may do.
    pub fn is_of(&self, file: &Path) -> bool {
        match self {
            StoreError::Unusable { .. } => true,
            StoreError::Io { place, .. } => place == file,
            _ => false,
        }
    }
}

/// The most unusable slots that an error describes.
const DESCRIBED: usize = 3;

fn except(unusable: &[String]) -> String {
    let described = unusable[..unusable.len().min(DESCRIBED)].join("; ");
    match unusable.len() {
        0 => String::new(),
        1..=DESCRIBED => format!(" or cannot be used ({described})"),
        all => format!(" or cannot be used ({described}; and {} more)", all - DESCRIBED),
    }
}

/// What to do about what the file system said.
fn advice(cause: &io::Error) -> &'static str {
    match cause.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            ". Let this process's user write there, or choose another directory"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ". Make room on that disk",
        ErrorKind::NotFound => ". Make the directory above it",
        ErrorKind::NotADirectory => ". Name a directory",
        _ => "",
    }
}
