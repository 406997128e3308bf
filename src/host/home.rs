//! The cells that a node's generator draws from: the host's page, or the process's own memory. Once the
//! page has lost its name, the next one.

use std::borrow::Borrow;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicI64, AtomicPtr,
    Ordering::{Acquire, Release},
};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::page::Origin;
use super::{Directory, HostError, Kind, Page};
use crate::clock::{Clock, UnixTime};
use crate::layout::Tick;
use crate::node::Node;
use crate::sequencer::{Block, NEVER, Stall};
use crate::shared::{Beginning, Cells, Rules, Run, Sequence, Time};

/// How long a rollback is doubted: some machines' clocks flicker backwards.
const DOUBT: Duration = Duration::from_micros(50);

/// The most pages of a node that a process opens one after the other. They stay mapped (4096 bytes
/// each), since another thread may be reading them; a process has 65,530 maps on Linux. A page a minute is
/// lost where a cron job of the same user ends a session each minute: 11 days.
const MOST_PAGES: usize = 16_384;

/// How often one call opens the next page.
const REOPENINGS: usize = 16;

/// How long the creation of a page takes from its link to its beginning, at most if nothing stops it.
const CREATION: Duration = Duration::from_millis(1);

/// Where cells are.
pub enum Home {
    /// In the process's own memory.
    Own(Box<Cells>),
    /// In the host's page.
    Page(Arc<Page>),
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

/// A sequence, and the page it lies in.
pub struct Opened {
    sequence: Sequence<Home>,
    page: Option<Arc<Page>>,
    /// The last Unix ms for which the page's name was checked.
    checked_ms: AtomicI64,
    id: u128,
}

impl Opened {
    fn new(home: Home, node: &Node) -> Self {
        let page = match &home {
            Home::Own(_) => None,
            Home::Page(page) => Some(page.clone()),
        };
        let id = page.as_ref().map_or_else(|| fastrand::u128(1..), |page| page.header().page_id);
        let checked_ms = AtomicI64::new(i64::MIN);
        Opened { sequence: Sequence::new(home, node.layout()), page, checked_ms, id }
    }

    /// What is drawn from.
    pub fn sequence(&self) -> &Sequence<Home> {
        &self.sequence
    }

    /// The page, unless it is the process's own memory.
    pub fn page(&self) -> Option<&Page> {
        self.page.as_deref()
    }

    fn retire(&self) {
        if let Some(page) = &self.page {
            page.retire();
        }
    }

    /// Tells it from every other, also of other processes.
    pub fn id(&self) -> u128 {
        self.id
    }

    /// Whether IDs may be issued from it at a time that the clock has just shown: call it after the clock
    /// was read, and before the word is swapped.
    ///
    /// A millisecond is checked once. Another page begins above the tick that the clock shows after the
    /// name was found here, so what is issued in the rest of that tick is issued here only. Any other
    /// value of the clock, also a lower one, is checked again.
    #[inline]
    pub fn may_issue(&self, unix_ms: i64) -> Result<bool, HostError> {
        if self.is_checked(unix_ms) { Ok(true) } else { self.check(unix_ms) }
    }

    #[inline(always)]
    fn is_checked(&self, unix_ms: i64) -> bool {
        self.checked_ms.load(Acquire) == unix_ms || self.page.is_none()
    }

    #[cold]
    fn check(&self, unix_ms: i64) -> Result<bool, HostError> {
        let is_named = self.page.as_ref().map_or(Ok(true), |page| page.is_named())?;
        if is_named {
            self.checked_ms.store(unix_ms, Release);
        }
        Ok(is_named)
    }
}

/// What ends a reservation.
#[derive(Debug)]
pub enum Halt {
    /// The sequencer's rule.
    Stall(Stall),
    /// The page has lost its name: [`HostSequence::reopen`], and try again.
    Unnamed,
    /// The page cannot be used, nor another one.
    Host(Box<HostError>),
}

impl From<Stall> for Halt {
    fn from(stall: Stall) -> Self {
        Halt::Stall(stall)
    }
}

impl From<HostError> for Halt {
    fn from(error: HostError) -> Self {
        Halt::Host(Box::new(error))
    }
}

/// Tells a reservation the time, and ends it where its page has lost its name.
pub struct Reading<'a, C: ?Sized> {
    clock: &'a C,
    node: &'a Node,
    opened: &'a Opened,
    doubted: Option<Instant>,
    /// What the clock showed last.
    pub last: UnixTime,
    /// The run that was left, where the block begins another one.
    pub left: Option<Run>,
}

impl<'a, C: Clock + ?Sized> Reading<'a, C> {
    /// For one reservation from `opened`, and from nothing else.
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

    fn is_cleared(&mut self) -> Result<(), Halt> {
        Ok(self.opened.page.as_ref().map_or(Ok(()), |page| page.check_intact())?)
    }

    fn begins(&mut self, left: &Run, _: &Run) {
        self.left = Some(*left);
    }
}

/// A node's sequence, of the host or of this process alone.
pub struct HostSequence {
    node: Node,
    max_ahead: Tick,
    directory: Option<Directory>,
    /// Of which kind its pages are.
    kind: Kind,
    current: AtomicPtr<Opened>,
    /// All that `current` ever pointed to; it changes under this lock.
    opened: Mutex<Vec<Arc<Opened>>>,
    /// Why the last page could not be used.
    failure: Mutex<Option<String>>,
}

impl HostSequence {
    /// A sequence of this process alone.
    pub fn own(node: &Node) -> HostSequence {
        let first = Opened::new(Home::Own(Box::default()), node);
        HostSequence::starting_with(first, None, *node, 0)
    }

    /// The host's sequence of the node beside a record: nothing is issued before
    /// [`HostSequence::adopt`].
    pub fn durable(directory: Directory, node: Node, max_ahead: Tick) -> HostSequence {
        let first = Opened::new(Home::Own(Box::default()), &node);
        first.sequence.close();
        let sequences = HostSequence::starting_with(first, Some(directory), node, max_ahead);
        HostSequence { kind: Kind::Durable, ..sequences }
    }

    /// The host's sequence of the node, in a page that is joined or created; without a directory, one of
    /// this process alone.
    pub fn open(
        directory: Option<Directory>,
        node: Node,
        max_ahead: Tick,
        clock: &(impl Clock + ?Sized),
    ) -> Result<HostSequence, HostError> {
        let first = match &directory {
            None => Opened::new(Home::Own(Box::default()), &node),
            Some(directory) => begun(directory, &node, max_ahead, clock, None)?,
        };
        Ok(HostSequence::starting_with(first, directory, node, max_ahead))
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

    /// Why the last page could not be used, if so.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// After a halt: opens the next page where that helps, or says what stands in the way. `pages` that
    /// one call has lost are enough.
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
            Halt::Unnamed if self.kind == Kind::Durable => {
                // The record's keeper opens the next page for it, once nobody draws from this one.
                opened.sequence().close_once();
                return Some(Stall::AboveCeiling { ceiling: NEVER });
            }
            Halt::Unnamed if pages > REOPENINGS => Err(again_and_again(opened, pages)),
            Halt::Unnamed => self.reopen(opened, clock),
            Halt::Host(error) => Err(*error),
        };
        let error = reopened.err()?;
        *self.failure.lock() = Some(error.to_string());
        Some(Stall::NoPage)
    }

    /// What is drawn from at present. A reservation and its [`Reading`] use the same one.
    #[inline]
    pub fn current(&self) -> &Opened {
        // SAFETY: it points to what `opened` owns. Nothing is removed from there while `self` lives.
        unsafe { &*self.current.load(Acquire) }
    }

    /// Opens the node's next page, unless another thread has done so since `unnamed` was current.
    pub fn reopen(&self, unnamed: &Opened, clock: &(impl Clock + ?Sized)) -> Result<(), HostError> {
        let mut opened = self.opened.lock();
        let Some(directory) = &self.directory else { return Ok(()) };
        if !ptr::eq(self.current(), unnamed) {
            return Ok(());
        }
        if opened.len() >= MOST_PAGES {
            return Err(again_and_again(unnamed, opened.len()));
        }
        let reached = Some(unnamed.sequence().high_marks().highest());
        let next = Arc::new(begun(directory, &self.node, self.max_ahead, clock, reached)?);
        unnamed.retire();
        self.current.store(Arc::as_ptr(&next).cast_mut(), Release);
        opened.push(next);
        Ok(())
    }

    /// Whether it lies in pages of the host.
    pub fn has_pages(&self) -> bool {
        self.directory.is_some()
    }

    /// The node's page by name, for a record; the process's own memory where there are no pages. It is not
    /// drawn from yet.
    pub fn next(&self) -> Result<Arc<Opened>, HostError> {
        let opened = self.opened.lock();
        let current = opened.iter().find(|one| ptr::eq(Arc::as_ptr(one), self.current()));
        let is_usable = |one: &&Arc<Opened>| match (&self.directory, &one.page) {
            (None, _) => true,
            (Some(_), page) => page.as_ref().is_some_and(|page| page.is_named().unwrap_or(false)),
        };
        match (current.filter(is_usable), &self.directory) {
            (None, Some(directory)) => {
                let page = directory.open_as(&self.node, Kind::Durable, self.max_ahead, None)?;
                Ok(Arc::new(Opened::new(Home::Page(Arc::new(page)), &self.node)))
            }
            (Some(current), _) => Ok(current.clone()),
            (None, None) => Err(again_and_again(self.current(), opened.len())),
        }
    }

    /// Puts another page in the place of one that its record does not name.
    pub fn replace(&self, stale: &Opened) -> Result<(), HostError> {
        let (Some(directory), Some(page)) = (&self.directory, stale.page()) else { return Ok(()) };
        if directory.renew(page)? {
            return Ok(());
        }
        Err(HostError::OtherRecord { place: page.path().to_owned(), pid: page.living_user() })
    }

    /// Draws from there from now on.
    pub fn adopt(&self, next: &Arc<Opened>) -> Result<(), HostError> {
        let mut opened = self.opened.lock();
        if ptr::eq(self.current(), Arc::as_ptr(next)) {
            return Ok(());
        }
        if opened.len() >= MOST_PAGES {
            return Err(again_and_again(self.current(), opened.len()));
        }
        self.current().retire();
        self.current.store(Arc::as_ptr(next).cast_mut(), Release);
        opened.push(next.clone());
        Ok(())
    }

    /// Reserves up to `want` IDs of the clock's tick, from the next page where one is gone.
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

/// A page that is begun. The process that begins it reads the clock after it saw the page under its name.
/// With `maxAhead` earlier pages may have issued IDs of up to that much later ticks.
fn begun(
    directory: &Directory,
    node: &Node,
    max_ahead: Tick,
    clock: &(impl Clock + ?Sized),
    after: Option<Tick>,
) -> Result<Opened, HostError> {
    let page = Arc::new(directory.open_as(node, Kind::Plain, max_ahead, after)?);
    let opened = Opened::new(Home::Page(page.clone()), node);
    let (how, ahead) = match page.origin() {
        Origin::First if node.layout().tick_ms > 1 => (Beginning::Fresh, 0),
        Origin::First => (Beginning::First, 0),
        Origin::Next | Origin::Joined => (Beginning::After, max_ahead),
    };
    if page.origin() == Origin::Joined {
        // The process that has created it knows better how to begin it.
        let deadline = Instant::now() + CREATION;
        while !opened.sequence().is_begun() && Instant::now() < deadline {
            thread::sleep(CREATION / 10);
        }
    }
    let mut highest = || node.layout().tick_at(clock.now().ms).saturating_add(ahead);
    // Nothing stalls it: it only asks the time.
    let _ = opened.sequence().begin(&mut highest, how);
    if page.may_be_old() {
        let now = node.layout().tick_at(clock.now().ms);
        opened.sequence().raise_floor(now.saturating_add(max_ahead));
    }
    // A process that did not have the page before may have begun this one as the first.
    opened.sequence().raise_floor(after.unwrap_or(NEVER));
    Ok(opened)
}

fn again_and_again(opened: &Opened, times: usize) -> HostError {
    let place = opened.page().map(|page| page.path().to_owned()).unwrap_or_default();
    let what = format!(
        "was deleted {times} times while it was in use. Find out which program deletes it, stop that, \
         and restart this process"
    );
    HostError::Unusable { place, what }
}
