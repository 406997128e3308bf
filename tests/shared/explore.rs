//! The steps of several processes that share one sequencer, in every order.
//!
//! A step is one access to what they share: a load, a compare-and-swap, a look at the clock, a call to the
//! file system or to the store. After each of them any other actor may go on, and any may be killed. So
//! what holds here holds for every schedule within the bounds of a [`Scenario`]. The memory is
//! sequentially consistent; loom tries the weaker orders on the real code.
//!
//! Two things are searched: draws (the word and the marks), and windows (a store, a keeper that renews,
//! releases and takes the slot again, another host that takes it meanwhile). Each planted [`Fault`] is found, so the
//! search is able to. What becomes of pages is searched in `lives`.
//!
//! `TESTS=storms` searches what takes half a minute, with `TESTS_TIMES=2` the larger bounds, for which a release
//! build is better.

use crate::amount::amount;
use crate::search::{self, Found, Model};

/// Ticks are small here; -1 is never.
type Tick = i8;
const NEVER: Tick = -1;
const COUNTERS: usize = 2;
const PROCESSES: usize = 3;
const KEEPERS: usize = 2;

/// How the clock moves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Clock {
    /// Each reading shows any tick.
    Any,
    /// It rises, at any moment.
    Rising,
}

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    // Draws.
    MarkAfterSwap,
    NoMark,
    /// Only of what is issued, not of the tick that was given back.
    MarkOfIssued,
    ClockBeforeLoad,
    LeadForgotten,
    // Windows.
    CeilingBesideForClosing,
    ReopenAtSameWord,
    RaiseBeforeConfirm,
    RaiseOfAnyWindow,
    FloorReadBeforeCeiling,
    FloorRaisedAfterCeiling,
    ReleaseOfAnyHolding,
    ReleaseBelowFloor,
    CloseClosedWithoutSwap,
    /// Not what was issued under other counters.
    ReleaseOfCurrentTickOnly,
}

/// What is searched.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    ticks: Tick,
    counters: usize,
    /// Sequence numbers of a tick.
    numbers: u8,
    processes: usize,
    /// Reservations of each process.
    draws: u8,
    clock: Clock,
    /// How many ticks ahead a waiter may book.
    horizon: Tick,
    /// Whether a process may be killed at any step, and started again.
    kills: bool,
    /// Renewals, releases and acquisitions of each of so many keepers.
    keepers: usize,
    keepings: u8,
    /// How often another host takes the slot.
    others: u8,
    fault: Fault,
}

const DRAWS: Scenario = Scenario {
    ticks: 3,
    counters: 2,
    numbers: 2,
    processes: 2,
    draws: 2,
    clock: Clock::Any,
    horizon: 0,
    kills: true,
    keepers: 0,
    keepings: 0,
    others: 0,
    fault: Fault::None,
};

const WINDOWS: Scenario = Scenario {
    ticks: 5,
    counters: 1,
    numbers: 1,
    processes: 1,
    draws: 2,
    keepers: 1,
    keepings: 3,
    others: 1,
    // One that is killed is one that takes no further step, which is tried in any case.
    kills: false,
    ..DRAWS
};

/// The word: the current run. All zeros is a fresh sequencer: tick 0, nothing of it drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Word {
    tick: Tick,
    counter: u8,
    /// The next number; `numbers` is exhausted, one more is closed.
    next: u8,
    /// The tick minus the clock at the swap.
    lead: Tick,
}

impl Word {
    /// The last tick that may have been issued under its counter.
    fn mark(&self) -> Tick {
        if self.next == 0 { self.tick - 1 } else { self.tick }
    }
}

/// What all share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Page {
    word: Word,
    marks: [Tick; COUNTERS],
    /// Only rises.
    floor: Tick,
    /// Rises within a window; another window comes with another token.
    ceiling: Tick,
    token: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum At {
    Idle,
    Load,
    Clock,
    Ceiling,
    Floor,
    Marks,
    RaiseMark,
    Swap,
    LateMark,
    GiveBack,
}

/// Draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Process {
    at: At,
    draws: u8,
    now: Tick,
    seen: Word,
    ceiling: Tick,
    floor: Tick,
    marks: [Tick; COUNTERS],
    read: u8,
    next: Word,
}

impl Process {
    fn new(draws: u8) -> Process {
        Process {
            at: At::Idle,
            draws,
            now: NEVER,
            seen: Word::default(),
            ceiling: NEVER,
            floor: NEVER,
            marks: [NEVER; COUNTERS],
            read: 0,
            next: Word::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Keeping {
    Idle,
    Confirm,
    Raise,
    Close,
    ReadLast,
    ReadMarks,
    Release,
    SeeWindow,
    Acquire,
    RaiseFloor,
    SetWindow,
    Reopen,
}

/// Renews the host's slot, releases it, and takes it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Keeper {
    at: Keeping,
    keepings: u8,
    seen: Word,
    token: u8,
    /// The window that the page had when the slot was acquired.
    before: u8,
    floor: Tick,
    ceiling: Tick,
}

impl Keeper {
    fn new(keepings: u8) -> Keeper {
        let seen = Word::default();
        Keeper {
            at: Keeping::Idle,
            keepings,
            seen,
            token: 0,
            before: 0,
            floor: NEVER,
            ceiling: NEVER,
        }
    }
}

/// The store's record of the slot. A token tells one holding from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Store {
    token: u8,
    floor: Tick,
    ceiling: Tick,
    /// Ticks that another host may have issued, a bit each.
    others: u8,
    others_left: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    clock: Tick,
    page: Page,
    /// A bit for each (tick, counter, number) that was handed out.
    issued: u64,
    processes: [Process; PROCESSES],
    keepers: [Keeper; KEEPERS],
    store: Store,
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Duplicate,
    FalseRollback,
}

impl Scenario {
    fn with(self, fault: Fault) -> Scenario {
        Scenario { fault, ..self }
    }

    fn has_windows(&self) -> bool {
        self.keepers > 0
    }

    fn closed(&self) -> u8 {
        self.numbers + 1
    }

    fn fresh_page(&self) -> Page {
        Page {
            word: Word::default(),
            marks: [NEVER; COUNTERS],
            floor: NEVER,
            ceiling: self.ticks - 1,
            token: 0,
        }
    }

    fn ids_of_a_tick(&self) -> u8 {
        self.counters as u8 * self.numbers
    }

    fn bit(&self, tick: Tick, counter: u8, number: u8) -> u64 {
        1 << (tick as u8 * self.ids_of_a_tick() + counter * self.numbers + number)
    }

    /// Hands out the first `len` IDs of a block that begins at `first`.
    fn issue(&self, state: &mut State, word: Word, first: u8, len: u8) -> Result<(), Wrong> {
        for number in first..first + len {
            let bit = self.bit(word.tick, word.counter, number);
            if state.issued & bit != 0 || state.store.others & (1 << word.tick) != 0 {
                return Err(Wrong::Duplicate);
            }
            state.issued |= bit;
        }
        Ok(())
    }

    /// Every next step of a process.
    fn draw(&self, state: &State, index: usize, next: &mut Vec<State>) -> Result<(), Wrong> {
        let p = state.processes[index];
        let fault = self.fault;
        if p.at == At::Idle && p.draws == 0 {
            return Ok(());
        }
        let mut go = |change: &dyn Fn(&mut State, &mut Process)| {
            let mut s = *state;
            let mut q = p;
            change(&mut s, &mut q);
            s.processes[index] = q;
            next.push(s);
        };
        if self.kills && p.at != At::Idle {
            go(&|_, q| *q = Process::new(p.draws.saturating_sub(1)));
        }
        // The clock, as a reading may show it.
        let readings = || match self.clock {
            Clock::Any => 0..self.ticks,
            Clock::Rising => state.clock..state.clock + 1,
        };
        let page = &state.page;
        match p.at {
            At::Idle if fault == Fault::ClockBeforeLoad => {
                for now in readings() {
                    go(&|_, q| (q.at, q.now) = (At::Load, now));
                }
            }
            At::Idle | At::Load => go(&|s, q| {
                q.seen = s.page.word;
                q.at = if fault == Fault::ClockBeforeLoad { self.after_clock() } else { At::Clock };
            }),
            At::Clock => {
                for now in readings() {
                    go(&|_, q| (q.at, q.now) = (self.after_clock(), now));
                }
            }
            At::Ceiling => go(&|_, q| {
                if fault == Fault::FloorReadBeforeCeiling {
                    q.floor = page.floor;
                } else {
                    q.ceiling = page.ceiling;
                }
                q.at = At::Floor;
            }),
            At::Floor => go(&|_, q| {
                if fault == Fault::FloorReadBeforeCeiling {
                    q.ceiling = page.ceiling;
                } else {
                    q.floor = page.floor;
                }
                q.at = At::Marks;
            }),
            At::Marks => {
                let mut q = p;
                let counter = p.read;
                q.marks[usize::from(counter)] = if counter == p.seen.counter {
                    p.seen.mark()
                } else {
                    page.marks[usize::from(counter)]
                };
                q.read += 1;
                if usize::from(q.read) == self.counters {
                    match self.decide(&q) {
                        Some(decided) => {
                            q.next = decided;
                            q.read = 0;
                            let late = matches!(fault, Fault::MarkAfterSwap | Fault::NoMark);
                            let is_raised = decided.counter != p.seen.counter && !late;
                            q.at = if is_raised { At::RaiseMark } else { At::Swap };
                        }
                        None => {
                            if self.is_false_rollback(&q) {
                                return Err(Wrong::FalseRollback);
                            }
                            q = Process::new(p.draws - 1);
                        }
                    }
                    if q.at != At::Idle && self.is_false_rollback(&q) {
                        return Err(Wrong::FalseRollback);
                    }
                }
                go(&|_, to| *to = q);
            }
            At::RaiseMark => go(&|s, q| {
                if fault == Fault::MarkOfIssued {
                    let seen = Word { tick: p.seen.mark(), ..p.seen };
                    raise_mark(s, &Process { seen, ..p });
                } else {
                    raise_mark(s, &p);
                }
                q.at = At::Swap;
            }),
            At::Swap => {
                if page.word != p.seen {
                    // Where another has drawn from the run of the clock's tick, it goes on from there without
                    // another look at the clock or the link.
                    let goes_on = |word: &Word| {
                        (word.counter, word.tick, word.lead) == (0, p.now, 0)
                            && (1..self.numbers).contains(&word.next)
                    };
                    let again = if goes_on(&p.seen) && goes_on(&page.word) {
                        Process { at: self.after_clock(), seen: page.word, ..p }
                    } else {
                        Process { at: At::Load, ..Process::new(p.draws) }
                    };
                    go(&|_, q| *q = again);
                    return Ok(());
                }
                let first = p.next.next;
                for want in [1, 2] {
                    let len = (self.numbers - first).min(want);
                    if len < want {
                        continue;
                    }
                    // All of it is handed out, or all but the last, which is given back.
                    for back in 0..=1 {
                        let mut s = *state;
                        let mut q = Process::new(p.draws - 1);
                        let next_word = Word { next: first + len, ..p.next };
                        s.page.word = next_word;
                        self.issue(&mut s, p.next, first, len - back)?;
                        if back > 0 {
                            q = Process { at: At::GiveBack, seen: next_word, ..q };
                        } else if fault == Fault::MarkAfterSwap && p.next.counter != p.seen.counter
                        {
                            q = Process { at: At::LateMark, seen: p.seen, ..q };
                        }
                        s.processes[index] = q;
                        next.push(s);
                    }
                }
            }
            At::LateMark => go(&|s, q| {
                raise_mark(s, &p);
                *q = Process::new(p.draws);
            }),
            At::GiveBack => go(&|s, q| {
                let word = &mut s.page.word;
                if *word == p.seen {
                    word.next -= 1;
                }
                *q = Process::new(p.draws);
            }),
        }
        Ok(())
    }

    fn after_clock(&self) -> At {
        if self.has_windows() { At::Ceiling } else { At::Marks }
    }

    /// Whether a process takes a clock that only rises for one that rolled back.
    fn is_false_rollback(&self, p: &Process) -> bool {
        let is_open = p.seen.next != self.closed();
        let is_rolled_back = p.now < p.seen.mark() - p.seen.lead && p.now > p.floor;
        self.clock == Clock::Rising && is_open && is_rolled_back
    }

    /// The word after a reservation that would begin at its `next`; none where it is refused.
    fn decide(&self, p: &Process) -> Option<Word> {
        if p.seen.next == self.closed() {
            return None;
        }
        let current = p.seen.mark();
        let is_ahead = p.now < current && p.now >= current - p.seen.lead;
        let tick = if is_ahead { current } else { p.now };
        self.decide_at(p, tick).or_else(|| {
            // Exhausted: a waiter books the tick after it.
            if current == tick { self.decide_at(p, tick + 1) } else { None }
        })
    }

    fn decide_at(&self, p: &Process, tick: Tick) -> Option<Word> {
        let is_within = !self.has_windows() || tick <= p.ceiling;
        if tick >= self.ticks || tick <= p.floor || !is_within || tick - p.now > self.horizon {
            return None;
        }
        let lead = if self.fault == Fault::LeadForgotten { 0 } else { tick - p.now };
        let Word { tick: seen_tick, counter: current_counter, next, .. } = p.seen;
        let current = p.seen.mark();
        for counter in 0..self.counters as u8 {
            if counter > current_counter && current == tick {
                return None;
            }
            let mark = p.marks[usize::from(counter)];
            if mark < tick {
                return Some(Word { tick, counter, next: 0, lead });
            }
            if counter == current_counter && seen_tick == tick && next < self.numbers {
                return Some(Word { tick, counter, next, lead });
            }
        }
        None
    }

    /// Every next step of a keeper.
    fn keep(&self, state: &State, index: usize, next: &mut Vec<State>) {
        let k = state.keepers[index];
        let fault = self.fault;
        if k.at == Keeping::Idle && k.keepings == 0 {
            return;
        }
        let mut go = |change: &dyn Fn(&mut State, &mut Keeper)| {
            let mut s = *state;
            let mut to = k;
            change(&mut s, &mut to);
            s.keepers[index] = to;
            next.push(s);
        };
        let page = &state.page;
        let store = &state.store;
        let done = Keeper::new(k.keepings.saturating_sub(1));
        if self.kills && k.at != Keeping::Idle {
            go(&|_, to| *to = done);
        }
        let is_closed = |word: Word| word.next == self.closed();
        match k.at {
            Keeping::Idle => {
                // What it does is about the holding that it sees now, and about this word.
                let sees = Keeper { token: page.token, ceiling: page.ceiling, ..k };
                let renew = if fault == Fault::RaiseBeforeConfirm {
                    Keeping::Raise
                } else {
                    Keeping::Confirm
                };
                let asks = Keeper { at: renew, ceiling: page.ceiling + 1, ..sees };
                if page.ceiling + 1 < self.ticks {
                    go(&|_, to| *to = asks);
                }
                // The word is loaded after the token, in a step of its own.
                let not_loaded = Word { tick: NEVER, ..Word::default() };
                go(&|_, to| {
                    *to = Keeper { at: Keeping::Close, seen: not_loaded, ceiling: NEVER, ..sees };
                });
                if is_closed(page.word) {
                    go(&|s, to| (to.at, to.seen) = (Keeping::SeeWindow, s.page.word));
                }
            }
            Keeping::Confirm if store.token != k.token => go(&|_, to| *to = done),
            Keeping::Confirm => go(&|s, to| {
                s.store.ceiling = s.store.ceiling.max(k.ceiling);
                to.at = Keeping::Raise;
                if fault == Fault::RaiseBeforeConfirm {
                    *to = done;
                }
            }),
            Keeping::Raise => go(&|s, to| {
                let page = &mut s.page;
                if page.token == k.token || fault == Fault::RaiseOfAnyWindow {
                    page.ceiling = page.ceiling.max(k.ceiling);
                }
                *to = done;
                if fault == Fault::RaiseBeforeConfirm {
                    *to = Keeper { at: Keeping::Confirm, ..k };
                }
            }),
            Keeping::Close if fault == Fault::CeilingBesideForClosing => go(&|s, to| {
                s.page.ceiling = NEVER;
                to.at = Keeping::ReadLast;
            }),
            Keeping::ReadLast => go(&|s, to| {
                to.seen = s.page.word;
                to.at = Keeping::Release;
                to.ceiling = s.page.word.tick;
            }),
            Keeping::Close if page.word != k.seen => {
                go(&|s, to| to.seen = s.page.word);
            }
            Keeping::Close => go(&|s, to| {
                let word = &mut s.page.word;
                (to.at, to.ceiling) = (Keeping::ReadMarks, word.mark());
                // Closed already: another may be about to reopen it, which this prevents.
                if is_closed(*word) && fault != Fault::CloseClosedWithoutSwap {
                    word.tick += 1;
                }
                word.next = self.closed();
            }),
            // After the swap, and so final: to leave a counter, its mark was raised before the swap.
            Keeping::ReadMarks => go(&|s, to| {
                if fault != Fault::ReleaseOfCurrentTickOnly {
                    to.ceiling = s.page.marks.iter().fold(k.ceiling, |last, &mark| last.max(mark));
                }
                to.at = Keeping::Release;
            }),
            Keeping::Release => go(&|s, to| {
                if s.store.token == k.token || fault == Fault::ReleaseOfAnyHolding {
                    let floor =
                        if fault == Fault::ReleaseBelowFloor { NEVER } else { s.store.floor };
                    // Never above what was confirmed: the word may stand there, nothing was issued.
                    s.store.ceiling = k.ceiling.max(floor).min(s.store.ceiling);
                    // Held by nobody: no token of a page is 0, and the next one differs.
                    s.store.token += 1;
                }
                *to = done;
            }),
            // Before the slot is acquired: so of two that set the window only one does.
            Keeping::SeeWindow => {
                go(&|s, to| (to.at, to.before) = (Keeping::Acquire, s.page.token));
            }
            Keeping::Acquire => go(&|s, to| {
                s.store.token += 1;
                s.store.floor = s.store.ceiling;
                s.store.ceiling = (s.store.ceiling + 1).min(self.ticks - 1);
                to.token = s.store.token;
                (to.floor, to.ceiling) = (s.store.floor, s.store.ceiling);
                to.at = if fault == Fault::FloorRaisedAfterCeiling {
                    Keeping::SetWindow
                } else {
                    Keeping::RaiseFloor
                };
            }),
            Keeping::RaiseFloor => go(&|s, to| {
                let page = &mut s.page;
                page.floor = page.floor.max(k.floor);
                to.at = if fault == Fault::FloorRaisedAfterCeiling {
                    Keeping::Reopen
                } else {
                    Keeping::SetWindow
                };
            }),
            Keeping::SetWindow if page.token != k.before => go(&|_, to| *to = done),
            Keeping::SetWindow => go(&|s, to| {
                let page = &mut s.page;
                (page.token, page.ceiling) = (k.token, k.ceiling);
                to.at = if fault == Fault::FloorRaisedAfterCeiling {
                    Keeping::RaiseFloor
                } else {
                    Keeping::Reopen
                };
            }),
            Keeping::Reopen => go(&|s, to| {
                let word = &mut s.page.word;
                if *word == k.seen {
                    *word = if fault == Fault::ReopenAtSameWord {
                        Word { next: self.numbers, ..k.seen }
                    } else {
                        Word { tick: k.seen.tick + 1, next: 0, ..k.seen }
                    };
                }
                *to = done;
            }),
        }
    }
}

impl Model for Scenario {
    type State = State;
    type Wrong = Wrong;

    fn start(&self) -> State {
        let mut first = self.fresh_page();
        if self.has_windows() {
            // The host holds the slot up to tick 1, and another may have held it before.
            (first.ceiling, first.token) = (1, 1);
        }
        State {
            clock: 0,
            page: first,
            issued: 0,
            // Those there are not draw nothing, and keep nothing.
            processes: std::array::from_fn(|index| {
                Process::new(if index < self.processes { self.draws } else { 0 })
            }),
            keepers: std::array::from_fn(|index| {
                Keeper::new(if index < self.keepers { self.keepings } else { 0 })
            }),
            store: Store {
                token: 1,
                floor: NEVER,
                ceiling: first.ceiling,
                others: 0,
                others_left: self.others,
            },
        }
    }

    fn steps(&self, state: &State, next: &mut Vec<State>) -> Result<(), Wrong> {
        if self.clock == Clock::Rising && state.clock + 1 < self.ticks {
            let mut s = *state;
            s.clock += 1;
            next.push(s);
        }
        if state.store.others_left > 0 && state.store.ceiling + 1 < self.ticks {
            // Whether the slot was released or has expired: that must not matter.
            let mut s = *state;
            let tick = s.store.ceiling + 1;
            s.store.others_left -= 1;
            s.store.token += 1;
            (s.store.floor, s.store.ceiling) = (tick - 1, tick);
            let is_taken = s.store.others & (1 << tick) != 0;
            s.store.others |= 1 << tick;
            if is_taken
                || (0..self.ids_of_a_tick()).any(|n| s.issued & self.bit(tick, 0, 0) << n != 0)
            {
                return Err(Wrong::Duplicate);
            }
            next.push(s);
        }
        for index in 0..state.processes.len() {
            self.draw(state, index, next)?;
        }
        for index in 0..state.keepers.len() {
            self.keep(state, index, next);
        }
        for state in next {
            // Which of two processes is which makes no difference.
            state.processes.sort_unstable();
            state.keepers.sort_unstable();
        }
        Ok(())
    }
}

fn raise_mark(state: &mut State, p: &Process) {
    let mark = &mut state.page.marks[usize::from(p.seen.counter)];
    *mark = p.seen.tick.max(*mark);
}

/// What changed from one state to the next.
fn story(path: &[State]) -> String {
    let mut story = String::new();
    for (before, after) in path.iter().zip(&path[1..]) {
        for process in after.processes.iter().filter(|now| !before.processes.contains(now)) {
            story += &format!("{process:?}\n");
        }
        for keeper in after.keepers.iter().filter(|now| !before.keepers.contains(now)) {
            story += &format!("{keeper:?}\n");
        }
        if before.page != after.page {
            story += &format!("    {:?}\n", after.page);
        }
        if before.store != after.store {
            story += &format!("    {:?}\n", after.store);
        }
        if before.clock != after.clock {
            story += &format!("    clock {}\n", after.clock);
        }
    }
    story
}

fn search(scenario: Scenario) -> Found<Scenario> {
    search::search(&scenario)
}

fn holds(scenario: Scenario) {
    let found = search(scenario);
    println!("{} states", found.states);
    assert_eq!(found.wrong, None, "\n{}", story(&found.path));
    assert!(found.is_whole, "some states were not searched");
}

fn finds(wrong: Wrong, scenario: Scenario) {
    let found = search(scenario);
    println!("{:?}: {} states", scenario.fault, found.states);
    if std::env::var_os("SHARED_STORY").is_some() {
        println!("{}", story(&found.path));
    }
    assert_eq!(found.wrong, Some(wrong), "{:?} in {} states", scenario.fault, found.states);
}

/// The bounds that are asked for: where nothing is said, those that take a second or two.
fn bounds(quick: Scenario, usual: Scenario, large: Scenario) -> Scenario {
    match amount(1, 2) {
        1 => quick,
        2 => usual,
        _ => large,
    }
}

#[test]
fn draws_never_repeat_whatever_the_clock_shows() {
    holds(bounds(DRAWS, DRAWS, Scenario { draws: 3, ..DRAWS }));
    holds(Scenario { processes: 3, draws: 1, ..DRAWS });
}

#[test]
fn a_mark_that_is_raised_late_is_found() {
    finds(Wrong::Duplicate, DRAWS.with(Fault::MarkAfterSwap));
    finds(Wrong::Duplicate, DRAWS.with(Fault::NoMark));
    finds(Wrong::Duplicate, DRAWS.with(Fault::MarkOfIssued));
}

const BOOKING: Scenario = Scenario { horizon: 2, ..DRAWS };
const RISING: Scenario = Scenario { clock: Clock::Rising, ticks: 4, horizon: 2, ..DRAWS };

#[test]
fn bookings_never_repeat_whatever_the_clock_shows() {
    holds(bounds(BOOKING, BOOKING, Scenario { draws: 3, ..BOOKING }));
}

#[test]
fn a_clock_that_rises_never_seems_to_roll_back() {
    holds(bounds(RISING, RISING, Scenario { draws: 3, ..RISING }));
}

#[test]
fn a_clock_read_before_the_load_seems_to_roll_back() {
    finds(Wrong::FalseRollback, RISING.with(Fault::ClockBeforeLoad));
}

#[test]
fn a_booking_without_its_lead_seems_to_be_a_rollback() {
    finds(Wrong::FalseRollback, RISING.with(Fault::LeadForgotten));
}

const TWO_KEEPERS: Scenario =
    Scenario { keepers: 2, keepings: 2, processes: 1, draws: 1, ..WINDOWS };

const ROLLING_BACK: Scenario = Scenario { counters: 2, ticks: 4, draws: 3, keepings: 2, ..WINDOWS };

#[test]
fn no_tick_is_issued_by_two_holders() {
    holds(ROLLING_BACK);
    holds(bounds(WINDOWS, WINDOWS, Scenario { processes: 2, counters: 2, kills: true, ..WINDOWS }));
    let quick = Scenario { ticks: 3, ..TWO_KEEPERS };
    holds(bounds(quick, TWO_KEEPERS, Scenario { keepings: 3, kills: true, ..TWO_KEEPERS }));
}

#[test]
fn each_fault_of_a_window_is_found() {
    for fault in [
        Fault::CeilingBesideForClosing,
        Fault::ReopenAtSameWord,
        Fault::RaiseBeforeConfirm,
        Fault::RaiseOfAnyWindow,
        Fault::FloorReadBeforeCeiling,
        Fault::FloorRaisedAfterCeiling,
        Fault::ReleaseOfAnyHolding,
        Fault::CloseClosedWithoutSwap,
    ] {
        finds(Wrong::Duplicate, TWO_KEEPERS.with(fault));
    }
    finds(Wrong::Duplicate, ROLLING_BACK.with(Fault::ReleaseOfCurrentTickOnly));
    finds(Wrong::Duplicate, Scenario { others: 2, ..TWO_KEEPERS }.with(Fault::ReleaseBelowFloor));
}
