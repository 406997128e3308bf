//! The world around the machines: stores, hosts, clocks, and what goes wrong in it.

use std::cell::Cell;
use std::collections::BTreeMap;

use snowdrift::core::layout::{Layout, Tick};
use snowdrift::lease::{
    At, Bucket, Call, Command, Event, Floor, Found, Holder, Key, LeaseRefusal, Limits, Loss,
    Machine, Namespace, Phase, Record, Reply, Settings, Slot, Token,
};

use super::pages::{self, Alias, CHANGED, Here, Numbered, PAGES, Page, number_on};
use crate::search::Model;

/// The ttl of all holders, in ticks.
pub const TTL: i64 = 1;
/// More writes than a process needs within the bounds, whatever the others do.
const MOST_WRITES: u64 = 40;
/// Processes of one host.
const MOST_PROCESSES: usize = 2;
/// When the search begins.
const START: i64 = 10;

/// What goes wrong in the world, once each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// A call is given up. If it is a write, it may be applied at any later time.
    GiveUp,
    /// A process dies.
    Die,
    /// The slot's record is lost.
    LoseSlot,
    /// All records are lost.
    LoseAll,
    /// The store goes back to an earlier moment.
    Revert,
    /// A machine is cloned, with all its processes.
    Clone,
    /// The store is copied, and processes that connect from now on reach the copy.
    Copy,
    /// The server restarts: it describes another run.
    Restart,
    /// A page loses its name: its processes end it.
    LosePage,
    /// A host cannot create pages any more.
    Fill,
    /// An operator recovers the namespace, as `js/cli/recover.js` does: in several steps.
    Recover,
}

/// A part of the world that does not work as it must: for tests of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A write does not look at the token.
    Unconditional,
    /// A release forgets the floor.
    ReleaseFloor,
    /// A bucket is lost with its slot.
    BucketLost,
    /// An operator recovers a namespace, and leaves its floor.
    RecoveredLow,
    /// An operator frees a slot at the floor of its namespace alone.
    FreedLow,
    /// A page.
    Page(pages::Wrong),
}

/// What is searched.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub hosts: usize,
    /// Of each host.
    pub processes: usize,
    pub ticks: i64,
    /// Renewals of each process.
    pub renewals: u8,
    /// Whether processes close.
    pub may_close: bool,
    /// Whether all calls reach the store and return by steps of their own. Otherwise those of slots alone do.
    pub is_fine: bool,
    /// Whether the store is new. Otherwise it has a slot that was released.
    pub is_new: bool,
    pub claim: Option<u64>,
    pub worker_bits: u8,
    pub faults: &'static [Fault],
    pub broken: Option<Broken>,
}

/// Two hosts of one process each.
pub const TWO_HOSTS: Scenario = Scenario {
    hosts: 2,
    processes: 1,
    ticks: 1,
    renewals: 1,
    may_close: false,
    is_fine: false,
    is_new: false,
    claim: None,
    worker_bits: 0,
    faults: &[],
    broken: None,
};

pub const FAULTS: &[Fault] = &[
    Fault::GiveUp,
    Fault::Die,
    Fault::LoseSlot,
    Fault::LoseAll,
    Fault::Revert,
    Fault::Clone,
    Fault::Copy,
    Fault::Restart,
    Fault::LosePage,
    Fault::Fill,
    Fault::Recover,
];

/// A store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Store {
    records: BTreeMap<Key, (Token, Record)>,
    run: u64,
}

/// A call under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sent {
    call: Call,
    called: i64,
    /// The reply, once the store has made it, with the store's clock.
    reply: Option<(Reply, i64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Process {
    host: usize,
    number: usize,
    /// The store that it is connected to.
    store: usize,
    machine: Machine<Numbered>,
    sent: Option<Sent>,
    /// What its driver has been told last.
    told: Command,
    renewals: u8,
    has_begun: bool,
    /// How many tokens it has drawn.
    tokens: u64,
}

/// What an operator who recovers the namespace does next. Its writes are conditional, and tried again where others were faster:
/// each is one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Operator {
    #[default]
    Nothing,
    /// Raises the floor to this horizon, by the store's clock of before.
    Raises(Tick),
    /// Frees the slot, at this floor.
    Frees(Tick),
}

/// The number of the operator's namespace, and of its write. Those of processes are higher.
const OPERATOR: u64 = 900;

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    time: i64,
    pub pages: Vec<Page>,
    stores: Vec<Store>,
    before: Option<Store>,
    processes: Vec<Process>,
    /// Writes that were given up: the store, and the call.
    late: Vec<(usize, Call)>,
    aliases: Vec<Alias>,
    faults: Vec<Fault>,
    full: Option<usize>,
    operator: Operator,
    /// From this number on, pages overlap with no others, whatever was lost before: they came after the namespace was recovered.
    promised: usize,
    /// Whether somebody else may have written a slot: then a loss is no surprise.
    is_disturbed: bool,
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Two pages may issue the same tick.
    Overlap(usize, usize, Tick),
    /// A living holder whose store answers loses its slot.
    FalseLoss(Loss),
    /// A process writes without end.
    Endless,
}

/// What is seen at times.
pub const JOINED: u16 = 1;
pub const TAKEN_OVER: u16 = 2;
pub const TAKEN: u16 = 4;
pub const RELEASED_LOW: u16 = 8;
pub const REVERTED: u16 = 16;
pub const MISSING: u16 = 32;
pub const AT_HORIZON: u16 = 64;
pub const UNPROVEN: u16 = 128;
pub const LATE: u16 = 256;
pub const NO_SLOT: u16 = 512;
pub const PROVEN: u16 = 1024;
pub const MOVED: u16 = 2048;
pub const RECOVERED: u16 = 4096;

thread_local! {
    /// What a search has seen: a world in which nothing happens must fail.
    pub static SEEN: Cell<u16> = const { Cell::new(0) };
}

fn note(is_so: bool, what: u16) {
    SEEN.set(SEEN.get() | if is_so { what } else { 0 });
}

impl Model for Scenario {
    type State = World;
    type Wrong = Wrong;

    fn start(&self) -> World {
        World::new(self)
    }

    fn steps(&self, world: &World, next: &mut Vec<World>) -> Result<(), Wrong> {
        world.steps(self, &mut |world| next.push(world))
    }
}

impl World {
    pub fn new(scenario: &Scenario) -> World {
        let layout = Layout::new([41, 0, scenario.worker_bits, 0, 1], 1, 0);
        let limits = Limits { ttl: TTL, max_clock_skew: 0, max_ahead: 0 };
        let settings = Settings {
            layout,
            datacenter: 0,
            claim: scenario.claim,
            limits,
            holder: Holder::default(),
            may_forget: scenario.faults.contains(&Fault::LoseAll),
        };
        let process = |host, number| Process {
            host,
            number,
            store: 0,
            machine: Machine::new(settings.clone()),
            sent: None,
            told: Command::Retry,
            renewals: 0,
            has_begun: false,
            tokens: 0,
        };
        let processes = (0..scenario.hosts)
            .flat_map(|host| (0..scenario.processes).map(move |number| (host, number)))
            .map(|(host, number)| process(host, number))
            .collect();
        let mut store = Store { run: 1, ..Store::default() };
        if !scenario.is_new {
            let token = |number| Token::new(number).expect("it is above 0");
            let (namespace, holder) = (1, Holder::default());
            let floor = Floor::At(-1);
            let records = [
                (Key::Namespace, Record::Namespace(Namespace { id: 1, layout, limits, floor })),
                (Key::Bucket(0, 0), Record::Bucket(Bucket { namespace, made: 1, lost: 0 })),
                (
                    Key::Slot(0, 0),
                    Record::Slot(Slot {
                        namespace,
                        owner: 1,
                        is_held: false,
                        floor: -1,
                        ceiling: 5,
                        expires: 5,
                        holder,
                    }),
                ),
            ];
            for (number, (key, record)) in (1..).zip(records) {
                store.records.insert(key, (token(number), record));
            }
        }
        World {
            time: START,
            pages: Vec::new(),
            stores: vec![store],
            before: None,
            processes,
            late: Vec::new(),
            aliases: Vec::new(),
            faults: Vec::new(),
            full: None,
            operator: Operator::Nothing,
            promised: usize::MAX,
            is_disturbed: false,
        }
    }

    /// All states that are one step further.
    pub fn steps(&self, scenario: &Scenario, next: &mut dyn FnMut(World)) -> Result<(), Wrong> {
        self.check()?;
        for at in 0..self.processes.len() {
            if !self.is_twin(at) {
                self.process_steps(at, scenario, next)?;
            }
        }
        if self.time < START + scenario.ticks {
            next(World { time: self.time + 1, ..self.clone() });
        }
        for at in 0..self.pages.len() {
            let page = &self.pages[at];
            if page.phase == Phase::Open && !page.is_gone && page.issued < page.ceiling {
                let mut world = self.clone();
                world.pages[at].issued = page.ceiling;
                next(world);
            }
        }
        for at in 0..self.late.len() {
            let mut world = self.clone();
            let (store, call) = world.late.remove(at);
            note(world.apply(store, &call, scenario).0 == Reply::Written, LATE);
            next(world);
        }
        if self.operator != Operator::Nothing {
            next(self.clone().operate(scenario));
        }
        for &fault in scenario.faults {
            if !self.faults.contains(&fault) {
                self.fault_steps(fault, scenario, next)?;
            }
        }
        Ok(())
    }

    /// Whether a process is to begin after another one that is like it: in the other order they come to the same.
    fn is_twin(&self, at: usize) -> bool {
        let Process { host, number, has_begun, .. } = self.processes[at];
        let is_before = |other: &Process| {
            let of_host = other.host == host && other.number < number;
            let first = number == 0 && other.number == 0 && other.host < host;
            !other.has_begun && (of_host || first)
        };
        !has_begun && self.processes.iter().any(is_before)
    }

    fn process_steps(
        &self,
        at: usize,
        scenario: &Scenario,
        next: &mut dyn FnMut(World),
    ) -> Result<(), Wrong> {
        let process = &self.processes[at];
        let step = |event, world: World| world.step(at, event, scenario);
        match &process.sent {
            Some(Sent { reply: None, call, .. }) => {
                let mut world = self.clone();
                let (reply, now) = world.apply(process.store, call, scenario);
                let is_of_slot = matches!(
                    call,
                    Call::Read(Key::Slot(..)) | Call::Write { key: Key::Slot(..), .. }
                );
                if !is_of_slot && !scenario.is_fine {
                    let called = self.time;
                    next(step(Event::Reply(reply, Some(now), called), world)?);
                } else {
                    if let Some(sent) = &mut world.processes[at].sent {
                        sent.reply = Some((reply, now));
                    }
                    next(world);
                }
            }
            Some(Sent { reply: Some((reply, now)), called, .. }) => {
                next(step(Event::Reply(reply.clone(), Some(*now), *called), self.clone())?);
            }
            None => match &process.told {
                Command::Retry | Command::Join | Command::Lost(_) | Command::Moved => {
                    next(step(Event::Go, self.clone())?);
                    let is_held = process.told == Command::Retry && self.page_of(process).is_some();
                    if is_held && process.renewals < scenario.renewals {
                        // A renewal is due while it joins the lower of two slots.
                        let mut world = self.clone();
                        world.processes[at].renewals += 1;
                        next(step(Event::Renew(self.time + TTL), world)?);
                    }
                }
                Command::Refused(LeaseRefusal::NoSlot(_) | LeaseRefusal::Unproven(_)) => {
                    next(step(Event::Go, self.clone())?);
                }
                Command::Held | Command::Wait => {
                    let page = self.page_of(process);
                    let is_ended =
                        page.is_some_and(|page| page.phase == Phase::Ended || page.is_gone);
                    let is_asked = page.is_some_and(|page| page.is_asked);
                    if is_ended {
                        next(step(Event::Go, self.clone())?);
                    } else if process.renewals < scenario.renewals || is_asked {
                        let mut world = self.clone();
                        world.processes[at].renewals += u8::from(!is_asked);
                        next(step(Event::Renew(self.time + TTL), world)?);
                    }
                    if page.is_some_and(|page| self.has_lower(page)) {
                        next(step(Event::Merge, self.clone())?);
                    }
                }
                Command::Released | Command::Refused(_) | Command::Call(_) => {}
            },
        }
        let may_close = scenario.may_close && process.sent.is_none();
        if may_close && matches!(process.told, Command::Held | Command::Wait) {
            next(step(Event::Close, self.clone())?);
        }
        if scenario.faults.contains(&Fault::GiveUp)
            && !self.faults.contains(&Fault::GiveUp)
            && let Some(sent) = &process.sent
        {
            let mut world = self.clone();
            world.faults.push(Fault::GiveUp);
            world.give_up(process.store, sent);
            next(step(Event::Reply(Reply::Failed, None, sent.called), world)?);
        }
        Ok(())
    }

    /// A write that nobody waits for any more.
    fn give_up(&mut self, store: usize, sent: &Sent) {
        if sent.reply.is_none() && matches!(sent.call, Call::Write { .. }) {
            self.late.push((store, sent.call.clone()));
        }
    }

    /// Applies a call to a store.
    fn apply(&mut self, store: usize, call: &Call, scenario: &Scenario) -> (Reply, i64) {
        let is_broken = |one| scenario.broken == Some(one);
        let records = &mut self.stores[store].records;
        let found =
            |records: &BTreeMap<Key, (Token, Record)>, key| -> Found { records.get(key).cloned() };
        let reply = match call {
            Call::Now => Reply::Time,
            Call::Read(key) => Reply::Read(found(records, key)),
            Call::List { .. } => {
                let is_in = |key: &Key| !matches!(key, Key::Namespace);
                let all = records.iter().filter(|(key, _)| is_in(key));
                Reply::Listed(
                    all.map(|(key, (token, record))| (*key, *token, record.clone())).collect(),
                )
            }
            Call::Write { key, token, record, before } => {
                let present = records.get(key).map(|(token, _)| *token);
                if present == *before || is_broken(Broken::Unconditional) {
                    let mut record = record.clone();
                    if let Record::Slot(slot) = &mut record
                        && !slot.is_held
                        && is_broken(Broken::ReleaseFloor)
                    {
                        // What was issued only: nothing, where the floor was not passed.
                        slot.ceiling = if slot.ceiling == slot.floor { -1 } else { slot.ceiling };
                        slot.floor = -1;
                    }
                    if let (Record::Slot(slot), Some((_, Record::Slot(old)))) =
                        (&record, records.get(key))
                    {
                        if slot.owner != old.owner {
                            note(old.is_held, TAKEN_OVER);
                            self.is_disturbed |= old.is_held && old.expires <= self.time;
                        } else if slot.ceiling < old.ceiling {
                            note(true, RELEASED_LOW);
                        }
                    }
                    records.insert(*key, (*token, record));
                    Reply::Written
                } else {
                    Reply::Differs(found(records, key))
                }
            }
        };
        (reply, self.time)
    }

    /// A step of a machine.
    fn step(mut self, at: usize, event: Event, scenario: &Scenario) -> Result<World, Wrong> {
        let wrong = match scenario.broken {
            Some(Broken::Page(wrong)) => wrong,
            _ => pages::Wrong::Nothing,
        };
        pages::WRONG.set(wrong);
        let process = &mut self.processes[at];
        process.sent = None;
        process.has_begun = true;
        pages::set_actor(process.host, process.number, &self.aliases);
        PAGES.set(std::mem::take(&mut self.pages));
        // By its writer, so that the order in which processes draw makes no other state.
        let writer = 1 + process.host * MOST_PROCESSES + process.number;
        let fresh = 1000 * writer as u64 + process.tokens;
        let here = Here {
            fresh: fresh.into(),
            store: process.store,
            is_full: self.full == Some(process.host),
            is_locked: false,
        };
        let token = Token::new(fresh).expect("it is above 0");
        let at_now = At { mono: self.time, fresh: token, run: self.stores[process.store].run };
        let was_joined = process.machine.page().is_some();
        let runs: Vec<u64> = PAGES.with_borrow(|pages| pages.iter().map(|page| page.run).collect());
        let told = process.machine.step(event, at_now, &here);
        self.pages = PAGES.take();
        CHANGED.with_borrow_mut(Vec::clear);
        if let Command::Call(call) = &told {
            let draws = matches!(call, Call::Write { token: drawn, .. } if *drawn == token);
            process.tokens += u64::from(draws);
            if process.tokens > MOST_WRITES {
                return Err(Wrong::Endless);
            }
            process.sent = Some(Sent { call: call.clone(), called: self.time, reply: None });
        }
        process.told = told.clone();
        match told {
            Command::Held if !was_joined => {
                let page = self.page_of(&self.processes[at]).expect("it is held");
                let is_shared = page.users.count_ones() > 1;
                let number = self.pages.iter().position(|one| std::ptr::eq(one, page));
                let before = number.and_then(|number| runs.get(number));
                let is_proven = is_shared && before.is_some_and(|run| *run != page.run);
                let is_high = page.floor >= self.time;
                let is_recovered = number.is_some_and(|number| number >= self.promised);
                for (is_so, what) in [
                    (is_shared, JOINED),
                    (is_high, AT_HORIZON),
                    (is_proven, PROVEN),
                    (is_recovered, RECOVERED),
                ] {
                    note(is_so, what);
                }
            }
            Command::Lost(why) => {
                note(why == Loss::Taken, TAKEN);
                note(why == Loss::Missing, MISSING);
                note(why == Loss::Reverted, REVERTED);
                if why != Loss::Released && !self.is_disturbed {
                    return Err(Wrong::FalseLoss(why));
                }
            }
            Command::Moved => note(true, MOVED),
            Command::Refused(LeaseRefusal::Unproven(_)) => note(true, UNPROVEN),
            Command::Refused(LeaseRefusal::NoSlot(_)) => note(true, NO_SLOT),
            _ => {}
        }
        Ok(self)
    }

    /// No two pages allow the same tick.
    fn check(&self) -> Result<(), Wrong> {
        let highest = |page: &Page| match page.phase {
            Phase::Open if page.is_gone => page.issued,
            Phase::Open => page.ceiling,
            Phase::Pending => -1,
            Phase::Ended => page.issued,
        };
        for (a, one) in self.pages.iter().enumerate() {
            for (b, other) in self.pages.iter().enumerate().skip(a + 1) {
                // Nothing fences a copy of the store that other hosts use.
                if one.worker != other.worker || one.store + other.store > 0 {
                    continue;
                }
                let is_promised = b >= self.promised;
                let excused = if is_promised { -1 } else { one.excused.max(other.excused) };
                let low = one.floor.max(other.floor).max(excused);
                let high = highest(one).min(highest(other));
                if low < high {
                    return Err(Wrong::Overlap(a, b, high));
                }
            }
        }
        Ok(())
    }

    /// From now on windows may overlap up to the ceilings that are confirmed or asked for at this moment.
    fn excuse(&mut self) {
        let asked = |call: &Call| match call {
            Call::Write { record: Record::Slot(Slot { ceiling, .. }), .. } => *ceiling,
            _ => -1,
        };
        let sent = self.processes.iter().filter_map(|one| one.sent.as_ref());
        let calls = sent.map(|sent| &sent.call).chain(self.late.iter().map(|(_, call)| call));
        let asked = calls.map(asked).max().unwrap_or(-1);
        let confirmed = self.pages.iter().map(|page| page.ceiling).max().unwrap_or(-1);
        let recorded = self.stores.iter().flat_map(|store| store.records.values());
        let recorded = recorded.map(|(_, record)| match record {
            Record::Slot(slot) => slot.ceiling,
            _ => -1,
        });
        let excused = asked.max(confirmed).max(recorded.max().unwrap_or(-1));
        for page in &mut self.pages {
            page.excused = excused;
        }
        self.promised = usize::MAX;
    }

    fn fault_steps(
        &self,
        fault: Fault,
        scenario: &Scenario,
        next: &mut dyn FnMut(World),
    ) -> Result<(), Wrong> {
        let mut world = self.clone();
        world.faults.push(fault);
        let has_slot = |store: &Store| store.records.keys().any(|key| matches!(key, Key::Slot(..)));
        match fault {
            Fault::GiveUp => {}
            Fault::Die => {
                for at in 0..self.processes.len() {
                    let mut world = world.clone();
                    let process = world.processes.remove(at);
                    if let Some(sent) = &process.sent {
                        world.give_up(process.store, sent);
                    }
                    for page in &mut world.pages {
                        if page.host == process.host {
                            page.leave(process.number);
                        }
                    }
                    next(world);
                }
            }
            Fault::LoseSlot if has_slot(&self.stores[0]) => {
                let is_lost = |key: &Key| match key {
                    Key::Slot(..) => true,
                    Key::Bucket(..) => scenario.broken == Some(Broken::BucketLost),
                    Key::Namespace => false,
                };
                world.stores[0].records.retain(|key, _| !is_lost(key));
                world.is_disturbed = true;
                next(world);
            }
            Fault::LoseAll if has_slot(&self.stores[0]) => {
                world.stores[0].records.clear();
                world.is_disturbed = true;
                next(world);
            }
            Fault::Revert if has_slot(&self.stores[0]) => match &self.before {
                None => {
                    // Remembered first: the fault itself is the second step.
                    world.faults.pop();
                    world.before = Some(self.stores[0].clone());
                    next(world);
                }
                Some(before) if *before != self.stores[0] => {
                    world.excuse();
                    world.stores[0] = before.clone();
                    world.is_disturbed = true;
                    next(world);
                }
                Some(_) => {}
            },
            Fault::Clone => {
                for host in 0..2 {
                    if self.pages.iter().any(|page| page.host == host && page.phase == Phase::Open)
                    {
                        next(world.clone().cloned(host, scenario)?);
                    }
                }
            }
            Fault::Copy if has_slot(&self.stores[0]) => {
                let copy = Store { run: 3, ..self.stores[0].clone() };
                world.stores.push(copy);
                // Those that have not begun yet connect to it.
                for process in world.processes.iter_mut().filter(|process| !process.has_begun) {
                    process.store = 1;
                }
                world.is_disturbed = true;
                next(world);
            }
            Fault::Restart => {
                world.stores[0].run = 2;
                next(world);
            }
            Fault::LosePage => {
                for at in 0..self.pages.len() {
                    if self.pages[at].phase == Phase::Open {
                        let mut world = world.clone();
                        world.pages[at].is_gone = true;
                        next(world);
                    }
                }
            }
            Fault::Fill => {
                world.full = Some(0);
                next(world);
            }
            Fault::Recover if self.pages.iter().any(|page| page.phase == Phase::Open) => {
                if let Some((_, Record::Namespace(found))) =
                    self.stores[0].records.get(&Key::Namespace)
                {
                    world.is_disturbed = true;
                    let horizon = found.limits.horizon(found.layout, self.time);
                    world.operator = Operator::Raises(horizon);
                    next(world);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What the operator does next.
    fn operate(mut self, scenario: &Scenario) -> World {
        let is_broken = |one| scenario.broken == Some(one);
        let records = &mut self.stores[0].records;
        let token = |number| Token::new(OPERATOR + number).expect("it is above 0");
        let id = OPERATOR.into();
        let (before, operator) = (self.operator, &mut self.operator);
        *operator = Operator::Nothing;
        match before {
            Operator::Raises(horizon) => {
                let Some((_, Record::Namespace(found))) = records.get(&Key::Namespace) else {
                    return self;
                };
                let floor = match found.floor {
                    Floor::At(floor) if is_broken(Broken::RecoveredLow) => floor,
                    Floor::At(floor) => floor.max(horizon),
                    _ => horizon,
                };
                let raised = Namespace { id, floor: Floor::At(floor), ..*found };
                records.insert(Key::Namespace, (token(0), Record::Namespace(raised)));
                *operator = Operator::Frees(floor);
                self.promised = self.pages.len();
            }
            Operator::Frees(floor) => {
                if let Some((_, Record::Slot(slot))) = records.get(&Key::Slot(0, 0))
                    && slot.is_held
                    && slot.namespace != id
                {
                    let mut freed = slot.clone().freed(id, floor);
                    if is_broken(Broken::FreedLow) {
                        freed.ceiling = floor;
                    }
                    records.insert(Key::Slot(0, 0), (token(1), Record::Slot(freed)));
                }
            }
            Operator::Nothing => {}
        }
        self
    }

    /// A machine and its clone.
    fn cloned(mut self, host: usize, scenario: &Scenario) -> Result<World, Wrong> {
        self.excuse();
        self.is_disturbed = true;
        let new = 2;
        for at in 0..self.pages.len() {
            if self.pages[at].host == host {
                self.aliases.push((new, at, self.pages.len()));
                self.pages.push(Page { host: new, ..self.pages[at].clone() });
            }
        }
        for at in 0..self.processes.len() {
            if self.processes[at].host == host {
                let process = Process { host: new, ..self.processes[at].clone() };
                let called = process.sent.as_ref().map(|sent| sent.called);
                self.processes.push(process);
                // Its connections are the original's: they end.
                if let Some(called) = called {
                    let last = self.processes.len() - 1;
                    self = self.step(last, Event::Reply(Reply::Failed, None, called), scenario)?;
                }
            }
        }
        Ok(self)
    }

    /// What a reader of a path wants to know.
    pub fn summary(&self) -> String {
        let page = |page: &Page| {
            let Page { host, phase, floor, ceiling, issued, known, cells, .. } = page;
            format!("{phase:?} on {host} ({floor}, {ceiling}] issued {issued} {known:?} {cells:?}")
        };
        let record = |(key, (token, record)): (&Key, &(Token, Record))| {
            format!("{} {token}: {}", key.text(), record.text().split_off(11))
        };
        let process = |process: &Process| {
            let Process { host, number, told, .. } = process;
            let reply = process.sent.as_ref().map(|sent| &sent.reply);
            format!("{host}.{number} {told:?} {reply:?}")
        };
        let lines = self.pages.iter().map(page);
        let lines = lines.chain(self.stores.iter().flat_map(|one| one.records.iter().map(record)));
        let lines: Vec<_> = lines.chain(self.processes.iter().map(process)).collect();
        format!("{} {:?}\n  {}", self.time, self.faults, lines.join("\n  "))
    }

    /// Whether the page's host has another one, of a lower slot.
    fn has_lower(&self, page: &Page) -> bool {
        let is_open = |other: &Page| other.phase == Phase::Open && !other.is_gone;
        let is_lower = |other: &Page| other.host == page.host && other.worker < page.worker;
        self.pages.iter().any(|other| is_open(other) && is_lower(other))
    }

    fn page_of(&self, process: &Process) -> Option<&Page> {
        let Numbered(number) = process.machine.page()?;
        Some(&self.pages[number_on(process.host, *number, &self.aliases)])
    }
}
