//! A node's sequencer and its clock, and the waiting between reservations.
//!
//! No lock stands on the way of an ID. What a reservation shares with others is the sequencer's word, in
//! the host's page or in this process; all else is read only, or touched once a tick, or when something
//! stands in the way.
//!
//! The fence stands here, too: nothing is issued outside the window.

mod ceiling;
mod policies;
mod reports;
mod waiting;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub use self::ceiling::WindowId;
use self::ceiling::{Ceiling, Keeping};
pub use self::policies::{ClockBack, Policies};
pub use self::reports::ClockStep;
use self::reports::Reports;
pub use self::waiting::{Booking, Redeemed, Waits};
use crate::clock::{Clock, UnixTime};
use crate::host::{Directory, Halt, Home, HostError, HostSequence, Opened, Page, Reading};
use crate::layout::{Layout, Tick};
use crate::node::Node;
use crate::sequencer::{Block, HighMarks, NEVER, Stall, Window};
use crate::shared::{Rules, Run, Sequence};
use crate::store::Terms;
use crate::store::record::HOUR_MS;

/// Consecutive IDs that nobody else was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The first ID; the others follow it one by one.
    pub first_id: u64,
    /// Where they stand in their tick.
    pub block: Block,
}

impl Reserved {
    /// The first ones of them, at most as many. The others are given back.
    pub fn shortened(self, generator: &Generator, most: u64) -> Reserved {
        let unused = self.block.len.saturating_sub(most);
        if unused > 0 {
            generator.give_back(&self.block, unused);
        }
        Reserved { block: Block { len: self.block.len - unused, ..self.block }, ..self }
    }
}

/// Why no ID was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What stood in the way.
    pub stall: Stall,
    /// What the clock showed.
    pub now: UnixTime,
    /// How long until it can go on, if the clock runs evenly; none where it never will.
    pub retry_after: Option<Duration>,
}

/// What a generator has done so far, in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// IDs handed out.
    pub issued: u64,
    /// Waits for the clock or the store.
    pub waits: u64,
    /// How long they took in all.
    pub waited: Duration,
    /// Clock rollbacks that were met.
    pub steps: u64,
    /// What a restart would have to remember: of all who share the sequence.
    pub high: HighMarks,
}

/// Issues the IDs of one node to any number of threads.
pub struct Generator {
    node: Node,
    clock: Box<dyn Clock>,
    sequence: HostSequence,
    /// How far ahead of the clock IDs may lie.
    max_ahead: AtomicI64,
    keeping: Keeping,
    reports: Reports,
    issued: AtomicU64,
    waits: AtomicU64,
    waited_ns: AtomicU64,
}

impl Generator {
    /// A generator of this process alone, which remembers nothing and has no bounds but the layout's.
    /// `max_ahead_ms`: how far ahead of the clock ticks may be taken; rounded down to whole ticks.
    pub fn new(node: Node, max_ahead_ms: i64, clock: Box<dyn Clock>) -> Self {
        Generator::of(node, HostSequence::own(&node), max_ahead_ms, clock)
    }

    /// One that draws from the host's page of the node, with all of the user's processes that name it.
    pub fn on_host(
        directory: Directory,
        node: Node,
        max_ahead_ms: i64,
        clock: Box<dyn Clock>,
    ) -> Result<Self, HostError> {
        let max_ahead = max_ahead_ms / node.layout().tick_ms;
        let sequence = HostSequence::open(Some(directory), node, max_ahead, &*clock)?;
        let generator = Generator::of(node, sequence, max_ahead_ms, clock);
        generator.wait_for_first_tick();
        Ok(generator)
    }

    /// The same beside a record: nothing is issued before [`crate::durable::Durable::open`].
    pub fn durable(
        directory: Directory,
        node: Node,
        max_ahead_ms: i64,
        clock: Box<dyn Clock>,
    ) -> Self {
        let max_ahead = max_ahead_ms / node.layout().tick_ms;
        let sequence = HostSequence::durable(directory, node, max_ahead);
        Generator::of(node, sequence, max_ahead_ms, clock)
    }

    fn of(node: Node, sequence: HostSequence, max_ahead_ms: i64, clock: Box<dyn Clock>) -> Self {
        let max_ahead = AtomicI64::new(max_ahead_ms / node.layout().tick_ms);
        Generator {
            node,
            clock,
            sequence,
            max_ahead,
            keeping: Keeping::new(),
            reports: Reports::new(),
            issued: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
        }
    }

    /// Of a page that has just begun the clock's tick is exhausted. So the first draw need not be refused
    /// for it where `maxWait` is 0, the rest of a ms is waited out here. Longer ticks are not.
    fn wait_for_first_tick(&self) {
        let (now, layout) = (self.clock.now(), self.node.layout());
        let tick = layout.tick_at(now.ms);
        let run = self.sequence().run();
        let is_exhausted = run.tick == tick && run.next > layout.last_sequence();
        if layout.tick_ms == 1 && (is_exhausted || self.window().floor == tick) {
            self.clock.wait(Duration::from_nanos((1_000_000 - now.ns).into()));
        }
    }

    /// Whose IDs it issues.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The tick of its clock.
    pub fn tick_now(&self) -> Tick {
        self.node.layout().tick_at(self.clock.now().ms)
    }

    /// How far ahead of the clock IDs may lie, in ms.
    pub fn max_ahead_ms(&self) -> i64 {
        self.max_ahead.load(Relaxed).saturating_mul(self.node.layout().tick_ms)
    }

    /// What is left of this many ms in whole ticks.
    pub fn whole_ticks(&self, ms: i64) -> i64 {
        let tick_ms = self.node.layout().tick_ms;
        ms / tick_ms * tick_ms
    }

    /// The highest tick that was issued; [`NEVER`] at first.
    pub fn highest(&self) -> Tick {
        self.sequence().high_marks().highest()
    }

    /// Changes that, while nobody draws and where no other process shares the sequence.
    pub fn set_max_ahead_ms(&self, max_ahead_ms: i64) {
        self.max_ahead.store(max_ahead_ms / self.node.layout().tick_ms, Relaxed);
    }

    /// The page that it shares with the host's other processes; none if it is this process's alone.
    pub fn page(&self) -> Option<&Page> {
        self.sequence.current().page()
    }

    /// Why the host's page cannot be used, since the last reservation that met [`Stall::NoPage`].
    pub fn page_failure(&self) -> Option<String> {
        self.sequence.failure()
    }

    /// The pages that it draws from one after the other.
    pub(crate) fn sequences(&self) -> &HostSequence {
        &self.sequence
    }

    /// The sequence at present.
    fn sequence(&self) -> &Sequence<Home> {
        self.sequence.current().sequence()
    }

    /// Reserves up to as many consecutive IDs as `want` says for the tick of the clock, or refuses
    /// at once.
    #[inline]
    pub fn try_reserve(
        &self,
        policies: &Policies,
        want: impl Fn(Tick) -> u64,
    ) -> Result<Reserved, Refusal> {
        self.attempt(policies, |sequence, rules, reading| sequence.reserve(rules, reading, &want))
            .map(|(reserved, _)| reserved)
    }

    /// The same, but ticks are counted on: see [`Sequence::reserve_counting`].
    pub fn try_count_on(
        &self,
        policies: &Policies,
        want: u64,
        max_lag: Tick,
    ) -> Result<Reserved, Refusal> {
        self.attempt(policies, |sequence, rules, reading| {
            sequence.reserve_counting(rules, reading, want, max_lag)
        })
        .map(|(reserved, _)| reserved)
    }

    /// Reserves from the present page, or from the next one where that has lost its name.
    #[inline]
    fn attempt(
        &self,
        policies: &Policies,
        reserve: impl Fn(&Sequence<Home>, &Rules, &mut Reading<dyn Clock>) -> Result<Block, Halt>,
    ) -> Result<(Reserved, &Opened), Refusal> {
        let rules = policies.rules(self.max_ahead.load(Relaxed));
        let mut pages = 0;
        loop {
            let opened = self.sequence.current();
            let mut reading = Reading::new(&*self.clock, &self.node, opened);
            let halt = match reserve(opened.sequence(), &rules, &mut reading) {
                Ok(block) => {
                    if let Some(left) = reading.left {
                        self.note_run(&block, &left, reading.last);
                    }
                    self.reports.note_issued();
                    self.issued.fetch_add(block.len, Relaxed);
                    let first_id = self.node.first_id(&block);
                    return Ok((Reserved { first_id, block }, opened));
                }
                Err(halt) => halt,
            };
            let now = reading.last;
            pages += 1;
            if let Some(stall) = self.sequence.go_on(halt, opened, pages, &*self.clock) {
                return Err(self.refusal(stall, now));
            }
        }
    }

    /// A block has begun a run, once a tick.
    fn note_run(&self, block: &Block, left: &Run, now: UnixTime) {
        let before = match block.counter {
            counter if counter == left.counter => left.mark(),
            counter => self.sequence().mark_left(counter),
        };
        if block.tick - before > HOUR_MS / self.node.layout().tick_ms
            && let Some(page) = self.page()
        {
            page.note_landing(block.counter, block.tick);
        }
        if block.counter > left.counter {
            self.reports.note(self.ms_below(left.mark(), now), block.counter);
        }
    }

    #[cold]
    fn refusal(&self, stall: Stall, now: UnixTime) -> Refusal {
        let retry_after = match stall {
            Stall::AboveCeiling { .. } => self.keeping.want(),
            _ => until(self.node.layout(), &stall, now),
        };
        if let Stall::ClockBehind { .. } = stall {
            let (counter, last_tick) = self.sequence().current();
            self.reports.note_refused(self.ms_below(last_tick, now), counter);
        }
        Refusal { stall, now, retry_after }
    }

    /// How far the clock stands below a tick.
    fn ms_below(&self, tick: Tick, now: UnixTime) -> i64 {
        let layout = self.node.layout();
        tick.saturating_sub(layout.tick_at(now.ms)).saturating_mul(layout.tick_ms)
    }

    /// Starts from what a store says: only within the window, and above what was issued before. Its
    /// ceiling is kept ahead by a thread, which whoever wants an ID may wait for.
    pub fn begin_window(&self, terms: &Terms) -> WindowId {
        self.begin(terms, Ceiling::Kept)
    }

    /// The same, but whoever keeps the ceiling ahead runs on the event loop that a wait would hold.
    pub fn begin_unattended_window(&self, terms: &Terms) -> WindowId {
        self.begin(terms, Ceiling::Fixed)
    }

    /// Issues with no bounds but the layout's, recorded nowhere.
    pub fn open_window(&self) {
        if self.sequence().is_closed() || self.window().ceiling != Tick::MAX {
            let Window { floor, ceiling } = Window::OPEN;
            let high = self.sequence().high_marks();
            self.begin(&Terms { floor, ceiling, high }, Ceiling::Fixed);
        }
    }

    /// Closes the sequencer, and reopens it within another window. Nobody who decided on the one before
    /// issues in this one.
    fn begin(&self, terms: &Terms, ceiling: Ceiling) -> WindowId {
        let mut kept = self.keeping.lock();
        // This process may have issued IDs of the node itself, before it was recorded.
        let own = self.close();
        let mut high = terms.high;
        for (mark, own) in high.marks.iter_mut().zip(own.marks) {
            *mark = own.max(*mark);
        }
        let sequence = self.sequence();
        if sequence.is_last_window() {
            // Late answers are kept away by the lock and the window's ID.
            sequence.renumber_windows();
        }
        if let Some(closed) = sequence.closed() {
            let bounds = Window { floor: terms.floor, ceiling: terms.ceiling };
            // It fails where the layout has no tick left. Then it stays closed.
            let _ = sequence.reopen(&closed, bounds, &high);
        }
        kept.begin(ceiling)
    }

    /// Ends what is issued at present, if anything is. Answers the marks.
    fn close(&self) -> HighMarks {
        if self.sequence().is_closed() {
            return self.sequence().high_marks();
        }
        self.sequence().close().high
    }

    /// How far the ceiling should reach, to last this long.
    pub fn next_ceiling(&self, ahead: Duration) -> Tick {
        let layout = self.node.layout();
        let ahead_ms = i64::try_from(ahead.as_millis()).unwrap_or(i64::MAX);
        let until = self.clock.now().ms.saturating_add(ahead_ms);
        let tick = layout.tick_at(until.saturating_add(self.max_ahead_ms()));
        tick.max(self.sequence().high_marks().highest()).clamp(NEVER, layout.last_tick())
    }

    /// Moves the ceiling up to what the store has confirmed.
    pub fn raise_ceiling(&self, id: WindowId, ceiling: Tick) {
        if let Some(kept) = self.keeping.lock_window(id) {
            self.sequence().raise_ceiling(self.sequence().window_number(), ceiling);
            self.keeping.answer(kept, Ceiling::Kept);
        }
    }

    /// Says that the store did not confirm, and will be asked again after this long.
    pub fn ceiling_not_raised(&self, id: WindowId, retry_after: Duration) {
        if let Some(kept) = self.keeping.lock_window(id) {
            self.keeping.answer(kept, Ceiling::Refused(Instant::now() + retry_after));
        }
    }

    /// A keeper of the present window begins. Callers that want an ID may wait for it.
    pub fn begin_keeping(&self) -> WindowId {
        self.keeping.lock().begin(Ceiling::Kept)
    }

    /// Tells those who wait that their keeper has done what it could.
    pub fn ceiling_raised(&self, id: WindowId) {
        if let Some(kept) = self.keeping.lock_window(id) {
            self.keeping.answer(kept, Ceiling::Kept);
        }
    }

    /// Nobody keeps the window any more. It stays as it is.
    pub fn end_keeping(&self, id: WindowId) {
        if let Some(mut kept) = self.keeping.lock_window(id) {
            kept.fix();
            self.keeping.answer(kept, Ceiling::Fixed);
        }
    }

    /// Ends a window: nothing is issued from now on. Answers the highest tick that
    /// was issued; none if another window has begun since.
    pub fn end_window(&self, id: WindowId) -> Option<Tick> {
        let mut kept = self.keeping.lock_window(id)?;
        let high = self.close();
        kept.fix();
        self.keeping.answer(kept, Ceiling::Fixed);
        Some(high.highest())
    }

    /// Issues nothing at or below a tick, which the node's IDs have reached elsewhere.
    pub fn raise_floor(&self, tick: Tick) {
        self.sequence().raise_floor(tick);
    }

    /// The ticks that may be issued at present.
    pub fn window(&self) -> Window {
        self.sequence().window()
    }

    /// Holds the calling thread until the ceiling should be raised: when someone wants it, or after
    /// this long, or after [`Generator::interrupt`]. False after this long.
    pub fn await_demand(&self, at_most: Duration) -> bool {
        self.keeping.await_demand(at_most)
    }

    /// Ends an [`Generator::await_demand`], the present or the next one.
    pub fn interrupt(&self) {
        self.keeping.interrupt();
    }

    /// Takes back the last `unused` IDs of a block, which were never handed out and never will be.
    pub fn give_back(&self, block: &Block, unused: u64) {
        // What does not go back to the sequence is issued to nobody.
        self.sequence().give_back(block, unused);
        self.issued.fetch_sub(unused, Relaxed);
    }

    /// Whether a step of the clock waits to be reported.
    #[inline]
    pub fn has_step_to_report(&self) -> bool {
        self.reports.is_due()
    }

    /// The step of the clock that is to be reported, if it was not taken already and there were not
    /// too many lately.
    pub fn take_step(&self) -> Option<ClockStep> {
        self.reports.take()
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        Stats {
            issued: self.issued.load(Relaxed),
            waits: self.waits.load(Relaxed),
            waited: Duration::from_nanos(self.waited_ns.load(Relaxed)),
            steps: self.reports.count(),
            high: self.sequence().high_marks(),
        }
    }
}

/// How long until `stall` is over by an evenly running clock. At least 1 us, so that a bounded time
/// holds a bounded number of waits.
fn until(layout: &Layout, stall: &Stall, now: UnixTime) -> Option<Duration> {
    let tick = match *stall {
        Stall::SequenceUsedUp { until }
        | Stall::ClockBehind { until }
        | Stall::AtFloor { until } => until,
        Stall::BeforeEpoch => 0,
        Stall::AboveCeiling { .. } | Stall::TimeEnded | Stall::NoPage => return None,
    };
    if tick > layout.last_tick() {
        return None;
    }
    let start = layout.tick_start_ms(tick);
    let ms = u64::try_from(start.saturating_sub(now.ms)).unwrap_or(0);
    let wait = Duration::from_millis(ms).saturating_sub(Duration::from_nanos(now.ns.into()));
    Some(wait.max(Duration::from_micros(1)))
}

#[cfg(test)]
mod tests;
