//! All that processes share, and what each of them remembers.

use super::{ACTORS, NEVER, NONE, PAGES, Tick};

/// A user's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    pub max_ahead: Tick,
    /// Which lease; none for a free page.
    pub lease: Option<u8>,
}

pub const FREE: Terms = Terms { max_ahead: 0, lease: None };
pub const LEASED: Terms = Terms { max_ahead: 1, lease: Some(0) };

/// The word: the current run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Word {
    pub tick: Tick,
    /// The next number; `numbers` is exhausted, one more is closed.
    pub next: u8,
    /// The tick minus the clock at the swap.
    pub lead: Tick,
}

/// A page's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Page {
    pub id: u8,
    pub is_copy: bool,
    pub terms: Terms,
    pub word: Word,
    pub floor: Tick,
    pub window: u8,
    /// The highest tick that pages before it may have issued.
    pub before: Tick,
}

pub const NO_PAGE: Page = Page {
    id: NONE,
    is_copy: false,
    terms: FREE,
    word: Word { tick: 0, next: 0, lead: 0 },
    floor: NEVER,
    window: 0,
    before: NEVER,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hold {
    #[default]
    None,
    Shared,
    Exclusive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum At {
    Idle,
    // Draws.
    Load,
    Clock,
    Check,
    Decide,
    Swap,
    Booked,
    Lost,
    // Begins a page.
    RaiseBefore,
    LoadBegin,
    ClockBegin,
    FloorBegin,
    WindowBegin,
    SwapBegin,
    // Obtains a page.
    Map,
    Judge,
    Lock,
    Named,
    Marked,
    MapMarker,
    LinkMarker,
    Linked,
    EndBehind,
    BothBegun,
    MarkedYet,
    NoteBefore,
    SecondName,
    RenameMarker,
    NamedStill,
    EndFound,
    IsMarker,
    RenameAway,
    EndAway,
    Create,
    Obtained,
}

/// A process, or its second thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Actor {
    pub at: At,
    pub draws: u8,
    /// The page that it draws from, which it holds.
    pub page: u8,
    /// The clock at which that page had its name.
    pub checked: Tick,
    pub now: Tick,
    pub seen: Word,
    pub next: Word,
    /// The page that it is about to use, and its hold on it.
    pub found: u8,
    pub hold: Hold,
    /// The page behind the marker, or one put away.
    pub other: u8,
    pub was_begun: bool,
    /// The highest tick of pages put away, and of the one lost last.
    pub reached: Tick,
    pub lost: Tick,
    /// The window that it is about to begin.
    pub window: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub clock: Tick,
    pub pages: [Page; PAGES],
    /// How many files there were.
    pub made: u8,
    pub name: u8,
    pub marker: u8,
    /// What was renamed away, linked or copied.
    pub kept: u8,
    pub acts: u8,
    pub kills: u8,
    /// Who took the last step, and how many more processes may be held up between two of theirs.
    pub turn: u8,
    pub switches: u8,
    /// A bit for each (tick, number) that was handed out.
    pub issued: u64,
    pub actors: [Actor; ACTORS],
}

impl Actor {
    pub fn new(draws: u8) -> Actor {
        let word = Word::default();
        Actor {
            at: At::Idle,
            draws,
            page: NONE,
            checked: NEVER,
            now: NEVER,
            seen: word,
            next: word,
            found: NONE,
            hold: Hold::None,
            other: NONE,
            was_begun: false,
            reached: NEVER,
            lost: NEVER,
            window: 0,
        }
    }

    /// Between two IDs, all that it remembers.
    pub fn rest(&self) -> Actor {
        let Actor { draws, page, checked, lost, .. } = *self;
        Actor { page, checked, lost, ..Actor::new(draws) }
    }
}

impl Word {
    /// The last tick that may have been issued.
    pub fn mark(&self) -> Tick {
        if self.next == 0 { self.tick - 1 } else { self.tick }
    }
}
