//! The steps of several processes that share one sequencer, in every order.
//!
//! A step is one access to what they share: a load, a compare-and-swap, a look at the clock, a call to the
//! file system or to the store. After each of them any other actor may go on, and any may be killed. So
//! what holds here holds for every schedule within the bounds of a [`Scenario`]. The memory is
//! sequentially consistent; loom tries the weaker orders on the real code.
//!
//! Three things are searched: draws (the word and the marks), windows (a store, a keeper that renews,
//! releases and takes the slot again, another host that takes it meanwhile), and pages (unlinked,
//! replaced and joined while others draw). Each planted [`Fault`] is found, so the search is able to.
//!
//! `TESTS=storms` searches what takes half a minute, with `TESTS_TIMES=2` the larger bounds, for which a release
//! build is better.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::amount::amount;

/// Ticks are small here; -1 is never.
type Tick = i8;
const NEVER: Tick = -1;
const COUNTERS: usize = 2;
const PAGES: usize = 3;
const NO_PAGE: u8 = 9;
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
    // Pages.
    LinkBeforeClock,
    FloorReadEarly,
    StalePageJoined,
    BookingNotRechecked,
    /// The clock is read after the old page was found missing, as it should be, but before the new one
    /// was linked: another may have lived and died in between.
    FloorReadBeforeLink,
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
    /// How often a page is unlinked. Without any, there is one page.
    unlinks: u8,
    paged: bool,
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
    unlinks: 0,
    paged: false,
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

const PAGED: Scenario = Scenario {
    ticks: 4,
    counters: 1,
    clock: Clock::Rising,
    unlinks: 2,
    paged: true,
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
    Open,
    Create,
    Link,
    Begin,
    Load,
    Clock,
    Check,
    Ceiling,
    Floor,
    Marks,
    RaiseMark,
    Swap,
    LateMark,
    Booked,
    GiveBack,
}

/// Draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Process {
    at: At,
    draws: u8,
    page: u8,
    /// At this reading of the clock the link was checked.
    checked: Tick,
    now: Tick,
    seen: Word,
    ceiling: Tick,
    floor: Tick,
    marks: [Tick; COUNTERS],
    read: u8,
    next: Word,
    /// Length of the block.
    len: u8,
}

impl Process {
    fn new(draws: u8, page: u8) -> Process {
        Process {
            at: At::Idle,
            draws,
            page,
            checked: NEVER,
            now: NEVER,
            seen: Word::default(),
            ceiling: NEVER,
            floor: NEVER,
            marks: [NEVER; COUNTERS],
            read: 0,
            next: Word::default(),
            len: 0,
        }
    }

    /// Between two reservations it remembers its page, and when it checked the link.
    fn rest(&self, draws: u8) -> Process {
        Process { checked: self.checked, ..Process::new(draws, self.page) }
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
    pages: [Page; PAGES],
    /// How many pages there were.
    made: u8,
    /// The page that the path names.
    path: u8,
    unlinks: u8,
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

/// What a search found, and how it came to it.
struct Found {
    states: usize,
    wrong: Option<Wrong>,
    path: Vec<State>,
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

    fn start(&self) -> State {
        let mut first = self.fresh_page();
        if self.has_windows() {
            // The host holds the slot up to tick 1, and another may have held it before.
            (first.ceiling, first.token) = (1, 1);
        }
        let page = if self.paged { NO_PAGE } else { 0 };
        State {
            clock: 0,
            pages: [first; PAGES],
            made: u8::from(!self.paged),
            path: page,
            unlinks: self.unlinks,
            issued: 0,
            // Those there are not draw nothing, and keep nothing.
            processes: std::array::from_fn(|index| {
                Process::new(if index < self.processes { self.draws } else { 0 }, page)
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

    fn search(&self) -> Found {
        let mut seen = HashSet::<u128, BuildHasherDefault<Identity>>::default();
        let mut stack = vec![(self.start(), 0)];
        let mut path: Vec<State> = Vec::new();
        let mut next = Vec::new();
        seen.insert(self.start().fingerprint());
        while let Some((state, depth)) = stack.pop() {
            path.truncate(depth);
            path.push(state);
            if let Err(wrong) = self.steps(&state, &mut next) {
                return Found { states: seen.len(), wrong: Some(wrong), path };
            }
            for mut state in next.drain(..) {
                // Which of two processes is which makes no difference.
                state.processes.sort_unstable();
                state.keepers.sort_unstable();
                if seen.insert(state.fingerprint()) {
                    stack.push((state, depth + 1));
                }
            }
        }
        Found { states: seen.len(), wrong: None, path: Vec::new() }
    }

    fn steps(&self, state: &State, next: &mut Vec<State>) -> Result<(), Wrong> {
        if self.clock == Clock::Rising && state.clock + 1 < self.ticks {
            let mut s = *state;
            s.clock += 1;
            next.push(s);
        }
        if state.unlinks > 0 && state.path != NO_PAGE {
            let mut s = *state;
            (s.path, s.unlinks) = (NO_PAGE, s.unlinks - 1);
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
        Ok(())
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
            let page = if self.paged { NO_PAGE } else { 0 };
            go(&|_, q| *q = Process::new(p.draws.saturating_sub(1), page));
        }
        // The clock, as a reading may show it.
        let readings = || match self.clock {
            Clock::Any => 0..self.ticks,
            Clock::Rising => state.clock..state.clock + 1,
        };
        let page = &state.pages[usize::from(p.page) % PAGES];
        let is_linked = p.page == state.path;
        let after_clock = if self.paged && fault != Fault::LinkBeforeClock {
            At::Check
        } else {
            self.after_check()
        };
        match p.at {
            At::Idle if p.page == NO_PAGE && fault == Fault::FloorReadEarly => {
                for now in readings() {
                    go(&|_, q| (q.at, q.now) = (At::Open, now));
                }
            }
            At::Idle if p.page == NO_PAGE => go(&|_, q| q.at = At::Open),
            At::Open if state.path != NO_PAGE => go(&|s, q| {
                *q = Process::new(p.draws, s.path);
                q.at = At::Load;
                if fault == Fault::StalePageJoined {
                    // As if that it was found were proof enough for what is drawn first.
                    q.read = 1;
                }
            }),
            At::Open => go(&|_, q| q.at = At::Create),
            // Missing. The rule that DESIGN had, and one that is worse, read the clock before the link.
            At::Create if fault == Fault::FloorReadBeforeLink => {
                for now in readings() {
                    go(&|_, q| (q.at, q.now) = (At::Link, now));
                }
            }
            At::Create | At::Link => {
                if state.path != NO_PAGE {
                    go(&|_, q| (q.at, q.now) = (At::Open, NEVER));
                } else if usize::from(state.made) < PAGES {
                    go(&|s, q| {
                        let mut page = self.fresh_page();
                        if matches!(fault, Fault::FloorReadBeforeLink | Fault::FloorReadEarly) {
                            page.floor = p.now;
                        } else {
                            page.word.next = self.closed();
                        }
                        s.pages[usize::from(s.made)] = page;
                        s.path = s.made;
                        s.made += 1;
                        *q = Process::new(p.draws, s.path);
                        q.at = At::Load;
                    });
                }
            }
            At::Idle if fault == Fault::ClockBeforeLoad => {
                for now in readings() {
                    go(&|_, q| (q.at, q.now) = (At::Load, now));
                }
            }
            At::Idle if fault == Fault::LinkBeforeClock => {
                if is_linked {
                    go(&|_, q| q.at = At::Load);
                } else {
                    go(&|_, q| *q = Process { at: At::Open, ..Process::new(p.draws, NO_PAGE) });
                }
            }
            At::Idle | At::Load => go(&|s, q| {
                q.seen = s.pages[usize::from(p.page)].word;
                q.at = if fault == Fault::ClockBeforeLoad { after_clock } else { At::Clock };
            }),
            At::Clock => {
                for now in readings() {
                    go(&|_, q| (q.at, q.now) = (after_clock, now));
                }
            }
            At::Check => go(&|_, q| {
                let is_skipped = p.checked == p.now || p.read == 1;
                q.read = 0;
                if is_skipped || is_linked {
                    q.checked = p.now;
                    q.at = self.after_check();
                } else {
                    *q = Process { at: At::Open, ..Process::new(p.draws, NO_PAGE) };
                }
            }),
            // A page that was linked and not begun: the clock was read since, and the link checked.
            At::Ceiling if self.paged && p.seen.next == self.closed() => go(&|s, q| {
                let page = &mut s.pages[usize::from(p.page)];
                page.floor = page.floor.max(p.now);
                q.at = At::Begin;
            }),
            At::Begin => go(&|s, q| {
                let page = &mut s.pages[usize::from(p.page)];
                if page.word == p.seen {
                    page.word = Word { tick: p.now, next: self.numbers, ..Word::default() };
                }
                *q = Process { at: At::Load, ..p.rest(p.draws) };
            }),
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
                            q = p.rest(p.draws - 1);
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
                        Process { at: self.after_check(), seen: page.word, ..p }
                    } else {
                        Process { at: At::Load, ..p.rest(p.draws) }
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
                        let mut q = p.rest(p.draws - 1);
                        let next_word = Word { next: first + len, ..p.next };
                        s.pages[usize::from(p.page)].word = next_word;
                        let is_booked = self.paged && p.next.tick > p.now;
                        if is_booked {
                            q = Process { at: At::Booked, next: p.next, len, ..q };
                        } else {
                            self.issue(&mut s, p.next, first, len - back)?;
                            if back > 0 {
                                q = Process { at: At::GiveBack, seen: next_word, ..q };
                            } else if fault == Fault::MarkAfterSwap
                                && p.next.counter != p.seen.counter
                            {
                                q = Process { at: At::LateMark, seen: p.seen, ..q };
                            }
                        }
                        s.processes[index] = q;
                        next.push(s);
                    }
                }
            }
            At::LateMark => go(&|s, q| {
                raise_mark(s, &p);
                *q = p.rest(p.draws);
            }),
            At::GiveBack => go(&|s, q| {
                let word = &mut s.pages[usize::from(p.page)].word;
                if *word == p.seen {
                    word.next -= 1;
                }
                *q = p.rest(p.draws);
            }),
            // Awake once its tick has begun, it checks the link; what is on a page that is gone is lost.
            At::Booked => {
                if state.clock >= p.next.tick || self.clock == Clock::Any {
                    let mut s = *state;
                    let mut q = p.rest(p.draws);
                    if is_linked || fault == Fault::BookingNotRechecked {
                        self.issue(&mut s, p.next, p.next.next, p.len)?;
                    } else {
                        q = Process::new(p.draws, NO_PAGE);
                    }
                    s.processes[index] = q;
                    next.push(s);
                }
            }
        }
        Ok(())
    }

    fn after_check(&self) -> At {
        if self.has_windows() || self.paged { At::Ceiling } else { At::Marks }
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
        let is_within = !self.has_windows() && !self.paged || tick <= p.ceiling;
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

    /// Every next step of a keeper. The page is the first one.
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
        let page = &state.pages[0];
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
                    go(&|s, to| (to.at, to.seen) = (Keeping::SeeWindow, s.pages[0].word));
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
                let page = &mut s.pages[0];
                if page.token == k.token || fault == Fault::RaiseOfAnyWindow {
                    page.ceiling = page.ceiling.max(k.ceiling);
                }
                *to = done;
                if fault == Fault::RaiseBeforeConfirm {
                    *to = Keeper { at: Keeping::Confirm, ..k };
                }
            }),
            Keeping::Close if fault == Fault::CeilingBesideForClosing => go(&|s, to| {
                s.pages[0].ceiling = NEVER;
                to.at = Keeping::ReadLast;
            }),
            Keeping::ReadLast => go(&|s, to| {
                to.seen = s.pages[0].word;
                to.at = Keeping::Release;
                to.ceiling = s.pages[0].word.tick;
            }),
            Keeping::Close if page.word != k.seen => {
                go(&|s, to| to.seen = s.pages[0].word);
            }
            Keeping::Close => go(&|s, to| {
                let word = &mut s.pages[0].word;
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
                    to.ceiling =
                        s.pages[0].marks.iter().fold(k.ceiling, |last, &mark| last.max(mark));
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
                go(&|s, to| (to.at, to.before) = (Keeping::Acquire, s.pages[0].token));
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
                let page = &mut s.pages[0];
                page.floor = page.floor.max(k.floor);
                to.at = if fault == Fault::FloorRaisedAfterCeiling {
                    Keeping::Reopen
                } else {
                    Keeping::SetWindow
                };
            }),
            Keeping::SetWindow if page.token != k.before => go(&|_, to| *to = done),
            Keeping::SetWindow => go(&|s, to| {
                let page = &mut s.pages[0];
                (page.token, page.ceiling) = (k.token, k.ceiling);
                to.at = if fault == Fault::FloorRaisedAfterCeiling {
                    Keeping::RaiseFloor
                } else {
                    Keeping::Reopen
                };
            }),
            Keeping::Reopen => go(&|s, to| {
                let word = &mut s.pages[0].word;
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

fn raise_mark(state: &mut State, p: &Process) {
    let mark = &mut state.pages[usize::from(p.page)].marks[usize::from(p.seen.counter)];
    *mark = p.seen.tick.max(*mark);
}

impl State {
    /// 128 bits tell more states apart than a search can visit.
    fn fingerprint(&self) -> u128 {
        let mut lanes = Lanes(0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03);
        self.hash(&mut lanes);
        u128::from(lanes.0) << 64 | u128::from(lanes.1)
    }
}

/// Two hashes at once.
struct Lanes(u64, u64);

impl Lanes {
    fn mix(&mut self, value: u64) {
        let fold = |lane: u64, by: u64| {
            let product = u128::from(lane ^ value) * u128::from(by);
            (product as u64) ^ (product >> 64) as u64
        };
        self.0 = fold(self.0, 0xa076_1d64_78bd_642f).wrapping_add(value);
        self.1 = fold(self.1.rotate_left(23), 0xe703_7ed1_a0b4_28db).wrapping_add(self.0);
    }
}

impl Hasher for Lanes {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, value: u8) {
        self.mix(value.into());
    }
    fn write_i8(&mut self, value: i8) {
        self.mix(value as u64);
    }
    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }
    fn write_isize(&mut self, value: isize) {
        self.mix(value as u64);
    }
    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A fingerprint is a hash already.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, _: &[u8]) {
        unreachable!("fingerprints are numbers");
    }
    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
    fn finish(&self) -> u64 {
        self.0
    }
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
        if before.pages != after.pages || before.path != after.path || before.made != after.made {
            story +=
                &format!("    path {} of {:?}\n", after.path, &after.pages[..after.made.into()]);
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

fn holds(scenario: Scenario) {
    let found = scenario.search();
    println!("{} states", found.states);
    assert_eq!(found.wrong, None, "\n{}", story(&found.path));
}

fn finds(wrong: Wrong, scenario: Scenario) {
    let found = scenario.search();
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

const SHORT: Scenario = Scenario { ticks: 3, ..PAGED };
const BOOKED: Scenario = Scenario { horizon: 1, unlinks: 1, ..SHORT };

#[test]
fn no_id_is_issued_by_two_pages() {
    let quick = Scenario { unlinks: 1, ..SHORT };
    holds(bounds(quick, SHORT, Scenario { kills: true, ..PAGED }));
    let quick = Scenario { numbers: 1, ..BOOKED };
    holds(bounds(quick, BOOKED, Scenario { horizon: 2, ..PAGED }));
}

#[test]
fn each_fault_of_a_page_is_found() {
    for fault in [
        Fault::LinkBeforeClock,
        Fault::FloorReadEarly,
        Fault::StalePageJoined,
        Fault::FloorReadBeforeLink,
    ] {
        finds(Wrong::Duplicate, SHORT.with(fault));
    }
    finds(Wrong::Duplicate, BOOKED.with(Fault::BookingNotRechecked));
}

/// Why a page begins only after it was linked. Two processes find no page, and read the clock. One links
/// its page and draws; that page is unlinked; the other links its own, whose floor lies below those draws.
#[test]
fn a_floor_read_before_the_link_needs_one_unlink_to_repeat_ids() {
    finds(Wrong::Duplicate, Scenario { unlinks: 1, ..SHORT }.with(Fault::FloorReadBeforeLink));
}

/// What no rule here helps against, so that nobody believes it does: the page is unlinked, and the clock
/// rolls back before another is begun by a process that never saw the old one.
#[test]
fn a_rollback_just_when_a_page_is_replaced_repeats_ids() {
    finds(Wrong::Duplicate, Scenario { clock: Clock::Any, ..PAGED });
}
