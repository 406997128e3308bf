//! All that actors share: a directory with the pages of one node, the clock, and what was issued.

use std::ops::Range;

use super::steps::Next;

/// Ticks are small here.
pub type Tick = i64;
/// Files, among them copies and new ones.
pub const PAGES: usize = 6;
/// The words of a page: the word, window, floor, before, and two marks.
pub const CELLS: usize = 6;
/// No file.
pub const NONE: u8 = u8::MAX;

/// A file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct File {
    pub cells: [u64; CELLS],
    pub id: u8,
    /// The file that was created for the page.
    pub original: u8,
    pub max_ahead: u8,
    pub owner: u8,
    /// Whether it has had a name: before, only its maker knows it.
    pub is_named: bool,
}

/// An opened file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Open {
    pub number: u16,
    pub file: u8,
    /// 0: not locked; 1: shared; 2: exclusive.
    pub lock: u8,
}

/// A process, by what it remembers and has seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Actor {
    pub next: Next,
    pub waits_at: Tick,
    /// How many IDs it still wants.
    pub wants: u8,
    /// The page that it draws from, and when it has checked its names.
    pub page: Option<(u64, Tick)>,
    pub open: Vec<Open>,
    /// The file under its temporary name.
    pub temporary: u8,
    /// The results of its accesses.
    pub log: Vec<u64>,
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrong {
    Duplicate,
    /// A clock that only rises seems to roll back.
    FalseRollback,
    /// A process that is left alone never issues.
    Stuck,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub clock: Tick,
    pub files: [Option<File>; PAGES],
    pub name: u8,
    pub marker: u8,
    /// What was renamed away, linked or copied.
    pub kept: u8,
    /// How many pages were made.
    pub made: u8,
    /// Whether a file had no room: such states are not searched further.
    pub is_full: bool,
    /// How many acts and kills are still to come.
    pub acts: u8,
    pub kills: u8,
    /// Who took the last step, and how many more may be held up between two of theirs.
    pub turn: usize,
    pub switches: u8,
    /// A bit for each ID.
    pub issued: u128,
    pub wrong: Option<Wrong>,
    /// Of which cells each load is a step, a bit each.
    pub loads: u8,
    /// What a store has confirmed of the slot, which holding it is of, and which one this host had last.
    pub confirmed: Tick,
    pub holding: u8,
    pub held: u8,
    pub actors: Vec<Actor>,
}

impl Default for World {
    fn default() -> World {
        World {
            clock: 1,
            files: [None; PAGES],
            name: NONE,
            marker: NONE,
            kept: NONE,
            made: 0,
            is_full: false,
            acts: 0,
            kills: 0,
            turn: 0,
            switches: 0,
            issued: 0,
            wrong: None,
            loads: 1,
            confirmed: -1,
            holding: 0,
            held: 0,
            actors: Vec::new(),
        }
    }
}

impl Actor {
    /// One that begins.
    pub fn new(wants: u8) -> Actor {
        let next = if wants == 0 { Next::Done } else { Next::Idle };
        let (open, log) = (Vec::new(), Vec::new());
        Actor { next, waits_at: 0, wants, page: None, open, temporary: NONE, log }
    }

    /// Whether it is between two of its steps.
    pub fn is_held_up(&self) -> bool {
        self.next == Next::Access
    }
}

impl World {
    /// A place for a file; none where there is no room.
    pub fn add(&mut self, file: File) -> Option<u8> {
        let free = self.files.iter().position(Option::is_none);
        self.is_full |= free.is_none();
        self.files[free?] = Some(file);
        free.map(|at| at as u8)
    }

    pub fn file(&mut self, at: u8) -> &mut File {
        self.files[usize::from(at)].as_mut().expect("a file that somebody has")
    }

    /// Hands out an ID.
    pub fn issue(&mut self, id: u64) {
        if self.issued >> id & 1 != 0 {
            self.wrong = Some(Wrong::Duplicate);
        }
        self.issued |= 1 << id;
    }

    /// After a step of an actor.
    pub fn note_next(&mut self, actor: usize, next: Next) {
        let one = &mut self.actors[actor];
        one.next = next;
        one.waits_at = if next == Next::Wait { self.clock } else { 0 };
        if next == Next::Done {
            *one = Actor::new(0);
        }
        self.forget();
    }

    /// Which of equal actors is which makes no difference.
    pub fn sort(&mut self, equal: Range<usize>) {
        let turn = self.actors[self.turn].clone();
        self.actors[equal].sort_unstable();
        self.turn = self.actors.iter().position(|actor| *actor == turn).unwrap_or(0);
    }

    /// Kills a process. It may begin again.
    pub fn kill(&mut self, actor: usize) {
        self.turn = actor;
        self.actors[actor] = Actor::new(self.actors[actor].wants);
        self.forget();
    }

    /// Files without a name, which nobody has open, are gone.
    pub fn forget(&mut self) {
        for at in 0..PAGES as u8 {
            let names = [self.name, self.marker, self.kept];
            let is_open =
                |one: &Actor| one.temporary == at || one.open.iter().any(|open| open.file == at);
            if !names.contains(&at) && !self.actors.iter().any(is_open) {
                self.files[usize::from(at)] = None;
            }
        }
    }
}
