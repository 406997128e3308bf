//! A sequencer and a clock behind one lock, and the waiting that happens outside it.
//!
//! The fence stands here, on the way of every ID: nothing is issued outside the window, and a mark
//! is written to the store's memory before its IDs are handed out.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::clock::{Clock, UnixTime};
use crate::layout::{Layout, Tick};
use crate::node::Node;
use crate::sequencer::{Block, HighMarks, NEVER, Rules, SequenceStart, Sequencer, Stall, Window};
use crate::store::{MarkTable, Terms};

/// When to try again while a ceiling is being raised: about what a disk takes.
const CONFIRMATION: Duration = Duration::from_millis(5);

/// What to do when the clock stands below the last tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockBack {
    /// Go on at once under another value of the clock-back counter; where none is left, as `Wait`.
    Counter,
    /// Wait until the clock has caught up, within `max_wait`.
    Wait,
    /// Refuse at once.
    Throw,
}

/// How a generator behaves. All who share a node agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// What to do when the clock stands below the last tick.
    pub clock_back: ClockBack,
    /// The longest that one reservation may wait, for the clock or for the store.
    pub max_wait: Duration,
    /// How far ahead of the clock ticks may be taken, in ms; rounded down to whole ticks.
    pub max_ahead_ms: i64,
    /// Whether a tick's sequence starts at random rather than at 0.
    pub random_start: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Policies {
            clock_back: ClockBack::Counter,
            max_wait: Duration::from_millis(10),
            max_ahead_ms: 0,
            random_start: false,
        }
    }
}

impl Policies {
    fn rules(&self, layout: &Layout) -> Rules {
        Rules {
            may_raise: self.clock_back == ClockBack::Counter,
            max_ahead: self.max_ahead_ms / layout.tick_ms,
            start: if self.random_start {
                SequenceStart::Random(fastrand::Rng::new())
            } else {
                SequenceStart::Zero
            },
        }
    }
}

/// Consecutive IDs that nobody else was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The first ID; the others follow it one by one.
    pub first_id: u64,
    /// Where they stand in their tick.
    pub block: Block,
    /// Whether a step of the clock waits to be reported: see [`Generator::take_step`].
    pub step_to_report: bool,
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

/// A step of the clock back that nobody was told of yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// How far below the last tick the clock stood, in ms.
    pub back_ms: i64,
    /// The counter value in use since.
    pub counter: usize,
    /// How many earlier steps went unreported, because there were too many.
    pub unreported: u64,
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
    state: Mutex<State>,
    /// Someone wants a higher ceiling: whoever keeps the lease waits for this.
    ceiling_wanted: Condvar,
    /// The ceiling was raised, or could not be: whoever wants an ID waits for this.
    ceiling_answered: Condvar,
}

struct State {
    sequencer: Sequencer,
    policies: Policies,
    /// Where the store wants the high marks.
    marks: Option<MarkTable>,
    ceiling: Ceiling,
    /// The present window's.
    window: WindowId,
    issued: u64,
    waits: u64,
    waited: Duration,
    steps: u64,
    /// Set from a refused step back until the next ID, so that it counts once.
    behind: bool,
    to_report: Option<ClockStep>,
    reports: ReportBudget,
}

/// Tells a generator's windows apart, so that a late answer of one store does not move the window of
/// the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowId(u64);

/// How things stand with the window's upper end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ceiling {
    /// Nobody will move it while a caller waits.
    Fixed,
    /// It is raised from time to time.
    Kept,
    /// It is to be raised at once.
    Wanted,
    /// It could not be raised; the next try is at that moment.
    Refused(Instant),
}

impl Generator {
    /// A generator that remembers nothing, with no bounds but the layout's.
    pub fn new(node: Node, policies: Policies, clock: Box<dyn Clock>) -> Self {
        let rules = policies.rules(node.layout());
        let sequencer = Sequencer::new(node.layout(), rules, HighMarks::default());
        let state = State {
            sequencer,
            policies,
            marks: None,
            ceiling: Ceiling::Fixed,
            window: WindowId(0),
            issued: 0,
            waits: 0,
            waited: Duration::ZERO,
            steps: 0,
            behind: false,
            to_report: None,
            reports: ReportBudget::full(),
        };
        Generator {
            node,
            clock,
            state: Mutex::new(state),
            ceiling_wanted: Condvar::new(),
            ceiling_answered: Condvar::new(),
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
        self.state.lock().policies
    }

    /// Behaves differently from now on; what was issued stays remembered.
    pub fn set_policies(&self, policies: Policies) {
        let mut state = self.state.lock();
        state.policies = policies;
        state.sequencer.set_rules(policies.rules(self.node.layout()));
    }

    /// Reserves up to as many consecutive IDs as `want` says for the tick of the clock, or refuses
    /// at once.
    pub fn try_reserve(&self, want: impl Fn(Tick) -> u64) -> Result<Reserved, Refusal> {
        self.attempt(|sequencer, now| sequencer.reserve(now, want(now)))
    }

    /// The same, but ticks are counted on: see [`Sequencer::reserve_counting`].
    pub fn try_count_on(&self, want: u64, max_lag: Tick) -> Result<Reserved, Refusal> {
        self.attempt(|sequencer, now| sequencer.reserve_counting(now, want, max_lag))
    }

    fn attempt(
        &self,
        reserve: impl FnOnce(&mut Sequencer, Tick) -> Result<Block, Stall>,
    ) -> Result<Reserved, Refusal> {
        let mut state = self.state.lock();
        // Read under the lock: two threads that read before it could take it in the other order,
        // and the later reading would look like a step of the clock back.
        let now = self.clock.now();
        let layout = self.node.layout();
        let tick = layout.tick_at(now.ms);
        let (last_counter, last_tick) = state.sequencer.current();
        match reserve(&mut state.sequencer, tick) {
            Ok(block) => {
                if let Some(marks) = &state.marks {
                    marks.note(block.counter, block.tick);
                }
                state.behind = false;
                if block.counter > last_counter {
                    state.count_step(layout, last_tick - tick, block.counter);
                }
                state.issued += block.len;
                let step_to_report = state.to_report.is_some();
                Ok(Reserved { first_id: self.node.first_id(&block), block, step_to_report })
            }
            Err(stall) => {
                if matches!(stall, Stall::ClockBehind { .. }) && !state.behind {
                    state.behind = true;
                    state.count_step(layout, last_tick - tick, last_counter);
                }
                let retry_after = match stall {
                    Stall::AboveCeiling { .. } => self.want_ceiling(&mut state),
                    _ => until(layout, &stall, now),
                };
                Err(Refusal { stall, now, retry_after })
            }
        }
    }

    /// As [`Generator::try_reserve`], but waits for the clock or the store where the policies allow
    /// it. The lock is not held meanwhile.
    pub fn reserve(&self, want: impl Fn(Tick) -> u64) -> Result<Reserved, Refusal> {
        self.waiting(&mut Waits::default(), || self.try_reserve(&want))
    }

    /// Tries again and again, waiting meanwhile where the policies allow it, and notes the waits.
    pub fn waiting<T>(
        &self,
        waits: &mut Waits,
        mut attempt: impl FnMut() -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut may_wait = None;
        loop {
            let refusal = match attempt() {
                Ok(answer) => return Ok(answer),
                Err(refusal) => refusal,
            };
            let mut state = self.state.lock();
            let policies = &state.policies;
            let refused_by_policy = policies.clock_back == ClockBack::Throw
                && matches!(refusal.stall, Stall::ClockBehind { .. });
            let left: &mut Duration = may_wait.get_or_insert(policies.max_wait);
            let Some(wait) = refusal.retry_after.filter(|wait| !refused_by_policy && wait <= left)
            else {
                return Err(refusal);
            };
            state.waits += 1;
            let waited = if let Stall::AboveCeiling { ceiling } = refusal.stall {
                let start = Instant::now();
                // Not past an answer that came between the two locks.
                if state.sequencer.window().ceiling == ceiling && state.ceiling != Ceiling::Kept {
                    self.ceiling_answered.wait_for(&mut state, *left);
                }
                start.elapsed()
            } else {
                drop(state);
                self.clock.wait(wait);
                state = self.state.lock();
                wait
            };
            state.waited += waited;
            *left = left.saturating_sub(waited);
            waits.count += 1;
            waits.time += waited;
            waits.last = Some(refusal.stall);
        }
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

    fn begin(&self, terms: &Terms, marks: Option<MarkTable>, ceiling: Ceiling) -> WindowId {
        let mut state = self.state.lock();
        // This process may have issued IDs of the node itself, before it was recorded.
        let own = state.sequencer.high_marks();
        let mut high = terms.high;
        for (mark, own) in high.marks.iter_mut().zip(own.marks) {
            *mark = own.max(*mark);
        }
        if let Some(marks) = &marks {
            marks.write(&high);
        }
        let rules = state.policies.rules(self.node.layout());
        state.sequencer = Sequencer::new(self.node.layout(), rules, high);
        state.sequencer.set_window(Window { floor: terms.floor, ceiling: terms.ceiling });
        state.marks = marks;
        state.ceiling = ceiling;
        state.window.0 += 1;
        state.window
    }

    /// How far the ceiling should reach, to last this long.
    pub fn next_ceiling(&self, ahead: Duration) -> Tick {
        let state = self.state.lock();
        let layout = self.node.layout();
        let ahead_ms = i64::try_from(ahead.as_millis()).unwrap_or(i64::MAX);
        let until = self.clock.now().ms.saturating_add(ahead_ms);
        let tick = layout.tick_at(until.saturating_add(state.policies.max_ahead_ms));
        tick.max(state.sequencer.highest()).clamp(NEVER, layout.last_tick())
    }

    /// Moves the ceiling up to what the store has confirmed.
    pub fn raise_ceiling(&self, id: WindowId, ceiling: Tick) {
        let mut state = self.state.lock();
        if state.window == id {
            let window = state.sequencer.window();
            state.sequencer.set_window(Window { ceiling: window.ceiling.max(ceiling), ..window });
            if state.ceiling != Ceiling::Fixed {
                state.ceiling = Ceiling::Kept;
            }
            self.ceiling_answered.notify_all();
        }
    }

    /// Says that the store did not confirm, and will be asked again after this long.
    pub fn ceiling_not_raised(&self, id: WindowId, retry_after: Duration) {
        let mut state = self.state.lock();
        if state.window == id {
            state.ceiling = Ceiling::Refused(Instant::now() + retry_after);
            self.ceiling_answered.notify_all();
        }
    }

    /// Ends a window: nothing is issued from now on. Answers the highest tick that was; none if
    /// another window has begun since.
    pub fn end_window(&self, id: WindowId) -> Option<Tick> {
        let mut state = self.state.lock();
        if state.window != id {
            return None;
        }
        state.sequencer.set_window(Window::CLOSED);
        state.marks = None;
        state.ceiling = Ceiling::Fixed;
        self.ceiling_answered.notify_all();
        Some(state.sequencer.highest())
    }

    /// Issues with no bounds but the layout's, recorded nowhere.
    pub fn open_window(&self) {
        let mut state = self.state.lock();
        state.sequencer.set_window(Window::OPEN);
        state.marks = None;
        state.ceiling = Ceiling::Fixed;
        state.window.0 += 1;
    }

    /// The ticks that may be issued at present.
    pub fn window(&self) -> Window {
        self.state.lock().sequencer.window()
    }

    /// Holds the calling thread until the ceiling should be raised: when someone wants it, or after
    /// this long, or after [`Generator::interrupt`].
    pub fn await_demand(&self, at_most: Duration) {
        let mut state = self.state.lock();
        if state.ceiling != Ceiling::Wanted {
            self.ceiling_wanted.wait_for(&mut state, at_most);
        }
    }

    /// Ends an [`Generator::await_demand`], the present or the next one.
    pub fn interrupt(&self) {
        self.state.lock().ceiling = Ceiling::Wanted;
        self.ceiling_wanted.notify_all();
    }

    /// Has the ceiling raised. When the answer is to be expected; never, where nobody raises it.
    fn want_ceiling(&self, state: &mut State) -> Option<Duration> {
        match state.ceiling {
            Ceiling::Fixed => None,
            Ceiling::Kept | Ceiling::Wanted => {
                state.ceiling = Ceiling::Wanted;
                self.ceiling_wanted.notify_all();
                Some(CONFIRMATION)
            }
            Ceiling::Refused(retry_at) => {
                let after = retry_at.saturating_duration_since(Instant::now());
                Some(after.max(CONFIRMATION))
            }
        }
    }

    /// Takes back the last `unused` IDs of a block, which were never handed out and never will be.
    pub fn give_back(&self, block: &Block, unused: u64) {
        let mut state = self.state.lock();
        state.issued -= unused;
        state.sequencer.give_back(block, unused);
    }

    /// Counts waits of callers that wait by themselves.
    pub fn note_waits(&self, waits: u64, time: Duration) {
        let mut state = self.state.lock();
        state.waits += waits;
        state.waited += time;
    }

    /// The step of the clock that is to be reported, if it was not taken already and there were not
    /// too many lately.
    pub fn take_step(&self) -> Option<ClockStep> {
        self.state.lock().to_report.take()
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        let state = self.state.lock();
        Stats {
            issued: state.issued,
            waits: state.waits,
            waited: state.waited,
            steps: state.steps,
            high: *state.sequencer.high_marks(),
        }
    }
}

impl State {
    fn count_step(&mut self, layout: &Layout, ticks: Tick, counter: usize) {
        self.steps += 1;
        let unreported = self.reports.unreported;
        if self.reports.take(Instant::now()) {
            let back_ms = ticks.saturating_mul(layout.tick_ms);
            self.to_report = Some(ClockStep { back_ms, counter, unreported });
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

/// Keeps a clock that steps all the time from flooding the log: `FULL` reports at once, then one
/// each `EVERY`.
struct ReportBudget {
    left: u32,
    since: Instant,
    unreported: u64,
}

impl ReportBudget {
    const FULL: u32 = 10;
    const EVERY: Duration = Duration::from_secs(10);

    fn full() -> Self {
        ReportBudget { left: Self::FULL, since: Instant::now(), unreported: 0 }
    }

    fn take(&mut self, now: Instant) -> bool {
        while self.left < Self::FULL && now.duration_since(self.since) >= Self::EVERY {
            self.left += 1;
            self.since += Self::EVERY;
        }
        if self.left == 0 {
            self.unreported += 1;
            return false;
        }
        if self.left == Self::FULL {
            self.since = now;
        }
        self.left -= 1;
        self.unreported = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::ManualClock;

    const START: i64 = 1_700_000_000_000;
    const POLICIES: Policies = Policies {
        clock_back: ClockBack::Counter,
        max_wait: Duration::from_millis(10),
        max_ahead_ms: 0,
        random_start: false,
    };

    fn generator(layout: Layout, policies: Policies) -> (Generator, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(START));
        let node = Node::new(layout, 1, 2).unwrap();
        (Generator::new(node, policies, Box::new(clock.clone())), clock)
    }

    #[test]
    fn ids_decode_to_their_node_and_time() {
        let (generator, _) = generator(Layout::NODE, POLICIES);
        let reserved = generator.reserve(|_| 3).unwrap();
        let last = Layout::NODE.decode(reserved.first_id + 2).unwrap();
        assert_eq!(Layout::NODE.tick_start_ms(last.tick), START);
        assert_eq!(
            (last.datacenter_id, last.worker_id, last.clock_back, last.sequence),
            (1, 2, 0, 2)
        );
    }

    #[test]
    fn a_used_up_tick_is_waited_for_within_max_wait() {
        let (generator, clock) = generator(Layout::NODE, POLICIES);
        generator.reserve(|_| 4096).unwrap();
        let next = generator.reserve(|_| 1).unwrap();
        assert_eq!(clock.now().ms, START + 1);
        assert_eq!(next.block.first, 0);
        assert_eq!(
            (generator.stats().waits, generator.stats().waited),
            (1, Duration::from_millis(1))
        );
    }

    #[test]
    fn a_wait_longer_than_max_wait_is_refused_with_the_time_to_stay_away() {
        let (generator, clock) =
            generator(Layout { tick_ms: 1000, epoch_ms: START - 250, ..Layout::NODE }, POLICIES);
        generator.reserve(|_| 4096).unwrap();
        let refusal = generator.reserve(|_| 1).unwrap_err();
        assert_eq!(refusal.stall, Stall::SequenceUsedUp { until: 1 });
        assert_eq!(refusal.retry_after, Some(Duration::from_millis(750)));
        assert_eq!(clock.now().ms, START, "it did not wait in vain");
    }

    #[test]
    fn each_policy_answers_a_step_back_its_own_way() {
        for (clock_back, back_ms, goes_on) in [
            (ClockBack::Counter, 5000, true),
            (ClockBack::Wait, 9, true),
            (ClockBack::Wait, 10, false),
            (ClockBack::Throw, 1, false),
        ] {
            let (generator, clock) = generator(Layout::NODE, Policies { clock_back, ..POLICIES });
            generator.reserve(|_| 4096).unwrap();
            clock.set(START - back_ms);
            let answer = generator.reserve(|_| 1);
            assert_eq!(answer.is_ok(), goes_on, "{clock_back:?} {back_ms}");
            let waited = clock.now().ms - (START - back_ms);
            assert_eq!(waited > 0, goes_on && clock_back == ClockBack::Wait, "{clock_back:?}");
            if let Err(refusal) = answer {
                let caught_up = Duration::from_millis(back_ms as u64 + 1);
                assert_eq!(refusal.retry_after, Some(caught_up));
            }
        }
    }

    #[test]
    fn a_step_back_is_reported_once_with_its_length_and_counter() {
        let (generator, clock) = generator(Layout::NODE, POLICIES);
        generator.reserve(|_| 1).unwrap();
        clock.set(START - 7);
        assert!(generator.reserve(|_| 1).unwrap().step_to_report);
        assert_eq!(
            generator.take_step(),
            Some(ClockStep { back_ms: 7, counter: 1, unreported: 0 })
        );
        assert!(!generator.reserve(|_| 1).unwrap().step_to_report);
        assert_eq!(generator.take_step(), None);
        assert_eq!(generator.stats().steps, 1);
    }

    #[test]
    fn a_refused_step_back_counts_once_however_often_it_is_tried() {
        let (generator, clock) =
            generator(Layout::NODE, Policies { clock_back: ClockBack::Throw, ..POLICIES });
        generator.reserve(|_| 1).unwrap();
        clock.set(START - 500);
        for _ in 0..5 {
            generator.reserve(|_| 1).unwrap_err();
        }
        assert_eq!(
            generator.take_step(),
            Some(ClockStep { back_ms: 500, counter: 0, unreported: 0 })
        );
        assert_eq!(generator.stats().steps, 1);
    }

    #[test]
    fn a_clock_that_steps_all_the_time_is_reported_ten_times_and_counted_always() {
        let (generator, clock) = generator(Layout::NODE, POLICIES);
        let mut reports = 0;
        for step in 0..100 {
            clock.set(START + step * 10);
            generator.reserve(|_| 1).unwrap();
            clock.set(START + step * 10 - 5);
            generator.reserve(|_| 1).unwrap();
            reports += u32::from(generator.take_step().is_some());
        }
        assert_eq!((reports, generator.stats().steps), (ReportBudget::FULL, 100));
    }

    #[test]
    fn the_report_budget_comes_back_and_tells_what_it_left_out() {
        let start = Instant::now();
        let mut budget = ReportBudget { left: 1, since: start, unreported: 0 };
        assert!(budget.take(start));
        assert!(!budget.take(start));
        assert_eq!(budget.unreported, 1);
        assert!(budget.take(start + ReportBudget::EVERY));
        assert_eq!(budget.unreported, 0);
    }

    #[test]
    fn what_is_given_back_is_not_counted_as_issued() {
        let (generator, _) = generator(Layout::NODE, POLICIES);
        let reserved = generator.reserve(|_| 256).unwrap();
        generator.give_back(&reserved.block, 255);
        assert_eq!(generator.stats().issued, 1);
        assert_eq!(generator.reserve(|_| 1).unwrap().first_id, reserved.first_id + 1);
    }

    #[test]
    fn nothing_is_waited_for_that_never_comes() {
        let (generator, clock) = generator(Layout::NODE, POLICIES);
        clock.set(Layout::NODE.end_ms());
        let refusal = generator.reserve(|_| 1).unwrap_err();
        assert_eq!((refusal.stall, refusal.retry_after), (Stall::TimeEnded, None));
        clock.set(Layout::NODE.end_ms() - 1);
        generator.reserve(|_| 4096).unwrap();
        let refusal = generator.reserve(|_| 1).unwrap_err();
        assert_eq!(refusal.retry_after, None, "the tick used up was the last");
    }

    fn terms(floor_ms: i64, ceiling_ms: i64) -> Terms {
        let tick = |ms| Layout::NODE.tick_at(START + ms);
        Terms { floor: tick(floor_ms), ceiling: tick(ceiling_ms), high: HighMarks::default() }
    }

    #[test]
    fn nothing_is_issued_outside_the_window() {
        let (generator, clock) = generator(Layout::NODE, POLICIES);
        generator.begin_window(&terms(0, 5), None);
        for (ms, is_within) in [(0, false), (1, true), (5, true), (6, false)] {
            clock.set(START + ms);
            assert_eq!(generator.try_reserve(|_| 1).is_ok(), is_within, "{ms}");
        }
    }

    #[test]
    fn a_floor_is_waited_for_as_the_clock_is() {
        let (generator, clock) = generator(Layout::NODE, POLICIES);
        generator.begin_window(&terms(9, 100), None);
        generator.reserve(|_| 1).unwrap();
        assert_eq!(clock.now().ms, START + 10);
        generator.begin_window(&terms(30, 100), None);
        let refusal = generator.reserve(|_| 1).unwrap_err();
        assert_eq!(refusal.retry_after, Some(Duration::from_millis(21)));
    }

    #[test]
    fn a_ceiling_that_is_raised_in_time_is_waited_for() {
        let (generator, clock) =
            generator(Layout::NODE, Policies { max_wait: Duration::from_secs(10), ..POLICIES });
        let id = generator.begin_window(&terms(0, 5), None);
        clock.set(START + 500);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                generator.await_demand(Duration::from_secs(10));
                generator.raise_ceiling(id, generator.next_ceiling(Duration::from_secs(1)));
            });
            assert!(generator.reserve(|_| 1).is_ok());
        });
        assert_eq!(generator.stats().waits, 1);
    }

    #[test]
    fn a_ceiling_that_cannot_be_raised_is_refused_until_the_next_try() {
        let (generator, clock) = generator(Layout::NODE, POLICIES);
        let id = generator.begin_window(&terms(0, 5), None);
        generator.ceiling_not_raised(id, Duration::from_secs(3));
        clock.set(START + 6);
        let retry_after = generator.reserve(|_| 1).unwrap_err().retry_after.unwrap();
        assert!(retry_after > Duration::from_secs(2) && retry_after <= Duration::from_secs(3));
    }

    #[test]
    fn a_late_answer_does_not_move_the_next_window() {
        let (generator, _) = generator(Layout::NODE, POLICIES);
        let first = generator.begin_window(&terms(-9, -5), None);
        assert!(generator.end_window(first).is_some());
        let second = generator.begin_window(&terms(-9, -5), None);
        generator.raise_ceiling(first, Tick::MAX);
        assert!(generator.try_reserve(|_| 1).is_err());
        assert_eq!(generator.end_window(first), None);
        generator.raise_ceiling(second, Tick::MAX);
        assert!(generator.try_reserve(|_| 1).is_ok());
    }

    #[test]
    fn what_this_process_issued_unrecorded_counts_when_it_is_recorded_later() {
        let (generator, clock) = generator(Layout::NODE, POLICIES);
        let before = generator.reserve(|_| 3).unwrap();
        generator.begin_window(&terms(-9, 900), None);
        let after = generator.reserve(|_| 1).unwrap();
        assert!(after.first_id > before.first_id + 2);
        assert_eq!(clock.now().ms, START + 1, "the rest of its tick counts as used up");
    }

    #[test]
    fn the_next_ceiling_covers_what_may_be_taken_ahead_and_what_was() {
        let (generator, clock) = generator(Layout::NODE, Policies { max_ahead_ms: 70, ..POLICIES });
        let ttl = Duration::from_millis(100);
        let now = Layout::NODE.tick_at(START);
        assert_eq!(generator.next_ceiling(ttl), now + 170);
        generator.reserve(|_| 1).unwrap();
        clock.set(START - 5000);
        assert_eq!(generator.next_ceiling(ttl), now, "the clock stepped back");
        clock.set(Layout::NODE.end_ms() - 1);
        assert_eq!(generator.next_ceiling(ttl), Layout::NODE.last_tick());
    }
}
