//! A generator: a node's sequencer, its clock, and the waiting between reservations.
//!
//! | file | content |
//! |---|---|
//! | `policies` | a caller's options: clock rollbacks, waiting, sequence start |
//! | `reports` | clock rollbacks, counted and reported at a limited rate |
//! | `renewals` | requests for a higher ceiling, and their answers |
//! | `reserving` | one reservation, from the present page or the next one; refusals |
//! | `waiting` | reservations that may wait: for the clock, a renewal or the caller's turn |
//! | `windows` | the window of a node that a store records |
//!
//! Issuing an ID takes no lock. A reservation writes the sequencer's word, in the host's page or in this process's
//! memory, and the count of issued IDs. It only reads everything else, or writes it once per ms or tick, or when it
//! stalls.
//!
//! The generator is also the fence: it issues nothing outside the window.

mod policies;
mod renewals;
mod reports;
mod reserving;
mod waiting;
mod windows;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::core::clock::Clock;
use crate::core::fault::{Failure, Fault};
use crate::core::layout::Tick;
use crate::core::node::Node;
use crate::core::sequence::Sequence;
use crate::core::sequencer::{HighMarks, NEVER, Window};
use crate::host::{Directory, Home, HostSequence, Kind, Page};
use reports::Reports;

pub use policies::{ClockBack, Policies};
pub use renewals::{Renewals, WindowId};
pub use reports::Rollback;
pub use reserving::{Refusal, Reserved};
pub use waiting::{Booking, Redeemed, Waits};

/// The statistics of a generator, for this process.
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
    /// The high marks of all who share the sequence. A restart needs to remember nothing else.
    pub high: HighMarks,
}

/// Issues the IDs of one node to any number of threads.
pub struct Generator {
    node: Node,
    clock: Box<dyn Clock>,
    sequences: HostSequence,
    /// The number of ticks that IDs may lie ahead of the clock.
    max_ahead: AtomicI64,
    /// The tick that the first draw waits out; [`NEVER`] if there is none.
    first_tick: AtomicI64,
    renewals: Renewals,
    reports: Reports,
    issued: AtomicU64,
    waits: AtomicU64,
    waited_ns: AtomicU64,
}

impl Generator {
    /// A generator of this process alone, with no memory of earlier ones and no bounds but the layout's.
    /// `max_ahead_ms`: the time that ticks may be taken ahead of the clock, rounded down to whole ticks.
    pub fn new(node: Node, max_ahead_ms: i64, clock: Box<dyn Clock>) -> Self {
        let max_ahead = max_ahead_ms / node.layout().tick_ms;
        Generator::of(HostSequence::own(node, max_ahead), clock)
    }

    /// A generator that draws from the host's page of the node. All processes of the user that name the node share the
    /// page.
    pub fn on_host(
        directory: Directory,
        node: Node,
        max_ahead_ms: i64,
        clock: Box<dyn Clock>,
    ) -> Result<Self, Failure> {
        let max_ahead = max_ahead_ms / node.layout().tick_ms;
        let generator =
            Generator::of(HostSequence::open(directory, node, max_ahead, &*clock)?, clock);
        generator.note_first_tick();
        Ok(generator)
    }

    /// Like [`Generator::on_host`], in a page of this kind with a record: issues nothing before
    /// [`crate::lease::durable::Durable::open`].
    pub fn recorded(
        kind: Kind,
        directory: Directory,
        node: Node,
        max_ahead_ms: i64,
        clock: Box<dyn Clock>,
    ) -> Self {
        let max_ahead = max_ahead_ms / node.layout().tick_ms;
        Generator::of(HostSequence::recorded(kind, directory, node, max_ahead), clock)
    }

    /// A generator that draws from a leased page, shared by all processes of this host that share its slot.
    pub fn leased(page: Page, clock: Box<dyn Clock>) -> Self {
        Generator::of(HostSequence::leased(page), clock)
    }

    fn of(sequences: HostSequence, clock: Box<dyn Clock>) -> Self {
        Generator {
            node: sequences.node,
            clock,
            max_ahead: AtomicI64::new(sequences.max_ahead),
            sequences,
            first_tick: AtomicI64::new(NEVER),
            renewals: Renewals::new(),
            reports: Reports::new(),
            issued: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
        }
    }

    /// The node whose IDs it issues.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The clock reading, Unix ms.
    pub fn now_ms(&self) -> i64 {
        self.clock.now().ms
    }

    /// The tick of the clock.
    pub fn tick_now(&self) -> Tick {
        self.node.layout().tick_at(self.now_ms())
    }

    /// The time that IDs may lie ahead of the clock, in ms.
    pub fn max_ahead_ms(&self) -> i64 {
        self.max_ahead.load(Relaxed).saturating_mul(self.node.layout().tick_ms)
    }

    /// Rounds `ms` down to whole ticks.
    pub fn whole_ticks(&self, ms: i64) -> i64 {
        let tick_ms = self.node.layout().tick_ms;
        ms / tick_ms * tick_ms
    }

    /// The highest tick issued; [`NEVER`] if none was.
    pub fn highest(&self) -> Tick {
        self.sequence().high_marks().highest()
    }

    /// The highest tick issued, here or before.
    pub fn reached(&self) -> Tick {
        self.highest().max(self.sequence().floor())
    }

    /// Raises the floor to a tick that the node's IDs have reached elsewhere. Does nothing if this generator has
    /// reached it too, since the current run may have numbers of that tick left.
    pub fn start_above(&self, reached: Tick) {
        if reached > self.reached() {
            self.raise_floor(reached);
        }
    }

    /// Sets the time that IDs may lie ahead of the clock. Only while nobody draws and no other process shares the
    /// sequence.
    pub fn set_max_ahead_ms(&self, max_ahead_ms: i64) {
        self.max_ahead.store(max_ahead_ms / self.node.layout().tick_ms, Relaxed);
    }

    /// The page shared with the host's other processes; `None` if the sequence belongs to this process alone.
    pub fn page(&self) -> Option<&Page> {
        self.sequences.current().page()
    }

    /// The cause of the last [`Stall::NoPage`].
    pub fn page_failure(&self) -> Option<Fault> {
        self.sequences.failure()
    }

    /// The renewals of its window.
    pub fn renewals(&self) -> &Renewals {
        &self.renewals
    }

    /// The successive pages it draws from.
    pub(crate) fn sequences(&self) -> &HostSequence {
        &self.sequences
    }

    /// The present sequence.
    fn sequence(&self) -> &Sequence<Home> {
        self.sequences.current().sequence()
    }

    /// The ticks that may be issued at present.
    pub fn window(&self) -> Window {
        self.sequence().window()
    }

    /// Issues nothing at or below a tick that the node's IDs have reached elsewhere.
    pub fn raise_floor(&self, tick: Tick) {
        self.sequence().raise_floor(tick);
    }

    /// Whether a clock rollback is due for a report.
    #[inline]
    pub fn has_rollback_to_report(&self) -> bool {
        self.reports.is_due()
    }

    /// The clock rollback to report. `None` if it was taken already, or if the rate limit holds it back.
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
            high: self.sequence().high_marks(),
        }
    }
}

#[cfg(test)]
mod tests;
