//! One reservation, from the present page or, if that was removed, from the next one. It does not wait, except once for
//! the rest of the ms in which its page was opened.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::Generator;
use crate::core::clock::{Clock, UnixTime};
use crate::core::fault::Failure;
use crate::core::layout::{Layout, Tick};
use crate::core::sequence::{Rules, Run, Sequence, Time};
use crate::core::sequencer::{Block, NEVER, Stall};
use crate::pages::{Page, PageMemory};

/// The reaction to a clock rollback: the clock is below the last tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockBack {
    /// Continue at once under another value of the clock-back counter. If none is left, as `Wait`.
    Counter,
    /// Wait until the clock has caught up, within `max_wait`.
    Wait,
    /// Refuse at once.
    Throw,
}

/// The options of one caller. Callers of one node may have different ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// The reaction to a clock rollback: the clock is below the last tick.
    pub clock_back: ClockBack,
    /// The longest wait of one reservation, for the clock or the store.
    pub max_wait: Duration,
    /// Whether the sequence of a tick starts at a random number, not at 0, if this caller begins the tick.
    pub random_start: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Policies {
            clock_back: ClockBack::Counter,
            max_wait: Duration::from_millis(10),
            random_start: false,
        }
    }
}

/// Consecutive IDs, reserved for one caller only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The first ID. The others are consecutive.
    pub first_id: u64,
    /// Their tick, counter value and sequence numbers.
    pub block: Block,
    /// The clock's Unix ms when they were issued.
    pub ms: i64,
}

impl Reserved {
    /// Keeps the first `most` IDs and gives back the others.
    pub fn shortened(self, generator: &Generator, most: u64) -> Reserved {
        let unused = self.block.len.saturating_sub(most);
        if unused > 0 {
            generator.give_back(&self.block, unused);
        }
        Reserved { block: Block { len: self.block.len - unused, ..self.block }, ..self }
    }
}

/// The reason that no ID was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// The cause.
    pub stall: Stall,
    /// The clock reading.
    pub now: UnixTime,
    /// The time until a retry can succeed, if the clock runs evenly; `None` if waiting does not help.
    pub retry_after: Option<Duration>,
}

/// The time for which an apparent clock rollback is rechecked: on some machines the clock flickers backwards.
const RECHECK_TIME: Duration = Duration::from_micros(50);

/// The reason that a reservation halted.
#[derive(Debug)]
pub(super) enum Halt {
    /// The sequencer's rule refused it.
    Stall(Stall),
    /// The page lost its name, or the process has changed its user.
    Unnamed,
    /// The page is unusable.
    Failed(Box<Failure>),
}

impl From<Stall> for Halt {
    fn from(stall: Stall) -> Self {
        Halt::Stall(stall)
    }
}

impl From<Failure> for Halt {
    fn from(error: Failure) -> Self {
        Halt::Failed(Box::new(error))
    }
}

/// Reads the clock for a reservation, and halts the reservation if its page lost its name.
pub(super) struct Reading<'a> {
    clock: &'a dyn Clock,
    page: &'a Page,
    rechecked: Option<Instant>,
    /// The last clock reading.
    pub last: UnixTime,
    /// The previous run, if the block begins a new one.
    pub previous: Option<Run>,
}

impl<'a> Reading<'a> {
    /// The clock of one reservation from this page.
    pub fn new(clock: &'a dyn Clock, page: &'a Page) -> Self {
        Reading { clock, page, rechecked: None, last: UnixTime::from_ms(0), previous: None }
    }
}

impl Time for Reading<'_> {
    type Error = Halt;

    #[inline]
    fn now(&mut self) -> Result<Tick, Halt> {
        self.previous = None;
        self.last = self.clock.now();
        let now = self.last;
        if !self.page.may_issue(now.ms)? {
            return Err(Halt::Unnamed);
        }
        Ok(self.page.header().node.layout().tick_at(now.ms))
    }

    fn rechecks(&mut self) -> bool {
        self.clock.may_flicker()
            && self.rechecked.get_or_insert_with(Instant::now).elapsed() < RECHECK_TIME
    }

    fn note_damage(&mut self) -> Result<(), Halt> {
        if self.page.path().is_some() { Err(self.page.overwritten())? } else { Ok(()) }
    }

    fn begin_run(&mut self, previous: &Run) {
        self.previous = Some(*previous);
    }
}

/// The page that one user of a generator reserves from. Reading the generator's present page takes a fifth of a
/// reservation, so each user keeps the page until it refuses: a page that is not the node's present one issues nothing.
pub struct UserPage(RefCell<Arc<Page>>);

impl Generator {
    /// The present page, for one user of the generator.
    pub fn user_page(&self) -> UserPage {
        UserPage(RefCell::new(self.page()))
    }

    /// Reserves up to `want(tick)` consecutive IDs of the clock's tick, without waiting.
    #[inline]
    pub fn try_reserve(
        &self,
        user_page: &UserPage,
        policies: &Policies,
        want: impl Fn(Tick) -> u64,
    ) -> Result<Reserved, Stalled> {
        self.attempt(&mut user_page.0.borrow_mut(), policies, |sequence, rules, reading| {
            sequence.reserve(rules, reading, &want)
        })
    }

    /// Like [`Generator::try_reserve`], but takes the tick after the last one: see [`Sequence::reserve_counting`].
    pub fn try_count_on(
        &self,
        policies: &Policies,
        want: u64,
        max_lag: Tick,
    ) -> Result<Reserved, Stalled> {
        self.attempt(&mut self.page(), policies, |sequence, rules, reading| {
            sequence.reserve_counting(rules, reading, want, max_lag)
        })
    }

    /// Reserves from this page or, if it was removed, from the next one.
    #[inline]
    pub(super) fn attempt(
        &self,
        page: &mut Arc<Page>,
        policies: &Policies,
        reserve: impl Fn(&Sequence<PageMemory>, &Rules, &mut Reading) -> Result<Block, Halt>,
    ) -> Result<Reserved, Stalled> {
        let rules = Rules {
            may_raise: policies.clock_back == ClockBack::Counter,
            max_ahead: self.max_ahead,
            random_start: policies.random_start,
        };
        let mut pages = 0;
        loop {
            let mut reading = Reading::new(&*self.clock, page);
            match reserve(page.sequence(), &rules, &mut reading) {
                Ok(block) => {
                    if let Some(previous) = reading.previous {
                        self.note_run(&block, &previous, reading.last);
                    }
                    self.reports.note_issued();
                    self.issued.fetch_add(block.len, Relaxed);
                    let first_id = self.node.first_id(&block);
                    return Ok(Reserved { first_id, block, ms: reading.last.ms });
                }
                Err(halt) => {
                    pages += 1;
                    self.resolve_or_refuse(halt, reading.last, page, pages)?;
                    *page = self.page();
                }
            }
        }
    }

    /// Handles a halt: opens the next page, or waits out the page's first tick, if that helps. Otherwise returns the
    /// refusal.
    #[cold]
    fn resolve_or_refuse(
        &self,
        halt: Halt,
        now: UnixTime,
        page: &Page,
        pages: usize,
    ) -> Result<(), Stalled> {
        let Some(stall) = self.resolve(halt, page, pages) else { return Ok(()) };
        if self.has_waited_for_first_tick(&stall, now) {
            return Ok(());
        }
        let retry_after = match stall {
            Stall::AboveCeiling { .. } => self.renewals.request(),
            _ => until(self.node.layout(), &stall, now),
        };
        if let Stall::ClockBehind { .. } = stall {
            let run = page.sequence().run();
            self.reports.note_refused(self.ms_below(run.mark(), now), run.counter);
        }
        Err(Stalled { stall, now, retry_after })
    }

    /// Called when a run begins, at most once per tick. Notes a rollback in the reports.
    fn note_run(&self, block: &Block, previous: &Run, now: UnixTime) {
        if block.counter > previous.counter {
            self.reports.note(self.ms_below(previous.mark(), now), block.counter, false);
        }
    }

    /// The distance of the clock below a tick, in ms; negative if the clock is above it.
    fn ms_below(&self, tick: Tick, now: UnixTime) -> i64 {
        let layout = self.node.layout();
        tick.saturating_sub(layout.tick_at(now.ms)).saturating_mul(layout.tick_ms)
    }

    /// Takes back the last `unused` IDs of a block, which the caller has not handed out and must not hand out later.
    pub fn give_back(&self, block: &Block, unused: u64) {
        // IDs that cannot return to the sequence are lost.
        self.page().sequence().give_back(block, unused);
        self.issued.fetch_sub(unused, Relaxed);
    }

    /// Notes the clock's tick if it is exhausted because the page has just begun. With a `maxWait` of 0, a call in that
    /// tick would be refused.
    pub fn note_first_tick(&self) {
        let (tick, layout) = (self.tick_now(), self.node.layout());
        let run = self.page().sequence().run();
        let is_exhausted = run.tick == tick && run.next > layout.last_sequence();
        if layout.tick_ms == 1 && (is_exhausted || self.window().floor == tick) {
            self.first_tick.store(tick, Relaxed);
        }
    }

    /// Waits once for the end of the ms in which the page was opened, even if that exceeds `maxWait`. Does not wait if
    /// ticks are longer than 1 ms.
    fn has_waited_for_first_tick(&self, stall: &Stall, now: UnixTime) -> bool {
        let first = self.first_tick.load(Relaxed);
        let is_in_it = matches!(stall, Stall::SequenceExhausted { .. } | Stall::AtFloor { .. })
            && first == self.node.layout().tick_at(now.ms);
        if is_in_it {
            self.clock.wait(Duration::from_nanos((1_000_000 - now.ns).into()));
            // Reset after the wait, since other threads wait for the same tick.
            self.first_tick.store(NEVER, Relaxed);
        }
        is_in_it
    }
}

/// The time until the stall ends, if the clock runs evenly. At least 1 us, so that the number of waits within a time is
/// bounded.
pub(super) fn until(layout: &Layout, stall: &Stall, now: UnixTime) -> Option<Duration> {
    let tick = match *stall {
        Stall::SequenceExhausted { until }
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
