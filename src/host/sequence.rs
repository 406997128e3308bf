//! The successive cells of a node. The next page replaces one that lost its name.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Directory, Halt, Kind, Opened, Origin, Page, Reading};
use crate::core::clock::Clock;
use crate::core::fault::{Class, Failure, Fault, fault};
use crate::core::layout::Tick;
use crate::core::node::Node;
use crate::core::sequence::{Beginning, Rules};
use crate::core::sequencer::{Block, NEVER, Stall};

/// Maximum pages of a node that a process opens one after the other. They stay mapped (4096 bytes each), since another
/// thread may be reading them. A process can have 65,530 maps on Linux. A cron job of the same user that ends a session
/// each minute removes a page each minute: at that rate the limit lasts 11 days.
const MOST_PAGES: usize = 16_384;

/// Maximum pages that one call opens.
const REOPENINGS: usize = 16;

/// Maximum time from the link of a page to its beginning, unless its creator is stopped.
const CREATION: Duration = Duration::from_millis(1);

/// A node's sequence, of the host or of this process alone.
pub struct HostSequence {
    pub(crate) node: Node,
    /// Maximum ticks ahead of the clock.
    pub(crate) max_ahead: Tick,
    /// The directory of its next page.
    pub(crate) directory: Option<Directory>,
    /// The kind of its pages.
    pub(crate) kind: Kind,
    current: AtomicPtr<Opened>,
    /// Every sequence that `current` ever pointed to. `current` changes under this lock.
    opened: Mutex<Vec<Arc<Opened>>>,
    /// The error that made the last page unusable.
    failure: Mutex<Option<Fault>>,
}

impl HostSequence {
    /// A sequence of this process alone.
    pub fn own(node: Node, max_ahead: Tick) -> HostSequence {
        let first = Opened::own(node.layout());
        HostSequence::starting_with(first, None, node, max_ahead)
    }

    /// The host's sequence of a node with a record, in pages of this kind. It issues nothing before
    /// [`HostSequence::adopt`].
    pub fn recorded(kind: Kind, directory: Directory, node: Node, max_ahead: Tick) -> HostSequence {
        let first = Opened::own(node.layout());
        first.sequence().close();
        let sequences = HostSequence::starting_with(first, Some(directory), node, max_ahead);
        HostSequence { kind, ..sequences }
    }

    /// The host's sequence of a leased page. It never changes to another page.
    pub fn leased(page: Page) -> HostSequence {
        let (node, max_ahead) = (page.header().node, page.header().max_ahead);
        let first = Opened::of(page);
        let sequences = HostSequence::starting_with(first, None, node, max_ahead);
        HostSequence { kind: Kind::Leased, ..sequences }
    }

    /// The host's sequence of the node, in a page that it joins or creates.
    pub fn open(
        directory: Directory,
        node: Node,
        max_ahead: Tick,
        clock: &(impl Clock + ?Sized),
    ) -> Result<HostSequence, Failure> {
        let first = begun(&directory, &node, max_ahead, clock, None)?;
        Ok(HostSequence::starting_with(first, Some(directory), node, max_ahead))
    }

    fn starting_with(
        first: Opened,
        directory: Option<Directory>,
        node: Node,
        max_ahead: Tick,
    ) -> HostSequence {
        let first = Arc::new(first);
        HostSequence {
            node,
            max_ahead,
            directory,
            kind: Kind::Plain,
            current: AtomicPtr::new(Arc::as_ptr(&first).cast_mut()),
            opened: Mutex::new(vec![first]),
            failure: Mutex::new(None),
        }
    }

    /// The error that made the last page unusable, if any.
    pub fn failure(&self) -> Option<Fault> {
        self.failure.lock().clone()
    }

    /// After a halt: opens the next page if that helps, or returns the stall. `pages`: pages that this call has lost.
    /// Too many are an error.
    #[cold]
    pub fn go_on(
        &self,
        halt: Halt,
        opened: &Opened,
        pages: usize,
        clock: &(impl Clock + ?Sized),
    ) -> Option<Stall> {
        let reopened = match halt {
            Halt::Stall(stall) => return Some(stall),
            Halt::Unnamed if self.kind.is_recorded() => {
                // The record's owner opens the next page once nobody draws from this one.
                opened.sequence().close_once();
                return Some(Stall::AboveCeiling { ceiling: NEVER });
            }
            // The slot continues in another page, or another slot in its own page.
            Halt::Unnamed if self.kind == Kind::Leased => {
                return Some(Stall::AboveCeiling { ceiling: NEVER });
            }
            Halt::Unnamed if pages > REOPENINGS => Err(again_and_again(opened, pages)),
            Halt::Unnamed => self.reopen(opened, clock),
            Halt::Host(error) => Err(*error),
        };
        let error = reopened.err()?;
        *self.failure.lock() = Some(error.into());
        Some(Stall::NoPage)
    }

    /// The current sequence. A reservation and its [`Reading`] use the same one.
    #[inline]
    pub fn current(&self) -> &Opened {
        // SAFETY: `opened` owns the target, and removes nothing while `self` lives.
        unsafe { &*self.current.load(Acquire) }
    }

    /// Opens the node's next page, unless another thread opened it since `unnamed` was current.
    pub fn reopen(&self, unnamed: &Opened, clock: &(impl Clock + ?Sized)) -> Result<(), Failure> {
        let mut opened = self.opened.lock();
        let Some(directory) = &self.directory else { return Ok(()) };
        if !ptr::eq(self.current(), unnamed) {
            return Ok(());
        }
        self.check_number(&opened)?;
        unnamed.page().map_or(Ok(()), Page::leave_to_user)?;
        // What an overwritten page issued is unknown. The next page begins above the clock.
        let is_known = unnamed.page().is_none_or(Page::is_possible);
        let high = unnamed.sequence().high_marks().highest();
        let reached = Some(if is_known { high } else { NEVER });
        let directory = directory.of_present_user()?;
        let next = Arc::new(begun(&directory, &self.node, self.max_ahead, clock, reached)?);
        self.push(&mut opened, next)
    }

    /// The node's page by name, for a record. Without a directory: the process's own memory. Nothing draws from it yet.
    pub fn next(&self) -> Result<Arc<Opened>, Failure> {
        let opened = self.opened.lock();
        let current = opened.iter().find(|one| ptr::eq(Arc::as_ptr(one), self.current()));
        let is_named = |page: &Page| page.is_named().unwrap_or(false);
        let is_usable =
            |one: &&Arc<Opened>| self.directory.is_none() || one.page().is_some_and(is_named);
        match (current.filter(is_usable), &self.directory) {
            (None, Some(directory)) => {
                let page = directory.open_as(&self.node, self.kind, self.max_ahead, None)?;
                Ok(Arc::new(Opened::of(page)))
            }
            (Some(current), _) => Ok(current.clone()),
            (None, None) => Err(again_and_again(self.current(), opened.len())),
        }
    }

    /// Replaces a page that its record does not name.
    pub fn replace(&self, stale: &Opened) -> Result<(), Failure> {
        let (Some(directory), Some(page)) = (&self.directory, stale.page()) else { return Ok(()) };
        if directory.renew(page)? {
            return Ok(());
        }
        Err(Failure::new(
            Class::Conflict,
            fault!("page-record", place: page.path(), pid: page.living_user()),
        ))
    }

    /// Makes `next` the current sequence.
    pub fn adopt(&self, next: &Arc<Opened>) -> Result<(), Failure> {
        let mut opened = self.opened.lock();
        if ptr::eq(self.current(), Arc::as_ptr(next)) {
            return Ok(());
        }
        self.push(&mut opened, next.clone())
    }

    /// Refuses one page more than a process may have opened.
    fn check_number(&self, opened: &[Arc<Opened>]) -> Result<(), Failure> {
        if opened.len() >= MOST_PAGES {
            return Err(again_and_again(self.current(), opened.len()));
        }
        Ok(())
    }

    fn push(&self, opened: &mut Vec<Arc<Opened>>, next: Arc<Opened>) -> Result<(), Failure> {
        self.check_number(opened)?;
        self.current().retire();
        self.current.store(Arc::as_ptr(&next).cast_mut(), Release);
        opened.push(next);
        Ok(())
    }

    /// Reserves up to `want` IDs of the clock's tick. Opens the next page if the current one lost its name.
    pub fn reserve(
        &self,
        rules: &Rules,
        clock: &(impl Clock + ?Sized),
        want: impl Fn(Tick) -> u64,
    ) -> Result<Block, Halt> {
        for _ in 0..REOPENINGS {
            let opened = self.current();
            let mut reading = Reading::new(clock, &self.node, opened);
            match opened.sequence().reserve(rules, &mut reading, &want) {
                Err(Halt::Unnamed) => self.reopen(opened, clock)?,
                answer => return answer,
            }
        }
        Err(again_and_again(self.current(), REOPENINGS).into())
    }
}

/// Opens a page and begins it. The process that begins it reads the clock after it found the page under its name.
/// Earlier pages may have issued IDs up to `maxAhead` ahead of the clock.
fn begun(
    directory: &Directory,
    node: &Node,
    max_ahead: Tick,
    clock: &(impl Clock + ?Sized),
    after: Option<Tick>,
) -> Result<Opened, Failure> {
    let page = directory.open_as(node, Kind::Plain, max_ahead, after)?;
    let (origin, may_be_old) = (page.origin(), page.may_be_old());
    let opened = Opened::of(page);
    let (how, ahead) = match origin {
        Origin::First if node.layout().tick_ms > 1 => (Beginning::Fresh, 0),
        Origin::First => (Beginning::First, 0),
        Origin::Next | Origin::Joined => (Beginning::After, max_ahead),
    };
    if origin == Origin::Joined {
        // The creator knows whether the page is the node's first, and so how to begin it.
        let deadline = Instant::now() + CREATION;
        while !opened.sequence().is_begun() && Instant::now() < deadline {
            thread::sleep(CREATION / 10);
        }
    }
    let mut highest = || node.layout().tick_at(clock.now().ms).saturating_add(ahead);
    // It cannot stall: it only reads the clock.
    let _ = opened.sequence().begin(&mut highest, how);
    if may_be_old {
        let now = node.layout().tick_at(clock.now().ms);
        opened.sequence().raise_floor(now.saturating_add(max_ahead));
    }
    // A process that did not use the earlier page may have begun this one as the first.
    opened.sequence().raise_floor(after.unwrap_or(NEVER));
    Ok(opened)
}

fn again_and_again(opened: &Opened, times: usize) -> Failure {
    Failure::new(Class::Page, fault!("page-deleted", place: opened.page().map(Page::path), times))
}
