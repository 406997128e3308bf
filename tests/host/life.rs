//! The lives of a node's pages: they are lost and come back while processes draw from them. Time is the test's.

use std::cell::RefCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use snowdrift::core::clock::Clock;
use snowdrift::core::fault::Failure;
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::core::sequencer::{Block, Stall};
use snowdrift::generator::Generator;
use snowdrift::pages::Directory;
use tempfile::TempDir;

use super::{TestClock, directory, draw, duplicates, ids, is_root, memory, open};

/// A tick of 3 s begins here.
pub const START: i64 = 1_700_000_001_000;

/// Ticks, in ms.
pub const TICKS: [i64; 2] = [1, 3000];

/// A node, its processes' clock, and what they drew.
pub struct Life {
    pub shared: TempDir,
    pub node: Node,
    pub clock: Arc<TestClock>,
    drawn: RefCell<Vec<(u64, u64)>>,
}

impl Life {
    pub fn new(tick_ms: i64) -> Life {
        let layout = Layout { tick_ms, epoch_ms: 0, ..Layout::NODE };
        Life {
            shared: memory(),
            node: Node::new(layout, 1, 3).unwrap(),
            clock: TestClock::at(START),
            drawn: RefCell::default(),
        }
    }

    pub fn directory(&self) -> Directory {
        directory(self.shared.path())
    }

    pub fn page(&self) -> PathBuf {
        self.directory().page_of(&self.node)
    }

    /// A name beside the directory of pages.
    pub fn aside(&self, name: &str) -> PathBuf {
        self.shared.path().join(name)
    }

    /// Another process opens the node.
    pub fn plain(&self) -> Result<Generator, Failure> {
        open(&self.directory(), self.node, self.clock.clone())
    }

    pub fn tick_ms(&self) -> i64 {
        self.node.layout().tick_ms
    }

    pub fn pass(&self, ms: i64) {
        self.clock.set(self.clock.now().ms + ms);
    }

    /// The next tick begins.
    pub fn next_tick(&self) {
        self.pass(self.tick_ms() - self.clock.now().ms % self.tick_ms());
    }

    /// Time passes within the tick, if a tick is longer than a ms.
    pub fn moment(&self) {
        self.pass(self.tick_ms() / 1000);
    }

    pub fn draw(&self, generator: &Generator, want: u64) -> Result<Block, Stall> {
        let block = draw(generator, want)?;
        self.drawn.borrow_mut().push(ids(&self.node, &block));
        Ok(block)
    }

    pub fn assert_unique(&self) {
        let drawn = self.drawn.borrow().clone();
        assert_eq!(duplicates(drawn), 0, "ticks of {} ms", self.tick_ms());
    }
}

/// Who looks while a page is lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looks {
    /// One of its users, who so knows of the loss.
    One,
    /// None of them.
    Nobody,
}

/// Two processes have the page and draw from it. It is lost, and another process draws from the next page, in a later
/// tick. The lost page comes back within this tick, and all of them draw: also who opens the node only now.
fn returns(looks: Looks, tick_ms: i64, lose: impl Fn(&Life), put_back: impl Fn(&Life)) {
    // Whether the other process is the first to draw then.
    for is_first in [true, false] {
        let life = Life::new(tick_ms);
        let users = [life.plain().unwrap(), life.plain().unwrap()];
        life.next_tick();
        for user in &users {
            life.draw(user, 3).unwrap();
        }
        life.moment();
        lose(&life);
        let other = life.plain().unwrap();
        life.next_tick();
        life.draw(&other, 5).unwrap();
        if looks == Looks::One {
            life.draw(&users[0], 3).unwrap();
        }
        life.moment();
        put_back(&life);
        life.moment();
        if is_first {
            let _ = life.draw(&other, 3);
        }
        for user in &users {
            let _ = life.draw(user, 3);
        }
        let newcomer = life.plain().unwrap();
        life.moment();
        let _ = life.draw(&newcomer, 3);
        let _ = life.draw(&other, 3);
        life.assert_unique();
        // All of them go on, after the tick at the latest.
        life.next_tick();
        for one in users.iter().chain([&other, &newcomer]) {
            let _ = life.draw(one, 3);
        }
        life.next_tick();
        for one in users.iter().chain([&other, &newcomer]) {
            life.draw(one, 3).unwrap();
        }
        life.assert_unique();
    }
}

fn each(lose: impl Fn(&Life), put_back: impl Fn(&Life)) {
    for looks in [Looks::One, Looks::Nobody] {
        for tick_ms in TICKS {
            returns(looks, tick_ms, &lose, &put_back);
        }
    }
}

#[test]
fn a_page_that_was_renamed_away_and_back_repeats_nothing() {
    let lose = |life: &Life| fs::rename(life.page(), life.aside("page")).unwrap();
    each(lose, |life| fs::rename(life.aside("page"), life.page()).unwrap());
}

#[test]
fn a_hard_link_that_is_put_back_repeats_nothing() {
    let lose = |life: &Life| {
        fs::hard_link(life.page(), life.aside("link")).unwrap();
        fs::remove_file(life.page()).unwrap();
    };
    each(lose, |life| {
        fs::remove_file(life.page()).unwrap();
        fs::hard_link(life.aside("link"), life.page()).unwrap();
    });
}

#[test]
fn a_copy_that_is_put_back_repeats_nothing() {
    let lose = |life: &Life| {
        fs::copy(life.page(), life.aside("copy")).unwrap();
        fs::remove_file(life.page()).unwrap();
    };
    each(lose, |life| fs::rename(life.aside("copy"), life.page()).unwrap());
}

/// Nobody opens the node in between: the copy has the ID of the last page.
#[test]
fn a_copy_of_the_page_in_use_that_replaces_it_repeats_nothing() {
    for tick_ms in TICKS {
        let life = Life::new(tick_ms);
        let user = life.plain().unwrap();
        life.next_tick();
        life.draw(&user, 3).unwrap();
        life.moment();
        fs::copy(life.page(), life.aside("copy")).unwrap();
        life.draw(&user, 3).unwrap();
        fs::rename(life.aside("copy"), life.page()).unwrap();
        let newcomer = life.plain().unwrap();
        life.moment();
        let _ = life.draw(&newcomer, 3);
        let _ = life.draw(&user, 3);
        life.assert_unique();
    }
}

/// The marker is lost and comes back with its page. With ticks above 1 ms that is a limit which guarantees.md names.
fn directory_renamed(looks: Looks) {
    let away = |life: &Life| fs::rename(life.directory().path(), life.aside("away")).unwrap();
    returns(looks, 1, away, |life| {
        let path = life.directory().path().to_owned();
        fs::rename(&path, life.aside("next")).unwrap();
        fs::rename(life.aside("away"), path).unwrap();
    });
}

fn directory_restored(looks: Looks) {
    let lose = |life: &Life| {
        let (path, copy) = (life.directory().path().to_owned(), life.aside("copy"));
        assert!(Command::new("cp").arg("-a").args([&path, &copy]).status().unwrap().success());
        fs::remove_dir_all(&path).unwrap();
    };
    returns(looks, 1, lose, |life| {
        let path = life.directory().path().to_owned();
        fs::remove_dir_all(&path).unwrap();
        fs::rename(life.aside("copy"), path).unwrap();
    });
}

fn directory_covered(looks: Looks) {
    let probe = memory();
    if !cover(probe.path()) {
        println!("skipped: no tmpfs can be mounted here");
        return;
    }
    uncover(probe.path());
    returns(
        looks,
        1,
        |life| assert!(cover(life.shared.path())),
        |life| uncover(life.shared.path()),
    );
}

/// Mounts an empty file system over the parent of the pages. Returns false where that cannot be done.
pub fn cover(shared: &Path) -> bool {
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(shared);
    is_root() && mount.status().is_ok_and(|status| status.success())
}

pub fn uncover(shared: &Path) {
    let unmounted = Command::new("umount").arg("-l").arg(shared).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
}

#[test]
fn a_directory_that_was_renamed_away_and_back_repeats_nothing() {
    directory_renamed(Looks::One);
}

#[test]
fn a_directory_that_is_restored_from_a_copy_repeats_nothing() {
    directory_restored(Looks::One);
}

#[test]
fn a_page_that_was_covered_by_a_mount_and_uncovered_repeats_nothing() {
    directory_covered(Looks::One);
}

/// Nobody who knows the page has seen that it was lost.
#[test]
fn a_directory_that_is_restored_from_a_copy_unseen_repeats_nothing() {
    directory_restored(Looks::Nobody);
}

/// Also the page that the waiting process leaves tells the next one.
#[test]
fn a_page_waits_for_a_clock_that_was_ahead_before_the_last_one_was_lost() {
    let life = Life::new(1);
    let user = life.plain().unwrap();
    life.pass(600_000);
    life.draw(&user, 3).unwrap();
    life.pass(-599_999);
    life.draw(&user, 3).unwrap();
    fs::remove_file(life.page()).unwrap();
    for _ in 0..2 {
        life.pass(1);
        assert!(life.draw(&life.plain().unwrap(), 3).is_err(), "it waits for that time");
    }
    let user = life.plain().unwrap();
    for ms in [600_000, 600_001] {
        life.pass(START + ms - life.clock.now().ms);
        let _ = life.draw(&user, 3);
    }
    life.draw(&user, 3).unwrap();
    life.assert_unique();
}

#[test]
fn a_page_behind_a_damaged_marker_is_not_the_node_s_first() {
    for tick_ms in TICKS {
        let (shared, clock) = (memory(), TestClock::at(START));
        let directory = directory(shared.path());
        let node = Node::new(Layout { tick_ms, ..Layout::NODE }, 1, 1).unwrap();
        let first = open(&directory, node, clock.clone()).unwrap();
        clock.set(START + 1);
        draw(&first, 1).unwrap();
        drop(first);
        let page = directory.page_of(&node);
        fs::remove_file(&page).unwrap();
        // What the node's last page has issued is unknown now.
        let marker = File::options().write(true).open(page.with_extension("born")).unwrap();
        marker.set_len(10).unwrap();
        let next = open(&directory, node, clock.clone()).unwrap();
        for ms in [START + 1, START - 1] {
            clock.set(ms);
            assert!(matches!(draw(&next, 1), Err(Stall::AtFloor { .. })));
        }
        clock.set(START + 1 + tick_ms);
        draw(&next, 1).unwrap();
    }
}

#[test]
fn lost_pages_are_unmapped() {
    let life = Life::new(1);
    let user = life.plain().unwrap();
    for _ in 0..100 {
        fs::remove_file(life.page()).unwrap();
        life.pass(1);
        let _ = life.draw(&user, 1);
        life.pass(1);
        life.draw(&user, 1).unwrap();
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let shared = life.shared.path().to_str().unwrap();
    let mapped = maps.lines().filter(|line| line.contains(shared)).count();
    assert!((1..10).contains(&mapped), "{mapped}");
}
