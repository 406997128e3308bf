//! Joins an existing page, or tells why a process cannot.

use std::path::Path;

use super::header::Header;
use super::page::Page;
use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::Tick;
use crate::files::lock::Hold;

/// The result of [`Page::join`].
pub enum Joined {
    /// The page, mapped.
    Page(Box<Page>),
    /// No file has the name.
    Absent,
    /// A page of another boot.
    OtherBoot,
    /// Another process is replacing the page.
    Changing,
    /// An unused page of another kind or `maxAhead`. Nobody can use it before it is dropped.
    Unused(Box<Page>),
}

impl Page {
    /// Uses the page of this name if it matches the request.
    pub fn join(path: &Path, wanted: &Header) -> Result<Joined, Failure> {
        let Some(mut page) = Page::map(path, wanted.uid)? else { return Ok(Joined::Absent) };
        let header = *page.header();
        if header.node != wanted.node {
            return Err(Failure::new(Class::Page, fault!("page-misnamed", place: path)));
        }
        if header.boot_id.is_other(&wanted.boot_id) {
            return Ok(Joined::OtherBoot);
        }
        let is_wanted = header.kind == wanted.kind && header.max_ahead == wanted.max_ahead;
        page.may_be_old |= wanted.boot_id.is_unknown();
        if !page.lock(if is_wanted { Hold::Shared } else { Hold::Exclusive })? {
            return match is_wanted || page.is_locked_alone()? {
                true => Ok(Joined::Changing),
                false => Err(page.refusal(wanted)),
            };
        }
        // Another process may have replaced it before the lock.
        if !page.is_named()? {
            return Ok(Joined::Changing);
        }
        if !is_wanted {
            return Ok(Joined::Unused(Box::new(page)));
        }
        page.enter();
        Ok(Joined::Page(Box::new(page)))
    }

    /// Locks the page of this name exclusively; none if it does not exist. An error if it is in use.
    pub fn alone(path: &Path, uid: u32) -> Result<Option<Page>, Failure> {
        let Some(page) = Page::map(path, uid)? else { return Ok(None) };
        if !page.try_alone()? {
            let fault = fault!("page-in-use", place: path, pid: page.living_user());
            return Err(Failure::new(Class::Page, fault));
        }
        Ok(Some(page))
    }

    /// The difference between a page in use and the requested one.
    pub(super) fn refusal(&self, wanted: &Header) -> Failure {
        let (place, pid) = (self.path(), self.living_user());
        if self.header().kind != wanted.kind {
            let (theirs, ours) = (self.header().kind.word(), wanted.kind.word());
            return Failure::new(Class::Conflict, fault!("page-kind", place, pid, theirs, ours));
        }
        let ms = |ticks: Tick| ticks.saturating_mul(wanted.node.layout().tick_ms);
        let (theirs, ours) = (ms(self.header().max_ahead), ms(wanted.max_ahead));
        Failure::new(Class::Conflict, fault!("page-max-ahead", place, pid, theirs, ours))
    }
}
