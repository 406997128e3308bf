//! The lives of a node's pages in every order: `src/pages/life.rs`, with begins and draws around it. What a lease's store
//! confirms is not here (`src/lease/tests`): its pages have no ceiling, and begin above the clock and all known pages.
//!
//! A step is one access to what processes share: a look at a name, a rename, a hard link, the end of a word, a
//! compare-and-swap, a look at the clock. Between any two, any process may go on or be killed, and somebody
//! deletes names, renames a page away and back, or puts back a copy or an older page. Bounds are in the [`Scenario`]. One
//! of them is how often a process is held up between two of its steps while another goes on: the duplicates known so far
//! need one or two. Kills, acts and the clock come between any two.
//!
//! The model is what `src` should do. Each way in which it did not is a [`Fault`].
//!
//! | file | what |
//! |---|---|
//! | `mod` | the bounds, and what an [`Act`] or a kill changes |
//! | `state` | all that processes share, and what each remembers |
//! | `canonical` | one state for those that differ only in the numbers of pages |
//! | `drawing` | a process from one ID to the next: draws, losses, begins |
//! | `obtaining` | `PageSearch` of `life.rs` |
//! | `tests` | what holds, and which [`Fault`]s are found |

mod canonical;
mod drawing;
mod obtaining;
mod state;
mod tests;

use crate::search::Model;
use state::*;

/// Ticks are small here; -1 is never.
type Tick = i8;
const NEVER: Tick = -1;
/// Files, among them copies.
const PAGES: usize = 6;
const ACTORS: usize = 3;
/// No page.
const NONE: u8 = u8::MAX;
/// More steps than one process alone takes to its next ID.
const STEPS: usize = 300;

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The next page's maker only reads what the page behind the marker has issued.
    LostNotEnded,
    /// "Not begun" counts as ended, so a process that is about to begin such a page still does.
    NotBegunNotEnded,
    /// The next page begins above the clock, whatever the page before it has issued.
    BeginsTooLow,
    /// The others' threads may still draw.
    UnmappedEarly,
    /// A page is begun under the marker only.
    BegunUnnamed,
    /// The name is checked before the clock is read.
    CheckBeforeClock,
    /// The clock is read before the page has its names.
    ClockBeforeNames,
    BookingNotRechecked,
}

/// What somebody does to the directory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    DeleteName,
    DeleteBoth,
    RenameAway,
    /// Of the page under the name.
    Link,
    Copy,
    /// Renames back, or puts back what was linked or copied.
    PutBack,
    PutBackBoth,
    PutBackMarker,
}

/// What is searched.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    /// Of each process. The second thread of the first one has none.
    users: [Option<Terms>; ACTORS],
    has_thread: bool,
    ticks: Tick,
    /// Sequence numbers of a tick.
    numbers: u8,
    /// Of each process.
    draws: u8,
    /// How many ticks ahead a waiter books.
    horizon: Tick,
    kills: u8,
    /// How often a process is held up between two steps while another goes on.
    switches: u8,
    /// How many acts, and which.
    acts: u8,
    may: &'static [Act],
    /// Whether each look at the clock may show anything.
    is_clock_wild: bool,
    /// Whether a draw looks at the marker, and not at the name.
    checks_marker: bool,
    faults: &'static [Fault],
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Duplicate,
    /// A thread reads memory that its process has unmapped.
    Unmapped,
    /// A process that is left alone never issues.
    Stuck,
}

impl Scenario {
    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    fn closed(&self) -> u8 {
        self.numbers + 1
    }

    fn not_begun(&self) -> Word {
        Word { tick: 0, next: self.closed(), lead: 0 }
    }

    fn is_closed(&self, word: Word) -> bool {
        word.next == self.closed()
    }

    fn has_ended(&self, word: Word) -> bool {
        self.is_closed(word) && word != self.not_begun()
    }

    fn terms(&self, index: usize) -> Terms {
        self.users[if self.is_thread(index) { 0 } else { index }].unwrap_or(FREE)
    }

    /// A file that has no name yet.
    fn add_page(&self, state: &mut State, page: Page) -> u8 {
        state.pages[usize::from(state.made)] = page;
        state.made += 1;
        state.made - 1
    }

    fn new_page(&self, terms: Terms, id: u8, before: Tick) -> Page {
        Page { id, is_copy: false, terms, word: self.not_begun(), floor: NEVER, window: 0, before }
    }

    /// Ends a page: the highest tick that it or pages before it may have issued.
    fn end(&self, state: &mut State, page: u8) -> Tick {
        let is_read_only = self.has(Fault::LostNotEnded);
        let page = &mut state.pages[usize::from(page)];
        let run = page.word;
        let is_open = !self.is_closed(run);
        let is_not_begun = run == self.not_begun() && !self.has(Fault::NotBegunNotEnded);
        if (is_open || is_not_begun) && !is_read_only {
            page.word = Word { tick: run.tick.max(1), next: self.closed(), lead: 0 };
        }
        run.mark().max(page.before)
    }

    /// Hands out an ID.
    fn issue(&self, state: &mut State, word: Word) -> Result<(), Wrong> {
        let bit = 1 << (word.tick as u8 * self.numbers + word.next);
        if state.issued & bit != 0 {
            return Err(Wrong::Duplicate);
        }
        state.issued |= bit;
        Ok(())
    }

    /// What an act changes; none where it changes nothing.
    fn act(&self, state: &State, act: Act) -> Option<State> {
        let mut s = *state;
        let is_room = usize::from(s.made) < PAGES;
        match act {
            Act::DeleteName => s.name = NONE,
            Act::DeleteBoth => (s.name, s.marker) = (NONE, NONE),
            Act::RenameAway if s.kept == NONE => (s.kept, s.name) = (s.name, NONE),
            Act::Link if s.kept == NONE => s.kept = s.name,
            Act::Copy if s.kept == NONE && s.name != NONE && is_room => {
                let copy = Page { is_copy: true, ..s.pages[usize::from(s.name)] };
                s.kept = self.add_page(&mut s, copy);
            }
            Act::PutBack if s.kept != NONE => s.name = s.kept,
            Act::PutBackBoth if s.kept != NONE => (s.name, s.marker) = (s.kept, s.kept),
            Act::PutBackMarker if s.kept != NONE => s.marker = s.kept,
            _ => {}
        }
        if s == *state {
            return None;
        }
        s.acts -= 1;
        Some(s)
    }

    /// The next step of an actor; none where it waits, or has all its IDs.
    fn step(&self, state: &State, index: usize) -> Result<Option<State>, Wrong> {
        let mut s = *state;
        let mut a = s.actors[index];
        match a.at {
            At::Idle if a.draws == 0 => {}
            At::Idle if self.is_thread(index) => {
                let page = s.actors[0].page;
                if page != NONE && page != a.page {
                    a = Actor { at: At::Load, page, ..Actor::new(a.draws) };
                } else if page != NONE && !self.is_closed(s.pages[usize::from(page)].word) {
                    a.at = At::Load;
                }
            }
            at if at < At::Map => self.draw(&mut s, &mut a, index)?,
            _ => self.obtain(&mut s, &mut a, index),
        }
        s.actors[index] = a;
        Ok((s != *state).then_some(s))
    }

    fn is_thread(&self, index: usize) -> bool {
        self.has_thread && index == ACTORS - 1
    }

    /// Whether the process of this index can still issue when all others are dead and nobody changes the directory.
    fn goes_on(&self, state: &State, index: usize) -> Result<bool, Wrong> {
        let mut s = *state;
        for (other, actor) in s.actors.iter_mut().enumerate() {
            if other != index {
                *actor = Actor::new(0);
            }
        }
        let draws = s.actors[index].draws;
        for _ in 0..STEPS {
            if s.actors[index].draws < draws || usize::from(s.made) == PAGES {
                return Ok(true);
            }
            match self.step(&s, index)? {
                Some(next) if next.actors[index].at != At::Idle => s = next.canonical(false),
                next => s = State { clock: s.clock + 1, ..next.unwrap_or(s) },
            }
        }
        Ok(false)
    }
}

impl Model for Scenario {
    type State = State;
    type Wrong = Wrong;

    fn start(&self) -> State {
        State {
            clock: 1,
            pages: [NO_PAGE; PAGES],
            made: 0,
            name: NONE,
            marker: NONE,
            kept: NONE,
            acts: self.acts,
            kills: self.kills,
            turn: 0,
            switches: self.switches,
            issued: 0,
            actors: std::array::from_fn(|index| {
                let is_there = self.users[index].is_some() || self.is_thread(index);
                Actor::new(if is_there { self.draws } else { 0 })
            }),
        }
    }

    fn steps(&self, state: &State, next: &mut Vec<State>) -> Result<(), Wrong> {
        if state.clock + 1 < self.ticks {
            next.push(State { clock: state.clock + 1, ..*state });
        }
        if self.is_clock_wild && state.clock > 0 {
            next.push(State { clock: state.clock - 1, ..*state });
        }
        if state.acts > 0 {
            next.extend(self.may.iter().filter_map(|&act| self.act(state, act)));
        }
        let is_held_up = state.actors[usize::from(state.turn)].at != At::Idle
            && self.step(state, state.turn.into())?.is_some();
        for index in 0..ACTORS {
            let cost = u8::from(is_held_up && index != usize::from(state.turn));
            let after = if cost > state.switches { None } else { self.step(state, index)? };
            let Actor { at, draws, .. } = state.actors[index];
            let is_left_alone = state.acts == 0 && state.kills == 0 && !self.is_thread(index);
            if is_left_alone && at == At::Idle && draws > 0 && !self.goes_on(state, index)? {
                return Err(Wrong::Stuck);
            }
            next.extend(after.map(|after| State {
                turn: index as u8,
                switches: state.switches - cost,
                ..after
            }));
            if state.kills > 0 && state.actors[index].at != At::Idle && !self.is_thread(index) {
                let mut s = State { kills: state.kills - 1, ..*state };
                s.actors[index] = Actor::new(state.actors[index].draws);
                if self.has_thread && index == 0 {
                    s.actors[ACTORS - 1] = Actor::new(0);
                }
                next.push(s);
            }
        }
        let is_pair = self.users[0] == self.users[1] && !self.has_thread;
        next.iter_mut().for_each(|state| *state = state.canonical(is_pair));
        Ok(())
    }
}
