//! A node's page: a file that every process that issues the node's IDs maps. On Linux it is in memory.
//!
//! The page's users share a lock on a byte of the file. A process that replaces an unused page holds that lock
//! exclusively.
//!
//! A process that accesses a page behind its file's end receives SIGBUS. Only its own user can truncate the file, and
//! snowdrift never does.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

use memmap2::{MmapOptions, MmapRaw};
use parking_lot::Mutex;

use super::contents::{BYTES, Contents};
use super::header::{HEADER_BYTES, Header, MARKER};
use super::kept::{Kept, Leasing, unix_ms};
use super::processes::{self, Process};
use super::{Kind, own};
use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::Tick;
use crate::core::sequence::{Cells, Sequence};
use crate::core::sequencer::{HighMarks, NEVER};
use crate::files::lock::{self, Hold, USERS};
use crate::files::path::{Identity, identity_at};
use crate::files::system::user;

/// The way in which this process obtained a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Another process created it, or an earlier call did.
    Joined,
    /// This process created it after another one, as far as is known.
    Next,
    /// This process created it as the node's first one in this boot.
    First,
}

/// A node's page, mapped. If it has lost its name since, nothing may be issued from it.
pub struct Page {
    map: MmapRaw,
    /// Open and locked while the page is used.
    file: Mutex<Option<File>>,
    path: PathBuf,
    identity: Identity,
    header: Header,
    /// Its owner.
    uid: u32,
    /// Whether this process has left it for another user's.
    is_left: AtomicBool,
    /// Whether this process is in the table of processes.
    is_entered: bool,
    pub(super) may_be_old: bool,
    pub(super) origin: Origin,
}

impl Page {
    /// Maps the page of this name; none if it does not exist.
    pub(super) fn map(path: &Path, uid: u32) -> Result<Option<Page>, Failure> {
        let (mut file, identity) = match open(path, uid) {
            Err(failure) if failure.is_missing() => return Ok(None),
            opened => opened?,
        };
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact(&mut bytes).map_err(Failure::io("page-io", "read", path))?;
        let header = Header::from_bytes(&bytes, path)?;
        let map = MmapOptions::new()
            .len(BYTES)
            .map_raw(&file)
            .map_err(Failure::io("page-io", "map", path))?;
        let may_be_old = header.boot_id.is_unknown();
        let page = Page {
            map,
            file: Mutex::new(Some(file)),
            path: path.to_owned(),
            identity,
            header,
            uid,
            is_left: AtomicBool::new(false),
            is_entered: false,
            may_be_old,
            origin: Origin::Joined,
        };
        match page.is_possible() {
            true => Ok(Some(page)),
            false => Err(Failure::new(Class::Page, fault!("page-damaged", place: path))),
        }
    }

    /// Adds this process to the table.
    pub(super) fn enter(&mut self) {
        processes::enter(&self.contents().processes, unix_ms());
        self.is_entered = true;
    }

    /// Sets the path after a rename.
    pub(super) fn set_path(&mut self, path: &Path) {
        path.clone_into(&mut self.path);
    }

    fn with_file(&self, lock: impl FnOnce(&File) -> io::Result<bool>) -> Result<bool, Failure> {
        let file = self.file.lock();
        file.as_ref().map_or(Ok(false), lock).map_err(Failure::io("page-io", "lock", &self.path))
    }

    /// Whether another process uses it, or another opening in this one. On Linux the check never keeps others away;
    /// elsewhere it may, for a moment.
    pub fn is_used(&self) -> Result<bool, Failure> {
        self.with_file(|file| lock::is_taken(file, USERS))
    }

    pub(super) fn lock(&self, hold: Hold) -> Result<bool, Failure> {
        self.with_file(|file| lock::try_take(file, USERS, hold))
    }

    pub(super) fn is_locked_alone(&self) -> Result<bool, Failure> {
        self.with_file(|file| lock::is_exclusive(file, USERS))
    }

    /// Locks the page exclusively, unless others use it.
    pub fn try_alone(&self) -> Result<bool, Failure> {
        self.lock(Hold::Exclusive)
    }

    /// Unlocks and closes its file: this process issues nothing from it any more.
    pub fn retire(&self) {
        if let Some(file) = self.file.lock().take() {
            // Unlocks at once, even if a forked process still has the open file.
            let _ = lock::release(&file, USERS);
        }
    }

    /// Shares the lock with others.
    pub fn share(&self) -> Result<(), Failure> {
        self.lock(Hold::Shared).map(drop)
    }

    /// A random ID of the page.
    pub fn id(&self) -> u128 {
        self.header.page_id
    }

    /// The highest tick issued under each counter.
    pub fn high_marks(&self) -> HighMarks {
        self.sequence().high_marks()
    }

    /// Removes the page, if it has its name.
    pub fn remove(&self) -> Result<(), Failure> {
        if self.is_named()? { own::remove(&self.path) } else { Ok(()) }
    }

    /// Removes the page and the node's marker. Requires [`Page::try_alone`]: no other process creates a page meanwhile.
    pub fn remove_with_marker(&self) -> Result<(), Failure> {
        if self.is_named()? {
            // The marker first: while the page has its name, no other process places a marker.
            own::remove(&self.path.with_extension(MARKER))?;
        }
        self.remove()
    }

    /// A running process that uses the page, preferably another one than this, by the table.
    pub fn living_user(&self) -> Option<u32> {
        processes::living_other(&self.contents().processes)
    }

    /// The page has issued nothing above this tick, and issues nothing while nobody uses it.
    pub fn highest(&self) -> Tick {
        let sequence = self.sequence();
        sequence.high_marks().highest().max(sequence.floor()).max(NEVER)
    }

    /// The ceiling of a plain page; `Tick::MAX` for other kinds, whose record or store sets it.
    pub fn ceiling(&self) -> Tick {
        match self.header.kind {
            Kind::Plain => self.cells().ceiling(),
            Kind::Durable | Kind::Leased | Kind::DurableLease => Tick::MAX,
        }
    }

    fn contents(&self) -> &Contents {
        // SAFETY: the map is as long as `Contents` and aligned to a system page, which is at least 4096 bytes. It lives as
        // long as `self`. All fields are atomics, for which any bits are a valid value, and other processes that map
        // the file change them atomically. (If their user truncates the file, the access ends the process; it reads
        // nothing else.)
        unsafe { &*self.map.as_ptr().cast::<Contents>() }
    }

    /// The cells that its processes share.
    pub fn cells(&self) -> &Cells {
        &self.contents().cells
    }

    /// The sequencer of its cells.
    pub(super) fn sequence(&self) -> Sequence<&Cells> {
        Sequence::new(self.cells(), self.header.node.layout())
    }

    /// The words beside the cells.
    pub fn kept(&self) -> &Kept {
        &self.contents().kept
    }

    /// State of its lease; none for a page of another kind.
    pub fn leasing(&self) -> Option<Leasing> {
        (self.header.kind == Kind::Leased).then(|| self.kept().leasing())
    }

    /// Its content, for people.
    pub fn snapshot(&self) -> Snapshot {
        let processes = processes::all(&self.contents().processes).collect();
        Snapshot { header: self.header, processes, leasing: self.leasing() }
    }

    /// The way in which this process obtained it.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Its path, even after the loss of its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether it may be of another boot, and so lack issued IDs: after a power cut a disk has only what was written
    /// back before. A process that opens it issues nothing at the clock's tick, as after the replacement of a page.
    pub fn may_be_old(&self) -> bool {
        self.may_be_old
    }

    /// Returns an error if the page was overwritten or cleared.
    pub fn check_intact(&self) -> Result<(), Failure> {
        if self.contents().is_intact() {
            return Ok(());
        }
        Err(self.overwritten())
    }

    /// The error of a page that holds what no process of snowdrift writes.
    pub fn overwritten(&self) -> Failure {
        Failure::new(Class::Page, fault!("page-overwritten", place: self.path.as_path()))
    }

    /// Whether its cells are possible: see [`Sequence::is_possible`].
    pub fn is_possible(&self) -> bool {
        self.sequence().is_possible(self.header.max_ahead)
    }

    /// Whether the page belongs to the user that this process has now. After `setuid` or `seteuid`, its children use the
    /// new user's pages. Pages of other kinds stay: a record or a lease bounds them.
    pub(super) fn is_of_present_user(&self) -> bool {
        let is_ours = || !self.is_left.load(Acquire) && self.uid == user();
        self.header.kind != Kind::Plain || is_ours()
    }

    /// Leaves the page, if the process has changed its user: it issues nothing from it any more. An error while others
    /// use it: they and the new user's processes would issue duplicates.
    pub(super) fn leave_to_user(&self) -> Result<(), Failure> {
        let (from, to) = (self.uid, user());
        if from == to {
            return Ok(());
        }
        self.is_left.store(true, Release);
        let is_used = self.with_file(|file| {
            lock::release(file, USERS)?;
            lock::is_taken(file, USERS)
        })?;
        if !is_used {
            return Ok(());
        }
        let (place, pid) = (self.path(), self.living_user());
        Err(Failure::new(Class::Conflict, fault!("page-user", place, pid, from, to)))
    }

    /// Whether its path still names it, so that all who open the node find this page.
    ///
    /// The link count is no substitute: a renamed page, or one in a renamed directory, still has its link while others
    /// create a new page beside it.
    pub fn is_named(&self) -> Result<bool, Failure> {
        match identity_at(&self.path) {
            Ok(identity) if identity == self.identity => self.check_intact().map(|()| true),
            Ok(_) => Ok(false),
            Err(cause)
                if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(false)
            }
            Err(cause) => Err(Failure::io("page-io", "inspect", &self.path)(cause)),
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if self.is_entered {
            processes::leave(&self.contents().processes);
        }
        self.retire();
    }
}

/// A page's content for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The header.
    pub header: Header,
    /// The processes in its table.
    pub processes: Vec<Process>,
    /// State of the lease, for a leased page.
    pub leasing: Option<Leasing>,
}

/// Opens a file that has the length of a page.
fn open(path: &Path, uid: u32) -> Result<(File, Identity), Failure> {
    let (file, found, identity) = own::open(path, uid)?;
    if found.len() != BYTES as u64 {
        let fault = fault!("page-length", place: path, length: found.len(), wanted: BYTES);
        return Err(Failure::new(Class::Page, fault));
    }
    Ok((file, identity))
}
