//! Real processes of all kinds, each kind on a node of its own, under kills, stops, clocks that jump, and lost pages that
//! come back. What they drew is compared, and each of them goes on when the harm ends.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use snowdrift::core::fault::Failure;
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::generator::{Generator, Policies};
use snowdrift::pages::{BootId, Directory};
use snowdrift::registry::{By, DirectoryLease, DirectoryLeasing, Request, Scope, Share};
use tempfile::TempDir;

use super::life::{cover, uncover};
use super::{directory, duplicates, memory, open};
use crate::amount::amount;
use crate::steering::{Drawers, Log, Steering, command, count, reserve};

const SHARED: &str = "SNOWDRIFT_TEST_SHARED";
const HERE: &str = "SNOWDRIFT_TEST_HERE";
const LOG: &str = "SNOWDRIFT_TEST_LOG";
/// Of the leases.
const TTL: Duration = Duration::from_secs(1);
/// tick in ms, and which of the processes it is.
const WHICH: &str = "SNOWDRIFT_TEST_WHICH";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    /// From a directory, by the system's own clock.
    Leased,
    /// The same, ahead of the clock.
    Ahead,
}

const ALL: [Kind; 3] = [Kind::Plain, Kind::Leased, Kind::Ahead];
const LEASED: [Kind; 2] = [Kind::Leased, Kind::Ahead];

/// What a process draws from.
struct User {
    generator: Arc<Generator>,
    lease: Option<(Share, Arc<DirectoryLease>)>,
}

impl User {
    /// Whether its lease has gone on to another page, or has none at present.
    fn is_lost(&self) -> bool {
        let id = self.generator.page().id();
        let slot = self.lease.as_ref().map(|(_, lease)| lease.state().slot);
        slot.is_some_and(|slot| slot.is_none_or(|slot| slot.page().id() != id))
    }
}

impl Kind {
    fn node(self, tick_ms: i64) -> Node {
        // Numbers for as long as a tick.
        let bits = if tick_ms == 1 { [41, 3, 5, 2, 12] } else { [32, 3, 5, 2, 21] };
        let layout = Layout::new(bits, tick_ms, 0);
        Node::new(layout, 1, self as u64).unwrap()
    }

    /// Opens the node as another process.
    fn open(
        self,
        tick_ms: i64,
        shared: &Path,
        here: &Path,
        clock: &Arc<Steering>,
    ) -> Result<Option<User>, Failure> {
        let node = self.node(tick_ms);
        if self == Kind::Plain {
            let directory = Directory::with(shared, BootId::now())?;
            let generator = Arc::new(open(&directory, node, clock.clone())?);
            return Ok(Some(User { generator, lease: None }));
        }
        let request = Request {
            layout: *node.layout(),
            datacenter_id: node.datacenter_id(),
            worker_id: Some(node.worker_id()),
            policies: Policies::default(),
            max_ahead_ms: if self == Kind::Ahead { tick_ms.max(100) * 2 } else { 0 },
            scope: Scope::Host,
            shared: Some(shared.to_owned()),
            by: By::Lease,
        };
        let leasing = DirectoryLeasing {
            directory: here.join(format!("{self:?}")),
            ttl: TTL,
            wait: TTL,
            host: "here".to_owned(),
            started_ms: 0,
            is_common: true,
        };
        let lease = DirectoryLease::open(&request, &leasing, Arc::new(|_| true))?;
        let share = lease.state().slot.and_then(|slot| slot.share(&request));
        Ok(share
            .map(|share| User { generator: share.generator.clone(), lease: Some((share, lease)) }))
    }
}

impl Steering {
    /// How many blocks the process of this index has drawn, and those that it replaced.
    fn progress(&self, index: usize) -> &AtomicI64 {
        self.word(16 + index)
    }
}

/// Not a test: what the storms start. It opens its node again and again, and draws.
#[test]
#[ignore = "is started by other tests"]
fn draws() {
    let path = |name| env::var_os(name).map(PathBuf::from);
    let (Some(shared), Some(here), Some(log)) = (path(SHARED), path(HERE), path(LOG)) else {
        return;
    };
    let which = env::var(WHICH).unwrap();
    let which: Vec<i64> = which.split(' ').map(|number| number.parse().unwrap()).collect();
    let (kind, tick_ms, index) = (ALL[which[0] as usize], which[1], which[2] as usize);
    let steering = Arc::new(Steering::new(&here.join("steer")));
    let mut log = Log::new(&log);
    let policies = Policies::default();
    while steering.phase().load(SeqCst) == 0 {
        // Others may be opening it, and stopped.
        let Ok(Some(user)) = kind.open(tick_ms, &shared, &here, &steering) else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let generator = &user.generator;
        let user_page = generator.user_page();
        let mut left = fastrand::u32(1..2000);
        while left > 0 && steering.phase().load(SeqCst) == 0 {
            let all = generator.node().layout().last_sequence() + 1;
            let many = if kind == Kind::Ahead { all / 4 } else { 64 };
            let want = fastrand::choice([1, 3, 16, many]).unwrap();
            let Ok(reserved) = reserve(generator, &user_page, &policies, want) else {
                if user.is_lost() {
                    break;
                }
                thread::sleep(Duration::from_micros(100));
                continue;
            };
            let used = if fastrand::u8(..8) == 0 { reserved.block.len / 2 } else { want };
            let reserved = reserved.shortened(generator, used);
            if reserved.block.len > 0 && !log.append((reserved.first_id, reserved.block.len)) {
                return;
            }
            steering.progress(index).fetch_add(1, SeqCst);
            left -= 1;
            if left.is_multiple_of(4) {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Processes, and what is done to them.
#[derive(Clone, Copy)]
struct Storm {
    kinds: &'static [Kind],
    tick_ms: i64,
    processes: usize,
    /// The clock rolls back, too.
    rollbacks: bool,
    /// The directory of pages is deleted, renamed away and back, and covered by a mount.
    directories: bool,
}

/// A storm that runs.
struct Running<Start> {
    storm: Storm,
    shared: TempDir,
    here: TempDir,
    steering: Arc<Steering>,
    drawers: Drawers<Start>,
    /// Files that had the name of a page or were copied from it, by the page.
    pages: Vec<(PathBuf, PathBuf)>,
    directories: Vec<PathBuf>,
    names: usize,
    /// How far the clock was off at the most.
    farthest: i64,
    is_covered: bool,
    /// Stops, losses, returns, mounts, rollbacks.
    done: [usize; 5],
}

fn start(storm: Storm) -> Running<impl FnMut(usize, &Path) -> Child> {
    let (shared, here) = (memory(), memory());
    let steering = Arc::new(Steering::new(&here.path().join("steer")));
    let (pages, steer) = (shared.path().to_owned(), here.path().to_owned());
    let drawers = Drawers::new(storm.processes, move |index, log| {
        let kind = storm.kinds[index % storm.kinds.len()];
        let which = format!("{} {} {index}", kind as usize, storm.tick_ms);
        let mut command = command(&[], module_path!(), "draws");
        command.env(SHARED, &pages).env(HERE, &steer).env(LOG, log).env(WHICH, which);
        command.spawn().unwrap()
    });
    Running {
        storm,
        shared,
        here,
        steering,
        drawers,
        pages: Vec::new(),
        directories: Vec::new(),
        names: 0,
        farthest: 0,
        is_covered: false,
        done: [0; 5],
    }
}

impl<Start: FnMut(usize, &Path) -> Child> Running<Start> {
    fn is_behind(&self) -> bool {
        self.steering.clock_off().load(SeqCst) < self.farthest
    }

    fn aside(&mut self) -> PathBuf {
        self.names += 1;
        self.shared.path().join(self.names.to_string())
    }

    fn jump(&mut self) {
        if self.storm.rollbacks && !self.is_behind() {
            // A rollback before the next page begins is a limit that guarantees.md names.
            if self.storm.kinds.contains(&Kind::Plain) {
                let (shared, here) = (self.shared.path(), self.here.path());
                Kind::Plain.open(self.storm.tick_ms, shared, here, &self.steering).unwrap();
            }
            let back = fastrand::choice([300, 10_000]).unwrap();
            self.steering.clock_off().fetch_sub(fastrand::i64(1..back), SeqCst);
            self.done[4] += 1;
            return;
        }
        self.farthest += fastrand::i64(0..300);
        self.steering.clock_off().store(self.farthest, SeqCst);
    }

    /// A page is lost, and one comes back: it or an earlier one, soon or later.
    fn harm_page(&mut self) {
        let kind = fastrand::choice(self.storm.kinds).unwrap();
        // So is the loss of a page while the clock is behind.
        if *kind == Kind::Plain && self.is_behind() {
            return;
        }
        let page = directory(self.shared.path()).page_of(&kind.node(self.storm.tick_ms));
        let aside = self.aside();
        let is_kept = match fastrand::u8(..4) {
            0 => fs::rename(&page, &aside),
            1 => fs::hard_link(&page, &aside).and_then(|()| fs::remove_file(&page)),
            2 => fs::copy(&page, &aside).map(drop),
            _ => fs::remove_file(&page),
        };
        self.done[1] += usize::from(is_kept.is_ok());
        self.pages.push((aside, page));
        thread::sleep(Duration::from_micros(fastrand::u64(..4000)));
        let at = match fastrand::u8(..4) {
            0 => return,
            1 => fastrand::usize(..self.pages.len()),
            _ => self.pages.len() - 1,
        };
        let (back, page) = self.pages.swap_remove(at);
        if !self.is_behind() || page != self.plain_page() {
            self.done[2] += usize::from(fs::rename(back, page).is_ok());
        }
    }

    fn plain_page(&self) -> PathBuf {
        directory(self.shared.path()).page_of(&Kind::Plain.node(self.storm.tick_ms))
    }

    fn harm_directory(&mut self) {
        let path = directory(self.shared.path()).path().to_owned();
        let aside = self.aside();
        match fastrand::u8(..4) {
            0 => self.done[1] += usize::from(fs::remove_dir_all(&path).is_ok()),
            1 if fs::rename(&path, &aside).is_ok() => {
                self.directories.push(aside);
                self.done[1] += 1;
            }
            2 if !self.directories.is_empty() && !self.is_covered => {
                let at = fastrand::usize(..self.directories.len());
                let back = self.directories.swap_remove(at);
                self.while_all_are_stopped(|| {
                    let _ = fs::remove_dir_all(&path);
                    fs::rename(&back, &path).is_ok()
                });
            }
            3 if self.is_covered => self.uncover(),
            3 => {
                self.is_covered = cover(self.shared.path());
                self.done[3] += usize::from(self.is_covered);
            }
            _ => {}
        }
    }

    fn uncover(&mut self) {
        if self.is_covered {
            self.is_covered = false;
            let shared = self.shared.path().to_owned();
            self.while_all_are_stopped(|| {
                uncover(&shared);
                true
            });
        }
    }

    /// A directory that is lost and comes back within one ms may do so unseen. Here it does not.
    fn while_all_are_stopped(&mut self, put_back: impl Fn() -> bool) {
        let all = 0..self.storm.processes;
        all.clone().for_each(|index| self.drawers.signal(index, libc::SIGSTOP));
        thread::sleep(Duration::from_millis(3));
        self.done[2] += usize::from(put_back());
        thread::sleep(Duration::from_millis(3));
        all.for_each(|index| self.drawers.signal(index, libc::SIGCONT));
    }

    /// Nothing happens, and the clock is right: every process draws.
    fn calm(&mut self) {
        self.uncover();
        self.steering.clock_off().store(self.farthest, SeqCst);
        let all = 0..self.storm.processes;
        all.clone().for_each(|index| self.drawers.signal(index, libc::SIGCONT));
        let drawn = |index| self.steering.progress(index).load(SeqCst);
        let before: Vec<_> = all.clone().map(drawn).collect();
        let limit = Instant::now() + Duration::from_secs(120);
        loop {
            let waiting: Vec<_> =
                all.clone().filter(|&index| drawn(index) == before[index]).collect();
            if waiting.is_empty() {
                return;
            }
            assert!(Instant::now() < limit, "no IDs for {}", self.stuck(&waiting));
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Why processes draw nothing.
    fn stuck(&self, waiting: &[usize]) -> String {
        let kind = self.storm.kinds[waiting[0] % self.storm.kinds.len()];
        let (shared, here) = (self.shared.path(), self.here.path());
        let opened = kind.open(self.storm.tick_ms, shared, here, &self.steering);
        let policies = Policies::default();
        let drawn = opened.map(|user| {
            user.map(|User { generator: one, .. }| reserve(&one, &one.user_page(), &policies, 1))
        });
        format!("{} of {kind:?}, whose node gives {drawn:?}", waiting.len())
    }

    fn step(&mut self) {
        thread::sleep(Duration::from_millis(fastrand::u64(1..8)));
        let index = fastrand::usize(..self.storm.processes);
        match fastrand::u8(..100) {
            0..20 => self.drawers.kill(index),
            20..40 => {
                self.drawers.signal(index, libc::SIGSTOP);
                self.done[0] += 1;
            }
            40..65 => self.drawers.signal(index, libc::SIGCONT),
            65..90 => self.harm_page(),
            90..95 if self.storm.directories => self.harm_directory(),
            95.. => self.jump(),
            _ => {}
        }
    }

    fn end(mut self) {
        self.calm();
        self.steering.phase().store(1, SeqCst);
        let (processes, kills) = (self.drawers.count(), self.drawers.kills);
        let [stops, losses, returns, mounts, rollbacks] = self.done;
        let drawn = self.drawers.end().concat();
        let all = count(&drawn);
        let repeated = duplicates(drawn);
        println!(
            "{all} IDs by {processes} processes: {kills} kills, {stops} stops, {losses} losses, {returns} \
             returns, {mounts} mounts, {rollbacks} rollbacks, {repeated} duplicates"
        );
        assert_eq!(repeated, 0);
    }
}

/// So many kills, and much else between them.
fn kills(storm: Storm) {
    let mut running = start(storm);
    running.calm();
    let kills = amount(10, 400) as usize;
    while running.drawers.kills < kills {
        running.step();
        if running.drawers.kills % 100 == 99 {
            running.drawers.kill(0);
            running.calm();
        }
    }
    running.end();
}

const STORM: Storm =
    Storm { kinds: &ALL, tick_ms: 1, processes: 12, rollbacks: true, directories: false };

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn kills_and_lost_pages_that_come_back_repeat_nothing() {
    kills(STORM);
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn kills_and_lost_pages_that_come_back_repeat_nothing_in_ticks_of_seconds() {
    kills(Storm { tick_ms: 3000, ..STORM });
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn kills_and_lost_directories_that_come_back_repeat_nothing() {
    // The loss of the marker and a rollback are a limit that guarantees.md names.
    kills(Storm { directories: true, rollbacks: false, ..STORM });
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn kills_and_lost_directories_of_leases_repeat_nothing() {
    kills(Storm { kinds: &LEASED, directories: true, ..STORM });
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn kills_and_lost_directories_of_leases_repeat_nothing_in_ticks_of_seconds() {
    kills(Storm { kinds: &LEASED, tick_ms: 3000, directories: true, ..STORM });
}

fn at_once(processes: usize, time: Duration) {
    for tick_ms in [1, 1000] {
        let mut running = start(Storm { tick_ms, processes, ..STORM });
        running.calm();
        thread::sleep(time);
        running.end();
    }
}

#[test]
fn processes_of_all_kinds_at_once_repeat_nothing() {
    at_once(9, Duration::from_millis(500));
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn sixty_four_processes_of_all_kinds_for_a_minute_repeat_nothing() {
    at_once(64, Duration::from_secs(amount(2, 30)));
}
