//! Where a user's pages are: `snowdrift-<uid>` in a memory file system that all of the user's processes
//! see. `/dev/shm` by default, since `TMPDIR`, working directories and cgroups do not change it.
//!
//! The directory must be a real one of ours that nobody else may write to: `/dev/shm` is open to every
//! user, who could have made the name first. Others may search it (0711), to find by name that a second
//! user has the same node. They cannot list it, and the pages are ours alone (0600).

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use super::page::{self, BootId, Header, Joined, Kind, Origin, Page, Snapshot, Wanted};
use super::{HostError, OtherUser, system};
use crate::layout::Tick;
use crate::node::Node;
use crate::sequencer::NEVER;
use crate::store::path::canonical;

const README: &str = "README";
/// How the name of the empty file ends that says that a node had a page in this boot. A page that is created
/// without one is the node's first: it begins without a floor, and within a long tick. Where both were
/// deleted a page passes for the first one to a process that did not use the one before.
const BORN: &str = "born";
const TEMPORARY: &str = ".new-";
/// Older ones were left by processes that were killed; they take milliseconds.
const TEMPORARY_FOR: Duration = Duration::from_secs(60);

/// How often a page is looked for or created before an error. Only others that delete it each time make
/// it more than a few.
const TRIES: usize = 100;

/// How long it takes to replace a page.
const CHANGE: Duration = Duration::from_millis(1);

/// A user's directory of pages.
#[derive(Clone, Debug)]
pub struct Directory {
    /// The memory file system's directory, without symbolic links.
    shared: PathBuf,
    path: PathBuf,
    uid: u32,
    boot_id: BootId,
}

/// A page's file, and what it says or why it cannot be used.
#[derive(Debug)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub snapshot: Result<Snapshot, HostError>,
}

impl Directory {
    /// The directory in the system's place for it, or in the one that `SNOWDRIFT_SHARED` names. It is
    /// created when missing. None where the system has no such place, and none is named.
    pub fn find(named: Option<&Path>) -> Result<Option<Directory>, HostError> {
        let shared = named.map(Path::to_owned).or_else(system::default_place);
        shared.map(|shared| Directory::with(&shared, BootId::now())).transpose()
    }

    /// The directory in a named one, in a boot that tests choose.
    pub fn with(shared: &Path, boot_id: BootId) -> Result<Directory, HostError> {
        // One name, whatever the working directory is later.
        let shared = canonical(shared).map_err(HostError::io("find", shared))?;
        if let Some(what) = system::unfit(&shared) {
            return Err(HostError::unusable(&shared, what));
        }
        let uid = system::user();
        let path = shared.join(system::directory_name(uid));
        let directory = Directory { shared, path, uid, boot_id };
        system::create_directory(&directory.path, uid)?;
        Ok(directory)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A node's page, whether it exists or not.
    pub fn page_of(&self, node: &Node) -> PathBuf {
        self.path.join(page::file_name(node))
    }

    /// Joins the node's page, or creates it.
    pub fn open(&self, node: &Node, max_ahead: Tick) -> Result<Page, HostError> {
        self.open_as(node, Kind::Plain, max_ahead, None)
    }

    /// Joins the node's page of this kind, or creates it. One of the other kind, or with another
    /// `maxAhead`, is replaced if nobody uses it. `after`: the node had a page, whose IDs reached this tick.
    pub fn open_as(
        &self,
        node: &Node,
        kind: Kind,
        max_ahead: Tick,
        after: Option<Tick>,
    ) -> Result<Page, HostError> {
        let path = self.page_of(node);
        let wanted = self.wanted(node, kind, max_ahead);
        let mut created = None;
        let mut changes = 0;
        for _ in 0..TRIES {
            match system::create_directory(&self.path, self.uid) {
                // It was removed at once.
                Err(HostError::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
                    continue;
                }
                created => created?,
            }
            match Page::join(&path, &wanted)? {
                Joined::Page(mut page) => {
                    if let Some((id, origin)) = created
                        && page.id() == id
                    {
                        page.origin = origin;
                    }
                    return Ok(*page);
                }
                Joined::Absent => created = self.create(&path, &wanted, after, changes == 0)?,
                Joined::Unused(page) => self.replace(&page, &wanted)?,
                Joined::Changing => {
                    changes += 1;
                    thread::sleep(CHANGE);
                }
                // Should it be a live page by now, that is safe, too: its users notice.
                Joined::OtherBoot => match fs::remove_file(&path) {
                    Err(cause) if cause.kind() != ErrorKind::NotFound => {
                        return Err(HostError::io("remove", &path)(cause));
                    }
                    _ => {}
                },
            }
        }
        let what = if changes > TRIES / 2 {
            "is being replaced by a process that does not come to an end. Find out which one has it open, \
             and end that"
        } else {
            "was deleted or replaced each time it was created. Find out which program does that, and \
             stop it"
        };
        Err(HostError::unusable(&path, what))
    }

    /// The node's page, if there is one and nobody uses it. Nobody can before it is dropped.
    pub fn unused(&self, node: &Node) -> Result<Option<Page>, HostError> {
        system::create_directory(&self.path, self.uid)?;
        Page::alone(&self.page_of(node), self.uid)
    }

    fn wanted<'a>(&'a self, node: &'a Node, kind: Kind, max_ahead: Tick) -> Wanted<'a> {
        Wanted { node, kind, max_ahead, boot_id: &self.boot_id, uid: self.uid }
    }

    /// Creates a page, unless another process has just done so: whole under another name, then linked.
    /// Its ID, and whether it is the node's first one.
    fn create(
        &self,
        path: &Path,
        wanted: &Wanted,
        after: Option<Tick>,
        is_first_try: bool,
    ) -> Result<Option<(u128, Origin)>, HostError> {
        self.sweep();
        self.explain();
        let marker = path.with_extension(BORN);
        let failed = HostError::io("create", path);
        let own_marker = match system::create_private(&marker) {
            Ok(file) => Some(file).filter(|_| after.is_none()),
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
                if is_first_try && after.is_none() {
                    // The process that placed it may be about to link its page.
                    thread::sleep(CHANGE);
                    if path.exists() {
                        return Ok(None);
                    }
                }
                // Should that process go on later, it finds that its page is not the first one.
                match self.write(b"").and_then(|file| Ok(file.persist(&marker)?)) {
                    Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
                    replaced => replaced.map_err(&failed)?,
                };
                None
            }
            // The directory has been removed, and is created again.
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(HostError::io("create", &marker)(cause)),
        };
        let bytes = page::fresh(wanted, after.unwrap_or(NEVER), Tick::MAX);
        match self.write(&bytes).and_then(|file| place(file, path)) {
            // Another was first; or the directory has been removed, and is created again.
            Err(cause)
                if matches!(cause.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) =>
            {
                return Ok(None);
            }
            placed => placed.map_err(failed)?,
        };
        let is_first = own_marker.is_some_and(|file| system::is_at(&marker, &file));
        let origin = if is_first { Origin::First } else { Origin::Next };
        Ok(Some((page::id_of(&bytes), origin)))
    }

    /// Puts a new page in the place of one that nobody uses, nor can before `unused` is dropped. Should the
    /// name be another page's by now, that is safe, too: its users notice.
    fn replace(&self, unused: &Page, wanted: &Wanted) -> Result<(), HostError> {
        // What a reset has found to be issued ahead stays forbidden.
        self.replace_by(unused, &page::fresh(wanted, unused.highest(), unused.ceiling()))
    }

    /// Puts one in its place that issues ticks in (floor, ceiling] and above the clock.
    pub fn reset(&self, unused: &Page, floor: Tick, ceiling: Tick) -> Result<(), HostError> {
        let Header { node, kind, max_ahead, .. } = unused.header();
        let wanted = self.wanted(node, *kind, *max_ahead);
        self.replace_by(unused, &page::fresh(&wanted, floor, ceiling))
    }

    fn replace_by(&self, unused: &Page, bytes: &[u8]) -> Result<(), HostError> {
        let path = unused.path();
        let placed = self.write(bytes).and_then(|file| {
            if unused.is_named().unwrap_or(false) {
                file.persist(path)?;
            }
            Ok(())
        });
        placed.map_err(HostError::io("replace", path))
    }

    /// Puts a new durable page in the place of one that this process alone uses. False where another
    /// process uses it, too.
    pub fn renew(&self, page: &Page) -> Result<bool, HostError> {
        let Header { node, kind, max_ahead, .. } = page.header();
        if !page.try_alone()? {
            return Ok(false);
        }
        self.replace(page, &self.wanted(node, *kind, *max_ahead))?;
        Ok(true)
    }

    /// Writes a file under a temporary name, which is this user's alone.
    fn write(&self, bytes: &[u8]) -> io::Result<NamedTempFile> {
        let mut file = system::private().prefix(TEMPORARY).tempfile_in(&self.path)?;
        system::set_private(file.as_file())?;
        file.write_all(bytes)?;
        if !system::IN_MEMORY {
            // After a power cut, the name must not stand for a file of zeros.
            file.as_file().sync_all()?;
        }
        Ok(file)
    }

    /// Tells people what the directory is. Nothing depends on it.
    fn explain(&self) {
        let path = self.path.join(README);
        if fs::symlink_metadata(&path).is_err() {
            let _ = self.write(EXPLANATION.as_bytes()).and_then(|file| place(file, &path));
        }
    }

    /// Removes what killed processes left under temporary names. A process that is slower than that
    /// creates its page anew.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let is_left = || -> io::Result<bool> {
                let age = SystemTime::now().duration_since(entry.metadata()?.modified()?);
                Ok(age.is_ok_and(|age| age > TEMPORARY_FOR))
            };
            if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes())
                && is_left().unwrap_or(false)
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Other users' pages of this node. Only what their directories let us see.
    pub fn other_users(&self, node: &Node) -> Vec<OtherUser> {
        let name = page::file_name(node);
        let mut others = Vec::new();
        for entry in fs::read_dir(&self.shared).into_iter().flatten().flatten() {
            let directory = entry.file_name();
            let Some(uid) = directory.to_str().and_then(system::user_of) else { continue };
            let path = entry.path().join(&name);
            if entry.path() != self.path && system::is_file_of(&path, uid) {
                others.push(OtherUser { path, uid });
            }
        }
        others
    }

    /// This user's pages, by name. Changes nothing.
    pub fn pages(&self) -> Result<Vec<Found>, HostError> {
        let failed = HostError::io("read the directory", &self.path);
        let mut pages = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(&failed)? {
            let path = entry.map_err(&failed)?.path();
            if path.extension().is_some_and(|extension| extension == page::EXTENSION) {
                pages.push(Found { snapshot: Snapshot::of(&path, self.uid), path });
            }
        }
        pages.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(pages)
    }
}

/// Gives a file its name, unless that is taken.
fn place(file: NamedTempFile, path: &Path) -> io::Result<File> {
    Ok(file.persist_noclobber(path)?)
}

const EXPLANATION: &str = "\
This directory belongs to snowdrift (npm), which gives applications unique 64-bit IDs.

Each .page file is 4096 bytes of shared memory. All processes of this user that issue IDs with the same
layout, epoch, datacenterId and workerId draw from one page, so that no two of them issue the same ID.

snowdrift slots     lists the pages and the processes that use them

Do not write to the files, copy them or put copies back. Removing a page whose processes have ended is
safe while the clock is right. Truncating a page that is in use ends the processes that use it.
";
