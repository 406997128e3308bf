//! Fleets in virtual time: the driver that ships in each process of many hosts, beside a store that stops, lags, answers late and
//! loses data. All follows from a seed.
//!
//! What is looked at, at any time: pages never allow the same tick, but after the store went back, and then up to the ceilings asked
//! for by that moment; each living host issues again within [`BOUND`] once the store answers; and without a fault nobody loses a slot.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::super::*;
use crate::core::layout::{Layout, Tick};
use crate::core::loss::Loss;
use crate::core::sequencer::{NEVER, Window};

pub const SECOND: i64 = 1000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
/// When all begins, Unix ms. Tick 0 is at 0.
const START: i64 = 1000 * HOUR;
/// The epoch of the layout, Unix ms: the time of a fleet is in ticks.
pub const EPOCH: i64 = 1_580_486_400_000;

/// How the store is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Network {
    /// A call takes so long, ms, half more or less.
    Fine(i64),
    /// Nothing listens.
    Refused,
    /// Nothing answers. Half of the writes are applied when it does again.
    Silent,
    /// So many of 100 calls are lost, before or after they are applied; the others take up to so long.
    Lossy(u8, i64),
    /// One of three calls is given up. Its write is applied up to 5 minutes later.
    Late,
}

/// What happens in the world.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
    /// All processes of a host start.
    Boot(usize),
    /// A host loses its power, and is back after this time.
    Reboot(usize, i64),
    /// All processes of a host end in order, and start after this time.
    Restart(usize, i64),
    /// A process dies; another one takes its place after a second.
    Kill(usize),
    /// A process is stopped for this time.
    Stop(usize, i64),
    /// The host's pages lose their names.
    LosePages(usize),
    /// A host is suspended: its monotonic clock stops for this time, and the store and its clock go on.
    Suspend(usize, i64),
    /// A host's clock differs from the time by that much.
    SetClock(usize, i64),
    /// The store's clock does.
    SetStoreClock(i64),
    Reach(Network),
    /// To this moment the store goes back later.
    Remember,
    Revert,
    Empty,
    /// A record is deleted: the namespace for 0, or one of the buckets.
    Delete(usize),
    Audit,
}

enum Happening {
    Deed(Deed),
    Start(usize),
    /// The wait of a process ends: its turn.
    Wake(usize, u32),
    Reply(usize, u32, Box<(Reply, Option<i64>)>),
    /// A call reaches the store.
    Arrive(Box<Sent>),
    Apply(Box<Call>),
}

struct Sent {
    process: usize,
    turn: u32,
    call: Call,
    /// When it is given up.
    until: i64,
}

struct Queued(i64, u64, Happening);

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Queued {}
impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Queued {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Plan {
    pub hosts: usize,
    pub processes: usize,
    pub worker_bits: u8,
    pub size: u64,
    pub may_forget: bool,
    pub limits: Limits,
    pub patience: Patience,
    /// Whether the store assigns each host a worker ID: its number.
    pub claims: bool,
    /// Whether the store's clock is each host's own, as a directory's.
    pub has_own_clock: bool,
    pub seed: u64,
    /// Whether replies have the store's time.
    pub tells_time: bool,
}

pub const PLAN: Plan = Plan {
    hosts: 1,
    processes: 16,
    worker_bits: 6,
    size: 32,
    may_forget: false,
    limits: Limits { ttl: 30_000, max_clock_skew: 10_000, max_ahead: 0 },
    patience: Patience { wait: 0, call: 5000 },
    claims: false,
    has_own_clock: false,
    seed: 1,
    tells_time: true,
};

impl Plan {
    /// The longest that a living host whose store answers is without IDs: the floor of lost data, and a dead holder's slot.
    fn bound(&self) -> i64 {
        let Limits { ttl, max_clock_skew, .. } = self.limits;
        2 * (ttl + max_clock_skew) + 2 * max_clock_skew + 30 * SECOND
    }
}

#[derive(Clone, Debug)]
struct Page {
    tenure: Tenure,
    word: Word,
    phase: Phase,
    window: Window,
    renewal: Renewal,
    loss: Loss,
    is_gone: bool,
    users: u64,
}

#[derive(Clone, Debug, Default)]
struct Computer {
    pages: Vec<Page>,
    lock: Option<usize>,
    clock: i64,
    mono: i64,
    is_up: bool,
    dark_since: Option<i64>,
    /// When something happened to it last.
    disturbed: i64,
    /// When it held a slot first since its start.
    held_at: Option<i64>,
    is_changed: bool,
}

struct Process {
    driver: Option<Driver<usize>>,
    turn: u32,
    is_calling: bool,
    stopped_until: i64,
    is_restarting: bool,
    look: i64,
}

#[derive(Default, Debug, Clone)]
pub struct Counts {
    pub reads: u64,
    pub writes: u64,
    pub nows: u64,
    pub conflicts: u64,
    pub losses: BTreeMap<String, u64>,
    pub ends: BTreeMap<String, u64>,
    /// By second.
    pub calls: Vec<u32>,
    pub events: u64,
}

pub struct Fleet {
    pub plan: Plan,
    random: fastrand::Rng,
    pub time: i64,
    store_clock: i64,
    queue: BinaryHeap<Reverse<Queued>>,
    number: u64,
    hosts: Vec<Computer>,
    processes: Vec<Process>,
    pub records: HashMap<Key, (Token, Record)>,
    /// Texts that no holder writes, in place of records.
    pub unreadable: HashMap<Key, Unreadable>,
    /// Whether a write is confirmed and not kept.
    pub forgets_writes: bool,
    before: Option<HashMap<Key, (Token, Record)>>,
    network: Network,
    stuck: Vec<Call>,
    calm_since: i64,
    /// By worker: the page that allowed most, and how far.
    allowed: HashMap<u64, (Token, Tick)>,
    /// The highest ceiling that was asked for, and what it was when data were lost last.
    asked: Tick,
    excused: Tick,
    pub counts: Counts,
    /// What executors were told: the ms since the start, the process, and the report.
    pub log: Vec<(i64, usize, Report<usize>)>,
    pub wrong: Option<String>,
}

/// A host, as one of its processes sees it.
struct View<'a> {
    host: &'a mut Computer,
    number: usize,
    random: &'a mut fastrand::Rng,
    /// The tick of its clock.
    now: Tick,
    allowed: &'a mut HashMap<u64, (Token, Tick)>,
    excused: Tick,
    wrong: &'a mut Option<String>,
}

impl View<'_> {
    fn last(&self, page: &Page) -> Tick {
        page.window.floor.max(page.window.ceiling.min(self.now))
    }

    /// A page may issue up to this tick.
    fn allow(&mut self, at: usize, ceiling: Tick) {
        let Page { tenure: Tenure { worker, owner, .. }, window, .. } = self.host.pages[at];
        let (of, highest) = *self.allowed.get(&worker).unwrap_or(&(owner, NEVER));
        if of != owner
            && highest > window.floor
            && highest > self.excused
            && window.ceiling > window.floor
        {
            *self.wrong = Some(format!(
                "worker {worker}: two pages issue {highest}: {of} and {owner} in {window:?}"
            ));
        }
        self.allowed
            .insert(worker, (owner, ceiling.max(if of == owner { highest } else { NEVER })));
    }

    fn finish(&mut self, at: usize, loss: Loss) -> Tick {
        let last = self.last(&self.host.pages[at]);
        let page = &mut self.host.pages[at];
        let was_open = page.phase == Phase::Open;
        (page.phase, page.loss, page.window.ceiling) = (Phase::Ended, loss, last);
        let Tenure { worker, owner, .. } = page.tenure;
        if was_open && self.allowed.get(&worker).is_some_and(|(of, _)| *of == owner) {
            self.allowed.insert(worker, (owner, last));
        }
        self.host.is_changed = true;
        last
    }
}

impl Host for View<'_> {
    type Page = usize;

    fn random(&mut self) -> u64 {
        self.random.u64(1..)
    }
    fn choose(&mut self, of: usize) -> usize {
        self.random.usize(..of)
    }
    fn pages(&mut self) -> Vec<usize> {
        let is_here = |page: &Page| page.phase != Phase::Ended && !page.is_gone;
        let mut pages: Vec<usize> =
            (0..self.host.pages.len()).filter(|at| is_here(&self.host.pages[*at])).collect();
        pages.sort_by_key(|at| self.host.pages[*at].tenure.worker);
        pages
    }
    fn create(&mut self, tenure: Tenure, word: Word) -> Option<usize> {
        let (phase, users) = (Phase::Pending, 1 << self.number);
        let page = Page {
            tenure,
            word,
            phase,
            window: Window { floor: NEVER, ceiling: NEVER },
            renewal: Renewal::default(),
            loss: Loss::Released,
            is_gone: false,
            users,
        };
        // The place of one that nobody uses.
        let is_unused = |page: &Page| page.phase == Phase::Ended && page.users == 0;
        match self.host.pages.iter().position(is_unused) {
            Some(at) => {
                self.host.pages[at] = page;
                Some(at)
            }
            None => {
                self.host.pages.push(page);
                Some(self.host.pages.len() - 1)
            }
        }
    }
    fn join(&mut self, page: &usize) -> bool {
        self.host.pages[*page].users |= 1 << self.number;
        true
    }
    fn leave(&mut self, page: &usize) -> bool {
        self.host.pages[*page].users &= !(1 << self.number);
        self.host.pages[*page].users == 0
    }
    fn tenure(&self, page: &usize) -> Tenure {
        self.host.pages[*page].tenure
    }
    fn phase(&self, page: &usize) -> Phase {
        let page = &self.host.pages[*page];
        if page.is_gone { Phase::Ended } else { page.phase }
    }
    fn window(&self, page: &usize) -> Window {
        self.host.pages[*page].window
    }
    fn word(&self, page: &usize) -> Word {
        self.host.pages[*page].word
    }
    fn swap(&mut self, page: &usize, from: Word, to: Word) -> bool {
        let page = &mut self.host.pages[*page];
        let is_same = page.word == from;
        if is_same {
            self.host.is_changed |= from.known != to.known;
            page.word = to;
        }
        is_same
    }
    fn renewal(&self, page: &usize) -> Renewal {
        self.host.pages[*page].renewal
    }
    fn renew(&mut self, page: &usize, renewal: Renewal) {
        self.host.pages[*page].renewal = renewal;
    }
    fn open(&mut self, page: &usize, window: Window) {
        let mut floor = window.floor;
        for at in 0..self.host.pages.len() {
            let other = &self.host.pages[at];
            let is_node = other.tenure.worker == self.host.pages[*page].tenure.worker;
            if is_node && at != *page && other.phase == Phase::Open && !other.is_gone {
                floor = floor.max(self.finish(at, Loss::Released));
            }
        }
        let opened = &mut self.host.pages[*page];
        opened.phase = Phase::Open;
        opened.window = Window { floor, ceiling: window.ceiling.max(floor) };
        self.allow(*page, window.ceiling);
    }
    fn raise(&mut self, page: &usize, ceiling: Tick) {
        let raised = &mut self.host.pages[*page];
        if raised.phase == Phase::Open && ceiling > raised.window.ceiling {
            raised.window.ceiling = ceiling;
            self.allow(*page, ceiling);
        }
    }
    fn end(&mut self, page: &usize, loss: Loss) -> Option<Tick> {
        let is_open = self.host.pages[*page].phase != Phase::Ended;
        is_open.then(|| self.finish(*page, loss))
    }
    fn loss(&self, page: &usize) -> Loss {
        self.host.pages[*page].loss
    }
    fn lock(&mut self) -> bool {
        *self.host.lock.get_or_insert(self.number) == self.number
    }
    fn break_lock(&mut self) {
        self.host.lock = None;
    }
    fn unlock(&mut self) {
        self.host.lock.take_if(|owner| *owner == self.number);
    }
}

impl Fleet {
    pub fn new(plan: Plan) -> Fleet {
        let mut random = fastrand::Rng::with_seed(plan.seed);
        let most = (plan.limits.max_clock_skew / 2).min(4000);
        let mut host = || Computer {
            clock: if random.u8(..8) == 0 { random.i64(-most..=most) } else { random.i64(-5..=5) },
            mono: random.i64(0..HOUR),
            disturbed: START,
            ..Computer::default()
        };
        let hosts = (0..plan.hosts).map(|_| host()).collect();
        let process = |_| Process {
            driver: None,
            turn: 0,
            is_calling: false,
            stopped_until: 0,
            is_restarting: false,
            look: SECOND,
        };
        let processes = (0..plan.hosts * plan.processes).map(process).collect();
        Fleet {
            plan,
            random,
            time: START,
            store_clock: 0,
            queue: BinaryHeap::new(),
            number: 0,
            hosts,
            processes,
            records: HashMap::new(),
            unreadable: HashMap::new(),
            forgets_writes: false,
            log: Vec::new(),
            before: None,
            network: Network::Fine(2),
            stuck: Vec::new(),
            calm_since: START,
            allowed: HashMap::new(),
            asked: NEVER,
            excused: NEVER,
            counts: Counts::default(),
            wrong: None,
        }
    }

    fn push(&mut self, time: i64, what: Happening) {
        self.number += 1;
        self.queue.push(Reverse(Queued(time, self.number, what)));
    }

    /// Something that happens so long after the start, ms.
    pub fn plan(&mut self, after: i64, deed: Deed) {
        self.push(START + after, Happening::Deed(deed));
    }

    pub fn random(&mut self) -> &mut fastrand::Rng {
        &mut self.random
    }

    /// Goes on until so long after the start, ms.
    pub fn run(&mut self, after: i64) {
        while let Some(Reverse(Queued(time, ..))) = self.queue.peek()
            && *time <= START + after
        {
            let Some(Reverse(Queued(time, _, what))) = self.queue.pop() else { break };
            self.time = time;
            self.counts.events += 1;
            self.happen(what);
            if let Some(wrong) = &self.wrong {
                panic!("after {} ms: {wrong}; {:?}", time - START, self.plan);
            }
        }
        self.time = START + after;
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Deed(deed) => self.deed(deed),
            Happening::Start(id) => self.start(id),
            Happening::Wake(id, turn) if self.processes[id].turn == turn => {
                self.input(id, Input::Time);
            }
            Happening::Reply(id, turn, reply) if self.processes[id].turn == turn => {
                self.processes[id].is_calling = false;
                let (reply, now) = *reply;
                self.input(id, Input::Reply(reply, now));
            }
            Happening::Wake(..) | Happening::Reply(..) => {}
            Happening::Arrive(sent) => self.arrive(*sent),
            Happening::Apply(call) => drop(self.answer(&call)),
        }
    }

    fn settings(&self) -> Settings {
        let Plan { worker_bits, limits, size, may_forget, has_own_clock, .. } = self.plan;
        Settings {
            layout: Layout::new([41, 0, worker_bits, 0, 1], 1, EPOCH),
            datacenter: 0,
            claim: None,
            limits,
            holder: Holder::default(),
            size,
            may_forget,
            has_own_clock,
        }
    }

    fn at(&self, id: usize) -> At {
        let host = &self.hosts[id / self.plan.processes];
        At { mono: self.time + host.mono, wall: EPOCH + self.time + host.clock }
    }

    fn start(&mut self, id: usize) {
        let host = id / self.plan.processes;
        if self.processes[id].driver.is_some() || !self.hosts[host].is_up {
            return;
        }
        let (settings, at) = (self.settings(), self.at(id));
        let turn = self.random.f64();
        let mut driver = Driver::new(settings, self.plan.patience, at, turn);
        if self.plan.claims {
            driver.claim(host as u64);
        }
        self.processes[id].driver = Some(driver);
        self.processes[id].is_restarting = true;
        self.input(id, Input::Time);
    }

    /// What an executor does: publishes the reports, makes the call, or waits.
    fn input(&mut self, id: usize, input: Input) {
        let stopped = self.processes[id].stopped_until;
        if stopped > self.time {
            // It comes when the process goes on.
            let turn = self.processes[id].turn;
            let later = match input {
                Input::Reply(reply, now) => {
                    self.processes[id].is_calling = true;
                    Happening::Reply(id, turn, Box::new((reply, now)))
                }
                _ => Happening::Wake(id, turn),
            };
            return self.push(stopped, later);
        }
        let (at, number) = (id / self.plan.processes, id % self.plan.processes);
        let clocks = self.at(id);
        let Some(mut driver) = self.processes[id].driver.take() else { return };
        let mut view = View {
            host: &mut self.hosts[at],
            number,
            random: &mut self.random,
            now: clocks.wall - EPOCH,
            allowed: &mut self.allowed,
            excused: self.excused,
            wrong: &mut self.wrong,
        };
        let (reports, next) = driver.step(input, clocks, &mut view);
        if std::env::var_os("LEASE_TRACE")
            .is_some_and(|host| host.to_str().and_then(|host| host.parse().ok()) == Some(at))
        {
            let pages: Vec<_> = self.hosts[at]
                .pages
                .iter()
                .map(|page| {
                    (
                        page.tenure.worker,
                        page.phase,
                        page.word.known.0 % 1000,
                        page.word.pending.0 % 1000,
                        page.window.floor - START,
                        page.window.ceiling - START,
                        page.renewal.at - self.hosts[at].mono - START,
                        page.users,
                    )
                })
                .collect();
            let next = match &next {
                Next::Call(Call::Write { key, .. }, ms) => format!("write {key} {ms}"),
                Next::Call(Call::Read(key), ms) => format!("read {key} {ms}"),
                next => format!("{next:?}"),
            };
            let reports: Vec<String> = reports
                .iter()
                .map(|report| format!("{report:?}").chars().take(20).collect())
                .collect();
            println!(
                "{} #{number} {}: {reports:?} {next} {pages:?}",
                self.time - START,
                clocks.wall - EPOCH - self.time
            );
        }
        let host = &self.hosts[at];
        let is_used = host.pages.iter().any(|page| page.users & 1 << number != 0);
        let (has_page, has_lock) = (driver.machine().has_page(), host.lock == Some(number));
        assert!(has_page || !is_used, "a lease knows of its page");
        assert!(next != Next::End || !has_page && !has_lock, "a lease that has ended has nothing");
        self.processes[id].driver = Some(driver);
        for report in &reports {
            self.report(id, report);
        }
        match next {
            Next::Call(call, within) => self.send(id, call, within),
            Next::Wait { due, look } => {
                assert!(due >= i64::from(look < i64::MAX), "a process spins");
                self.processes[id].look = look.min(SECOND);
                if !self.processes[id].is_calling {
                    self.processes[id].turn += 1;
                    let turn = self.processes[id].turn;
                    self.push(self.time + due, Happening::Wake(id, turn));
                }
            }
            Next::End => {
                let why = reports.last().map_or("closed".into(), |report| format!("{report:?}"));
                let why = why
                    .split(|letter: char| !letter.is_alphanumeric())
                    .take(2)
                    .collect::<Vec<_>>()
                    .join(" ");
                *self.counts.ends.entry(why).or_default() += 1;
                self.gone(id);
                if self.processes[id].is_restarting {
                    let pause = self.random.i64(5 * SECOND..10 * SECOND);
                    self.push(self.time + pause, Happening::Start(id));
                }
            }
        }
        if std::mem::take(&mut self.hosts[at].is_changed) {
            self.look(at, id);
        }
    }

    /// The other processes of the host see that a page has changed at their next look.
    fn look(&mut self, host: usize, but: usize) {
        for id in host * self.plan.processes..(host + 1) * self.plan.processes {
            let Process { driver: Some(driver), is_calling: false, .. } = &self.processes[id]
            else {
                continue;
            };
            let Some(page) = driver.machine().page() else { continue };
            let page = &self.hosts[host].pages[*page];
            let has_ended = page.is_gone || page.phase == Phase::Ended;
            if id != but && (has_ended || driver.machine().unproven().is_some()) {
                self.processes[id].turn += 1;
                let turn = self.processes[id].turn;
                let look = self.random.i64(1..=self.processes[id].look);
                self.push(self.time + look, Happening::Wake(id, turn));
            }
        }
    }

    fn report(&mut self, id: usize, report: &Report<usize>) {
        let at = id / self.plan.processes;
        if self.plan.hosts * self.plan.processes < 10 {
            self.log.push((self.time - START, id, report.clone()));
        }
        match report {
            Report::Open(_) => {
                self.hosts[at].held_at.get_or_insert(self.time);
            }
            Report::Lost(loss) => {
                *self.counts.losses.entry(format!("{loss:?}")).or_default() += 1;
                if std::env::var_os("LEASE_TRACE").is_some() {
                    println!("host {at} loses {loss:?}");
                }
                let is_calm = self.calm_since + self.plan.bound() < self.time;
                let is_undisturbed = self.hosts[at].disturbed + self.plan.bound() < self.time;
                if *loss != Loss::Released && is_calm && is_undisturbed {
                    self.wrong = Some(format!("host {at} loses its slot: {loss:?}"));
                }
            }
            _ => {}
        }
    }

    /// A process is gone.
    fn gone(&mut self, id: usize) {
        let (host, number) = (id / self.plan.processes, id % self.plan.processes);
        let process = &mut self.processes[id];
        process.turn += 1;
        (process.driver, process.is_calling, process.stopped_until) = (None, false, 0);
        self.hosts[host].lock.take_if(|owner| *owner == number);
        for page in &mut self.hosts[host].pages {
            page.users &= !(1 << number);
        }
    }

    fn send(&mut self, id: usize, call: Call, within: i64) {
        let counts = &mut self.counts;
        match &call {
            Call::Now => counts.nows += 1,
            Call::Read(_) => counts.reads += 1,
            Call::Write { .. } => counts.writes += 1,
        }
        let second = ((self.time - START) / SECOND) as usize;
        if counts.calls.len() <= second {
            counts.calls.resize(second + 1, 0);
        }
        counts.calls[second] += 1;
        if let Call::Write { record: Record::Bucket(bucket), .. } = &call {
            let highest = bucket.lines.values().map(|line| line.ceiling).max();
            self.asked = self.asked.max(highest.unwrap_or(NEVER));
        }
        let process = &mut self.processes[id];
        process.turn += 1;
        process.is_calling = true;
        let turn = process.turn;
        let until = self.time + within;
        let arrives = self.time + self.latency();
        self.push(arrives, Happening::Arrive(Box::new(Sent { process: id, turn, call, until })));
    }

    /// Of one way.
    fn latency(&mut self) -> i64 {
        match self.network {
            Network::Fine(ms) => self.random.i64(0..=ms),
            Network::Lossy(_, most) => self.random.i64(0..=most / 2),
            _ => self.random.i64(1..=3),
        }
    }

    fn arrive(&mut self, Sent { process, turn, call, until }: Sent) {
        let is_write = matches!(call, Call::Write { .. });
        let failed = (until, Reply::Failed, None);
        let (replied, reply, now) = match self.network {
            Network::Refused => (self.time + 1, Reply::Failed, None),
            Network::Silent => {
                if is_write && self.random.bool() {
                    self.stuck.push(call);
                }
                failed
            }
            Network::Lossy(percent, _) if self.random.u8(..100) < percent => {
                if self.random.bool() {
                    self.answer(&call);
                }
                failed
            }
            Network::Late if self.random.u8(..3) == 0 => {
                if is_write {
                    let applied = until + self.random.i64(0..5 * MINUTE);
                    self.push(applied, Happening::Apply(Box::new(call)));
                }
                failed
            }
            _ => {
                let reply = self.answer(&call);
                let is_told = self.plan.tells_time || call == Call::Now;
                let now = is_told.then_some(EPOCH + self.time + self.store_clock);
                let replied = self.time + self.latency();
                if replied > until { (until, Reply::Failed, None) } else { (replied, reply, now) }
            }
        };
        self.push(replied, Happening::Reply(process, turn, Box::new((reply, now))));
    }

    fn answer(&mut self, call: &Call) -> Reply {
        let found = |stored: Option<&(Token, Record)>| {
            Reply::Found(stored.map(|(token, record)| (*token, Ok(record.clone()))))
        };
        if let Call::Read(key) | Call::Write { key, .. } = call
            && let Some(why) = self.unreadable.get(key)
        {
            return Reply::Found(Some((Token(1), Err(why.clone()))));
        }
        match call {
            Call::Now => Reply::Time,
            Call::Read(key) => found(self.records.get(key)),
            Call::Write { key, token, record, before } => {
                let stored = self.records.get(key);
                if std::env::var_os("LEASE_TRACE").is_some_and(|trace| trace == *key.to_string()) {
                    println!(
                        "{} {key} {:?} before {before:?} is {:?}",
                        self.time - START,
                        token,
                        stored.map(|(token, _)| *token)
                    );
                }
                if stored.map(|(token, _)| *token) != *before {
                    self.counts.conflicts += 1;
                    return found(stored);
                }
                if self.forgets_writes {
                    let other = Token(self.random.u64(1..));
                    return Reply::Found(Some((other, Ok(blank(record)))));
                }
                let id_of = |record: &Record| match record {
                    Record::Bucket(bucket) => Some(bucket.id),
                    Record::Namespace(_) => None,
                };
                if stored.is_some_and(|(_, stored)| id_of(stored) != id_of(record)) {
                    // Its holders find the ID of a namespace that was deleted long ago.
                    self.calm_since = self.time;
                }
                self.records.insert(*key, (*token, record.clone()));
                if *key == Key::Namespace && before.is_none() {
                    // Holders find its new ID in their buckets.
                    self.lose();
                }
                Reply::Written
            }
        }
    }

    fn deed(&mut self, deed: Deed) {
        let processes = self.plan.processes;
        let all = |host: usize| host * processes..(host + 1) * processes;
        if let Deed::Reboot(host, _)
        | Deed::Restart(host, _)
        | Deed::LosePages(host)
        | Deed::SetClock(host, _)
        | Deed::Boot(host) = deed
        {
            self.hosts[host].disturbed = self.time;
        }
        if std::env::var_os("LEASE_TRACE").is_some() && !matches!(deed, Deed::Audit) {
            println!("{} {deed:?}", self.time - START);
        }
        match deed {
            Deed::Boot(host) => {
                (self.hosts[host].is_up, self.hosts[host].held_at) = (true, None);
                for id in all(host) {
                    self.start(id);
                }
            }
            Deed::Reboot(host, pause) => {
                for id in all(host) {
                    self.gone(id);
                }
                let now = self.time + self.hosts[host].clock;
                for page in &mut self.hosts[host].pages {
                    let last = page.window.floor.max(page.window.ceiling.min(now));
                    (page.phase, page.users, page.window.ceiling) = (Phase::Ended, 0, last);
                }
                self.hosts[host].is_up = false;
                self.push(self.time + pause, Happening::Deed(Deed::Boot(host)));
            }
            Deed::Restart(host, pause) => {
                self.hosts[host].is_up = false;
                for id in all(host) {
                    self.processes[id].is_restarting = false;
                    self.close(id);
                }
                self.push(self.time + pause, Happening::Deed(Deed::Boot(host)));
            }
            Deed::Kill(id) => {
                self.hosts[id / processes].disturbed = self.time;
                self.gone(id);
                self.push(self.time + SECOND, Happening::Start(id));
            }
            Deed::Stop(id, lasts) => {
                self.hosts[id / processes].disturbed = self.time + lasts;
                self.processes[id].stopped_until = self.time + lasts;
            }
            Deed::LosePages(host) => {
                for page in &mut self.hosts[host].pages {
                    page.is_gone = true;
                }
                self.look(host, usize::MAX);
            }
            Deed::Suspend(host, lasts) => {
                // All else is as if it was.
                self.hosts[host].clock += lasts;
                self.store_clock += lasts;
                self.hosts[host].disturbed = self.time;
            }
            Deed::SetClock(host, clock) => self.hosts[host].clock = clock,
            Deed::SetStoreClock(clock) => self.store_clock = clock,
            Deed::Reach(network) => {
                self.network = network;
                self.calm_since = self.time;
                for call in std::mem::take(&mut self.stuck) {
                    self.answer(&call);
                }
            }
            Deed::Remember => self.before = Some(self.records.clone()),
            Deed::Revert => {
                if let Some(before) = self.before.take() {
                    self.records = before;
                    self.lose();
                }
            }
            Deed::Empty => {
                self.records.clear();
                self.lose();
            }
            Deed::Delete(which) => {
                let key = match which {
                    0 => Key::Namespace,
                    bucket => Key::Bucket(0, bucket as u64 - 1),
                };
                if self.records.remove(&key).is_some() {
                    self.lose();
                }
            }
            Deed::Audit => {
                self.audit();
                self.push(self.time + SECOND, Happening::Deed(Deed::Audit));
            }
        }
    }

    /// Data were lost.
    fn lose(&mut self) {
        (self.excused, self.calm_since) = (self.asked, self.time);
    }

    /// Releases a lease.
    pub fn close(&mut self, id: usize) {
        if self.processes[id].driver.is_none() {
            return;
        }
        let was_calling = self.processes[id].is_calling;
        self.input(id, Input::Close);
        if was_calling && self.processes[id].driver.is_some() {
            self.processes[id].turn += 1;
            self.processes[id].is_calling = false;
            self.input(id, Input::Reply(Reply::Failed, None));
        }
    }

    /// Closes all leases; calls under way end, or are given up.
    pub fn close_all(&mut self, call_ends: bool) {
        for id in 0..self.processes.len() {
            self.processes[id].is_restarting = false;
            match call_ends && self.processes[id].driver.is_some() {
                true => self.input(id, Input::Close),
                false => self.close(id),
            }
        }
    }

    /// Whether a host issues now.
    pub fn issues(&self, host: usize) -> bool {
        let now = self.time + self.hosts[host].clock;
        self.hosts[host].pages.iter().any(|page| {
            let Window { floor, ceiling } = page.window;
            page.phase == Phase::Open
                && !page.is_gone
                && page.users != 0
                && floor < now
                && now <= ceiling
        })
    }

    fn audit(&mut self) {
        let is_reached = matches!(self.network, Network::Fine(_) | Network::Lossy(..))
            && self.store_clock.abs() < self.plan.limits.max_clock_skew;
        let calm = self.calm_since;
        for at in 0..self.hosts.len() {
            let skew = self.hosts[at].clock - self.store_clock;
            let is_right = skew.abs() < self.plan.limits.max_clock_skew;
            let is_dark = self.hosts[at].is_up && is_right && is_reached && !self.issues(at);
            if !is_dark {
                self.hosts[at].dark_since = None;
                continue;
            }
            let since = *self.hosts[at].dark_since.get_or_insert(self.time);
            let since = since.max(calm).max(self.hosts[at].disturbed);
            if self.time - since > self.plan.bound() {
                let Plan { processes, .. } = self.plan;
                let told = self.processes[at * processes]
                    .driver
                    .as_ref()
                    .map(|driver| format!("{driver:?}"));
                self.wrong = Some(format!(
                    "host {at} has not issued for {} ms: {told:?}",
                    self.time - since
                ));
            }
        }
    }

    /// A process's lease.
    pub fn driver(&self, id: usize) -> &Driver<usize> {
        self.processes[id].driver.as_ref().unwrap()
    }

    /// The worker ID with which a process issues.
    pub fn worker(&self, id: usize) -> Option<u64> {
        let page = self.processes[id].driver.as_ref()?.machine().page()?;
        Some(self.hosts[id / self.plan.processes].pages[*page].tenure.worker)
    }

    /// A host's pages were renewed by processes whose monotonic clock is so many ms ahead, as in another time namespace.
    pub fn renew_ahead(&mut self, host: usize, ms: i64) {
        self.hosts[host].pages.iter_mut().for_each(|page| page.renewal.at += ms);
    }

    /// A caller of a process waits for a higher ceiling.
    pub fn want(&mut self, id: usize) {
        self.input(id, Input::Wanted);
    }

    /// The process that has a host's lock.
    pub fn lock(&self, host: usize) -> Option<usize> {
        self.hosts[host].lock.map(|number| host * self.plan.processes + number)
    }

    /// A process says that its machine was restored.
    pub fn restore(&mut self, id: usize) {
        self.input(id, Input::Restored);
    }

    /// The window of a host's open page.
    pub fn window(&self, host: usize) -> Option<(u64, Window)> {
        let open = self.hosts[host].pages.iter().find(|page| page.phase == Phase::Open);
        open.map(|page| (page.tenure.worker, page.window))
    }

    /// How long it took until each host held a slot, ms, and how many do.
    pub fn held(&self, since: i64) -> (i64, usize) {
        let held = self.hosts.iter().filter_map(|host| host.held_at);
        (held.clone().max().unwrap_or(0) - START - since, held.count())
    }

    /// Worker IDs with an open page.
    pub fn open(&self) -> usize {
        let is_open = |page: &&Page| page.phase == Phase::Open && page.users != 0;
        self.hosts.iter().flat_map(|host| &host.pages).filter(is_open).count()
    }

    pub fn calls(&self) -> u64 {
        self.counts.nows + self.counts.reads + self.counts.writes
    }

    /// Calls a second between two moments, and the most of a second.
    pub fn rate(&self, from: i64, to: i64) -> (f64, u32) {
        let calls = &self.counts.calls;
        let range = &calls[((from / SECOND) as usize).min(calls.len())
            ..((to / SECOND) as usize).min(calls.len())];
        let sum: u64 = range.iter().map(|calls| u64::from(*calls)).sum();
        (sum as f64 * SECOND as f64 / (to - from) as f64, range.iter().copied().max().unwrap_or(0))
    }
}

/// A record with nothing of what was written.
fn blank(record: &Record) -> Record {
    match record {
        Record::Bucket(bucket) => Record::Bucket(Bucket::new(bucket.id)),
        namespace => namespace.clone(),
    }
}
