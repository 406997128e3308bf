//! The driver that ships, over pages of real directories, beside a register in memory or in a directory, in virtual time. Each host
//! is a directory of pages.
//!
//! What is looked at: no ID is drawn twice, and whoever should have a slot has one.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tempfile::TempDir;

use super::super::*;
use super::{DATACENTER, request_in};
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::Class;
use crate::core::layout::Layout;
use crate::core::sequence::Rules;
use crate::core::sequencer::NEVER;
use crate::files::path::paths_in;
use crate::lease::{
    At, Bucket, Call, Driver, Holder, Input, Key, Limits, Next, Patience, Record, Reply, Report,
    Settings,
};
use crate::register::Register;
use crate::registry::Request;
use crate::registry::entry::played::Process;
use crate::registry::keeper::show;

/// Four worker IDs.
pub(super) const LAYOUT: Layout = Layout::new([41, 3, 2, 2, 6], 1, 1_580_486_400_000);
/// Ticks in which all hosts draw.
const COARSE: Layout = Layout { tick_ms: 500, sequence_bits: 10, ..LAYOUT };
pub(super) const LIMITS: Limits = Limits { ttl: 30_000, max_clock_skew: 1_000, max_ahead: 0 };
const CALL_MS: i64 = 5_000;
/// How far the hosts' clocks are ahead of the store's, by turns.
const CLOCKS: [i64; 3] = [0, -900, 600];
/// A release takes so long at most.
const RELEASE_MS: i64 = 2_100;
/// How long until a host has a slot again, whatever happened, while the store answers.
pub(super) const CALM_MS: i64 = 120_000;

const BUCKET: Key = Key::Bucket(DATACENTER, 0);

/// A register.
#[derive(Clone, Default)]
pub(super) struct Store(HashMap<Key, (Token, String)>);

impl Store {
    pub(super) fn answer(&mut self, call: &Call) -> Reply {
        let found = |store: &Store, key: Key| {
            let (token, text) = store.0.get(&key)?;
            Some((*token, Record::of_text(key, text)))
        };
        match call {
            Call::Now => Reply::Time,
            Call::Read(key) => Reply::Found(found(self, *key)),
            Call::Write { key, token, record, before } => {
                if self.0.get(key).map(|(token, _)| *token) != *before {
                    return Reply::Found(found(self, *key));
                }
                self.0.insert(*key, (*token, record.text()));
                Reply::Written
            }
        }
    }

    fn bucket(&self) -> Option<Bucket> {
        let (_, text) = self.0.get(&BUCKET)?;
        match Record::of_text(BUCKET, text) {
            Ok(Record::Bucket(bucket)) => Some(bucket),
            _ => None,
        }
    }

    /// The floor and ceiling of the lines, by worker ID, and whether they are held.
    pub(super) fn lines(&self) -> Vec<(u64, bool, Window)> {
        let Some(bucket) = self.bucket() else { return Vec::new() };
        let lines = bucket.lines.iter();
        lines
            .map(|(worker, line)| {
                let window = Window { floor: line.floor, ceiling: line.ceiling };
                (*worker, line.is_held, window)
            })
            .collect()
    }

    fn floor(&self) -> Tick {
        match Record::of_text(Key::Namespace, &self.0[&Key::Namespace].1) {
            Ok(Record::Namespace(namespace)) => namespace.floor,
            _ => NEVER,
        }
    }
}

/// A directory, whose flush is another test's.
pub(super) fn register(path: &Path) -> Register {
    Register::with(path, Arc::new(|_: &Path, _: &fs::File| Ok(()))).unwrap()
}

pub(super) fn settings(layout: Layout, limits: Limits, claim: Option<u64>) -> Settings {
    Settings {
        layout,
        datacenter: DATACENTER,
        claim,
        limits,
        holder: Holder::default(),
        size: 32,
        may_forget: false,
        has_own_clock: false,
    }
}

/// The disk of a directory.
#[derive(Default)]
pub(super) struct Disk {
    pub(super) flushes: AtomicUsize,
    pub(super) fails: AtomicBool,
}

/// A lease of a process.
pub(super) struct Lease {
    process: usize,
    store: usize,
    /// Its own view of the directory that all share, in place of the store.
    register: Option<Register>,
    driver: Driver<HostPage>,
    host: HostPages,
    slot: Option<HostPage>,
    /// When its wait ends.
    due: i64,
    /// The call of a process that is stopped, or whose call is under way.
    held: Option<Call>,
    /// Its calls fail.
    is_away: bool,
    has_ended: bool,
    pub(super) log: Vec<&'static str>,
}

pub(super) struct World {
    pub(super) layout: Layout,
    /// How far ahead of the clock is issued, ms.
    max_ahead: i64,
    /// Of leases that start from now on.
    ttl: i64,
    /// The directory that is the register, in place of a store.
    pub(super) shared: Option<TempDir>,
    pub(super) directories: Vec<TempDir>,
    pub(super) stores: Vec<Store>,
    pub(super) disk: Arc<Disk>,
    /// Whether a file of the directory was deleted.
    has_lost_files: bool,
    /// By how many ms the hosts' clocks are off.
    pub(super) off: Vec<i64>,
    /// By number: the host, and the process.
    processes: Vec<(usize, Process)>,
    leases: Vec<Option<Lease>>,
    /// Unix ms.
    pub(super) time: i64,
    pub(super) drawn: HashSet<u64>,
}

impl World {
    fn new(hosts: usize) -> World {
        let directory = |_| tempfile::tempdir_in("/dev/shm").unwrap();
        World {
            layout: LAYOUT,
            max_ahead: 0,
            ttl: LIMITS.ttl,
            shared: None,
            directories: (0..hosts).map(directory).collect(),
            stores: vec![Store::default()],
            disk: Arc::default(),
            has_lost_files: false,
            off: vec![0; hosts],
            processes: Vec::new(),
            leases: Vec::new(),
            // Ahead of the clock by which new pages begin.
            time: SystemClock.now().ms + 60_000,
            drawn: HashSet::new(),
        }
    }

    /// With a directory as register.
    pub(super) fn in_directory(hosts: usize) -> World {
        World { shared: Some(TempDir::new().unwrap()), ..World::new(hosts) }
    }

    pub(super) fn register(&self) -> Option<Register> {
        let disk = self.disk.clone();
        let flush = move |_: &Path, _: &fs::File| {
            disk.flushes.fetch_add(1, SeqCst);
            match disk.fails.load(SeqCst) {
                true => Err(std::io::ErrorKind::StorageFull.into()),
                false => Ok(()),
            }
        };
        let directory = self.shared.as_ref()?.path();
        Some(Register::with(directory, Arc::new(flush)).unwrap())
    }

    /// The lines of the register: their worker IDs, whether they are held, and the ticks.
    pub(super) fn lines(&self) -> Vec<(u64, bool, Window)> {
        let Some(mut register) = self.register() else { return self.stores[0].lines() };
        let mut lines = Vec::new();
        for worker in 0..=self.layout.last_worker() {
            let call = Call::Read(Key::Bucket(DATACENTER, worker));
            let Ok(Reply::Found(found)) = register.answer(&call, WAIT) else { continue };
            let Some((_, Ok(Record::Bucket(bucket)))) = found else { continue };
            lines.extend(bucket.lines.iter().map(|(worker, line)| {
                let window = Window { floor: line.floor, ceiling: line.ceiling };
                (*worker, line.is_held, window)
            }));
        }
        lines
    }

    pub(super) fn process(&mut self, host: usize) -> usize {
        self.processes.push((host, Process::default()));
        self.processes.len() - 1
    }

    /// Does this as a process.
    pub(super) fn run<R>(&mut self, process: usize, work: impl FnOnce() -> R) -> R {
        self.processes[process].1.run(work)
    }

    /// Starts a lease, as far as it comes.
    pub(super) fn start(&mut self, process: usize, claim: Option<u64>) -> usize {
        self.start_in(process, claim, 0, |_| false)
    }

    pub(super) fn start_in(
        &mut self,
        process: usize,
        claim: Option<u64>,
        store: usize,
        holds: impl Fn(&Call) -> bool,
    ) -> usize {
        self.start_at(process, claim, (store, self.register()), holds)
    }

    pub(super) fn start_at(
        &mut self,
        process: usize,
        claim: Option<u64>,
        (store, register): (usize, Option<Register>),
        holds: impl Fn(&Call) -> bool,
    ) -> usize {
        let memory = self.directories[self.processes[process].0].path();
        let (layout, max_ahead) = (self.layout, self.max_ahead);
        let request = Request { max_ahead_ms: max_ahead, ..request_in(layout, memory) };
        let mut settings = settings(layout, Limits { max_ahead, ttl: self.ttl, ..LIMITS }, claim);
        if register.is_some() {
            (settings.size, settings.has_own_clock) = (1, true);
        }
        let patience = Patience { wait: CALM_MS, call: CALL_MS };
        let mut host = HostPages::of(request, Arc::new(|_| true)).unwrap();
        host.keeps_pages = register.is_some();
        self.leases.push(Some(Lease {
            process,
            store,
            register,
            driver: Driver::new(settings, patience, self.at(process), 0.5),
            host,
            slot: None,
            due: i64::MAX,
            held: None,
            is_away: false,
            has_ended: false,
            log: Vec::new(),
        }));
        let lease = self.leases.len() - 1;
        self.step(lease, Input::Time, holds);
        lease
    }

    /// The clocks of a process's host.
    fn at(&self, process: usize) -> At {
        let host = self.processes[process].0;
        At { mono: self.time, wall: self.time + CLOCKS[host % CLOCKS.len()] + self.off[host] }
    }

    pub(super) fn lease(&mut self, lease: usize) -> &mut Lease {
        self.leases[lease].as_mut().unwrap()
    }

    /// What an executor does, until the lease waits, ends, or makes a call that is held.
    fn step(&mut self, at: usize, input: Input, holds: impl Fn(&Call) -> bool) {
        let mut input = input;
        loop {
            let now = self.at(self.leases[at].as_ref().unwrap().process);
            let lease = self.leases[at].as_mut().unwrap();
            let Lease { driver, host, .. } = lease;
            let process = &mut self.processes[lease.process].1;
            let (reports, next) = process.run(|| driver.step(input, now, host));
            if let Some(register) = &mut lease.register {
                let shown = show(register, &reports, driver);
                // As the keeper, it goes on without the file.
                assert!(shown.is_ok() || self.has_lost_files, "{shown:?}");
            }
            for report in reports {
                lease.log.push(match report {
                    Report::Open(page) => {
                        lease.slot = Some(page);
                        "open"
                    }
                    Report::Renewed => continue,
                    Report::Lost(loss) => {
                        process.run(|| lease.slot = None);
                        match loss {
                            Loss::Taken => "taken",
                            Loss::Reverted => "reverted",
                            Loss::Released => "released",
                            Loss::Restored => "restored",
                        }
                    }
                    Report::Refused(_) => "refused",
                    Report::Failed => "failed",
                    Report::Unsettled => "unsettled",
                    Report::Unlocked => "unlocked",
                });
            }
            match next {
                Next::Call(call, _) if holds(&call) => {
                    (lease.held, lease.due) = (Some(call), i64::MAX);
                    return;
                }
                Next::Call(call, _) => {
                    let now = lease.register.as_ref().map_or(self.time, |_| now.wall);
                    input = Input::Reply(self.answer(at, &call), Some(now));
                }
                Next::Wait { due, look } => {
                    lease.due = self.time + due.min(look).max(1);
                    return;
                }
                Next::End => {
                    (lease.has_ended, lease.due) = (true, i64::MAX);
                    return;
                }
            }
        }
    }

    fn answer(&mut self, at: usize, call: &Call) -> Reply {
        let lease = self.leases[at].as_mut().unwrap();
        match &mut lease.register {
            _ if lease.is_away => Reply::Failed,
            None => self.stores[lease.store].answer(call),
            Some(register) => match register.answer(call, WAIT) {
                Err(failure) => {
                    let is_damaged = failure.class == Class::Slot;
                    assert!(is_damaged || self.disk.fails.load(SeqCst), "{failure:?}");
                    Reply::Failed
                }
                Ok(reply) => reply,
            },
        }
    }

    /// The held call of a lease reaches the store, or fails, and the lease goes on.
    pub(super) fn go_on(&mut self, at: usize, is_applied: bool, is_answered: bool) {
        let Some(call) = self.lease(at).held.take() else { return };
        let reply = if is_applied { self.answer(at, &call) } else { Reply::Failed };
        let reply = if is_answered { reply } else { Reply::Failed };
        self.step(at, Input::Reply(reply, None), |_| false);
    }

    /// The held call of a lease reaches the register. The lease never knows.
    pub(super) fn apply(&mut self, at: usize) {
        if let Some(call) = self.lease(at).held.take() {
            self.answer(at, &call);
        }
    }

    /// A process stops in its next call.
    pub(super) fn stop(&mut self, at: usize) {
        self.step(at, Input::Wanted, |_| true);
        while self.lease(at).held.is_none() {
            self.time += 100;
            self.step(at, Input::Time, |_| true);
        }
    }

    /// Releases a lease, within its time. Its application draws no more.
    pub(super) fn close(&mut self, at: usize) {
        self.end(at);
        self.forget(at);
    }

    fn end(&mut self, at: usize) {
        self.lease(at).slot = None;
        let was_calling = self.lease(at).held.take().is_some();
        self.step(at, Input::Close, |_| false);
        if was_calling && !self.lease(at).has_ended {
            self.step(at, Input::Reply(Reply::Failed, None), |_| false);
        }
        let begun = self.time;
        while !self.lease(at).has_ended {
            self.pass(100);
            assert!(self.time <= begun + RELEASE_MS, "{:?}", self.logs());
        }
    }

    fn forget(&mut self, at: usize) {
        if let Some(lease) = self.leases[at].take() {
            self.processes[lease.process].1.run(|| drop(lease));
        }
    }

    /// A process dies.
    pub(super) fn kill(&mut self, process: usize) {
        for at in 0..self.leases.len() {
            if self.leases[at].as_ref().is_some_and(|lease| lease.process == process) {
                self.forget(at);
            }
        }
        self.processes[process].1 = Process::default();
    }

    /// A host boots anew.
    pub(super) fn reboot(&mut self, host: usize) {
        for process in 0..self.processes.len() {
            if self.processes[process].0 == host {
                self.kill(process);
            }
        }
        self.directories[host] = tempfile::tempdir_in("/dev/shm").unwrap();
    }

    /// Time passes. Everybody does what is due, and draws.
    pub(super) fn pass(&mut self, ms: i64) {
        let until = self.time + ms;
        while self.time < until {
            let due = self.leases.iter().flatten().map(|lease| lease.due).min();
            let next = due.unwrap_or(until).clamp(self.time, until);
            self.time = next.min(self.time + LIMITS.ttl / 5).max(self.time + 1);
            for at in 0..self.leases.len() {
                if self.leases[at].as_ref().is_some_and(|lease| lease.due <= self.time) {
                    self.step(at, Input::Time, |_| false);
                }
                self.draw(at);
            }
        }
    }

    /// Draws up to three IDs, as a generator does. Returns the last one's tick.
    pub(super) fn draw(&mut self, at: usize) -> Option<Tick> {
        let lease = self.leases[at].as_ref()?;
        let (page, time) = (lease.slot.clone()?, self.at(lease.process).wall);
        let page = page.page();
        if !page.may_issue(time).unwrap() {
            return None;
        }
        let now = &mut || self.layout.tick_at(time);
        let max_ahead = self.max_ahead / self.layout.tick_ms;
        let rules = Rules { may_raise: true, max_ahead, ..Rules::default() };
        let block = page.sequence().reserve(&rules, now, |_| 3).ok()?;
        let first = page.header().node.first_id(&block);
        for id in first..first + block.len {
            assert!(self.drawn.insert(id), "{id} was drawn before: {:?}", self.logs());
        }
        Some(block.tick)
    }

    pub(super) fn logs(&self) -> Vec<&[&'static str]> {
        self.leases.iter().flatten().map(|lease| &*lease.log).collect()
    }

    /// The worker ID and the owner of a lease's page.
    pub(super) fn tenure(&mut self, at: usize) -> Option<Tenure> {
        let Lease { slot, host, .. } = self.leases[at].as_ref()?;
        slot.as_ref().map(|page| host.tenure(page))
    }

    pub(super) fn window(&mut self, at: usize) -> Window {
        let Lease { slot, host, .. } = self.lease(at);
        host.window(slot.as_ref().unwrap())
    }

    fn file(&mut self, at: usize) -> std::path::PathBuf {
        self.lease(at).slot.as_ref().unwrap().page().path().unwrap().to_owned()
    }

    pub(super) fn now(&self) -> Tick {
        self.layout.tick_at(self.time)
    }
}

const WAIT: Duration = Duration::from_secs(20);

fn is_take(call: &Call) -> bool {
    matches!(call, Call::Write { record: Record::Bucket(bucket), .. } if !bucket.lines.is_empty())
}

#[test]
fn a_lease_takes_a_slot_renews_it_and_frees_it() {
    let mut world = World::new(1);
    let process = world.process(0);
    let one = world.start(process, None);
    assert_eq!(world.lease(one).log, ["open"]);
    world.pass(1);
    let first = world.draw(one).unwrap();
    world.pass(10 * LIMITS.ttl);
    assert_eq!(world.lease(one).log, ["open"]);
    let issued = world.draw(one).unwrap();
    assert!(issued > first + 9 * LIMITS.ttl && world.drawn.len() > 100);
    let renewals = world.lease(one).slot.as_ref().unwrap().page().lease_status().unwrap().renewals;
    assert!((25..=35).contains(&renewals), "{renewals} in 10 ttl");
    let [(worker, true, held)] = world.stores[0].lines()[..] else { panic!("one line, held") };
    assert!(held.ceiling > world.now() + LIMITS.ttl / 2);
    world.close(one);
    let [(_, false, freed)] = world.stores[0].lines()[..] else { panic!("one line, free") };
    assert_eq!(freed.ceiling, issued, "not the ceiling: the next one begins at once");
    let next = world.start(process, Some(worker));
    assert!(world.window(next).floor >= issued);
    world.pass(1);
    assert!(world.draw(next) > Some(issued));
}

#[test]
fn leases_of_one_process_share_a_slot_and_the_last_one_frees_it() {
    let mut world = World::new(1);
    let process = world.process(0);
    let [one, two] = [(); 2].map(|()| world.start(process, None));
    assert_eq!(world.tenure(one), world.tenure(two));
    let generators = [one, two].map(|at| world.lease(at).slot.as_ref().unwrap().generator());
    assert!(Arc::ptr_eq(generators[0].as_ref().unwrap(), generators[1].as_ref().unwrap()));
    drop(generators);
    world.pass(LIMITS.ttl);
    world.close(one);
    assert!(matches!(world.stores[0].lines()[..], [(_, true, _)]));
    world.pass(2 * LIMITS.ttl);
    assert_eq!(world.lease(two).log, ["open"], "it renews what the first one took");
    assert!(world.draw(two).is_some());
    world.close(two);
    assert!(matches!(world.stores[0].lines()[..], [(_, false, _)]));
}

#[test]
fn processes_of_a_host_share_a_slot_and_go_on_for_each_other() {
    let mut world = World::new(1);
    let processes = [(); 3].map(|()| world.process(0));
    let leases = processes.map(|process| world.start(process, None));
    let tenure = world.tenure(leases[0]);
    assert!(tenure.is_some() && leases.iter().all(|at| world.tenure(*at) == tenure));
    world.pass(5 * LIMITS.ttl);
    // Whoever renews dies, and another one takes its place.
    world.kill(processes[0]);
    for _ in 0..90 {
        world.pass(LIMITS.ttl / 30);
        let left = world.window(leases[1]).ceiling - world.now();
        assert!(left > LIMITS.ttl / 2, "renewed before half a ttl has passed: {left}");
    }
    assert!(leases[1..].iter().all(|at| world.tenure(*at) == tenure));
    // All die. The next process joins the page that they left, and takes its line over, since it cannot prove its store.
    world.kill(processes[1]);
    world.kill(processes[2]);
    let process = world.process(0);
    let next = world.start(process, None);
    assert_eq!(world.tenure(next), tenure);
    world.pass(2 * LIMITS.ttl);
    assert!(world.draw(next).is_some());
    let now = world.tenure(next).unwrap();
    assert_eq!((now.worker, now.owner == tenure.unwrap().owner), (tenure.unwrap().worker, false));
    assert_eq!(world.stores[0].lines().len(), 1);
    world.close(next);
    assert!(matches!(world.stores[0].lines()[..], [(_, false, _)]));
}

#[test]
fn hosts_never_share_a_slot() {
    let mut world = World::new(4);
    let leases = [0, 1, 2, 3].map(|host| {
        let process = world.process(host);
        world.start(process, None)
    });
    world.pass(3 * LIMITS.ttl);
    let workers: HashSet<u64> = leases.iter().map(|at| world.tenure(*at).unwrap().worker).collect();
    assert_eq!(workers.len(), 4);
    assert!(leases.iter().all(|at| world.lease(*at).log == ["open"]));
}

#[test]
fn after_the_store_has_lost_data_ids_begin_above_all_that_it_may_have_confirmed() {
    let mut world = World::new(1);
    let processes = [(); 3].map(|()| world.process(0));
    let leases = processes.map(|process| world.start(process, None));
    let backup = world.stores[0].clone();
    world.pass(3 * LIMITS.ttl);
    let confirmed = world.window(leases[0]).ceiling;
    world.stores[0] = backup;
    world.pass(2 * LIMITS.ttl);
    // One finds it, and all leave the page.
    for at in leases {
        let log = world.lease(at).log.clone();
        assert!(
            log == ["open", "reverted", "open"] || log == ["open", "released", "open"],
            "{log:?}"
        );
    }
    let horizon = world.stores[0].floor();
    assert!(horizon > confirmed);
    let floor = world.window(leases[0]).floor;
    assert!(floor >= horizon, "{floor} and {horizon}");
    let tenure = world.tenure(leases[0]);
    assert!(leases.iter().all(|at| world.tenure(*at) == tenure));
    world.pass(2 * LIMITS.ttl);
    assert!(leases.iter().all(|at| world.draw(*at).is_some_and(|tick| tick > horizon)));
}

#[test]
fn a_taker_that_is_stopped_keeps_others_waiting_with_a_bound() {
    for (claim, is_applied) in [(None, true), (None, false), (Some(2), true), (Some(2), false)] {
        let mut world = World::new(1);
        let processes = [(); 3].map(|()| world.process(0));
        let stopped = world.start_in(processes[0], claim, 0, is_take);
        assert!(world.lease(stopped).held.is_some());
        let others = [1, 2].map(|at| world.start(processes[at], claim));
        world.pass(2 * CALL_MS);
        assert!(others.iter().all(|at| world.lease(*at).log.is_empty()), "they wait");
        world.pass(3 * CALL_MS);
        let logs = others.map(|at| world.lease(at).log.clone());
        assert!(logs.iter().any(|log| *log == ["unlocked", "open"]), "{logs:?}");
        assert!(logs.iter().all(|log| log.ends_with(&["open"])), "{logs:?}");
        world.pass(LIMITS.ttl);
        world.go_on(stopped, is_applied, true);
        world.pass(CALM_MS);
        let all = [stopped, others[0], others[1]];
        let tenures = all.map(|at| world.tenure(at).unwrap());
        assert!(tenures.iter().all(|one| one.worker == tenures[0].worker), "{tenures:?}");
        assert!(all.iter().all(|at| world.draw(*at).is_some()));
        for at in all {
            world.close(at);
        }
        assert!(world.stores[0].lines().iter().all(|(_, is_held, _)| !is_held));
    }
}

#[test]
fn a_stopped_taker_keeps_nobody_from_a_page_that_is_open() {
    for mut world in [World::new(1), World::in_directory(1)] {
        let processes = [(); 3].map(|()| world.process(0));
        let one = world.start(processes[0], Some(2));
        world.start_in(processes[1], Some(1), 0, is_take);
        for claim in [Some(2), None] {
            let joined = world.start(processes[2], claim);
            assert_eq!(world.lease(joined).log, ["open"], "at once");
            assert_eq!(world.tenure(joined), world.tenure(one));
        }
    }
}

#[test]
fn a_release_ends_in_time_though_the_disk_fails() {
    let mut world = World::in_directory(1);
    let process = world.process(0);
    let one = world.start_in(process, None, 0, is_take);
    let call = world.lease(one).held.clone().unwrap();
    assert_eq!(world.answer(one, &call), Reply::Written);
    world.disk.fails.store(true, SeqCst);
    // It has to free what it took.
    world.close(one);
    world.disk.fails.store(false, SeqCst);
    assert!(matches!(world.lines()[..], [(_, false, _)]), "since no process locks its file");
}

#[test]
fn a_reply_that_is_lost_is_looked_up() {
    for is_applied in [true, false] {
        let mut world = World::new(1);
        let process = world.process(0);
        let one = world.start_in(process, None, 0, is_take);
        world.go_on(one, is_applied, false);
        world.pass(CALM_MS);
        assert!(world.draw(one).is_some());
        assert_eq!(world.lease(one).log, ["failed", "open"]);
        world.close(one);
        assert!(world.stores[0].lines().iter().all(|(_, is_held, _)| !is_held));
    }
}

#[test]
fn a_page_that_is_deleted_is_left_by_all_who_share_the_next_one() {
    for lost in ["page", "born"] {
        let mut world = World::new(1);
        let processes = [(); 3].map(|()| world.process(0));
        let leases = processes.map(|process| world.start(process, None));
        world.pass(LIMITS.ttl);
        let tenure = world.tenure(leases[0]).unwrap();
        let issued = world.draw(leases[1]).unwrap();
        fs::remove_file(world.file(leases[0]).with_extension(lost)).unwrap();
        world.pass(5_000);
        for at in leases {
            assert_eq!(world.lease(at).log, ["open", "released", "open"], "{lost}");
            assert!(world.tenure(at).is_some_and(|now| now.owner != tenure.owner));
            assert!(world.draw(at) > Some(issued));
        }
        let held = world.stores[0].lines().into_iter().filter(|(_, is_held, _)| *is_held);
        assert_eq!(held.count(), 1, "the first one has freed it");
    }
}

#[test]
fn a_restored_host_leaves_its_slot_to_the_original() {
    let mut world = World::new(1);
    let processes = [(); 2].map(|()| world.process(0));
    let leases = processes.map(|process| world.start(process, None));
    world.pass(LIMITS.ttl);
    let tenure = world.tenure(leases[0]).unwrap();
    let lines = world.stores[0].lines();
    world.step(leases[0], Input::Restored, |_| false);
    assert_eq!(world.draw(leases[1]), None, "no process of the host issues from it");
    world.pass(5_000);
    for at in leases {
        assert_eq!(world.lease(at).log, ["open", "restored", "open"]);
        assert!(world.tenure(at).is_some_and(|now| now.worker != tenure.worker));
        assert!(world.draw(at).is_some());
    }
    assert!(world.stores[0].lines().contains(&lines[0]), "its line is as it was");
}

#[test]
fn a_release_that_fails_keeps_no_other_lease_of_the_host_waiting() {
    let mut world = World::new(1);
    world.stores.push(Store::default());
    let processes = [(); 2].map(|()| world.process(0));
    let one = world.start(processes[0], None);
    world.lease(one).is_away = true;
    world.end(one);
    assert!(matches!(world.stores[0].lines()[..], [(_, true, _)]), "it expires");
    let other = world.start_in(processes[1], None, 1, |_| false);
    assert_eq!(world.lease(other).log, ["open"], "at once");
}

#[test]
fn a_process_that_fails_to_renew_is_well_again_when_another_one_of_its_host_has_renewed() {
    let mut world = World::new(1);
    let processes = [(); 2].map(|()| world.process(0));
    let leases = processes.map(|process| world.start(process, None));
    world.pass(2 * LIMITS.ttl);
    let tenure = world.tenure(leases[0]);
    world.lease(leases[0]).is_away = true;
    world.pass(10 * LIMITS.ttl);
    let failed = world.lease(leases[0]).log.len() - 1;
    assert!((1..=3).contains(&failed), "{failed} tries of the one whose store is away");
    assert_eq!(world.lease(leases[1]).log, ["open"]);
    assert!(leases.iter().all(|at| world.tenure(*at) == tenure && world.draw(*at).is_some()));
}

#[test]
fn a_process_that_joins_while_another_one_renews_has_the_slot() {
    let mut world = World::new(1);
    let processes = [(); 2].map(|()| world.process(0));
    let one = world.start(processes[0], None);
    for is_old in [false, true] {
        let is_look = |call: &Call| *call == Call::Read(BUCKET);
        let joining = world.start_in(processes[1], None, 0, is_look);
        // Its reply is from before the renewal, or from after it.
        let old = world.answer(joining, &Call::Read(BUCKET));
        world.pass(LIMITS.ttl);
        match is_old {
            true => world.step(joining, Input::Reply(old, None), |_| false),
            false => world.go_on(joining, true, true),
        }
        world.pass(1_000);
        assert_eq!(world.lease(joining).log, ["open"]);
        assert_eq!(world.tenure(joining), world.tenure(one));
        world.kill(processes[1]);
    }
}

#[test]
fn one_whose_store_contradicts_a_page_joins_the_next_one() {
    let mut world = World::new(1);
    let processes = [(); 2].map(|()| world.process(0));
    // Nothing has shown yet that the second one's store is the page's own.
    let leases = processes.map(|process| world.start(process, Some(2)));
    world.pass(LIMITS.ttl / 5);
    world.stop(leases[0]);
    world.go_on(leases[0], true, true);
    world.stores[0].0.remove(&BUCKET);
    // It finds that, and is stopped before it has looked for another page.
    let calls = std::cell::Cell::new(0);
    world.step(leases[1], Input::Time, |_| calls.replace(calls.get() + 1) > 0);
    assert_eq!(world.tenure(leases[1]), None);
    world.pass(CALM_MS);
    world.go_on(leases[1], true, true);
    world.pass(CALM_MS);
    let tenure = world.tenure(leases[0]);
    assert!(leases.iter().all(|at| world.tenure(*at) == tenure && world.draw(*at).is_some()));
}

#[test]
fn a_process_by_a_copy_of_the_store_leaves_the_page_and_never_renews_its_slot() {
    let mut world = World::new(2);
    let processes = [0, 0, 1].map(|host| world.process(host));
    let one = world.start(processes[0], Some(2));
    world.pass(LIMITS.ttl);
    let tenure = world.tenure(one);
    world.stores.push(world.stores[0].clone());
    let line = world.stores[1].bucket().unwrap().lines[&2].clone();
    let trial = world.start_in(processes[1], None, 1, |_| false);
    assert_eq!(world.tenure(trial), tenure, "the last renewal is in the copy, too");
    world.pass(3 * LIMITS.ttl);
    assert!(world.tenure(trial).is_some_and(|other| Some(other) != tenure));
    assert_eq!(world.stores[1].bucket().unwrap().lines[&2], line);
    // The slot is still this host's by its own store.
    let rival = world.start(processes[2], Some(2));
    assert_eq!((world.lease(one).log.clone(), world.tenure(rival)), (vec!["open"], None));
    assert!(world.draw(one).is_some() && world.draw(trial).is_some());
}

#[test]
fn a_lease_from_a_store_that_assigns_another_worker_id_issues_at_once() {
    let mut world = World::new(1);
    world.stores.push(Store::default());
    let process = world.process(0);
    let one = world.start(process, Some(1));
    world.step(one, Input::Restored, |_| true);
    // Of a register that has nothing of the first one.
    (world.lease(one).store, world.time) = (1, world.time + 1);
    world.lease(one).driver.claim(2);
    world.go_on(one, true, true);
    assert_eq!(world.lease(one).log, ["open", "restored", "open"]);
    assert_eq!(world.tenure(one).unwrap().worker, 2);
    assert!(world.draw(one).is_some());
}

#[test]
fn no_renewal_by_a_process_with_a_shorter_ttl_shortens_the_hold() {
    let mut world = World::new(1);
    let processes = [(); 2].map(|()| world.process(0));
    let expires = |world: &World| {
        let bucket = world.stores[0].bucket().unwrap();
        bucket.lines.values().next().unwrap().expires
    };
    world.ttl = 3 * LIMITS.ttl;
    let long = world.start(processes[0], None);
    world.ttl = LIMITS.ttl;
    let short = world.start(processes[1], None);
    assert_eq!(world.tenure(short), world.tenure(long));
    let mut before = expires(&world);
    for _ in 0..150 {
        world.pass(1_000);
        assert!(expires(&world) >= before && before > world.time);
        before = expires(&world);
    }
    assert!(before - world.time <= LIMITS.ttl + 1_000, "the short one renews, at its pace");
    world.kill(processes[1]);
    world.pass(2 * LIMITS.ttl);
    assert!(expires(&world) - world.time > LIMITS.ttl, "the long one renews for its own ttl");
    assert_eq!(world.lease(long).log, ["open"]);
}

#[test]
fn a_confirmation_that_comes_late_counts_for_no_page_that_has_ended_and_for_no_next_one() {
    let mut world = World::new(1);
    let processes = [(); 2].map(|()| world.process(0));
    let [late, other] = processes.map(|process| world.start(process, None));
    world.pass(2 * LIMITS.ttl);
    let tenure = world.tenure(late);
    world.stop(late);
    // It is written, and lost before the reply comes.
    world.lease(late).held = None;
    world.stores[0].0.clear();
    world.pass(LIMITS.ttl);
    assert_eq!(world.lease(other).log[1], "reverted");
    assert_eq!(world.draw(late), None);
    let (next, window) = (world.tenure(other), world.window(other));
    assert_ne!(next, tenure);
    let now = Some(world.time);
    world.step(late, Input::Reply(Reply::Written, now), |_| false);
    assert_eq!((world.lease(late).log[1], world.window(other)), ("reverted", window));
    // Once more, when no call is under way.
    world.pass(LIMITS.ttl);
    let window = world.window(other);
    world.step(late, Input::Reply(Reply::Written, now), |_| false);
    assert_eq!((world.tenure(late), world.window(other)), (next, window));
    assert!([late, other].iter().all(|at| world.draw(*at).is_some()));
}

#[test]
fn a_holder_that_has_lost_its_claim_issues_again_when_the_other_one_has_ended() {
    let mut world = World::new(2);
    let [one, other] = [0, 1].map(|host| world.process(host));
    let first = world.start(one, Some(2));
    world.pass(1_000);
    world.stop(first);
    let second = world.start(other, Some(2));
    world.pass(3 * LIMITS.ttl);
    assert!(world.draw(second).is_some(), "{:?}", world.logs());
    // What it was about to write comes too late.
    world.go_on(first, true, true);
    world.pass(LIMITS.ttl);
    assert_eq!((world.tenure(first), world.lease(first).log[1]), (None, "taken"));
    let last = world.draw(second);
    world.close(second);
    world.pass(10_000);
    assert_eq!(world.tenure(first).unwrap().worker, 2);
    assert!(world.draw(first) > last);
}

#[test]
fn a_host_that_has_taken_two_slots_keeps_both_and_others_join_the_lower_one() {
    let mut world = World::new(1);
    let processes = [(); 3].map(|()| world.process(0));
    let one = world.start(processes[0], None);
    let page = world.file(one);
    fs::rename(&page, page.with_extension("away")).unwrap();
    let two = world.start(processes[1], None);
    fs::rename(page.with_extension("away"), page).unwrap();
    let workers = [one, two].map(|at| world.tenure(at).unwrap().worker);
    assert_ne!(workers[0], workers[1]);
    let third = world.start(processes[2], None);
    world.pass(3 * LIMITS.ttl);
    assert_eq!(world.tenure(third).map(|one| one.worker), workers.into_iter().min());
    assert_eq!(world.logs(), [["open"]; 3]);
    for at in [third, two, one] {
        assert!(world.draw(at).is_some());
        world.close(at);
    }
    assert!(world.stores[0].lines().iter().all(|(_, is_held, _)| !is_held));
}

#[test]
fn one_that_finds_a_slot_of_the_host_while_it_looks_for_another_one_joins_it() {
    let mut world = World::new(1);
    let processes = [(); 2].map(|()| world.process(0));
    let stopped = world.start_in(processes[0], None, 0, |call| *call == Call::Read(BUCKET));
    let other = world.start(processes[1], None);
    world.pass(5 * CALL_MS);
    assert!(world.tenure(other).is_some());
    world.go_on(stopped, true, true);
    world.pass(5_000);
    assert_eq!(world.tenure(stopped), world.tenure(other));
    assert_eq!(world.stores[0].lines().len(), 1);
}

#[test]
fn many_leases_of_one_process_keep_no_other_one_from_the_slot() {
    let mut world = World::new(1);
    let processes = [(); 2].map(|()| world.process(0));
    let leases = [(); 64].map(|()| world.start(processes[0], None));
    let other = world.start(processes[1], None);
    assert_eq!(world.tenure(other), world.tenure(leases[0]));
    assert_eq!(world.stores[0].lines().len(), 1);
}

#[test]
fn a_page_of_another_namespace_keeps_its_worker_id_until_its_ceiling_has_passed() {
    let mut world = World::new(1);
    world.stores.push(Store::default());
    let processes = [(); 2].map(|()| world.process(0));
    let other = world.start_in(processes[1], Some(1), 1, |_| false);
    world.pass(LIMITS.ttl);
    let issued = world.draw(other).unwrap();
    let (theirs, window) = (world.tenure(other).unwrap(), world.window(other));
    let one = world.start(processes[0], Some(1));
    world.pass(5_000);
    assert_eq!(world.tenure(one), None);
    assert!(world.lease(one).log.iter().all(|report| *report == "refused"));
    let any = world.process(0);
    let any = world.start(any, None);
    assert!(world.tenure(any).is_some_and(|ours| ours.worker != 1));
    assert_eq!(world.tenure(other), Some(theirs));
    // Its store is away: it is renewed no more.
    world.step(other, Input::Wanted, |_| true);
    while world.lease(other).held.is_none() {
        world.time += 1_000;
        world.step(other, Input::Time, |_| true);
    }
    let ceiling = world.window(other).ceiling;
    assert!(ceiling >= window.ceiling);
    while world.now() <= ceiling + LIMITS.max_clock_skew {
        assert_eq!(world.tenure(one), None);
        world.pass(1_000);
    }
    world.pass(10_000);
    let ours = world.tenure(one).unwrap();
    assert!(ours.worker == 1 && ours.namespace != theirs.namespace);
    assert!(world.window(one).floor >= issued && world.draw(one).is_some());
    assert_eq!(world.draw(other), None);
}

#[test]
fn processes_that_come_and_go_in_any_order_draw_no_id_twice() {
    come_and_go_of(0..if cfg!(debug_assertions) { 12 } else { 60 }, 120);
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn processes_that_come_and_go_for_long_draw_no_id_twice() {
    come_and_go_of(1000..1100, 600);
}

fn come_and_go_of(seeds: std::ops::Range<u64>, deeds: usize) {
    for seed in seeds {
        come_and_go(World::new(2), seed, deeds, NOTHING);
        let harm = (seed / 2 % 3) as u8;
        come_and_go(World::in_directory(hosts(harm)), seed, deeds, harm);
    }
}

/// What else happens where a directory is shared: nothing; clocks that step, reboots and a full disk; files that are deleted.
const NOTHING: u8 = 0;
const MACHINES: u8 = 1;
const FILES: u8 = 2;

/// Where all files of a directory are deleted, another host than those that used it knows nothing of it.
fn hosts(harm: u8) -> usize {
    if harm == FILES { 1 } else { 2 }
}

/// Up to eight processes of one or two hosts, which start, close, are killed and stopped in the middle of calls; pages lose a name;
/// hosts sleep. What is confirmed is kept, but for files that are deleted.
fn come_and_go(world: World, seed: u64, deeds: usize, harm: u8) {
    // Choices follow from it, too; tokens do not.
    fastrand::seed(seed);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut world = match seed % 2 {
        0 => World { layout: COARSE, ..world },
        // So few IDs a tick that most are issued ahead.
        _ => {
            let layout = Layout { sequence_bits: 3, timestamp_bits: 48, ..COARSE };
            World { layout, max_ahead: 5_000, ..world }
        }
    };
    for _ in 0..8 {
        let host = world.processes.len() % world.directories.len();
        world.process(host);
    }
    let mut freed = None;
    for _ in 0..deeds {
        let living: Vec<usize> =
            (0..world.leases.len()).filter(|at| world.leases[*at].is_some()).collect();
        let any = living.get(random.usize(..living.len().max(1))).copied();
        match (random.u8(..if harm == NOTHING { 12 } else { 15 }), any) {
            (0..=2, _) if living.len() < 10 => {
                let process = random.usize(..8);
                // Some want what another one had just now.
                let claim = freed.take().filter(|_| random.bool());
                let claim = claim.or_else(|| (random.u8(..4) == 0).then(|| random.u64(..4)));
                let stops = if random.bool() { random.u8(1..6) } else { 0 };
                let calls = std::cell::Cell::new(0);
                world.start_in(process, claim, 0, |_| {
                    calls.set(calls.get() + 1);
                    calls.get() == stops
                });
            }
            (3, Some(at)) => {
                freed = world.tenure(at).map(|tenure| tenure.worker);
                world.close(at);
            }
            (4, _) => world.kill(random.usize(..8)),
            // It is stopped in the middle of a call.
            (5..=6, Some(at)) if world.lease(at).held.is_none() && !world.lease(at).has_ended => {
                world.step(at, Input::Wanted, |_| true);
            }
            (7..=8, Some(at)) => world.go_on(at, random.bool(), random.u8(..3) > 0),
            (9, Some(at)) if world.lease(at).slot.is_some() => {
                let path = world.file(at);
                let name = ["page", "born"][random.usize(..2)];
                let _ = fs::remove_file(path.with_extension(name));
            }
            (10, _) => world.pass(random.i64(1..2 * LIMITS.ttl)),
            (12, _) if harm == MACHINES => {
                world.off[random.usize(..2)] =
                    random.i64(-60_000..60_000) / [1, 100][random.usize(..2)];
            }
            (13, _) if harm == MACHINES => world.reboot(random.usize(..2)),
            (14, _) if harm == MACHINES => {
                world.disk.fails.fetch_xor(true, SeqCst);
            }
            (12, _) if harm == FILES => {
                let files = paths_in(world.shared.as_ref().unwrap().path(), "slot").unwrap();
                if let Some(path) = files.get(random.usize(..files.len().max(1))) {
                    fs::remove_file(path).unwrap();
                    world.has_lost_files = true;
                }
            }
            _ => world.pass(random.i64(1..2_000)),
        }
    }
    // Those that are stopped die. Then all is well.
    world.disk.fails.store(false, SeqCst);
    world.off.fill(0);
    for at in 0..world.leases.len() {
        if world.leases[at].as_ref().is_some_and(|one| one.held.is_some() || one.has_ended) {
            let process = world.leases[at].as_ref().map_or(0, |lease| lease.process);
            world.kill(process);
        }
    }
    world.pass(CALM_MS);
    for at in 0..world.leases.len() {
        if world.leases[at].is_some() && !world.lease(at).has_ended {
            // One that claims a worker ID may wait for another host.
            let is_waiting = world.lease(at).slot.is_none() && {
                let log = &world.lease(at).log;
                log.last().is_some_and(|report| *report == "refused")
            };
            // A tick for each, where they are few.
            world.time += world.layout.tick_ms;
            assert!(is_waiting || world.draw(at).is_some(), "seed {seed}: {:?}", world.logs());
        }
    }
}
