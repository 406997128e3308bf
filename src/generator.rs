//! A node's sequencer and its clock, and the waiting between reservations.
//!
//! No lock stands on the way of an ID. What a reservation shares with others is the sequencer's word; all
//! else is read only, or touched once a tick, or when something stands in the way.
//!
//! The fence stands here, too: nothing is issued outside the window, and of a tick nothing is handed out
//! before its mark is in the store's memory. The rule for that: **the mark is noted before the word shows
//! the tick** ([`Time::begins`]). So whoever draws of a tick, first or later, and dies, leaves its mark.
//! Who notes a mark and then loses the race leaves one that is too high, which costs ticks and no more.

mod ceiling;
mod policies;
mod reports;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::RwLock;

pub use self::ceiling::WindowId;
use self::ceiling::{Ceiling, Keeping};
use self::policies::rules;
pub use self::policies::{ClockBack, Policies};
pub use self::reports::ClockStep;
use self::reports::Reports;
use crate::clock::{Clock, UnixTime};
use crate::layout::{Layout, Tick};
use crate::node::Node;
use crate::sequencer::{Block, HighMarks, NEVER, Stall, Window};
use crate::shared::{Cells, Rules, Run, Sequence, Time};
use crate::store::{MarkTable, Terms};

/// For how long a rollback is doubted: the clocks of some machines flicker.
const DOUBT: Duration = Duration::from_micros(50);

/// Consecutive IDs that nobody else was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The first ID; the others follow it one by one.
    pub first_id: u64,
    /// Where they stand in their tick.
    pub block: Block,
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

/// What one caller has waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How often.
    pub count: u64,
    /// How long in all.
    pub time: Duration,
    /// What stood in the way the last time.
    pub last: Option<Stall>,
}

/// What a generator has done so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// IDs handed out.
    pub issued: u64,
    /// Waits for the clock or the store.
    pub waits: u64,
    /// How long they took in all.
    pub waited: Duration,
    /// Steps of the clock back.
    pub steps: u64,
    /// What a restart would have to remember.
    pub high: HighMarks,
}

/// Issues the IDs of one node to any number of threads.
pub struct Generator {
    node: Node,
    clock: Box<dyn Clock>,
    sequence: Sequence<Box<Cells>>,
    /// What of the policies a reservation needs.
    rules: AtomicU64,
    policies: RwLock<Policies>,
    /// Where the store wants the high marks.
    marks: RwLock<Option<MarkTable>>,
    keeping: Keeping,
    reports: Reports,
    /// Of all runs that have ended. What the current one has issued is in the sequencer's word.
    issued: AtomicU64,
    waits: AtomicU64,
    waited_ns: AtomicU64,
}

impl Generator {
    /// A generator that remembers nothing, with no bounds but the layout's.
    pub fn new(node: Node, policies: Policies, clock: Box<dyn Clock>) -> Self {
        Generator {
            node,
            clock,
            sequence: Sequence::new(Box::default(), node.layout()),
            rules: AtomicU64::new(policies.packed(node.layout())),
            policies: RwLock::new(policies),
            marks: RwLock::new(None),
            keeping: Keeping::new(),
            reports: Reports::new(),
            issued: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
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

    /// How it behaves at present.
    pub fn policies(&self) -> Policies {
        *self.policies.read()
    }

    /// Behaves differently from now on; what was issued stays remembered.
    pub fn set_policies(&self, policies: Policies) {
        *self.policies.write() = policies;
        self.rules.store(policies.packed(self.node.layout()), Relaxed);
    }

    /// Reserves up to as many consecutive IDs as `want` says for the tick of the clock, or refuses
    /// at once.
    #[inline]
    pub fn try_reserve(&self, want: impl Fn(Tick) -> u64) -> Result<Reserved, Refusal> {
        self.attempt(|rules, reading| self.sequence.reserve(rules, reading, want))
    }

    /// The same, but ticks are counted on: see [`Sequence::reserve_counting`].
    pub fn try_count_on(&self, want: u64, max_lag: Tick) -> Result<Reserved, Refusal> {
        self.attempt(|rules, reading| self.sequence.reserve_counting(rules, reading, want, max_lag))
    }

    #[inline]
    fn attempt(
        &self,
        reserve: impl FnOnce(&Rules, &mut Reading) -> Result<Block, Stall>,
    ) -> Result<Reserved, Refusal> {
        let mut reading = Reading::of(self);
        match reserve(&rules(self.rules.load(Relaxed)), &mut reading) {
            Ok(block) => {
                if let Some(left) = reading.left {
                    self.note_run(&block, &left, reading.now);
                }
                self.reports.note_issued();
                let first_id = self.node.first_id(&block);
                Ok(Reserved { first_id, block })
            }
            Err(stall) => Err(self.refusal(stall, reading.now)),
        }
    }

    /// A block has begun a run, once a tick.
    fn note_run(&self, block: &Block, left: &Run, now: UnixTime) {
        // Wraps where the first number is a random one: the word's next number makes up for it.
        self.issued.fetch_add(left.next.wrapping_sub(block.first), Relaxed);
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
            let (counter, last_tick) = self.sequence.current();
            self.reports.note_refused(self.ms_below(last_tick, now), counter);
        }
        Refusal { stall, now, retry_after }
    }

    /// How far the clock stands below a tick.
    fn ms_below(&self, tick: Tick, now: UnixTime) -> i64 {
        let layout = self.node.layout();
        tick.saturating_sub(layout.tick_at(now.ms)).saturating_mul(layout.tick_ms)
    }

    /// As [`Generator::try_reserve`], but waits for the clock or the store where the policies allow it.
    pub fn reserve(&self, want: impl Fn(Tick) -> u64) -> Result<Reserved, Refusal> {
        self.waiting(&mut Waits::default(), || self.try_reserve(&want))
    }

    /// Tries again and again, waiting meanwhile where the policies allow it, and notes the waits.
    #[inline]
    pub fn waiting<T>(
        &self,
        waits: &mut Waits,
        mut attempt: impl FnMut() -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut may_wait = None;
        loop {
            match attempt() {
                Ok(answer) => return Ok(answer),
                Err(refusal) => self.wait(refusal, &mut may_wait, waits)?,
            }
        }
    }

    /// Waits until it can go on, if that is within what is left of `max_wait`.
    fn wait(
        &self,
        refusal: Refusal,
        may_wait: &mut Option<Duration>,
        waits: &mut Waits,
    ) -> Result<(), Refusal> {
        let policies = self.policies();
        let refused_by_policy = policies.clock_back == ClockBack::Throw
            && matches!(refusal.stall, Stall::ClockBehind { .. });
        let left = may_wait.get_or_insert(policies.max_wait);
        let Some(wait) = refusal.retry_after.filter(|wait| !refused_by_policy && wait <= left)
        else {
            return Err(refusal);
        };
        let waited = if let Stall::AboveCeiling { ceiling } = refusal.stall {
            self.keeping.await_answer(*left, || self.window().ceiling == ceiling)
        } else {
            self.clock.wait(wait);
            wait
        };
        self.note_waits(1, waited);
        *left = left.saturating_sub(waited);
        waits.count += 1;
        waits.time += waited;
        waits.last = Some(refusal.stall);
        Ok(())
    }

    /// Starts from what a store says: only within the window, and above what was issued before. Its
    /// ceiling is kept ahead by a thread, which whoever wants an ID may wait for.
    pub fn begin_window(&self, terms: &Terms, marks: Option<MarkTable>) -> WindowId {
        self.begin(terms, marks, Ceiling::Kept)
    }

    /// The same, but whoever keeps the ceiling ahead runs on the event loop that a wait would hold.
    pub fn begin_unattended_window(&self, terms: &Terms) -> WindowId {
        self.begin(terms, None, Ceiling::Fixed)
    }

    /// Issues with no bounds but the layout's, recorded nowhere.
    pub fn open_window(&self) {
        if self.sequence.is_closed() || self.window().ceiling != Tick::MAX {
            let Window { floor, ceiling } = Window::OPEN;
            let high = self.sequence.high_marks();
            self.begin(&Terms { floor, ceiling, high }, None, Ceiling::Fixed);
        }
    }

    /// Closes the sequencer, and reopens it within another window. Nobody who decided on the one before
    /// issues in this one. In this order: the marks are in the table before anyone draws.
    fn begin(&self, terms: &Terms, marks: Option<MarkTable>, ceiling: Ceiling) -> WindowId {
        let mut kept = self.keeping.lock();
        // This process may have issued IDs of the node itself, before it was recorded.
        let own = self.close();
        let mut high = terms.high;
        for (mark, own) in high.marks.iter_mut().zip(own.marks) {
            *mark = own.max(*mark);
        }
        if let Some(marks) = &marks {
            marks.write(&high);
        }
        *self.marks.write() = marks;
        let sequence = &self.sequence;
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
        if self.sequence.is_closed() {
            return self.sequence.high_marks();
        }
        let ended = self.sequence.close();
        self.issued.fetch_add(ended.run.next, Relaxed);
        ended.high
    }

    /// How far the ceiling should reach, to last this long.
    pub fn next_ceiling(&self, ahead: Duration) -> Tick {
        let layout = self.node.layout();
        let ahead_ms = i64::try_from(ahead.as_millis()).unwrap_or(i64::MAX);
        let until = self.clock.now().ms.saturating_add(ahead_ms);
        let tick = layout.tick_at(until.saturating_add(self.policies().max_ahead_ms));
        tick.max(self.sequence.high_marks().highest()).clamp(NEVER, layout.last_tick())
    }

    /// Moves the ceiling up to what the store has confirmed.
    pub fn raise_ceiling(&self, id: WindowId, ceiling: Tick) {
        if let Some(kept) = self.keeping.lock_window(id) {
            self.sequence.raise_ceiling(self.sequence.window_number(), ceiling);
            self.keeping.answer(kept, Ceiling::Kept);
        }
    }

    /// Says that the store did not confirm, and will be asked again after this long.
    pub fn ceiling_not_raised(&self, id: WindowId, retry_after: Duration) {
        if let Some(kept) = self.keeping.lock_window(id) {
            self.keeping.answer(kept, Ceiling::Refused(Instant::now() + retry_after));
        }
    }

    /// Ends a window: nothing is issued from now on, and no mark is noted. Answers the highest tick that
    /// was issued; none if another window has begun since.
    pub fn end_window(&self, id: WindowId) -> Option<Tick> {
        let mut kept = self.keeping.lock_window(id)?;
        let high = self.close();
        *self.marks.write() = None;
        kept.fix();
        self.keeping.answer(kept, Ceiling::Fixed);
        Some(high.highest())
    }

    /// The ticks that may be issued at present.
    pub fn window(&self) -> Window {
        self.sequence.window()
    }

    /// Holds the calling thread until the ceiling should be raised: when someone wants it, or after
    /// this long, or after [`Generator::interrupt`].
    pub fn await_demand(&self, at_most: Duration) {
        self.keeping.await_demand(at_most);
    }

    /// Ends an [`Generator::await_demand`], the present or the next one.
    pub fn interrupt(&self) {
        self.keeping.interrupt();
    }

    /// Takes back the last `unused` IDs of a block, which were never handed out and never will be.
    pub fn give_back(&self, block: &Block, unused: u64) {
        // What is taken back leaves the word's run; what is not was issued to nobody.
        if !self.sequence.give_back(block, unused) {
            self.issued.fetch_sub(unused, Relaxed);
        }
    }

    /// Counts waits of callers that wait by themselves.
    pub fn note_waits(&self, waits: u64, time: Duration) {
        self.waits.fetch_add(waits, Relaxed);
        self.waited_ns.fetch_add(time.as_nanos() as u64, Relaxed);
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
        let in_run = self.sequence.used().unwrap_or(0);
        Stats {
            issued: self.issued.load(Relaxed).wrapping_add(in_run),
            waits: self.waits.load(Relaxed),
            waited: Duration::from_nanos(self.waited_ns.load(Relaxed)),
            steps: self.reports.count(),
            high: self.sequence.high_marks(),
        }
    }
}

/// The clock as one reservation reads it.
struct Reading<'a> {
    generator: &'a Generator,
    now: UnixTime,
    doubted: Option<Instant>,
    /// The run that was left, where the block begins another.
    left: Option<Run>,
}

impl<'a> Reading<'a> {
    fn of(generator: &'a Generator) -> Self {
        Reading { generator, now: UnixTime::from_ms(0), doubted: None, left: None }
    }
}

impl Time for Reading<'_> {
    type Refusal = Stall;

    #[inline]
    fn now(&mut self) -> Result<Tick, Stall> {
        self.left = None;
        self.now = self.generator.clock.now();
        Ok(self.generator.node.layout().tick_at(self.now.ms))
    }

    fn doubts(&mut self) -> bool {
        self.generator.clock.may_flicker()
            && self.doubted.get_or_insert_with(Instant::now).elapsed() < DOUBT
    }

    fn begins(&mut self, left: &Run, run: &Run) {
        // The lock is free but while a window begins or ends.
        if let Some(marks) = &*self.generator.marks.read() {
            marks.note(run.counter, run.tick);
        }
        self.left = Some(*left);
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
        Stall::AboveCeiling { .. } | Stall::TimeEnded => return None,
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
