//! A node's page: the words that all who issue its IDs share. In the process's own memory, or in a file that every such
//! process of the host maps. On Linux that file is in memory.
//!
//! The users of a file share a lock on a byte of it. A process that replaces an unused page holds that lock exclusively.
//!
//! A process that accesses a page behind its file's end receives SIGBUS. Only its own user can truncate the file, and
//! snowdrift never does.

use std::borrow::Borrow;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU64,
    Ordering::{Acquire, Release},
};

use memmap2::{MmapOptions, MmapRaw};
use parking_lot::Mutex;
use tempfile::NamedTempFile;

use super::contents::{BYTES, Contents, Kept, Leasing, Words, unix_ms};
use super::header::{Authority, HEADER_BYTES, Header, MARKER, Terms};
use super::own;
use super::processes::{self, Process};
use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::Tick;
use crate::core::node::Node;
use crate::core::sequence::{Cells, Closed, Ended, NotBegun, Sequence, WindowNumber};
use crate::core::sequencer::{HighMarks, Window};
use crate::files::lock::{self, LockMode, USERS};
use crate::files::path::{Identity, identity_at};
use crate::files::system::user;

/// A node's page. If it has lost its name, nothing may be issued from it.
pub struct Page {
    sequence: Sequence<Memory>,
    header: Header,
    /// The last Unix ms for which its name was checked.
    checked_ms: AtomicI64,
    /// None for a page in the process's own memory, which nobody else finds.
    place: Option<Place>,
    /// Whether this process is in the table of processes.
    is_entered: bool,
    /// See [`Page::may_be_old`].
    pub(super) may_be_old: bool,
    /// Whether it knows what all earlier pages of the node have issued.
    pub(super) knows_earlier: bool,
    /// The places for tokens that users in this process have, a bit for each.
    pub(super) places: AtomicU64,
}

/// The memory of a page.
pub enum Memory {
    /// The process's own.
    Own(Box<Words>),
    /// A file's.
    Mapped(MmapRaw),
}

/// The file of a page, and its name.
struct Place {
    /// Open and locked while the page is used.
    file: Mutex<Option<File>>,
    path: PathBuf,
    /// Its node's marker.
    marker: PathBuf,
    identity: Identity,
    /// Its owner.
    uid: u32,
    /// Whether this process has left it for another user's.
    is_left: AtomicBool,
}

impl Memory {
    #[inline]
    fn words(&self) -> &Words {
        match self {
            Memory::Own(words) => words,
            // SAFETY: the map is as long as `Words` and aligned to a system page, which is at least 4096 bytes. It lives
            // as long as `self`. All words are atomics, for which any bits are a valid value, and other processes that
            // map the file change them atomically. (If their user truncates the file, the access ends the process; it
            // reads nothing else.)
            Memory::Mapped(map) => unsafe { &*map.as_ptr().cast::<Words>() },
        }
    }
}

impl Borrow<Cells> for Memory {
    #[inline]
    fn borrow(&self) -> &Cells {
        &self.words().contents().cells
    }
}

impl Page {
    /// A page in the process's own memory: a fresh sequencer, which nobody else finds.
    pub fn own(node: Node, terms: Terms) -> Page {
        let header = Header { page_id: fastrand::u128(1..), ..Header::new(node, terms) };
        Page::of(Memory::Own(Box::default()), header, None)
    }

    /// A page as wanted, with an ID of its own, for a file. It issues nothing until it is begun. The word is never 0, so a
    /// cleared page is noticed.
    pub(super) fn new(wanted: Header) -> Page {
        let page_id = fastrand::u128(1..);
        let header = Header { page_id, created_ms: unix_ms(), ..wanted };
        let page = Page::of(Memory::Own(Box::default()), header, None);
        page.contents().set_header(header.to_bytes());
        page.cells().prepare(header.node.layout());
        page
    }

    /// Writes it to a temporary file.
    pub(super) fn write(&self, directory: &Path) -> io::Result<NamedTempFile> {
        own::write(directory, |identity| {
            self.kept().set_home(identity);
            self.sequence.memory().words().to_bytes()
        })
    }

    /// Maps the page of this name; none if it does not exist.
    pub(super) fn map(path: &Path, uid: u32) -> Result<Option<Page>, Failure> {
        let (mut file, found, identity) = match own::open(path, uid) {
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
        let place = Place {
            file: Mutex::new(Some(file)),
            path: path.to_owned(),
            marker: path.with_extension(MARKER),
            identity,
            uid,
            is_left: AtomicBool::new(false),
        };
        let page = Page::of(Memory::Mapped(map), header, Some(place));
        match page.is_possible() {
            true => Ok(Some(page)),
            false => Err(Failure::new(Class::Page, fault!("page-damaged", place: path))),
        }
    }

    fn of(memory: Memory, header: Header, place: Option<Place>) -> Page {
        let sequence = Sequence::new(memory, header.node.layout());
        let may_be_old = place.is_some() && header.boot_id.is_unknown();
        let checked_ms = AtomicI64::new(i64::MIN);
        let places = AtomicU64::default();
        let (is_entered, knows_earlier) = (false, false);
        Page { sequence, header, checked_ms, place, is_entered, may_be_old, knows_earlier, places }
    }

    /// The sequencer of its cells.
    #[inline]
    pub fn sequence(&self) -> &Sequence<Memory> {
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
    pub fn kept(&self) -> &Kept {
        &self.contents().kept
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Begins a window that the page's authority allows, within what the node's pages may issue: [`Sequence::begin`].
    pub fn begin(
        &self,
        closed: &Closed,
        window: Window,
        high: &HighMarks,
        used: Option<u64>,
    ) -> Result<WindowNumber, NotBegun> {
        let ceiling = self.allowed(window.ceiling);
        self.sequence.begin(closed, Window { ceiling, ..window }, high, used)
    }

    /// The ceiling of a window that an authority allows up to this tick.
    pub fn allowed(&self, ceiling: Tick) -> Tick {
        ceiling.min(self.kept().last_tick())
    }

    /// A random ID of the page.
    pub fn id(&self) -> u128 {
        self.header.page_id
    }

    /// Its path, even after the loss of its name; none in the process's own memory.
    pub fn path(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| &*place.path)
    }

    /// Adds this process to the table.
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

    /// Whether another process uses it, or another opening in this one. On Linux the check never keeps others away;
    /// elsewhere it may, for a moment.
    pub fn is_used(&self) -> Result<bool, Failure> {
        self.lock_of_others().map(|mode| mode.is_some())
    }

    /// How others use it, as far as the system tells.
    pub(super) fn lock_of_others(&self) -> Result<Option<LockMode>, Failure> {
        self.with_file(|file| lock::lock_of_others(file, USERS))
    }

    pub(super) fn lock(&self, mode: LockMode) -> Result<bool, Failure> {
        self.with_file(|file| lock::try_take(file, USERS, mode))
    }

    /// Locks the page exclusively, unless others use it.
    pub fn try_alone(&self) -> Result<bool, Failure> {
        self.lock(LockMode::Exclusive)
    }

    /// Unlocks and closes its file: this process issues nothing from it any more.
    pub fn retire(&self) {
        if let Some(place) = &self.place
            && let Some(file) = place.file.lock().take()
        {
            // Unlocks at once, even if a forked process still has the open file.
            let _ = lock::release(&file, USERS);
        }
    }

    /// A running process that uses the page, preferably another one than this, by the table.
    pub fn living_user(&self) -> Option<u32> {
        processes::living_other(&self.contents().processes)
    }

    /// State of its lease; none for a page of another authority.
    pub fn leasing(&self) -> Option<Leasing> {
        match self.header.terms.authority {
            Authority::Lease { owner } => Some(self.kept().leasing(owner)),
            _ => None,
        }
    }

    /// Its content, for people.
    pub fn snapshot(&self) -> Snapshot {
        let processes = processes::all(&self.contents().processes).collect();
        Snapshot { header: self.header, processes, leasing: self.leasing() }
    }

    /// Whether it may be of another boot, and so lack issued IDs: after a power cut a disk has only what was written
    /// back before. A process that opens it issues nothing at the clock's tick, as after the replacement of a page.
    pub fn may_be_old(&self) -> bool {
        self.may_be_old
    }

    /// Ends the page: nothing is issued from it any more, by any process. Returns the highest tick that it or pages
    /// before it may have issued; none if something has overwritten it, and that is unknown.
    pub fn end(&self) -> Option<Tick> {
        self.close().map(|ended| ended.high.highest().max(self.sequence.before()))
    }

    /// As [`Page::end`]. Returns the final state.
    pub fn close(&self) -> Option<Ended> {
        let is_known = self.is_possible();
        // An overwritten word issues nothing. To close it would make it possible.
        if !is_known && !self.sequence.is_word_possible(self.header.terms.max_ahead) {
            return None;
        }
        // Of the run, which tells more than the closed word.
        let ended = self.sequence.end();
        is_known.then_some(ended)
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.sequence.has_ended()
    }

    /// The error of a page that holds what no process of snowdrift writes.
    pub fn overwritten(&self) -> Failure {
        Failure::new(Class::Page, fault!("page-overwritten", place: self.path()))
    }

    /// Whether its cells are possible: see [`Sequence::is_possible`]. In the process's own memory nobody else writes.
    pub fn is_possible(&self) -> bool {
        self.place.is_none() || self.sequence.is_possible(self.header.terms.max_ahead)
    }

    /// Whether the file was created for the page. A copy of it has the same contents, and another identity.
    pub(super) fn is_original(&self) -> bool {
        self.place.as_ref().is_none_or(|place| self.kept().home() == place.identity)
    }

    /// Whether both are of one file.
    pub(super) fn is_same(&self, other: &Page) -> bool {
        let identity = |page: &Page| page.place.as_ref().map(|place| place.identity);
        identity(self) == identity(other)
    }

    /// Whether the path names this page's file.
    pub(super) fn is_at(&self, path: &Path) -> io::Result<bool> {
        let Some(place) = &self.place else { return Ok(true) };
        use ErrorKind::{NotADirectory, NotFound};
        match identity_at(path) {
            Err(cause) if matches!(cause.kind(), NotFound | NotADirectory) => Ok(false),
            found => found.map(|identity| identity == place.identity),
        }
    }

    /// Whether its path still names it, so that all who open the node find this page.
    ///
    /// The link count is no substitute: a renamed page, or one in a renamed directory, still has its link while others
    /// create a new page beside it.
    pub fn is_named(&self) -> Result<bool, Failure> {
        let Some(place) = &self.place else { return Ok(true) };
        let is_named =
            self.is_at(&place.path).map_err(Failure::io("page-io", "inspect", &place.path))?;
        if is_named && !self.contents().is_intact() {
            return Err(self.overwritten());
        }
        Ok(is_named)
    }

    /// Whether its node's marker names it, too. Who makes the next page takes the marker first, so a page that has come back
    /// under its name only is not the node's current one.
    pub fn is_marked(&self) -> Result<bool, Failure> {
        let Some(place) = &self.place else { return Ok(true) };
        self.is_at(&place.marker).map_err(Failure::io("page-io", "inspect", &place.marker))
    }

    /// Whether it is its node's current page, under both names.
    pub fn is_current(&self) -> bool {
        self.is_named().unwrap_or(false) && self.is_marked().unwrap_or(false)
    }

    /// Whether the page belongs to the user that this process has now. After `setuid` or `seteuid`, its children use the
    /// new user's pages. Pages of other authorities stay: a record or a lease bounds them.
    pub(super) fn is_of_present_user(&self) -> bool {
        let is_ours = |place: &Place| !place.is_left.load(Acquire) && place.uid == user();
        self.header.terms.authority != Authority::Free || self.place.as_ref().is_none_or(is_ours)
    }

    /// Leaves the page, if the process has changed its user: it issues nothing from it any more. An error while others
    /// use it: they and the new user's processes would issue duplicates. Returns whether it has left it.
    pub(crate) fn leave_to_user(&self) -> Result<bool, Failure> {
        let Some(place) = &self.place else { return Ok(false) };
        let (from, to) = (place.uid, user());
        if from == to {
            return Ok(false);
        }
        place.is_left.store(true, Release);
        self.with_file(|file| lock::release(file, USERS))?;
        if !self.is_used()? {
            return Ok(true);
        }
        let (place, pid) = (self.path(), self.living_user());
        Err(Failure::new(Class::Conflict, fault!("page-user", place, pid, from, to)))
    }

    /// Whether the page may issue IDs at a time just read from the clock. Call it after the read and before the swap of
    /// the word.
    ///
    /// One check covers a millisecond. Another page begins above the tick that the clock shows after this check found
    /// the name, so only this page issues IDs in the rest of that tick. Any other clock value, also a lower one, needs
    /// another check.
    #[inline]
    pub fn may_issue(&self, unix_ms: i64) -> Result<bool, Failure> {
        let is_checked = self.checked_ms.load(Acquire) == unix_ms || self.place.is_none();
        if is_checked { Ok(true) } else { self.check(unix_ms) }
    }

    #[cold]
    fn check(&self, unix_ms: i64) -> Result<bool, Failure> {
        let is_current = self.is_of_present_user() && self.is_named()? && self.is_marked()?;
        if is_current {
            self.checked_ms.store(unix_ms, Release);
        }
        Ok(is_current)
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
