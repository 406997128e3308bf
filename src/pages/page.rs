//! A node's page: the words that all issuers of its IDs share, in the process's own memory or in a file that the host's
//! processes map. On Linux that file is in memory.
//!
//! Each user of a file has a shared lock on a byte of it. A process that replaces an unused page locks that byte
//! exclusively.
//!
//! A process that accesses a page of a truncated file receives SIGBUS. Only its own user can truncate the file, and
//! snowdrift never does.

use std::borrow::Borrow;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64};

use memmap2::{MmapOptions, MmapRaw};
use parking_lot::Mutex;
use tempfile::NamedTempFile;

use super::contents::{BYTES, Contents, LeaseStatus, Notes, Words, unix_ms};
use super::header::{HEADER_BYTES, Header, MARKER, Terms};
use super::own;
use super::processes::{self, Process};
use crate::core::fault::{Class, Failure, fault};
use crate::core::node::Node;
use crate::core::sequence::{Cells, Sequence};
use crate::files::lock::{self, LockMode, USERS};
use crate::files::path::Identity;

/// A node's page. Nothing may be issued from it after it lost its name.
pub struct Page {
    sequence: Sequence<PageMemory>,
    header: Header,
    /// The last Unix ms at which its names were checked.
    pub(super) checked_ms: AtomicI64,
    /// `None` for a page in the process's own memory, which no other process finds.
    pub(super) place: Option<PageFile>,
    /// Whether this process is in the table of processes.
    is_entered: bool,
    /// Whether the page may be of another boot, and so lack issued IDs: after a power cut, a disk has only what was
    /// written back before. A process that opens the page issues nothing at or below the clock's tick, as after a
    /// replacement.
    pub may_be_old: bool,
    /// Whether its cells cover what all earlier pages of the node issued.
    pub(super) knows_earlier: bool,
}

/// The memory of a page.
pub enum PageMemory {
    /// The process's own.
    Process(Box<Words>),
    /// A file's.
    Mapped(MmapRaw),
}

/// The file of a page, and its names.
pub(super) struct PageFile {
    /// Open and locked while the page is in use.
    pub file: Mutex<Option<File>>,
    pub path: PathBuf,
    /// The path of its node's marker.
    pub marker: PathBuf,
    pub identity: Identity,
    /// The file's owner.
    pub uid: u32,
    /// Whether this process left the page because it changed its user.
    pub is_left: AtomicBool,
}

impl PageMemory {
    #[inline]
    fn words(&self) -> &Words {
        match self {
            PageMemory::Process(words) => words,
            // SAFETY: the map is as long as `Words` and aligned to a system page, which is at least 4096 bytes. It
            // lives as long as `self`. All words are atomics, for which any bits are a valid value, and other processes
            // that map the file change them atomically. (If their user truncates the file, the access ends the process;
            // it reads no other memory.)
            PageMemory::Mapped(map) => unsafe { &*map.as_ptr().cast::<Words>() },
        }
    }
}

impl Borrow<Cells> for PageMemory {
    #[inline]
    fn borrow(&self) -> &Cells {
        &self.words().contents().cells
    }
}

impl Page {
    /// A page in the process's own memory, which no other process finds. Its sequencer is fresh.
    pub fn in_process(node: Node, terms: Terms) -> Page {
        let header = Header { page_id: fastrand::u128(1..), ..Header::new(node, terms) };
        Page::of(PageMemory::Process(Box::default()), header, None)
    }

    /// A new page with this header, for a file. It issues nothing until it begins. The word is never 0, so a cleared
    /// page is noticed.
    pub(super) fn new(wanted: Header) -> Page {
        let page_id = fastrand::u128(1..);
        let header = Header { page_id, created_ms: unix_ms(), ..wanted };
        let page = Page::of(PageMemory::Process(Box::default()), header, None);
        page.contents().set_header(header.to_bytes());
        page.cells().prepare(header.node.layout());
        page
    }

    /// Writes the page to a temporary file.
    pub(super) fn write(&self, directory: &Path) -> io::Result<NamedTempFile> {
        own::write_page(directory, |identity| {
            self.notes().set_original_file(identity);
            self.sequence.memory().words().to_bytes()
        })
    }

    /// Maps the page at this path; `None` if it does not exist.
    pub(super) fn map(path: &Path, uid: u32) -> Result<Option<Page>, Failure> {
        let (mut file, found, identity) = match own::open_page(path, uid) {
            Err(failure) if failure.is_missing() => return Ok(None),
            opened => opened?,
        };
        if found.len() != BYTES as u64 {
            let fault = fault!("page-length", place: path, length: found.len(), wanted: BYTES);
            return Err(Failure::new(Class::Page, fault));
        }
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact(&mut bytes).map_err(Failure::io("page-io", "read", path))?;
        let header = Header::from_bytes(bytes, path)?;
        let map = MmapOptions::new()
            .len(BYTES)
            .map_raw(&file)
            .map_err(Failure::io("page-io", "map", path))?;
        let place = PageFile {
            file: Mutex::new(Some(file)),
            path: path.to_owned(),
            marker: path.with_extension(MARKER),
            identity,
            uid,
            is_left: AtomicBool::new(false),
        };
        let page = Page::of(PageMemory::Mapped(map), header, Some(place));
        match page.is_possible() {
            true => Ok(Some(page)),
            false => Err(Failure::new(Class::Page, fault!("page-damaged", place: path))),
        }
    }

    fn of(memory: PageMemory, header: Header, place: Option<PageFile>) -> Page {
        let sequence = Sequence::new(memory, header.node.layout());
        let may_be_old = place.is_some() && header.boot_id.is_unknown();
        let checked_ms = AtomicI64::new(i64::MIN);
        let (is_entered, knows_earlier) = (false, false);
        Page { sequence, header, checked_ms, place, is_entered, may_be_old, knows_earlier }
    }

    /// The sequencer of its cells.
    #[inline]
    pub fn sequence(&self) -> &Sequence<PageMemory> {
        &self.sequence
    }

    pub(super) fn contents(&self) -> &Contents {
        self.sequence.memory().words().contents()
    }

    /// The cells that its users share.
    pub fn cells(&self) -> &Cells {
        &self.contents().cells
    }

    /// The words beside the cells.
    pub fn notes(&self) -> &Notes {
        &self.contents().notes
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The page's random ID.
    pub fn id(&self) -> u128 {
        self.header.page_id
    }

    /// Its path, even after it lost its name; `None` in the process's own memory.
    pub fn path(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| &*place.path)
    }

    /// Adds this process to the table of processes.
    pub(super) fn enter(&mut self) {
        if !self.is_entered {
            self.is_entered = true;
            processes::enter(&self.contents().processes, unix_ms());
        }
    }

    pub(super) fn with_file<T: Default>(
        &self,
        lock: impl FnOnce(&File) -> io::Result<T>,
    ) -> Result<T, Failure> {
        let Some(place) = &self.place else { return Ok(T::default()) };
        let file = place.file.lock();
        let locked = file.as_ref().map_or(Ok(T::default()), lock);
        locked.map_err(Failure::io("page-io", "lock", &place.path))
    }

    /// Whether another process, or another opening in this one, uses the page. On Linux the check does not lock the
    /// page; elsewhere it may, for a moment.
    pub fn is_used(&self) -> Result<bool, Failure> {
        self.lock_of_others().map(|mode| mode.is_some())
    }

    /// The mode of other users' lock, as far as the system reports it.
    pub(super) fn lock_of_others(&self) -> Result<Option<LockMode>, Failure> {
        self.with_file(|file| lock::lock_of_others(file, USERS))
    }

    pub(super) fn lock(&self, mode: LockMode) -> Result<bool, Failure> {
        self.with_file(|file| lock::try_take(file, USERS, mode))
    }

    /// Locks the page exclusively, unless others use it. Returns whether it did.
    pub fn try_lock_exclusive(&self) -> Result<bool, Failure> {
        self.lock(LockMode::Exclusive)
    }

    /// Unlocks and closes its file. This process issues nothing from the page any more.
    pub fn retire(&self) {
        if let Some(place) = &self.place
            && let Some(file) = place.file.lock().take()
        {
            // Unlocks at once, even if a forked process shares the open file.
            let _ = lock::release(&file, USERS);
        }
    }

    /// A running process that uses the page according to the table, preferably not this one.
    pub fn living_user(&self) -> Option<u32> {
        processes::living_other(&self.contents().processes)
    }

    /// The state of its lease; `None` if it is free.
    pub fn lease_status(&self) -> Option<LeaseStatus> {
        self.header.terms.owner.map(|owner| self.notes().lease_status(owner))
    }

    /// Its contents, for people.
    pub fn snapshot(&self) -> Snapshot {
        let processes = processes::all(&self.contents().processes).collect();
        Snapshot { header: self.header, processes, lease: self.lease_status() }
    }

    /// The failure of a page with values that snowdrift never writes.
    pub fn overwritten(&self) -> Failure {
        Failure::new(Class::Page, fault!("page-overwritten", place: self.path()))
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

/// A page's contents, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The header.
    pub header: Header,
    /// The processes in its table of processes.
    pub processes: Vec<Process>,
    /// The state of the lease, if the page is leased.
    pub lease: Option<LeaseStatus>,
}
