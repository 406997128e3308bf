//! Fleets under chaos, simulated from a seed: clocks that drift and step, processes that pause, die
//! and restart, stores that delay, fail and lose what was not on the disk. The generators, the
//! sequencers and the file store are the real ones.
//!
//! The invariant: no ID is ever issued twice, which is no (node, tick, counter, sequence).
//!
//! `TESTS_TIMES=100 cargo test --test store simulation` runs more seeds,
//! `TESTS_SEED=4711` one alone, with what happened in it. Each fleet also runs with one of its
//! rules broken: there a seed must fail, or the simulation shows nothing.

use std::collections::HashSet;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

use snowdrift::authority::Access;
use snowdrift::authority::durable::Durable;
use snowdrift::core::clock::{Clock, UnixTime};
use snowdrift::core::fault::{Class, Failure};
use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::node::Node;
use snowdrift::generator::{ClockBack, Generator, Policies};

use crate::amount::{self, amount};
use crate::contract::{Held, Store, holder};
use crate::engine::{self, Engine};
use crate::machine::{self, Machine};

/// 8 IDs a tick of 20 ms, so that two who may not meet do meet; with or without a clock-back counter.
fn layout(clock_back_bits: u8) -> Layout {
    Layout {
        timestamp_bits: 40,
        datacenter_bits: 0,
        worker_bits: 2,
        clock_back_bits,
        sequence_bits: 3,
        tick_ms: 20,
        epoch_ms: 0,
    }
}

const START_MS: i64 = 1_000_000;
const TTL: Duration = Duration::from_millis(300);
const STEPS: u32 = 300;

/// A rule that the generator's side breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Careless {
    /// Rule 4: it moves its ceiling when it asks for it, not when that is confirmed.
    Unconfirmed,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Five processes on one machine that has a file store and pages.
    Files(Option<machine::Broken>),
    /// Five processes on three hosts, and an engine.
    Engine(Option<engine::Broken>),
}

enum Backing {
    Files(Machine),
    Engine(Engine),
}

/// A host's wall clock, in ms.
#[derive(Clone, Default)]
struct HostClock(Arc<AtomicI64>);

impl Clock for HostClock {
    fn now(&self) -> UnixTime {
        UnixTime::from_ms(self.0.load(SeqCst))
    }

    fn wait(&self, _: Duration) {
        unreachable!("nothing waits here: all is try_reserve")
    }
}

struct Host {
    clock: HostClock,
    /// How many ms its clock gains or loses in 100.
    drift: i64,
}

/// What a running process has.
struct Life {
    generator: Generator,
    policies: Policies,
    slot: Slot,
}

enum Slot {
    /// Leased from the engine.
    Leased(Box<dyn Held>, Renewal),
    /// Recorded beside a page.
    Recorded(Box<Durable>),
}

enum Renewal {
    None,
    Asked(Tick),
    Answered(Tick, Result<(), Failure>),
}

struct Process {
    host: usize,
    life: Option<Life>,
    is_paused: bool,
}

struct Fleet {
    random: fastrand::Rng,
    layout: Layout,
    backing: Backing,
    careless: Option<Careless>,
    hosts: Vec<Host>,
    processes: Vec<Process>,
    /// Requests of dead processes, still on their way to the engine.
    orphans: Vec<(Box<dyn Held>, Tick)>,
    issued: HashSet<u64>,
    counts: Counts,
    trace: bool,
}

/// What happened, so that a run that shows nothing is noticed.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    ids: u64,
    starts: u64,
    kills: u64,
    releases: u64,
    power_cuts: u64,
    losses: u64,
    failures: u64,
    refusals: u64,
}

impl Fleet {
    fn new(seed: u64, kind: Kind, careless: Option<Careless>) -> Fleet {
        let mut random = fastrand::Rng::with_seed(seed);
        let (backing, hosts, processes) = match kind {
            Kind::Files(broken) => (Backing::Files(Machine::new(broken)), 1, 5),
            Kind::Engine(broken) => {
                (Backing::Engine(Engine::new(TTL.as_millis() as u64, broken)), 3, 5)
            }
        };
        let host = |_| {
            let clock = HostClock::default();
            clock.0.store(START_MS + random.i64(-200..=200), SeqCst);
            Host { clock, drift: random.i64(-5..=5) }
        };
        Fleet {
            hosts: (0..hosts).map(host).collect(),
            layout: layout(random.u8(0..=2)),
            random,
            backing,
            careless,
            processes: (0..processes)
                .map(|n| Process { host: n % hosts, life: None, is_paused: false })
                .collect(),
            orphans: Vec::new(),
            issued: HashSet::new(),
            counts: Counts::default(),
            trace: false,
        }
    }

    /// Says what was issued twice, if anything was.
    fn run(&mut self) -> Result<(), String> {
        for step in 0..STEPS {
            let process = self.random.usize(0..self.processes.len());
            let event = self.random.u32(0..100);
            if self.trace {
                let clocks: Vec<_> = self.hosts.iter().map(|host| host.clock.now().ms).collect();
                println!("{step}: event {event} of process {process}, clocks {clocks:?}");
            }
            match event {
                0..30 => self.issue(process)?,
                30..40 => self.pass(5),
                40..44 => self.pass(120),
                44..75 => self.renew(process),
                75..82 => self.start(process),
                82..86 => self.kill(process),
                86..88 => self.release(process),
                88..93 => {
                    let is_paused = &mut self.processes[process].is_paused;
                    *is_paused = !*is_paused;
                }
                93..97 => {
                    let ms = self.random.i64(-400..=400);
                    self.hosts[self.processes[process].host].clock.0.fetch_add(ms, SeqCst);
                }
                97..99 => self.trouble(process),
                _ => self.crash(process),
            }
        }
        Ok(())
    }

    fn issue(&mut self, process: usize) -> Result<(), String> {
        let Process { life: Some(life), is_paused: false, .. } = &self.processes[process] else {
            return Ok(());
        };
        for _ in 0..self.random.u32(1..6) {
            let want = self.random.u64(1..6);
            match life.generator.try_reserve(&life.generator.seat(), &life.policies, |_| want) {
                Ok(reserved) => {
                    for id in reserved.first_id..reserved.first_id + reserved.block.len {
                        self.counts.ids += 1;
                        if !self.issued.insert(id) {
                            let block = life.generator.node().block_of(id);
                            return Err(format!("process {process} issued again: {block:?}"));
                        }
                    }
                }
                Err(_) => self.counts.refusals += 1,
            }
        }
        Ok(())
    }

    /// True time passes.
    fn pass(&mut self, at_most_ms: i64) {
        let ms = self.random.i64(1..=at_most_ms);
        if let Backing::Engine(engine) = &self.backing {
            engine.pass(ms as u64);
        }
        for host in &self.hosts {
            host.clock.0.fetch_add(ms + ms * host.drift / 100, SeqCst);
        }
    }

    /// One more step of a renewal: the keeper asks, the store answers, the keeper hears of it. What
    /// happens in between is up to chance.
    fn renew(&mut self, process: usize) {
        if let Some((mut held, ceiling)) = self.orphans.pop() {
            // The engine gets what a process sent before it died.
            let _ = held.renew(ceiling);
            self.sync();
            return;
        }
        let Process { life: Some(life), is_paused, .. } = &mut self.processes[process] else {
            return;
        };
        let Life { generator, slot, .. } = life;
        let is_paused = *is_paused;
        let careless = self.careless == Some(Careless::Unconfirmed);
        let (held, renewal) = match slot {
            Slot::Recorded(_) if is_paused => return,
            Slot::Recorded(durable) => {
                let ceiling = generator.next_ceiling(TTL);
                if careless {
                    generator.raise_ceiling(ceiling);
                    if self.random.bool() {
                        return;
                    }
                }
                let done = match durable.is_bound() {
                    true => durable.renew(ceiling),
                    false => durable.bind(generator, TTL),
                };
                self.counts.failures += u64::from(done.is_err());
                return;
            }
            Slot::Leased(held, renewal) => (held, renewal),
        };
        *renewal = match std::mem::replace(renewal, Renewal::None) {
            Renewal::None if is_paused => Renewal::None,
            Renewal::None => {
                let ceiling = generator.next_ceiling(TTL);
                if careless {
                    generator.raise_ceiling(ceiling);
                }
                Renewal::Asked(ceiling)
            }
            Renewal::Asked(ceiling) => Renewal::Answered(ceiling, held.renew(ceiling)),
            answered if is_paused => answered,
            Renewal::Answered(ceiling, Ok(())) => {
                generator.raise_ceiling(ceiling);
                Renewal::None
            }
            Renewal::Answered(_, Err(Failure { class: Class::Lost, .. })) => {
                self.counts.losses += 1;
                generator.end_window();
                self.processes[process].life = None;
                return;
            }
            Renewal::Answered(_, Err(_)) => {
                self.counts.failures += 1;
                Renewal::None
            }
        };
        // An engine answers when it has written to the disk.
        self.sync();
    }

    fn start(&mut self, process: usize) {
        let Process { host, life, is_paused } = &mut self.processes[process];
        if life.is_some() {
            return;
        }
        *is_paused = false;
        let clock = self.hosts[*host].clock.clone();
        let clock_back = match self.random.bool() {
            true if self.layout.clock_back_bits > 0 => ClockBack::Counter,
            _ => ClockBack::Wait,
        };
        let policies = Policies { clock_back, ..Policies::default() };
        // Files: two nodes for five processes. The engine: three slots for five.
        let workers = if matches!(self.backing, Backing::Files(_)) { 2 } else { 3 };
        let worker = self.random.u64(0..workers);
        let node = Node::new(self.layout, 0, worker).unwrap();
        let opened = match &self.backing {
            Backing::Files(machine) => {
                // All who share a page agree on it. Some are alone with their slot, and some lease it.
                let max_ahead_ms = [0, 70][worker as usize];
                let accesses: &[Access] = match self.random.u8(0..8) {
                    0 => &[Access::Alone],
                    1..4 => &[Access::Shared],
                    _ => &[Access::Joined, Access::Taken],
                };
                let (host, clock) = (machine.host(), Box::new(clock));
                let generator = Generator::recorded(Some(host), node, max_ahead_ms, clock);
                let store = machine.store();
                let open = |access| Durable::open(&store, &generator, holder(), TTL, access);
                let mut opened = open(accesses[0]);
                if let (Err(_), Some(&access)) = (&opened, accesses.get(1)) {
                    opened = open(access);
                }
                opened.map(|durable| {
                    generator.renewals().attend(true);
                    (generator, Slot::Recorded(Box::new(durable)))
                })
            }
            Backing::Engine(engine) => {
                let max_ahead_ms = self.random.choice([0, 0, 70]).unwrap();
                let first = Generator::new(node, max_ahead_ms, Box::new(clock.clone()));
                let acquired = engine.acquire(&node, &holder(), first.next_ceiling(TTL));
                acquired.map(|held| {
                    let (bounds, clock) = (held.terms(), Box::new(clock));
                    let generator = Generator::windowed(node, max_ahead_ms, bounds, clock);
                    generator.renewals().attend(true);
                    (generator, Slot::Leased(held, Renewal::None))
                })
            }
        };
        match opened {
            Ok((generator, slot)) => {
                self.counts.starts += 1;
                *life = Some(Life { generator, policies, slot });
                self.sync();
            }
            Err(Failure { class: Class::InUse, .. }) => {}
            Err(_) => self.counts.failures += 1,
        }
    }

    fn kill(&mut self, process: usize) {
        let Some(life) = self.processes[process].life.take() else { return };
        self.counts.kills += 1;
        if let Slot::Leased(held, Renewal::Asked(ceiling)) = life.slot {
            self.orphans.push((held, ceiling));
        }
    }

    fn release(&mut self, process: usize) {
        let Process { life, is_paused: false, .. } = &mut self.processes[process] else { return };
        let Some(life) = life.take() else { return };
        self.counts.releases += 1;
        let _ = match life.slot {
            Slot::Recorded(durable) => durable.close(&life.generator),
            Slot::Leased(held, _) => held.release(life.generator.end_window()),
        };
        self.sync();
    }

    /// The store fails for a while, or works again.
    fn trouble(&mut self, process: usize) {
        if let (Backing::Files(machine), 0) = (&mut self.backing, process) {
            if !machine.copy_memory() {
                machine.remove_pages();
            }
            return;
        }
        let is_bad = self.random.u8(0..4) == 0;
        match &self.backing {
            Backing::Files(machine) => machine.set_disk_fails(is_bad),
            Backing::Engine(engine) => engine.set_down(is_bad),
        }
    }

    /// The power is cut, or the engine crashes.
    fn crash(&mut self, process: usize) {
        self.counts.power_cuts += 1;
        if let Backing::Engine(engine) = &self.backing {
            engine.crash();
            // What was asked is lost with the connection; whether it was done is not known.
            self.orphans.clear();
            for process in &mut self.processes {
                if let Some(Life { slot: Slot::Leased(_, renewal), .. }) = &mut process.life {
                    *renewal = Renewal::None;
                }
            }
            return;
        }
        let host = self.processes[process].host;
        for process in &mut self.processes {
            if process.host == host {
                process.life = None;
            }
        }
        if let Backing::Files(machine) = &mut self.backing {
            machine.cut_power(&mut self.random);
        }
        // It takes its time, and its clock may come back wrong.
        let ms = self.random.i64(-300..=600);
        self.hosts[host].clock.0.fetch_add(ms, SeqCst);
    }

    fn sync(&self) {
        if let Backing::Engine(engine) = &self.backing {
            engine.sync();
        }
    }
}

/// Runs fleets; answers what happened in all of them, or the first seed that fails and how.
fn run(kind: Kind, careless: Option<Careless>, seeds: Range<u64>) -> Result<Counts, (u64, String)> {
    let mut all = Counts::default();
    let alone = amount::seed();
    for seed in alone.map_or(seeds, |seed| seed..seed + 1) {
        let mut fleet = Fleet::new(seed, kind, careless);
        fleet.trace = alone.is_some();
        fleet.run().map_err(|fault| (seed, fault))?;
        let counts = fleet.counts;
        all.ids += counts.ids;
        all.starts += counts.starts;
        all.kills += counts.kills;
        all.releases += counts.releases;
        all.power_cuts += counts.power_cuts;
        all.losses += counts.losses;
        all.failures += counts.failures;
        all.refusals += counts.refusals;
    }
    Ok(all)
}

fn holds(kind: Kind) {
    // Files take a hundred times as long.
    let seeds = if matches!(kind, Kind::Files(_)) { amount(20, 200) } else { amount(400, 4000) };
    let counts = run(kind, None, 0..seeds).unwrap_or_else(|(seed, fault)| {
        panic!("{kind:?}, seed {seed}: {fault}. TESTS_SEED={seed} shows it alone")
    });
    println!("{kind:?}: {seeds} seeds, {counts:?}");
    if amount::seed().is_some() {
        return;
    }
    assert!(counts.ids > 20 * seeds, "{counts:?}");
    for (what, count) in [
        ("starts", counts.starts),
        ("kills", counts.kills),
        ("releases", counts.releases),
        ("power cuts", counts.power_cuts),
        ("failures", counts.failures),
        ("refusals", counts.refusals),
    ] {
        assert!(count > seeds / 2, "too few {what} to show anything: {counts:?}");
    }
}

/// Where little is tested, the search begins shortly before a seed that once found it.
fn is_found(fault: impl Debug, kind: Kind, careless: Option<Careless>, from: u64) {
    let from = if amount::is_storms() { 0 } else { from };
    let found = run(kind, careless, from..from + 10_000);
    let (seed, duplicate) = found.err().unwrap_or_else(|| panic!("{fault:?} was not found"));
    println!("{fault:?} is found by seed {seed}: {duplicate}");
}

#[test]
fn files_never_lead_to_a_duplicate() {
    holds(Kind::Files(None));
}

#[test]
fn an_engine_never_leads_to_a_duplicate() {
    holds(Kind::Engine(None));
}

#[test]
fn a_seed_replays_what_happened() {
    for kind in [Kind::Files(Some(machine::Broken::Flush)), Kind::Engine(None)] {
        for seed in 0..50 {
            let outcome = || {
                let mut fleet = Fleet::new(seed, kind, None);
                let result = fleet.run();
                let mut ids: Vec<u64> = fleet.issued.into_iter().collect();
                ids.sort_unstable();
                (result, ids)
            };
            assert_eq!(outcome(), outcome(), "{kind:?} {seed}");
        }
    }
}

#[test]
fn each_broken_rule_is_found() {
    for broken in
        [engine::Broken::Floor, engine::Broken::CeilingFalls, engine::Broken::OwnerUnchecked]
    {
        is_found(broken, Kind::Engine(Some(broken)), None, 0);
    }
    let unconfirmed = Some(Careless::Unconfirmed);
    is_found("an unconfirmed ceiling, engine", Kind::Engine(None), unconfirmed, 0);
    is_found("an unconfirmed ceiling, files", Kind::Files(None), unconfirmed, 900);
    for (broken, from) in [(machine::Broken::Flush, 225), (machine::Broken::Memory, 2090)] {
        is_found(broken, Kind::Files(Some(broken)), None, from);
    }
}
