//! A user's directory of pages. On Linux this is `snowdrift-<uid>` in a memory file system that all of the user's
//! processes see, by default `/dev/shm`. It does not depend on `TMPDIR`, the working directory or cgroups.
//!
//! The user must own the directory, and no other user may write to it: any user can write to `/dev/shm`, and could have
//! taken the name first. Other users may search the directory (0711): so they find a page of their own node by its
//! name. They can neither list the directory nor open the pages (0600).

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::header::{BootId, EXTENSION, Header, Terms, page_name};
use super::own;
use super::page::{Page, Snapshot};
use crate::core::fault::{Class, Failure, Fault, fault};
use crate::core::node::Node;
use crate::files::path::{FileResult, canonical, paths_in};
use crate::files::system;

/// A user's directory of pages.
#[derive(Clone, Debug)]
pub struct Directory {
    /// The parent directory, without symbolic links.
    shared: PathBuf,
    path: PathBuf,
    /// The user who owns the pages.
    pub(super) uid: u32,
    /// The current boot.
    pub(super) boot_id: BootId,
    /// The parent as the application named it; `None` for the system's default.
    named: Option<PathBuf>,
}

impl Directory {
    /// The directory in the parent that `SNOWDRIFT_SHARED` names, or else in the system's default parent. Creates it if
    /// it is missing. `None` if the system has no default parent and none is named.
    pub fn find(named: Option<&Path>) -> Result<Option<Directory>, Failure> {
        if let Some(named) = named {
            return Directory::with(named, BootId::now()).map(Some);
        }
        let Some(shared) = system::default_parent()? else { return Ok(None) };
        let found = Directory::with(&shared, BootId::now())?;
        Ok(Some(Directory { named: None, ..found }))
    }

    /// The directory of this process's present user, which `setuid` and `seteuid` change. An error if a mount or
    /// unmount has made the default parent unusable.
    pub(crate) fn of_present_user(&self) -> Result<Directory, Failure> {
        if self.named.is_some() || system::user() == self.uid {
            return Directory::with(&self.shared, self.boot_id);
        }
        let fault = || Failure::new(Class::Page, fault!("no-shared-memory"));
        Directory::find(None)?.ok_or_else(fault)
    }

    /// Whether [`Directory::find`] still returns the same directory for this name, owned by this user. A relative name
    /// may mean another directory by now.
    pub fn is_still(&self, named: Option<&Path>) -> bool {
        self.named.as_deref() == named
            && named.is_none_or(Path::is_absolute)
            && system::user() == self.uid
            && own::check_directory(&self.path, self.uid).is_ok()
    }

    /// The directory in a named parent. Tests choose the boot.
    pub fn with(named: &Path, boot_id: BootId) -> Result<Directory, Failure> {
        // Independent of later changes of the working directory.
        let shared = canonical(named).map_err(Failure::io("page-io", "find", named))?;
        system::check_parent(&shared)?;
        let uid = system::user();
        let path = shared.join(system::directory_name(uid));
        let named = Some(named.to_owned());
        let directory = Directory { shared, path, uid, boot_id, named };
        own::ensure_directory(&directory.path, uid)?;
        Ok(directory)
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a node's page. The page may not exist.
    pub fn page_of(&self, node: &Node) -> PathBuf {
        self.path.join(page_name(node))
    }

    /// The header of a new page of a node in this directory.
    pub(super) fn header_for(&self, node: &Node, terms: Terms) -> Header {
        let Directory { boot_id, uid, .. } = *self;
        Header { boot_id, uid, ..Header::new(*node, terms) }
    }

    /// This user's pages, sorted by name.
    pub fn pages(&self) -> Result<Vec<FileResult<Snapshot>>, Failure> {
        let found = |(path, page): (_, Result<Page, _>)| (path, page.map(|page| page.snapshot()));
        Ok(self.mapped(self.paths("")?).map(found).collect())
    }

    /// The pages of these paths, each mapped when the iterator reaches it.
    pub(super) fn mapped(
        &self,
        paths: Vec<PathBuf>,
    ) -> impl Iterator<Item = (PathBuf, Result<Page, Failure>)> {
        let map = |path: PathBuf| Some((Page::map(&path, self.uid).transpose()?, path));
        paths.into_iter().filter_map(map).map(|(page, path)| (path, page))
    }

    /// The paths of pages with this prefix in their names, sorted; empty if the directory was removed.
    pub(super) fn paths(&self, prefix: &str) -> Result<Vec<PathBuf>, Failure> {
        let mut paths = match paths_in(&self.path, EXTENSION) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            found => found.map_err(Failure::io("page-io", "read the directory", &self.path))?,
        };
        let begins = |name: &OsStr| name.as_encoded_bytes().starts_with(prefix.as_bytes());
        paths.retain(|path| path.file_name().is_some_and(begins));
        paths.sort();
        Ok(paths)
    }

    /// Warnings of other users with this node, as far as their directories permit a search. Users do not share a
    /// sequence, so both issue the same IDs. Each process that uses a page has locked it: without a lock, its users
    /// have ended. Then their last ID is of an earlier tick, unless ticks are longer than 1 ms.
    pub fn second_users(&self, node: &Node) -> Vec<Fault> {
        let (datacenter, worker) = (node.datacenter_id(), node.worker_id());
        let may_issue =
            |found: &Metadata| node.layout().tick_ms > 1 || system::is_locked(found) != Some(false);
        let others = self.other_users_pages(node).filter(|(.., found)| may_issue(found));
        others
            .map(|(uid, place, _)| fault!("second-user", place, uid, datacenter, worker))
            .collect()
    }

    /// Other users' pages of this node: user, path and metadata.
    pub(super) fn other_users_pages(
        &self,
        node: &Node,
    ) -> impl Iterator<Item = (u32, PathBuf, Metadata)> {
        let name = page_name(node);
        let entries = fs::read_dir(&self.shared).into_iter().flatten().flatten();
        entries.filter_map(move |entry| {
            let uid = system::user_of(entry.file_name().to_str()?)?;
            let path = entry.path().join(&name);
            let found = fs::symlink_metadata(&path).ok()?;
            // A file of any other owner is no page: that user only took the name.
            let owner = system::ownership(&found).owner;
            let is_page =
                found.is_file() && (system::outer_user(owner) == uid || owner == system::user());
            (is_page && entry.path() != self.path).then_some((uid, path, found))
        })
    }
}
