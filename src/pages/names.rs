//! The names of a page: a process issues nothing from a page that has lost one, or that is another user's.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::header::MARKER;
use super::own;
use super::page::{Page, PageFile};
use crate::core::fault::{Class, Failure, fault};
use crate::files::lock::{self, USERS};
use crate::files::path::identity_at;
use crate::files::system::user;

impl Page {
    /// Whether the file was created for the page. A copy has the same contents, but another identity.
    pub(super) fn is_original(&self) -> bool {
        self.place.as_ref().is_none_or(|place| self.notes().original_file() == place.identity)
    }

    /// Whether both pages are of one file.
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

    /// Whether its path still leads to it, so that all processes that open the node find this page.
    ///
    /// The link count does not show this: a renamed page, or one in a renamed directory, keeps its link while other
    /// processes create a new page.
    pub fn is_named(&self) -> Result<bool, Failure> {
        let Some(place) = &self.place else { return Ok(true) };
        let is_named =
            self.is_at(&place.path).map_err(Failure::io("page-io", "inspect", &place.path))?;
        if is_named && !self.contents().is_intact() {
            return Err(self.overwritten());
        }
        Ok(is_named)
    }

    /// Whether its node's marker leads to it, too. The process that creates the next page moves the marker, so a page
    /// that got only its own name back is not the node's current one.
    pub fn is_marked(&self) -> Result<bool, Failure> {
        let Some(place) = &self.place else { return Ok(true) };
        self.is_at(&place.marker).map_err(Failure::io("page-io", "inspect", &place.marker))
    }

    /// Whether it is its node's current page: it has both its names.
    pub fn is_current(&self) -> bool {
        self.is_named().unwrap_or(false) && self.is_marked().unwrap_or(false)
    }

    /// Removes the page's name, if it is still this page's.
    pub fn remove(&self) -> Result<(), Failure> {
        match self.path() {
            Some(path) if self.is_named()? => own::remove(path),
            _ => Ok(()),
        }
    }

    /// Removes the page and the node's marker. Requires [`Page::try_lock_exclusive`], so that no other process creates
    /// a page meanwhile.
    pub fn remove_with_marker(&self) -> Result<(), Failure> {
        if let Some(path) = self.path()
            && self.is_named()?
        {
            // The marker first: no other process places a marker while the page has its name.
            own::remove(&path.with_extension(MARKER))?;
        }
        self.remove()
    }

    /// Whether the page belongs to this process's present user. After `setuid` or `seteuid`, its child processes use
    /// the new user's pages. Leased pages may stay, since the lease bounds them.
    pub(super) fn is_of_present_user(&self) -> bool {
        let is_ours = |place: &PageFile| !place.is_left.load(Acquire) && place.uid == user();
        self.header().terms.owner.is_some() || self.place.as_ref().is_none_or(is_ours)
    }

    /// Leaves the page if this process has changed its user: it issues nothing from the page any more. Returns whether
    /// it left. Fails while other processes use the page: they and the new user's processes would issue duplicates.
    pub(crate) fn leave_after_user_change(&self) -> Result<bool, Failure> {
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

    /// Whether the page may issue IDs at the time just read from the clock. Call it after that reading and before the
    /// swap of the word.
    ///
    /// One check covers a millisecond: another page begins above the tick that the clock shows after this check, so
    /// only this page issues IDs in the rest of that tick. Any other clock value, even a lower one, needs another
    /// check.
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
