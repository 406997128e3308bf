//! The generator of a node: its page, its clock, and the waits between reservations.
//!
//! | file | content |
//! |---|---|
//! | `reports` | clock rollbacks, counted and reported at a limited rate |
//! | `renewals` | requests for a higher ceiling, and their results |
//! | `pages` | the present page, its window, and its replacement after it lost its name |
//! | `reserving` | one reservation under a caller's policies, from the present page or the next one; refusals |
//! | `waiting` | reservations that may wait for the clock, a renewal or the caller's turn |
//! | `pace` | the number of IDs that JavaScript reserves at once, by its rate |
//! | `caller` | one JavaScript instance's blocks, bookings and batches |
//!
//! A reservation takes no lock. It writes the page's word and the count of issued IDs. It writes anything else only
//! once per ms or tick, or when it stalls.
//!
//! The generator enforces the fence: it issues nothing outside the window.

mod caller;
pub mod pace;
mod pages;
mod renewals;
mod reports;
mod reserving;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::core::clock::Clock;
use crate::core::fault::{Failure, Fault};
use crate::core::layout::Tick;
use crate::core::node::Node;
use crate::core::sequencer::{HighMarks, NEVER, Window};
use crate::pages::{Directory, Page, Terms};
use reports::Reports;

pub use caller::{BlockMemory, Caller};
pub use renewals::Renewals;
pub use reports::Rollback;
pub use reserving::{ClockBack, Policies, Reserved, Stalled, UserPage};
use waiting::Booking;
pub use waiting::Waits;

/// A generator's statistics, for this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// IDs handed out.
    pub issued: u64,
    /// Waits for the clock or the store.
    pub waits: u64,
    /// Their total time.
    pub waited: Duration,
    /// Clock rollbacks.
    pub rollbacks: u64,
    /// The high marks of the page, shared by all its users.
    pub high: HighMarks,
}

/// Issues the IDs of one node to any number of threads.
pub struct Generator {
    node: Node,
    clock: Box<dyn Clock>,
    /// The present page. Earlier pages are unmapped once no thread reads them.
    page: RwLock<Arc<Page>>,
    /// The directory of the next page. `None` for a page in the process's own memory, and for a leased page, which has
    /// no next one.
    directory: Option<Directory>,
    /// The failure to open the next page. `page` changes under this lock.
    failure: Mutex<Option<Fault>>,
    /// The number of ticks that IDs may be ahead of the clock.
    max_ahead: Tick,
    /// The exhausted tick in which the page began, if the first caller must wait for its end; else [`NEVER`].
    first_tick: AtomicI64,
    renewals: Renewals,
    reports: Reports,
    issued: AtomicU64,
    waits: AtomicU64,
    waited_ns: AtomicU64,
}

impl Generator {
    /// A generator in this process's own memory. It has no record of earlier IDs, and only the layout bounds it.
    /// `max_ahead_ms`: the time that ticks may be ahead of the clock, rounded down to whole ticks.
    pub fn new(node: Node, max_ahead_ms: i64, clock: Box<dyn Clock>) -> Self {
        Generator::of(own_page(node, max_ahead_ms), None, clock)
    }

    /// A generator on the host's free page of the node, which all of the user's processes with this node share. The
    /// page is the only record of its IDs, so it issues nothing ahead of the clock.
    pub fn on_host(
        directory: Directory,
        node: Node,
        clock: Box<dyn Clock>,
    ) -> Result<Self, Failure> {
        let page = directory.open(&node, &*clock, NEVER)?;
        let generator = Generator::of(page, Some(directory), clock);
        generator.note_first_tick();
        Ok(generator)
    }

    /// A generator on a leased page, which all of this host's processes with this slot share.
    pub fn leased(page: Page, clock: Box<dyn Clock>) -> Self {
        Generator::of(page, None, clock)
    }

    fn of(page: Page, directory: Option<Directory>, clock: Box<dyn Clock>) -> Self {
        Generator {
            node: page.header().node,
            clock,
            max_ahead: page.header().terms.max_ahead,
            page: RwLock::new(Arc::new(page)),
            directory,
            failure: Mutex::new(None),
            first_tick: AtomicI64::new(NEVER),
            renewals: Renewals::new(),
            reports: Reports::new(),
            issued: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
        }
    }

    /// The node whose IDs this generator issues.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The clock reading, Unix ms.
    pub fn now_ms(&self) -> i64 {
        self.clock.now().ms
    }

    /// The clock's tick.
    pub fn tick_now(&self) -> Tick {
        self.node.layout().tick_at(self.now_ms())
    }

    /// The time that IDs may be ahead of the clock, in ms.
    pub fn max_ahead_ms(&self) -> i64 {
        self.max_ahead.saturating_mul(self.node.layout().tick_ms)
    }

    /// The highest tick that the node may have issued, on this page or an earlier one; [`NEVER`] if none.
    pub fn highest(&self) -> Tick {
        self.page().sequence().highest()
    }

    /// Notes a tick that the node issued elsewhere: issues nothing at or below it. Does nothing if this page has issued
    /// that tick, too, since the current run may have numbers left in it.
    pub fn start_above(&self, reached: Tick) {
        let page = self.page();
        if reached > page.sequence().highest().max(page.sequence().floor()) {
            page.sequence().raise_before(reached);
        }
    }

    /// The present page.
    pub fn page(&self) -> Arc<Page> {
        self.page.read().clone()
    }

    /// The directory of the next page.
    pub(crate) fn directory(&self) -> Option<&Directory> {
        self.directory.as_ref()
    }

    /// The cause of the last [`Stall::NoPage`](crate::core::sequencer::Stall::NoPage).
    pub fn page_failure(&self) -> Option<Fault> {
        self.failure.lock().clone()
    }

    /// The renewals of its window.
    pub fn renewals(&self) -> &Renewals {
        &self.renewals
    }

    /// The present window.
    pub fn window(&self) -> Window {
        self.page().sequence().window()
    }

    /// Whether there is a clock rollback to report.
    #[inline]
    pub fn has_rollback_to_report(&self) -> bool {
        self.reports.is_due()
    }

    /// Takes the clock rollback to report; `None` if there is none, or the rate limit delays it.
    pub fn take_rollback(&self) -> Option<Rollback> {
        self.reports.take()
    }

    /// The statistics so far.
    pub fn stats(&self) -> Stats {
        Stats {
            issued: self.issued.load(Relaxed),
            waits: self.waits.load(Relaxed),
            waited: Duration::from_nanos(self.waited_ns.load(Relaxed)),
            rollbacks: self.reports.count(),
            high: self.page().sequence().high_marks(),
        }
    }
}

fn own_page(node: Node, max_ahead_ms: i64) -> Page {
    let max_ahead = max_ahead_ms / node.layout().tick_ms;
    Page::in_process(node, Terms { max_ahead, owner: None })
}

#[cfg(test)]
mod tests;
