//! The life of a host's pages: obtaining a node's page, and replacing one that lost its name.
//!
//! A page has two names: its own, and its node's [marker](MARKER). All processes that open the node follow these rules,
//! and `tests/shared` runs them step by step:
//!
//! 1. A page is created complete under its own name, unless the name exists. It is not begun.
//! 2. Then it gets the marker. If the marker was another page's, that page is ended first, and its last tick is noted
//!    in the new page. A page begins only under both names.
//! 3. A page under its own name that is not the node's current page is ended and put away: it has ended already, it is
//!    a copy, or both it and another page under the marker have begun. Then the other page is ended, too.
//!
//! So a page that gets its name back, or is restored from a copy, issues nothing. A process may end a valid page by
//! mistake: then all processes continue in the next one.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::directory::Directory;
use super::header::{Header, MARKER, Terms};
use super::own;
use super::page::Page;
use crate::core::clock::Clock;
use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::Tick;
use crate::core::node::Node;
use crate::core::sequencer::NEVER;
use crate::files::lock::{self, LockMode};
use crate::files::{fs, whole};

/// Maximum number of attempts to find or create a page. More than a few are needed only if another program deletes the
/// page each time.
pub(super) const TRIES: usize = 100;

/// A search for a node's page.
struct PageSearch<'a> {
    directory: &'a Directory,
    path: PathBuf,
    marker: PathBuf,
    wanted: Header,
    /// The ID of the page that this search has created.
    created: u128,
    /// The page that this search has put away last.
    away: Option<Arc<Page>>,
    /// The highest tick that the pages put away by this search may have issued.
    reached: Tick,
    /// The ID of the page whose cells cover what all earlier pages issued: see [`Page::earlier`].
    knowing: u128,
    /// The number of attempts that found another process changing the page.
    changes: usize,
}

impl Directory {
    /// Joins or creates the node's page with these terms. Replaces an unused page with other terms. The returned page
    /// is locked in shared mode and has both its names. It may not have begun yet.
    pub fn obtain(&self, node: &Node, terms: Terms) -> Result<Page, Failure> {
        self.obtain_after(node, terms, None)
    }

    /// The same. `seen`: the node's page as the caller has seen it, so that it is not mapped again where it has ended.
    pub(super) fn obtain_after(
        &self,
        node: &Node,
        terms: Terms,
        seen: Option<Arc<Page>>,
    ) -> Result<Page, Failure> {
        let path = self.page_of(node);
        let mut search = PageSearch {
            directory: self,
            marker: path.with_extension(MARKER),
            path,
            wanted: self.header_for(node, terms),
            created: 0,
            away: None,
            reached: NEVER,
            knowing: 0,
            changes: 0,
        };
        if let Some(seen) = seen.filter(|page| search.is_ended(page)) {
            search.put_away(&seen)?;
            search.away = Some(seen);
            search.create()?;
        }
        for _ in 0..TRIES {
            if let Some(page) = search.attempt()? {
                return Ok(page);
            }
        }
        let place = search.path;
        let fault = if search.changes > TRIES / 2 {
            fault!("page-changing", place)
        } else {
            fault!("page-replaced", place)
        };
        Err(Failure::new(Class::Page, fault))
    }

    /// The node's free page, begun. `reached`: the highest tick that this process's previous page may have issued.
    pub fn open(&self, node: &Node, clock: &dyn Clock, reached: Tick) -> Result<Page, Failure> {
        let page = self.obtain(node, Terms::FREE)?;
        let now = || node.layout().tick_at(clock.now().ms);
        page.sequence().raise_before(reached);
        page.begin_free(now);
        if page.may_be_old {
            page.sequence().raise_before(now());
        }
        Ok(page)
    }
}

/// The failure to replace a page. Windows cannot replace a mapped file.
fn replacing(path: &Path, cause: io::Error) -> Failure {
    match cause.kind() {
        ErrorKind::PermissionDenied if cfg!(windows) => {
            Failure::new(Class::Conflict, fault!("page-mapped", place: path))
        }
        _ => Failure::io("page-io", "replace", path)(cause),
    }
}

impl PageSearch<'_> {
    /// Whether this is the node's page, and has ended.
    fn is_ended(&self, page: &Page) -> bool {
        let Header { node, boot_id, .. } = *page.header();
        node == self.wanted.node
            && !boot_id.is_other(&self.wanted.boot_id)
            && page.has_ended()
            && page.is_at(&self.path).unwrap_or(false)
    }

    /// One attempt. `None` if the page changed meanwhile.
    fn attempt(&mut self) -> Result<Option<Page>, Failure> {
        let Some(mut page) = Page::map(&self.path, self.wanted.uid)? else {
            self.create()?;
            return Ok(None);
        };
        let header = *page.header();
        if header.node != self.wanted.node {
            let fault = fault!("page-misnamed", place: self.path.as_path());
            return Err(Failure::new(Class::Page, fault));
        }
        if header.boot_id.is_other(&self.wanted.boot_id) {
            // Safe even if the name is a live page's by now, since its users notice the removal.
            own::remove(&self.marker)?;
            own::remove(&self.path)?;
            return Ok(None);
        }
        if !page.is_original() || page.has_ended() {
            self.put_away(&page)?;
            self.away = Some(Arc::new(page));
            return Ok(None);
        }
        let is_wanted = header.terms == self.wanted.terms;
        let is_locked =
            page.lock(if is_wanted { LockMode::Shared } else { LockMode::Exclusive })?;
        if !is_locked && !is_wanted && page.lock_of_others()? != Some(LockMode::Exclusive) {
            return Err(page.refusal(&self.wanted.terms));
        }
        // Another process may have replaced the page before this one locked it.
        if !is_locked || !page.is_named()? {
            self.changes += 1;
            lock::pause();
            return Ok(None);
        }
        if !is_wanted {
            self.put_away(&page)?;
            return Ok(None);
        }
        if !self.ensure_marked(&page)? {
            return Ok(None);
        }
        let may_be_old = page.may_be_old || self.wanted.boot_id.is_unknown();
        page.may_be_old = may_be_old && page.id() != self.created;
        page.knows_earlier = page.id() == self.knowing;
        page.enter();
        Ok(Some(page))
    }

    fn done<T>(&self, done: io::Result<T>) -> Result<T, Failure> {
        done.map_err(Failure::io("page-io", "create", &self.path))
    }

    /// Creates a page, unless another process just did.
    fn create(&mut self) -> Result<(), Failure> {
        let directory = self.directory.path();
        match own::ensure_directory(directory, self.wanted.uid) {
            // Removed right after its creation.
            Err(failure) if failure.is_missing() => return Ok(()),
            created => created?,
        }
        whole::sweep_temporary(directory);
        own::explain(directory);
        let page = Page::new(self.wanted);
        // Before a `setuid`, this process may have issued IDs as another user. Their ticks are unknown.
        let is_next = || self.directory.other_users_pages(&self.wanted.node).next().is_some();
        let reached = if self.reached == NEVER && is_next() { 0 } else { self.reached };
        let layout = self.wanted.node.layout();
        page.sequence().note_before(reached);
        if let Some(tick) = self.directory.swept_tick(layout) {
            page.sequence().raise_floor(tick);
        }
        let named = page.write(directory).and_then(|file| Ok(file.persist_noclobber(&self.path)?));
        if self.done(whole::if_possible(named))?.is_some() {
            self.created = page.id();
            self.directory.note_created();
        }
        Ok(())
    }

    /// Gives the page the marker, unless it has it. Before that, ends the previous page and notes its last tick in this
    /// one. Returns whether the page has the marker.
    fn ensure_marked(&mut self, page: &Page) -> Result<bool, Failure> {
        let marked = self.away.take().filter(|away| away.is_at(&self.marker).unwrap_or(false));
        let is_marker = || self.done(page.is_at(&self.marker));
        if marked.is_none() {
            if is_marker()? {
                return Ok(true);
            }
            let linked = whole::if_possible(fs::hard_link(&self.path, &self.marker));
            if self.done(linked)?.is_some() {
                return is_marker();
            }
        }
        let sequence = page.sequence();
        let map = || Page::map(&self.marker, self.wanted.uid).map(|page| page.map(Arc::new));
        match marked.map_or_else(map, |page| Ok(Some(page))) {
            Ok(None) => return Ok(false),
            // Another process has just placed the marker.
            Ok(Some(marked)) if marked.is_same(page) => return Ok(true),
            Ok(Some(before)) if before.header().node == page.header().node => {
                let was_begun = before.sequence().is_begun();
                let ended = before.end();
                let reached = ended.unwrap_or(0);
                if was_begun && sequence.is_begun() {
                    // Another process may have placed the marker and begun the page.
                    if is_marker()? {
                        return Ok(true);
                    }
                    self.reached = self.reached.max(reached);
                    self.put_away(page)?;
                    return Ok(false);
                }
                if !sequence.is_begun() {
                    // A copy has the same page ID as its original.
                    let is_known = reached > NEVER && ended.is_some() && before.is_original();
                    let [theirs, ours] = [&before, page].map(|page| page.header().terms.max_ahead);
                    // A pending page that was ended looks begun, but never had a window.
                    if sequence.before() == NEVER
                        && is_known
                        && before.sequence().has_had_window()
                        && theirs >= ours.max(1)
                    {
                        self.knowing = page.id();
                    }
                    sequence.note_before(reached);
                }
            }
            Err(failure) if failure.class != Class::Page => return Err(failure),
            // The last tick of the node's previous page is unknown.
            _ if !sequence.is_begun() => sequence.note_before(0),
            _ => {}
        }
        let second = whole::named(self.directory.path(), |name| fs::hard_link(&self.path, name));
        let Some(marker) = self.done(whole::if_possible(second))? else { return Ok(false) };
        if !self.done(page.is_at(marker.path()))? {
            return Ok(false);
        }
        match fs::rename(marker.path(), &self.marker) {
            // Windows cannot replace a mapped file, but can rename it. The next attempt finds no marker.
            Err(cause) if cause.kind() == ErrorKind::PermissionDenied && cfg!(windows) => {
                let away =
                    whole::named(self.directory.path(), |name| fs::rename(&self.marker, name));
                drop(away.map_err(|cause| replacing(&self.path, cause))?);
                Ok(false)
            }
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(false),
            // This process may have been stopped, and the name may be another page's by now.
            renamed => self.done(renamed.and_then(|()| page.is_at(&self.path))),
        }
    }

    /// Ends a page and removes its name. If the name is another page's by now, ends that page, too.
    fn put_away(&mut self, page: &Page) -> Result<(), Failure> {
        let reached = page.end().unwrap_or(0);
        // If this page has the marker, the next page notes its last tick when it takes the marker.
        if !page.is_at(&self.marker).unwrap_or(false) {
            self.reached = self.reached.max(reached);
        }
        let away = whole::named(self.directory.path(), |name| fs::rename(&self.path, name));
        let away = whole::if_possible(away).map_err(|cause| replacing(&self.path, cause))?;
        if let Some(away) = away
            && !page.is_at(away.path()).unwrap_or(false)
            && let Ok(Some(other)) = Page::map(away.path(), self.wanted.uid)
        {
            self.reached = self.reached.max(other.end().unwrap_or(0));
        }
        Ok(())
    }
}

impl Page {
    /// The failure that names the difference between this page's terms and the caller's.
    pub(super) fn refusal(&self, ours: &Terms) -> Failure {
        let (place, pid) = (self.path(), self.living_user());
        let theirs = self.header().terms;
        let words = [theirs.word(), ours.word()];
        let ms = |ticks: Tick| ticks.saturating_mul(self.header().node.layout().tick_ms);
        let fault = if words[0] != words[1] {
            fault!("page-kind", place, pid, theirs: words[0], ours: words[1])
        } else if theirs.owner == ours.owner {
            let (theirs, ours) = (ms(theirs.max_ahead), ms(ours.max_ahead));
            fault!("page-max-ahead", place, pid, theirs, ours)
        } else {
            fault!("page-lease", place, pid)
        };
        Failure::new(Class::Conflict, fault)
    }
}
