//! Fleets in virtual time: the code that ships (`src/lease`) in each process of many hosts, for hours, beside a
//! store that stops, lags, answers late, and loses data. All follows from a seed.
//!
//! What is looked at, at any time: pages never allow the same tick, but after the store went back, and then up to the ceilings
//! asked for by that moment; each living host issues again within [`BOUND`] once the store answers; without a fault nobody
//! loses a slot; and how many calls there are in each second.
//!
//! | file | what |
//! |---|---|
//! | `mod` | the store, the network, the hosts, and what happens to them |
//! | `driver` | what JavaScript does in each process: when it goes on, and after which pause |
//! | `ledger` | which ticks each page allowed |
//! | `chaos` | a day of faults, from a seed |
//! | `tests` | what holds, which [`Broken`] parts are found, and the figures of docs/comparison.md |

mod chaos;
mod driver;
mod ledger;
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::mem::take;
use std::ops::Range;

use snowdrift::core::layout::{Layout, Tick};
use snowdrift::lease::{
    Call, Command, Holder, Key, LeaseRefusal, Limits, Loss, Phase, Record, Reply, Settings, Slot,
    Token,
};

use self::driver::{Process, Stage};
use self::ledger::Ledger;
use super::pages::{self, Page};
use super::register::{self, Records};

/// The defaults of the options, ms.
const LIMITS: Limits = Limits { ttl: 30_000, max_clock_skew: 10_000, max_ahead: 0 };
const CALL_TIMEOUT: i64 = 5000;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
/// When all begins, Unix ms. Tick 0 is at 0.
const START: i64 = 1000 * HOUR;
/// The longest that a living host whose store answers is without IDs: a dead holder's slot, and the floor of lost data.
const BOUND: i64 = LIMITS.ttl + LIMITS.ttl + LIMITS.max_clock_skew + 20 * SECOND;

/// A part of the world that does not work as it must: for tests of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// Living slots look expired.
    ExpiryIgnored,
    /// A write does not look at the token: it replaces a record other than the one that was read.
    Unconditional,
    /// A release forgets the floor.
    ReleaseFloor,
    /// A failed call is tried again at once.
    NoPause,
    /// Each process of a host takes itself for the one that renewed last.
    AllRenew,
    /// A process that has once waited for another one of its host does not wait again.
    Impatient,
    /// A process that has failed to start never starts again.
    NoRestart,
    /// A page.
    Page(pages::Wrong),
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// Two pages may issue the same tick of a worker ID.
    Overlap(u64, Tick),
    /// A living host has not issued for [`BOUND`].
    Dark(usize),
    /// A host lost its slot, and nothing had happened to it or to the store.
    Lost(usize, Loss),
    /// More calls in a second.
    Storm(u32),
    /// Long after all faults there are other calls than a renewal for each host, or not each host has a slot: calls in 10 s.
    Restless(u64),
}

/// How the store is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    Fine,
    /// Nothing listens.
    Refused,
    /// Nothing answers. Some of the writes are applied once it answers again.
    Silent,
    /// A call takes up to so long each way, ms.
    Lagging(i64),
    /// One of three calls is given up. Its write is applied up to 5 minutes later.
    Late,
}

/// What happens in the world.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// All processes of a host start.
    Boot(usize),
    /// A host loses its power, and is back after this time.
    Reboot(usize, i64),
    /// All processes of a host end in order, and start after this time.
    Restart(usize, i64),
    /// A process dies. Another one takes its place.
    Kill(usize),
    /// The host's pages lose their names.
    LosePage(usize),
    /// A host's clock differs from the store's by that much, ms.
    SetClock(usize, i64),
    Reach(Network),
    /// The server restarts: it describes another run.
    NewRun,
    LoseAll,
    LoseSlots(usize),
    /// To this moment the store goes back later.
    Remember,
    Revert,
}

enum Happening {
    /// A process starts.
    Start(usize),
    /// A pause of a process ends: its turn.
    Wake(usize, u32),
    /// A call reaches the store.
    Arrive(Box<Sent>),
    /// A reply reaches the process, in its turn.
    Reply(usize, u32, Box<(Reply, Option<i64>, i64)>),
    /// A write that nobody waits for reaches the store.
    Apply(Box<Call>),
    Deed(Deed),
    Audit,
}

/// A call on its way.
struct Sent {
    process: usize,
    turn: u32,
    call: Call,
    called: i64,
    /// When it is given up.
    until: i64,
}

/// A moment's place in the queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(i64, u64);

struct Queued(Place, Happening);

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
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
        self.0.cmp(&other.0)
    }
}

#[derive(Default)]
struct Host {
    pages: Vec<Page>,
    /// The process that takes a slot for all.
    lock: Option<usize>,
    /// The difference of its clock from the store's, ms.
    clock: i64,
    /// The difference of its monotonic clock from the time, ms.
    mono: i64,
    is_up: bool,
    /// Whether its processes generate IDs all the time.
    is_busy: bool,
    /// Since when it cannot issue.
    dark_since: Option<i64>,
    /// When something happened to it last.
    disturbed: i64,
}

/// What is simulated.
#[derive(Clone, Debug)]
struct Plan {
    hosts: usize,
    processes: usize,
    worker_bits: u8,
    /// Whether the store may lose all data unnoticed.
    may_forget: bool,
    broken: Option<Broken>,
    /// The most calls in a second.
    most_calls: u32,
    /// The interval of looks at all hosts, ms.
    audit: i64,
    /// How long the store is well between its faults, ms.
    pause: Range<i64>,
}

#[derive(Default)]
struct Counts {
    /// Calls by second since the start.
    calls: Vec<u32>,
    nows: u64,
    reads: u64,
    lists: u64,
    writes: u64,
    /// Writes that found another record.
    differing: u64,
    /// Descriptions of the server's run, which are no calls to the register.
    describes: u64,
    /// Slots lost, by kind.
    losses: BTreeMap<String, u64>,
    /// Starts of processes that were refused or failed.
    failed_starts: BTreeMap<&'static str, u64>,
    events: u64,
}

struct Fleet {
    plan: Plan,
    settings: Settings,
    random: fastrand::Rng,
    time: i64,
    queue: BinaryHeap<Reverse<Queued>>,
    number: u64,
    hosts: Vec<Host>,
    processes: Vec<Process>,
    records: Records,
    before: Option<Records>,
    run: u64,
    network: Network,
    /// Writes of calls to which nothing answered.
    stuck: Vec<Call>,
    /// Since when the store answers, or its data are what was written.
    calm_since: i64,
    ledger: Ledger,
    /// The highest ceiling of any write that was sent.
    asked: Tick,
    counts: Counts,
}

impl Fleet {
    fn new(plan: Plan, seed: u64) -> Fleet {
        let layout = Layout::new([41, 0, plan.worker_bits, 0, 1], 1, 0);
        let settings = Settings {
            layout,
            datacenter: 0,
            claim: None,
            limits: LIMITS,
            holder: Holder::default(),
            may_forget: plan.may_forget,
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let mut host = || Host {
            // Most are right.
            clock: if random.u8(..8) == 0 { random.i64(-9000..=9000) } else { random.i64(-5..=5) },
            mono: random.i64(0..HOUR),
            is_busy: random.u8(..4) > 0,
            disturbed: START,
            ..Host::default()
        };
        let hosts = (0..plan.hosts).map(|_| host()).collect();
        let processes =
            (0..plan.hosts * plan.processes).map(|_| Process::new(&mut random)).collect();
        let wrong = match plan.broken {
            Some(Broken::Page(wrong)) => wrong,
            _ => pages::Wrong::Nothing,
        };
        pages::WRONG.set(wrong);
        let mut fleet = Fleet {
            plan,
            settings,
            random,
            time: START,
            queue: BinaryHeap::new(),
            number: 0,
            hosts,
            processes,
            records: Records::new(),
            before: None,
            run: 1,
            network: Network::Fine,
            stuck: Vec::new(),
            calm_since: START,
            ledger: Ledger::default(),
            asked: -1,
            counts: Counts::default(),
        };
        fleet.push(START, Happening::Audit);
        fleet
    }

    fn push(&mut self, time: i64, what: Happening) {
        self.number += 1;
        self.queue.push(Reverse(Queued(Place(time, self.number), what)));
    }

    /// Something that happens so long after the start, ms.
    fn plan(&mut self, after: i64, deed: Deed) {
        self.push(START + after, Happening::Deed(deed));
    }

    /// Goes on until so long after the start, ms.
    fn run_until(&mut self, after: i64) -> Result<(), Wrong> {
        let end = START + after;
        while let Some(Reverse(Queued(Place(time, _), _))) = self.queue.peek()
            && *time <= end
        {
            let Some(Reverse(Queued(Place(time, _), what))) = self.queue.pop() else { break };
            self.time = time;
            self.counts.events += 1;
            self.happen(what)?;
        }
        self.time = end;
        Ok(())
    }

    /// Goes on until all living hosts issue. Returns how long that took, ms.
    fn run_until_all_issue(&mut self) -> Result<i64, Wrong> {
        let start = self.time;
        while !(0..self.hosts.len()).all(|host| !self.hosts[host].is_up || self.issues(host)) {
            self.run_until(self.time + 100 - START)?;
            assert!(self.time < start + HOUR, "some host never issues");
        }
        Ok(self.time - start)
    }

    fn happen(&mut self, what: Happening) -> Result<(), Wrong> {
        match what {
            Happening::Start(id) => self.start(id),
            Happening::Wake(id, turn) if self.processes[id].turn == turn => self.wake(id),
            Happening::Reply(id, turn, reply) if self.processes[id].turn == turn => {
                let (reply, now, called) = *reply;
                self.replied(id, reply, now, called)
            }
            Happening::Wake(..) | Happening::Reply(..) => Ok(()),
            Happening::Arrive(sent) => {
                self.arrive(*sent);
                Ok(())
            }
            Happening::Apply(call) => {
                self.answer(&call);
                Ok(())
            }
            Happening::Deed(deed) => self.deed(deed),
            Happening::Audit => {
                self.push(self.time + self.plan.audit, Happening::Audit);
                self.audit()
            }
        }
    }

    fn token(&mut self) -> Token {
        Token::new(self.random.u64(1..)).expect("it is above 0")
    }

    /// Sends a call.
    fn send(&mut self, process: usize, turn: u32, call: Call, timeout: i64) -> Result<(), Wrong> {
        let counts = &mut self.counts;
        match &call {
            Call::Now => counts.nows += 1,
            Call::Read(_) => counts.reads += 1,
            Call::List { .. } => counts.lists += 1,
            Call::Write { .. } => counts.writes += 1,
        }
        let second = ((self.time - START) / SECOND) as usize;
        if counts.calls.len() <= second {
            counts.calls.resize(second + 1, 0);
        }
        counts.calls[second] += 1;
        if counts.calls[second] > self.plan.most_calls {
            return Err(Wrong::Storm(counts.calls[second]));
        }
        if let Call::Write { record: Record::Slot(Slot { ceiling, .. }), .. } = &call {
            self.asked = self.asked.max(*ceiling);
        }
        let (called, until) = (self.time, self.time + timeout);
        let arrives = self.time + self.latency();
        self.push(
            arrives,
            Happening::Arrive(Box::new(Sent { process, turn, call, called, until })),
        );
        Ok(())
    }

    fn latency(&mut self) -> i64 {
        match self.network {
            Network::Lagging(most) => self.random.i64(1..=most),
            _ => self.random.i64(1..=3),
        }
    }

    fn arrive(&mut self, sent: Sent) {
        let Sent { process, turn, call, called, until } = sent;
        let mut reply = Reply::Failed;
        let mut now = None;
        let mut replied = until;
        let is_write = matches!(call, Call::Write { .. });
        match self.network {
            Network::Refused => replied = self.time + 1,
            Network::Silent => {
                if is_write && self.random.bool() {
                    self.stuck.push(call);
                }
            }
            Network::Late if self.random.u8(..3) == 0 => {
                if is_write {
                    let applied = until + self.random.i64(0..5 * MINUTE);
                    self.push(applied, Happening::Apply(Box::new(call)));
                }
            }
            Network::Fine | Network::Lagging(_) | Network::Late => {
                let answer = self.answer(&call);
                replied = self.time + self.latency();
                if replied <= until {
                    (reply, now) = (answer, Some(self.time));
                }
            }
        }
        let replied = replied.min(until).max(self.time);
        self.push(replied, Happening::Reply(process, turn, Box::new((reply, now, called))));
    }

    /// What the store replies.
    fn answer(&mut self, call: &Call) -> Reply {
        let mut changed = None;
        if let Call::Write { key, token, record, before } = call {
            match self.plan.broken {
                Some(Broken::Unconditional) => {
                    let before = self.records.get(key).map(|(token, _)| *token);
                    let (key, token, record) = (*key, *token, record.clone());
                    changed = Some(Call::Write { key, token, record, before });
                }
                Some(Broken::ReleaseFloor) => {
                    if let Record::Slot(slot) = record
                        && !slot.is_held
                    {
                        let is_unused = slot.ceiling == slot.floor;
                        let ceiling = if is_unused { -1 } else { slot.ceiling };
                        let record = Record::Slot(Slot { ceiling, floor: -1, ..slot.clone() });
                        let (key, token, before) = (*key, *token, *before);
                        changed = Some(Call::Write { key, token, record, before });
                    }
                }
                _ => {}
            }
        }
        let mut reply = register::answer(&mut self.records, changed.as_ref().unwrap_or(call));
        match &mut reply {
            Reply::Differs(_) => self.counts.differing += 1,
            Reply::Listed(listed) if self.plan.broken == Some(Broken::ExpiryIgnored) => {
                for (_, _, record) in listed {
                    if let Record::Slot(slot) = record {
                        slot.expires = 0;
                    }
                }
            }
            _ => {}
        }
        reply
    }

    fn deed(&mut self, deed: Deed) -> Result<(), Wrong> {
        let now = self.time;
        match deed {
            Deed::Boot(host) => {
                (self.hosts[host].is_up, self.hosts[host].disturbed) = (true, now);
                for id in self.processes_of(host) {
                    let begins = now + self.random.i64(0..500);
                    self.push(begins, Happening::Start(id));
                }
            }
            Deed::Reboot(host, pause) => {
                for id in self.processes_of(host) {
                    self.kill(id);
                }
                let Host { pages, is_up, .. } = &mut self.hosts[host];
                *is_up = false;
                for mut page in take(pages) {
                    if page.phase == Phase::Open {
                        page.phase = Phase::Ended;
                        self.ledger.note(&page)?;
                    }
                }
                self.push(now + pause, Happening::Deed(Deed::Boot(host)));
            }
            Deed::Restart(host, pause) => {
                self.hosts[host].disturbed = now;
                self.hosts[host].is_up = false;
                for id in self.processes_of(host) {
                    self.close(id)?;
                }
                self.push(now + pause, Happening::Deed(Deed::Boot(host)));
            }
            Deed::Kill(id) => {
                let host = id / self.plan.processes;
                if self.hosts[host].is_up {
                    self.hosts[host].disturbed = now;
                    self.kill(id);
                    let begins = now + self.random.i64(500..10_000);
                    self.push(begins, Happening::Start(id));
                }
            }
            Deed::LosePage(host) => {
                self.hosts[host].disturbed = now;
                for page in &mut self.hosts[host].pages {
                    page.is_gone |= page.phase == Phase::Open;
                }
                self.page_has_changed(host, None);
            }
            Deed::SetClock(host, difference) => {
                self.issue(host);
                (self.hosts[host].clock, self.hosts[host].disturbed) = (difference, now);
                self.page_has_changed(host, None);
            }
            Deed::Reach(network) => {
                self.network = network;
                self.calm_since = now;
                if network == Network::Fine {
                    for call in take(&mut self.stuck) {
                        let applied = now + self.random.i64(0..MINUTE);
                        self.push(applied, Happening::Apply(Box::new(call)));
                    }
                }
            }
            Deed::NewRun => self.run += 1,
            Deed::LoseAll => {
                self.calm_since = now;
                if !self.plan.may_forget {
                    self.ledger.excuse(self.asked);
                }
                self.records.clear();
            }
            Deed::LoseSlots(count) => {
                self.calm_since = now;
                let slots = self.records.keys().filter(|key| matches!(key, Key::Slot(..)));
                let slots: Vec<Key> = slots.copied().collect();
                for _ in 0..count.min(slots.len()) {
                    self.records.remove(&slots[self.random.usize(..slots.len())]);
                }
            }
            Deed::Remember => self.before = Some(self.records.clone()),
            Deed::Revert => {
                if let Some(before) = self.before.take() {
                    self.calm_since = now;
                    self.ledger.excuse(self.asked);
                    self.records = before;
                }
            }
        }
        Ok(())
    }

    /// Looks at all hosts.
    fn audit(&mut self) -> Result<(), Wrong> {
        for host in 0..self.hosts.len() {
            let issues = self.issues(host);
            let Host { is_up, clock, dark_since, disturbed, .. } = &mut self.hosts[host];
            // A host whose clock is wrong is refused a start, and may have no ID.
            let is_right = clock.abs() <= LIMITS.max_clock_skew;
            if !*is_up || issues || !is_right || self.network != Network::Fine {
                *dark_since = None;
                continue;
            }
            let since = *dark_since.get_or_insert(self.time);
            if self.time - since.max(self.calm_since).max(*disturbed) > BOUND {
                return Err(Wrong::Dark(host));
            }
        }
        Ok(())
    }

    /// Whether a process of the host can issue.
    fn issues(&self, host: usize) -> bool {
        let Host { pages, clock, .. } = &self.hosts[host];
        let now = self.time + clock;
        let can =
            |page: &Page| page.phase == Phase::Open && page.floor < now && now <= page.ceiling;
        self.processes_of(host).any(|id| {
            let Process { stage, page, .. } = &self.processes[id];
            *stage == Stage::Held && page.is_some_and(|page| can(&pages[page.0]))
        })
    }

    fn processes_of(&self, host: usize) -> Range<usize> {
        host * self.plan.processes..(host + 1) * self.plan.processes
    }

    /// The processes of a busy host have issued until now.
    fn issue(&mut self, host: usize) {
        let Host { pages, clock, is_busy, .. } = &mut self.hosts[host];
        let now = self.time + *clock;
        for page in pages.iter_mut().rev() {
            let draws = *is_busy && page.users != 0 && page.phase == Phase::Open;
            if draws && page.floor < now {
                page.issued = page.issued.max(now.min(page.ceiling));
            }
        }
    }

    /// Calls a second on average from one time after the start to another, and the most in one.
    fn rate(&self, from: i64, to: i64) -> (f64, u32) {
        let range = (from / SECOND) as usize..(to / SECOND) as usize;
        let seconds = range.clone().map(|at| self.counts.calls.get(at).copied().unwrap_or(0));
        let (sum, most) =
            seconds.fold((0, 0), |(sum, most), one| (sum + u64::from(one), one.max(most)));
        (sum as f64 / range.len().max(1) as f64, most)
    }

    fn calls(&self) -> u64 {
        let Counts { nows, reads, lists, writes, .. } = self.counts;
        nows + reads + lists + writes
    }

    /// Worker IDs that were ever held, and those that are held now.
    fn worker_ids(&self) -> (usize, usize) {
        let slots = self.records.values().filter_map(|(_, record)| match record {
            Record::Slot(slot) => Some(slot.is_held && slot.expires > self.time),
            _ => None,
        });
        slots.fold((0, 0), |(ever, held), is_held| (ever + 1, held + usize::from(is_held)))
    }

    /// How many pages hosts have open, with a worker ID each.
    fn open_workers(&self) -> HashSet<u64> {
        let pages = self.hosts.iter().flat_map(|host| &host.pages);
        pages
            .filter(|page| page.phase == Phase::Open && page.users != 0)
            .map(|page| page.worker)
            .collect()
    }

    fn summary(&self) -> String {
        let Counts {
            nows,
            reads,
            lists,
            writes,
            differing,
            describes,
            losses,
            failed_starts,
            events,
            ..
        } = &self.counts;
        format!(
            "{} calls: {nows} nows, {reads} reads, {lists} lists, {writes} writes ({differing} differ), {describes} runs described; lost {losses:?}; starts failed {failed_starts:?}; {events} events",
            self.calls()
        )
    }
}

/// The word for a refusal, for a summary.
fn word_of(command: &Command) -> &'static str {
    match command {
        Command::Refused(LeaseRefusal::NoSlot(_)) => "no slot",
        Command::Refused(LeaseRefusal::Unproven(_)) => "unproven",
        Command::Refused(_) => "refused",
        _ => "a call failed",
    }
}
