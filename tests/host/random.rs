//! Random lives of a node's pages, in the test's time: processes come, draw, and are killed, while names are lost and
//! come back.

use std::fs;
use std::path::PathBuf;

use fastrand::Rng;
use snowdrift::core::clock::Clock;
use snowdrift::generator::Generator;

use super::life::{Life, START, TICKS};
use crate::amount::{amount, seed};

/// What happens.
#[derive(Clone, Copy, Debug)]
struct Kind {
    tick_ms: i64,
    /// Pages come back under their name: renamed back, a hard link or a copy put back.
    returns: bool,
    /// The whole directory is deleted, or renamed away and back.
    directories: bool,
    /// The clock rolls back.
    rollbacks: bool,
}

const PLAIN: Kind = Kind { tick_ms: 1, returns: false, directories: false, rollbacks: true };

struct Lives {
    kind: Kind,
    rng: Rng,
    life: Life,
    users: Vec<Generator>,
    /// Files that had the page's name, or were copied from it, and directories.
    pages: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    names: usize,
    /// The latest time that the clock has shown.
    latest: i64,
}

impl Lives {
    fn new(kind: Kind, seed: u64) -> Lives {
        let life = Life::new(kind.tick_ms);
        let latest = life.clock.now().ms;
        let rng = Rng::with_seed(seed);
        let (users, pages, directories) = (Vec::new(), Vec::new(), Vec::new());
        Lives { kind, rng, life, users, pages, directories, names: 0, latest }
    }

    fn open(&mut self) {
        let at = self.users.len();
        match self.life.plain() {
            Ok(user) => {
                self.users.push(user);
                self.note(at, &format_args!("opens"));
            }
            Err(failure) => println!("  {} does not open: {}", at, failure.fault.kind),
        }
    }

    /// What TESTS_SEED shows: the process, its page, the clock.
    fn note(&self, at: usize, what: &dyn std::fmt::Debug) {
        let page = self.users[at].page().id() as u16;
        println!("  {} on page {page:x} at {}: {what:?}", at, self.life.clock.now().ms - START);
    }

    fn leave(&mut self) {
        if self.users.is_empty() {
            return;
        }
        let at = self.rng.usize(..self.users.len());
        self.note(at, &format_args!("leaves, then the last one is {at}"));
        drop(self.users.swap_remove(at));
    }

    fn draw(&mut self) {
        if self.users.is_empty() {
            return;
        }
        let want = if self.rng.u8(..8) == 0 { 4096 } else { self.rng.u64(1..50) };
        let at = self.rng.usize(..self.users.len());
        let drawn = self.life.draw(&self.users[at], want);
        self.note(at, &format_args!("draws {drawn:?}"));
    }

    fn pass(&mut self) {
        let tick_ms = self.kind.tick_ms;
        let ms = match self.rng.u8(..4) {
            0 if self.kind.rollbacks => -self.rng.i64(0..4 * tick_ms),
            0 | 1 => self.rng.i64(0..2 * tick_ms),
            _ => self.rng.i64(0..=tick_ms.min(20)),
        };
        self.life.pass(ms);
        self.latest = self.latest.max(self.life.clock.now().ms);
    }

    fn aside(&mut self) -> PathBuf {
        self.names += 1;
        self.life.aside(&self.names.to_string())
    }

    fn harm(&mut self) {
        // A clock that is behind when a page is lost is a limit that guarantees.md names.
        self.life.clock.set(self.latest);
        let page = self.life.page();
        let path = self.life.directory().path().to_owned();
        let aside = self.aside();
        let which = self.rng.u8(..if self.kind.directories { 8 } else { 6 });
        println!("  harm {which}, pages {:?}", self.pages);
        match which {
            0 => drop(fs::remove_file(&page)),
            1 if fs::rename(&page, &aside).is_ok() => self.pages.push(aside),
            2 if self.kind.returns && fs::hard_link(&page, &aside).is_ok() => {
                self.pages.push(aside);
            }
            3 if self.kind.returns && fs::copy(&page, &aside).is_ok() => self.pages.push(aside),
            4 | 5 if self.kind.returns && !self.pages.is_empty() => {
                let back = self.pages.swap_remove(self.rng.usize(..self.pages.len()));
                // Where both are the same file, neither name changes.
                fs::rename(back, &page).unwrap();
            }
            6 if self.rng.bool() => drop(fs::remove_dir_all(&path)),
            6 => {
                fs::rename(&path, &aside).unwrap();
                self.directories.push(aside);
            }
            7 if self.kind.returns && !self.directories.is_empty() => {
                let back = self.directories.swap_remove(self.rng.usize(..self.directories.len()));
                fs::remove_dir_all(&path).unwrap();
                fs::rename(back, &path).unwrap();
                // Within the tick it may come back unseen.
                self.life.next_tick();
            }
            _ => {}
        }
        if self.kind.rollbacks {
            // So is a clock that rolls back before the next page begins.
            self.open();
            self.leave();
        }
        self.latest = self.latest.max(self.life.clock.now().ms);
    }

    fn step(&mut self) {
        match self.rng.u8(..32) {
            0..2 if self.users.len() < 5 => self.open(),
            2 => self.leave(),
            3..5 => self.harm(),
            5..12 => self.pass(),
            _ => self.draw(),
        }
    }

    /// Nothing happens any more, and the clock runs. Everyone draws again.
    fn end(mut self) {
        self.life.clock.set(self.latest);
        if self.users.is_empty() {
            self.open();
        }
        let tick_ms = self.kind.tick_ms;
        let until = self.latest + 1000 + 5 * tick_ms;
        let mut answers = Vec::new();
        while self.life.clock.now().ms < until {
            self.life.pass(tick_ms.max(100));
            let draw = |user: &Generator| self.life.draw(user, 1);
            answers = self.users.iter().map(draw).collect();
        }
        assert!(!answers.is_empty() && answers.iter().all(Result::is_ok), "{answers:?}");
        self.life.assert_unique();
    }
}

fn random(kind: Kind) {
    let seeds = match seed() {
        Some(one) => one..one + 1,
        None => 0..amount(40, 1000),
    };
    for seed in seeds {
        println!("TESTS_SEED={seed} {kind:?}");
        let mut lives = Lives::new(kind, seed);
        lives.open();
        for _ in 0..lives.rng.usize(10..150) {
            lives.step();
        }
        lives.end();
    }
}

#[test]
fn lives_in_which_pages_are_lost() {
    for tick_ms in TICKS {
        random(Kind { tick_ms, ..PLAIN });
    }
    // The loss of the marker and a rollback are a limit that guarantees.md names.
    random(Kind { directories: true, rollbacks: false, ..PLAIN });
}

#[test]
fn lives_in_which_pages_come_back() {
    for tick_ms in TICKS {
        random(Kind { tick_ms, returns: true, ..PLAIN });
    }
}

#[test]
fn lives_in_which_directories_come_back() {
    random(Kind { returns: true, directories: true, rollbacks: false, ..PLAIN });
}
