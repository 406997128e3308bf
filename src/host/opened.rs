//! The cells that a generator draws from: the host's page, or the process's own memory. A reservation checks, after it
//! read the clock, that the page still has its name.

use std::borrow::Borrow;
use std::sync::atomic::{
    AtomicI64,
    Ordering::{Acquire, Release},
};
use std::time::{Duration, Instant};

use super::{Header, Page};
use crate::core::clock::{Clock, UnixTime};
use crate::core::fault::Failure;
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::core::sequence::{Cells, Run, Sequence, Time};
use crate::core::sequencer::Stall;

/// Time to recheck an apparent clock rollback: some machines' clocks flicker backwards.
const DOUBT: Duration = Duration::from_micros(50);

/// The owner of cells.
pub enum Home {
    /// The process's own memory.
    Own(Box<Cells>),
    /// The host's page.
    Page(Box<Page>),
}

impl Borrow<Cells> for Home {
    #[inline]
    fn borrow(&self) -> &Cells {
        match self {
            Home::Own(cells) => cells,
            Home::Page(page) => page.cells(),
        }
    }
}

/// A sequence and its page.
pub struct Opened {
    sequence: Sequence<Home>,
    /// The last Unix ms for which the page's name was checked.
    checked_ms: AtomicI64,
    id: u128,
}

impl Opened {
    /// A sequence in the process's own memory.
    pub(super) fn own(layout: &Layout) -> Opened {
        Opened::new(Home::Own(Box::default()), layout, fastrand::u128(1..))
    }

    /// The sequence of a page.
    pub(super) fn of(page: Page) -> Opened {
        let Header { node, page_id, .. } = *page.header();
        Opened::new(Home::Page(Box::new(page)), node.layout(), page_id)
    }

    fn new(home: Home, layout: &Layout, id: u128) -> Opened {
        let checked_ms = AtomicI64::new(i64::MIN);
        Opened { sequence: Sequence::new(home, layout), checked_ms, id }
    }

    /// The sequence.
    pub fn sequence(&self) -> &Sequence<Home> {
        &self.sequence
    }

    /// The page; none for the process's own memory.
    #[inline]
    pub fn page(&self) -> Option<&Page> {
        match self.sequence.memory() {
            Home::Own(_) => None,
            Home::Page(page) => Some(page),
        }
    }

    /// Gives up the page: this process issues nothing from it any more.
    pub(super) fn retire(&self) {
        self.page().inspect(|page| page.retire());
    }

    /// The page's ID, or a random one. Unique across processes.
    pub fn id(&self) -> u128 {
        self.id
    }

    /// Whether this sequence may issue IDs at a time just read from the clock. Call it after the read and before the
    /// swap of the word.
    ///
    /// One check covers a millisecond. Another page begins above the tick that the clock shows after this check found
    /// the name, so only this page issues IDs in the rest of that tick. Any other clock value, also a lower one, needs
    /// another check.
    #[inline]
    pub fn may_issue(&self, unix_ms: i64) -> Result<bool, Failure> {
        if self.is_checked(unix_ms) { Ok(true) } else { self.check(unix_ms) }
    }

    #[inline(always)]
    fn is_checked(&self, unix_ms: i64) -> bool {
        self.checked_ms.load(Acquire) == unix_ms || self.page().is_none()
    }

    #[cold]
    fn check(&self, unix_ms: i64) -> Result<bool, Failure> {
        let is_current = match self.page() {
            Some(page) => page.is_of_present_user() && page.is_named()?,
            None => true,
        };
        if is_current {
            self.checked_ms.store(unix_ms, Release);
        }
        Ok(is_current)
    }
}

/// The reason a reservation ended.
#[derive(Debug)]
pub enum Halt {
    /// The sequencer's rule refuses.
    Stall(Stall),
    /// The page lost its name, or is of the user that the process was: call [`HostSequence::reopen`], then retry.
    Unnamed,
    /// Neither this page nor another is usable.
    Host(Box<Failure>),
}

impl From<Stall> for Halt {
    fn from(stall: Stall) -> Self {
        Halt::Stall(stall)
    }
}

impl From<Failure> for Halt {
    fn from(error: Failure) -> Self {
        Halt::Host(Box::new(error))
    }
}

/// Reads the time for a reservation, and ends the reservation if its page lost its name.
pub struct Reading<'a, C: ?Sized> {
    clock: &'a C,
    node: &'a Node,
    opened: &'a Opened,
    doubted: Option<Instant>,
    /// The last time read.
    pub last: UnixTime,
    /// The previous run, if the block begins another one.
    pub left: Option<Run>,
}

impl<'a, C: Clock + ?Sized> Reading<'a, C> {
    /// For one reservation, from `opened` only.
    pub fn new(clock: &'a C, node: &'a Node, opened: &'a Opened) -> Self {
        Reading { clock, node, opened, doubted: None, last: UnixTime::from_ms(0), left: None }
    }
}

impl<C: Clock + ?Sized> Time for Reading<'_, C> {
    type Refusal = Halt;

    #[inline]
    fn now(&mut self) -> Result<Tick, Halt> {
        self.left = None;
        self.last = self.clock.now();
        let now = self.last;
        if !self.opened.is_checked(now.ms) && !self.opened.check(now.ms)? {
            return Err(Halt::Unnamed);
        }
        Ok(self.node.layout().tick_at(now.ms))
    }

    fn doubts(&mut self) -> bool {
        self.clock.may_flicker() && self.doubted.get_or_insert_with(Instant::now).elapsed() < DOUBT
    }

    fn is_damaged(&mut self) -> Result<(), Halt> {
        Ok(self.opened.page().map_or(Ok(()), |page| Err(page.overwritten()))?)
    }

    fn begins(&mut self, left: &Run, _: &Run) {
        self.left = Some(*left);
    }
}
