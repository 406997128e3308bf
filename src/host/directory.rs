//! A user's directory of pages. On Linux: `snowdrift-<uid>` in a memory file system that all of the user's processes
//! see, by default `/dev/shm`. `TMPDIR`, working directories and cgroups do not change it.
//!
//! The user must own the directory, and nobody else may write to it: every user can write to `/dev/shm`, and could have
//! taken the name first. Other users may search the directory (0711), to find by name that a second user has the same
//! node. They cannot list it, and cannot open the pages (0600).

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::contents::NewPage;
use super::header::{BootId, EXTENSION, Header, MARKER, file_name, name_prefix};
use super::joining::Joined;
use super::page::{Origin, Page, Snapshot};
use super::{Kind, own};
use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::core::sequencer::NEVER;
use crate::files::path::{canonical, is_at, paths_in};
use crate::files::{system, whole};

/// Attempts to find or create a page before an error. Only a program that deletes the page each time causes more than a
/// few.
pub(super) const TRIES: usize = 100;

/// Time to replace a page.
pub(super) const CHANGE: Duration = Duration::from_millis(1);

/// A user's directory of pages.
#[derive(Clone, Debug)]
pub struct Directory {
    /// The memory file system's directory, without symbolic links.
    pub(super) shared: PathBuf,
    path: PathBuf,
    /// The user who owns the pages.
    pub(super) uid: u32,
    /// The current boot.
    pub(super) boot_id: BootId,
    /// The name of the parent, as it was given; none for the system's default.
    named: Option<PathBuf>,
}

/// A page's file and content, or the reason it is unusable.
#[derive(Debug)]
pub struct Found {
    /// The path.
    pub path: PathBuf,
    /// The content.
    pub snapshot: Result<Snapshot, Failure>,
}

impl Directory {
    /// The directory in the system's default parent, or in the one that `SNOWDRIFT_SHARED` names. Creates it when
    /// missing. None where the system has no default parent and no name is given.
    pub fn find(named: Option<&Path>) -> Result<Option<Directory>, Failure> {
        if let Some(named) = named {
            return Directory::with(named, BootId::now()).map(Some);
        }
        let Some(shared) = system::default_parent()? else { return Ok(None) };
        let found = Directory::with(&shared, BootId::now())?;
        Ok(Some(Directory { named: None, ..found }))
    }

    /// The directory of the user that this process has now: `setuid` and `seteuid` change it. An error if another file
    /// system covers or uncovered its parent, and pages cannot be there.
    pub(super) fn of_present_user(&self) -> Result<Directory, Failure> {
        if self.named.is_some() || system::user() == self.uid {
            return Directory::with(&self.shared, self.boot_id);
        }
        let fault = || Failure::new(Class::Page, fault!("no-shared-memory"));
        Directory::find(None)?.ok_or_else(fault)
    }

    /// Whether [`Directory::find`] returns the same directory for this name, and still this user's alone. A relative
    /// name may by now mean another directory.
    pub fn is_still(&self, named: Option<&Path>) -> bool {
        self.named.as_deref() == named
            && named.is_none_or(Path::is_absolute)
            && system::user() == self.uid
            && own::check_directory(&self.path, self.uid).is_ok()
    }

    /// The directory in a named parent, in a boot that tests choose.
    pub fn with(named: &Path, boot_id: BootId) -> Result<Directory, Failure> {
        // Independent of later changes of the working directory.
        let shared = canonical(named).map_err(Failure::io("page-io", "find", named))?;
        system::check_parent(&shared)?;
        let uid = system::user();
        let path = shared.join(system::directory_name(uid));
        let named = Some(named.to_owned());
        let directory = Directory { shared, path, uid, boot_id, named };
        own::create_directory(&directory.path, uid)?;
        Ok(directory)
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the directory if it is missing.
    pub(super) fn create_directory(&self) -> Result<(), Failure> {
        own::create_directory(&self.path, self.uid)
    }

    /// Path of a node's page, which need not exist.
    pub fn page_of(&self, node: &Node) -> PathBuf {
        self.path.join(file_name(node))
    }

    /// Joins the node's page of this kind, or creates it. Replaces an unused page of the other kind or with another
    /// `maxAhead`. `after`: the highest tick of an earlier page of the node, if this process used one.
    pub fn open_as(
        &self,
        node: &Node,
        kind: Kind,
        max_ahead: Tick,
        after: Option<Tick>,
    ) -> Result<Page, Failure> {
        let path = self.page_of(node);
        let wanted = self.wanted(node, kind, max_ahead);
        let mut created = None;
        let mut changes = 0;
        for _ in 0..TRIES {
            match own::create_directory(&self.path, self.uid) {
                // Removed right after its creation.
                Err(failure) if failure.is_missing() => continue,
                created => created?,
            }
            match Page::join(&path, &wanted)? {
                Joined::Page(mut page) => {
                    if let Some((id, origin)) = created
                        && page.id() == id
                    {
                        page.origin = origin;
                        page.may_be_old = false;
                    }
                    return Ok(*page);
                }
                Joined::Absent => created = self.create(&path, &wanted, after, changes == 0)?,
                Joined::Unused(page) => self.replace(&page, &wanted)?,
                Joined::Changing => {
                    changes += 1;
                    thread::sleep(CHANGE);
                }
                // Safe even if the name is a live page's by now: its users notice the removal.
                Joined::OtherBoot => own::remove(&path)?,
            }
        }
        let place = path;
        let fault = if changes > TRIES / 2 {
            fault!("page-changing", place)
        } else {
            fault!("page-replaced", place)
        };
        Err(Failure::new(Class::Page, fault))
    }

    /// The node's page, if it exists. An error if it is in use. The exclusive lock keeps every process from using it
    /// until it is dropped.
    pub fn unused(&self, node: &Node) -> Result<Option<Page>, Failure> {
        own::create_directory(&self.path, self.uid)?;
        Page::alone(&self.page_of(node), self.uid)
    }

    /// The header of a node's page. Each page has an ID of its own.
    pub(super) fn wanted(&self, node: &Node, kind: Kind, max_ahead: Tick) -> Header {
        let Directory { boot_id, uid, .. } = *self;
        let pid = std::process::id();
        Header { node: *node, kind, max_ahead, page_id: 0, boot_id, created_ms: 0, pid, uid }
    }

    /// Creates a page, unless another process just did: writes it whole under another name, then links it. Returns its
    /// ID, and whether it is the node's first.
    fn create(
        &self,
        path: &Path,
        wanted: &Header,
        after: Option<Tick>,
        is_first_try: bool,
    ) -> Result<Option<(u128, Origin)>, Failure> {
        whole::sweep(&self.path);
        own::explain(&self.path);
        let marker = path.with_extension(MARKER);
        let failed = Failure::io("page-io", "create", path);
        let own_marker = match system::create_private(&marker) {
            Ok(file) => Some(file).filter(|_| after.is_none()),
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
                if is_first_try && after.is_none() {
                    // The process that placed the marker may be about to link its page.
                    thread::sleep(CHANGE);
                    if path.exists() {
                        return Ok(None);
                    }
                }
                // If that process resumes later, it finds that its page is not the first.
                match own::write(&self.path, b"").and_then(|file| Ok(file.persist(&marker)?)) {
                    Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
                    replaced => replaced.map_err(&failed)?,
                };
                None
            }
            // The directory was removed. The caller creates it again.
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(Failure::io("page-io", "create", &marker)(cause)),
        };
        let page = NewPage::new(wanted, after.unwrap_or(NEVER), Tick::MAX);
        if own::create(path, page.bytes()).map_err(failed)?.is_none() {
            return Ok(None);
        }
        // This process may have issued IDs as another user, before `setuid`.
        let is_first = own_marker.is_some_and(|file| is_at(&marker, &file))
            && self.other_users(&wanted.node).is_empty();
        let origin = if is_first { Origin::First } else { Origin::Next };
        Ok(Some((page.header.page_id, origin)))
    }

    /// Replaces an unused page, which nobody can use before `unused` is dropped. Safe even if the name is another
    /// page's by now: its users notice the replacement.
    fn replace(&self, unused: &Page, wanted: &Header) -> Result<(), Failure> {
        // Ticks that a reset found issued ahead of the clock stay forbidden.
        self.replace_by(unused, wanted, unused.highest(), unused.ceiling())
    }

    /// Replaces an unused page by one that issues ticks in (floor, ceiling] and above the clock.
    pub fn reset(&self, unused: &Page, floor: Tick, ceiling: Tick) -> Result<(), Failure> {
        self.replace_by(unused, &self.same(unused), floor, ceiling)
    }

    /// The header of a page like this one.
    fn same(&self, page: &Page) -> Header {
        let Header { node, kind, max_ahead, .. } = *page.header();
        self.wanted(&node, kind, max_ahead)
    }

    fn replace_by(
        &self,
        unused: &Page,
        wanted: &Header,
        floor: Tick,
        ceiling: Tick,
    ) -> Result<(), Failure> {
        let path = unused.path();
        let page = NewPage::new(wanted, floor, ceiling);
        let placed = own::write(&self.path, page.bytes()).and_then(|file| {
            if unused.is_named().unwrap_or(false) {
                file.persist(path)?;
            }
            Ok(())
        });
        placed.map_err(|cause| match cause.kind() {
            // Windows replaces no file that is mapped, and a process maps its pages until it ends.
            ErrorKind::PermissionDenied if cfg!(windows) => {
                Failure::new(Class::Conflict, fault!("page-mapped", place: path))
            }
            _ => Failure::io("page-io", "replace", path)(cause),
        })
    }

    /// Replaces a durable page that only this process uses. Returns false if another process uses it.
    pub fn renew(&self, page: &Page) -> Result<bool, Failure> {
        let is_alone = page.try_alone()?;
        if is_alone {
            self.replace(page, &self.same(page))?;
        }
        Ok(is_alone)
    }

    /// This user's pages, sorted by name.
    pub fn pages(&self) -> Result<Vec<Found>, Failure> {
        let mut pages = Vec::new();
        for path in self.paths("")? {
            match Page::map(&path, self.uid) {
                Ok(None) => {}
                Ok(Some(page)) => pages.push(Found { path, snapshot: Ok(page.snapshot()) }),
                Err(error) => pages.push(Found { path, snapshot: Err(error) }),
            }
        }
        Ok(pages)
    }

    /// The paths of pages whose name begins so, in order; none if the directory was removed.
    pub(super) fn paths(&self, prefix: &str) -> Result<Vec<PathBuf>, Failure> {
        let mut paths = match paths_in(&self.path, EXTENSION) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            found => found.map_err(Failure::io("page-io", "read the directory", &self.path))?,
        };
        paths.retain(|path| {
            let name = path.file_name().and_then(OsStr::to_str);
            name.unwrap_or_default().starts_with(prefix)
        });
        paths.sort();
        Ok(paths)
    }

    /// The paths of a datacenter's pages.
    pub(super) fn paths_of(
        &self,
        layout: &Layout,
        datacenter_id: u64,
    ) -> Result<Vec<PathBuf>, Failure> {
        name_prefix(layout, datacenter_id).map_or(Ok(Vec::new()), |prefix| self.paths(&prefix))
    }
}
