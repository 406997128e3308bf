//! The world around the machines: stores, hosts, clocks, and what goes wrong in it.
//!
//! A write is sent, applied and processed in three steps, a read in two. A process may rest between any two, which is also one that
//! was stopped. All machines are those that ship.

use std::hash::{Hash, Hasher};

use super::super::known::{Known, Look, Stage, StoreTime, User};
use super::super::*;
use super::NAMES;
use crate::core::layout::{Layout, Tick};
use crate::core::loss::Loss;
use crate::core::sequencer::{NEVER, Window};

pub const TTL: i64 = 2;
pub const SKEW: i64 = 1;
const HALF: i64 = TTL / 2;

/// What goes wrong, once for each time that it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// A call does not reach the store, or its reply does not return, or it is applied at any later time.
    Lost,
    Reply,
    Late,
    /// A process dies, also in the middle of a step.
    Die,
    /// A page loses its name; a host reboots; a machine is cloned.
    Page,
    Reboot,
    Clone,
    /// The store goes back to an earlier moment, also with its clock.
    Revert,
    Failover,
    /// All records are deleted, the namespace alone, or one bucket.
    Empty,
    DeleteNamespace,
    DeleteBucket,
    /// An operator recovers the namespace while holders live.
    Recover,
    /// The store's clock jumps.
    Jump,
    /// The store is copied; processes that connect from now on reach the copy.
    Copy,
    /// A machine was restored: its application says so.
    Restore,
}

/// What is searched.
#[derive(Clone, Debug)]
pub struct Config {
    pub hosts: usize,
    /// Of each host.
    pub processes: &'static [usize],
    pub buckets: u64,
    /// Worker IDs of a bucket.
    pub size: u64,
    pub ticks: i64,
    pub faults: &'static [Fault],
    /// The most states.
    pub most: usize,
    /// Worker 0 is held by host 0; `all`: each bucket's first worker by a host; `lines`: workers 0 and 1 by two hosts.
    pub is_begun: bool,
    pub all: bool,
    pub lines: bool,
    /// Buckets are there; or nothing is, not even the namespace.
    pub is_made: bool,
    pub is_absent: bool,
    /// The last process of each host has not begun.
    pub joins: bool,
    pub may_release: bool,
    /// A process whose lease was released begins again.
    pub restarts: bool,
    pub claim: Option<u64>,
    /// Reads are sent and applied in two steps, too.
    pub is_fine: bool,
    /// Hosts' clocks are ahead by the skew.
    pub is_ahead: bool,
    /// Processes do not wait for the lock.
    pub breaks: bool,
    pub forgets: bool,
    /// An operator has confirmed that the namespace is new.
    pub is_confirmed: bool,
    /// By how much the store's clock jumps: first, then next.
    pub jumps: &'static [i64],
    /// `maxAhead` by host or process, and that of the namespace.
    pub ahead: &'static [i64],
    pub by_host: bool,
    pub ahead_at: i64,
    pub has_layouts: bool,
    /// The store that is put back: that of the start, or one from before that.
    pub snapshot: Snapshot,
    /// A late creation of a namespace, or of a bucket.
    pub late_namespace: bool,
    pub late_bucket: bool,
    /// A page begins above what any earlier page of its worker ID issued on its host, also one that has ended.
    pub knows_earlier: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    None,
    Start,
    Before,
}

pub const CONFIG: Config = Config {
    hosts: 2,
    processes: &[1, 1, 1],
    buckets: 1,
    size: 1,
    ticks: 3,
    faults: &[],
    most: usize::MAX,
    is_begun: false,
    all: false,
    lines: false,
    is_made: false,
    is_absent: false,
    joins: false,
    may_release: false,
    restarts: false,
    claim: None,
    is_fine: false,
    is_ahead: false,
    breaks: false,
    forgets: false,
    is_confirmed: false,
    jumps: &[],
    ahead: &[],
    by_host: false,
    ahead_at: 0,
    has_layouts: false,
    snapshot: Snapshot::None,
    late_namespace: false,
    late_bucket: false,
    knows_earlier: false,
};

impl Config {
    fn layout(&self, host: usize) -> Layout {
        let workers = self.buckets * self.size;
        let sequence = 1 + if self.has_layouts { host as u8 } else { 0 };
        Layout::new([41, 0, workers.trailing_zeros() as u8, 0, sequence], 1, 0)
    }

    fn ahead_of(&self, host: usize, number: usize) -> i64 {
        let by = if self.by_host { number } else { host };
        self.ahead.get(by).copied().unwrap_or(0)
    }

    fn limits(&self, max_ahead: i64) -> Limits {
        Limits { ttl: TTL, max_clock_skew: SKEW, max_ahead }
    }

    fn most_ahead(&self) -> i64 {
        self.ahead.iter().copied().max().unwrap_or(0)
    }

    fn machine(&self, host: usize, number: usize) -> Machine<usize> {
        Machine::new(Settings {
            layout: self.layout(host),
            datacenter: 0,
            claim: self.claim,
            limits: self.limits(self.ahead_of(host, number)),
            holder: Holder::default(),
            size: self.size,
            may_forget: self.forgets,
            has_own_clock: false,
        })
    }
}

type Stored = Option<(Token, Record)>;
/// Hashes a record.
type HashRecord<'a> = &'a dyn Fn(&mut dyn Hasher);
/// A store, and when its lines were written.
type Remembered = (Vec<Stored>, Vec<Vec<(i64, i64)>>);
/// How many losses there were when a write was sent, and the time.
type When = (u8, i64);

#[derive(Clone, Debug)]
pub struct Page {
    host: usize,
    tenure: Tenure,
    word: Word,
    phase: Phase,
    window: Window,
    renewal: Renewal,
    loss: Loss,
    is_gone: bool,
    /// A bit for each process of the host.
    users: u8,
    // What the checks need.
    /// What was promised when its machine was cloned: up to there it may issue what its clone issues.
    base: Tick,
    /// It had read the namespace before a holder noted the last loss.
    is_tainted: bool,
    /// Data were lost, or somebody may have taken its line.
    is_disturbed: bool,
    store: usize,
}

/// What a page that is gone may have issued.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Issued {
    worker: u64,
    layout: usize,
    floor: Tick,
    ceiling: Tick,
    base: Tick,
    is_tainted: bool,
    store: usize,
    host: usize,
}

#[derive(Clone, Debug)]
struct Sent {
    call: Call,
    /// Once it is applied.
    reply: Option<Reply>,
    time: i64,
    called: i64,
    /// How many losses there were when it was sent.
    losses: u8,
}

#[derive(Clone, Debug)]
pub struct Process {
    host: usize,
    number: usize,
    store: usize,
    machine: Machine<usize>,
    sent: Option<Sent>,
    told: Command,
    is_done: bool,
    has_lock: bool,
    /// One more than the number of losses when it noted one.
    noted: u8,
}

#[derive(Clone, Debug)]
struct Late {
    store: usize,
    key: usize,
    before: Option<Token>,
    record: (Token, Record),
    when: When,
}

#[derive(Clone, Debug)]
pub struct World {
    /// Real time, and the store's clock.
    real: i64,
    time: i64,
    /// How far ahead of their clocks pages issue at most.
    ahead: i64,
    stores: [Vec<Stored>; 2],
    /// When each line of the store was written, and when that was sent.
    written: Vec<Vec<(i64, i64)>>,
    snapshot: Option<Remembered>,
    pub pages: Vec<Page>,
    issued: Vec<Issued>,
    pub processes: Vec<Process>,
    late: Vec<Late>,
    faults: Vec<Fault>,
    /// The horizon of the last loss; a bit for each worker whose lost ticks may still be given out; the number of losses.
    horizon: Tick,
    open_losses: u64,
    losses: u8,
    has_lost: bool,
    has_recovered: bool,
    /// Buckets that the operator has still to touch.
    operator: u64,
    next: u64,
    pub wrong: Option<String>,
}

/// What is seen at times.
pub type Seen = std::collections::BTreeSet<&'static str>;

thread_local! {
    pub static SEEN: std::cell::RefCell<Seen> = const { std::cell::RefCell::new(Seen::new()) };
}

fn see(what: &'static str) {
    SEEN.with_borrow_mut(|seen| {
        seen.insert(what);
    });
}

fn bucket_of(stored: &Stored) -> Option<&Bucket> {
    match stored {
        Some((_, Record::Bucket(bucket))) => Some(bucket),
        _ => None,
    }
}

fn namespace_of(stored: &Stored) -> Option<&Namespace> {
    match stored {
        Some((_, Record::Namespace(namespace))) => Some(namespace),
        _ => None,
    }
}

fn token_of(stored: &Stored) -> Option<Token> {
    stored.as_ref().map(|(token, _)| *token)
}

fn index(key: Key) -> usize {
    match key {
        Key::Namespace => 0,
        Key::Bucket(_, bucket) => 1 + bucket as usize,
    }
}

impl World {
    pub fn new(config: &Config) -> World {
        let buckets = config.buckets as usize;
        let size = config.size;
        let mut world = World {
            real: 0,
            time: 0,
            ahead: config.most_ahead(),
            stores: [vec![None; 1 + buckets], vec![None; 1 + buckets]],
            written: vec![vec![(-9, -9); size as usize]; buckets],
            snapshot: None,
            pages: Vec::new(),
            issued: Vec::new(),
            processes: Vec::new(),
            late: Vec::new(),
            faults: config.faults.to_vec(),
            horizon: NEVER,
            open_losses: 0,
            losses: 0,
            has_lost: false,
            has_recovered: false,
            operator: 0,
            next: 30,
            wrong: None,
        };
        for host in 0..config.hosts {
            for number in 0..config.processes[host] {
                world.processes.push(world.process(config, host, number, 0));
            }
        }
        let limits = config.limits(config.ahead_at);
        let mut namespace = Namespace {
            id: Token(2),
            layout: config.layout(0),
            limits,
            floor: NEVER,
            size,
            created: Ranges::default(),
        };
        if config.is_confirmed {
            namespace = namespace.confirmed().unwrap();
        }
        let holds: Vec<(usize, u64)> = match () {
            () if !config.is_begun => vec![],
            () if config.lines => vec![(0, 0), (1, 1)],
            () if config.all => (0..buckets).map(|host| (host, host as u64 * size)).collect(),
            () => vec![(0, 0)],
        };
        let is_there =
            |bucket: u64| config.is_made || holds.iter().any(|(_, worker)| worker / size == bucket);
        for bucket in (0..config.buckets).filter(|bucket| is_there(*bucket)) {
            namespace.count(bucket);
            let blank = Bucket::new(Token(2));
            world.stores[0][1 + bucket as usize] =
                Some((Token(10 + bucket), Record::Bucket(blank)));
        }
        for (host, worker) in &holds {
            let ceiling = TTL + config.ahead_of(*host, 0);
            let (owner, token) = (Token(20 + 2 * *host as u64), Token(21 + 2 * *host as u64));
            let line = Line {
                owner,
                token,
                is_held: true,
                floor: NEVER,
                ceiling,
                expires: TTL,
                holder: Holder::default(),
            };
            let key = 1 + (worker / size) as usize;
            world.written[key - 1][(worker % size) as usize] = (0, 0);
            let Some((_, Record::Bucket(bucket))) = &mut world.stores[0][key] else { continue };
            bucket.lines.insert(*worker, line);
        }
        let namespace = (Token(1), Record::Namespace(namespace));
        if !config.is_absent {
            world.stores[0][0] = Some(namespace.clone());
        }
        for (host, worker) in holds {
            let ceiling = TTL + config.ahead_of(host, 0);
            let (owner, token) = (Token(20 + 2 * host as u64), Token(21 + 2 * host as u64));
            let page = world.pages.len();
            let tenure = Tenure { namespace: Token(2), owner, worker };
            let word = Word { known: token, pending: Token(0) };
            let mut new = Page::new(host, tenure, word, 0);
            (new.phase, new.window) = (Phase::Open, Window { floor: NEVER, ceiling });
            new.renewal = Renewal { at: 0, expires: TTL, ttl: TTL };
            world.pages.push(new);
            let key = 1 + (worker / size) as usize;
            let seen = world.stores[0][key].clone().and_then(|(token, record)| match record {
                Record::Bucket(bucket) => Some((token, bucket)),
                Record::Namespace(_) => None,
            });
            for at in 0..world.processes.len() {
                let Process { host: of, number, .. } = world.processes[at];
                let last = config.processes[host] - 1;
                if of != host || (config.joins && number > 0 && number == last) {
                    continue;
                }
                world.pages[page].users |= 1 << number;
                let process = &mut world.processes[at];
                let stage = Stage::Using(None);
                process.machine.user = Some(User { seen: seen.clone(), ..User::new(page, stage) });
                process.told = Command::Wait;
                let Record::Namespace(namespace) = namespace.1.clone() else { continue };
                process.machine.limits = process.machine.limits.max(namespace.limits);
                process.machine.namespace = Known::Found(namespace_token(), namespace);
                process.machine.time = Some(StoreTime { least: 0, most: 0, read: 0 });
            }
        }
        if config.late_namespace {
            let Record::Namespace(namespace) = namespace.1.clone() else { return world };
            let record = Namespace { id: Token(9), created: Ranges::default(), ..namespace };
            let record = (Token(8), Record::Namespace(record));
            world.late.push(Late { store: 0, key: 0, before: None, record, when: (0, 0) });
        }
        if config.late_bucket {
            let record = (Token(7), Record::Bucket(Bucket::new(Token(2))));
            world.late.push(Late { store: 0, key: 1, before: None, record, when: (0, 0) });
        }
        if config.snapshot != Snapshot::None {
            let mut before = world.stores[0].clone();
            if config.snapshot == Snapshot::Before {
                for (key, stored) in before.iter_mut().enumerate().skip(1) {
                    if stored.is_some() {
                        let blank = Record::Bucket(Bucket::new(Token(2)));
                        *stored = Some((Token(5 + 20 * key as u64 + 1000), blank));
                    }
                }
                if let Some((token, _)) = &mut before[0] {
                    *token = Token(3);
                }
            }
            world.snapshot = Some((before, world.written.clone()));
        }
        world
    }

    fn process(&self, config: &Config, host: usize, number: usize, store: usize) -> Process {
        Process {
            host,
            number,
            store,
            machine: config
                .machine(if config.has_layouts { host } else { 0 }, number)
                .of(config, host, number),
            sent: None,
            told: Command::Failed,
            is_done: false,
            has_lock: false,
            noted: 0,
        }
    }

    fn wall(&self, config: &Config, process: &Process) -> i64 {
        let is_ahead = config.is_ahead || (process.host + process.number) % 2 == 1;
        self.real + if is_ahead { SKEW } else { 0 }
    }

    /// The last tick that a page may have issued by now.
    fn top(&self, page: &Page) -> Tick {
        page.window.floor.max(page.window.ceiling.min(self.real + SKEW + self.ahead))
    }
}

fn namespace_token() -> Token {
    Token(1)
}

impl Machine<usize> {
    fn of(mut self, config: &Config, host: usize, number: usize) -> Self {
        self.limits = config.limits(config.ahead_of(host, number));
        self.settings.limits = self.limits;
        self
    }
}

impl Page {
    fn new(host: usize, tenure: Tenure, word: Word, store: usize) -> Page {
        Page {
            host,
            tenure,
            word,
            phase: Phase::Pending,
            window: Window { floor: NEVER, ceiling: NEVER },
            renewal: Renewal::default(),
            loss: Loss::Released,
            is_gone: false,
            users: 0,
            base: NEVER,
            is_tainted: false,
            is_disturbed: false,
            store,
        }
    }
}

/// The world as the host of one process, in one step of its machine.
struct Step<'a> {
    world: &'a mut World,
    config: &'a Config,
    at: usize,
    /// What is chosen; and of how many it was.
    script: &'a [usize],
    asked: Vec<(usize, usize)>,
    /// After so many changes of pages the process dies.
    budget: usize,
    changes: usize,
    /// The token of the record that is judged.
    found: Option<Token>,
}

impl Step<'_> {
    fn me(&self) -> &Process {
        &self.world.processes[self.at]
    }

    /// Whether a change happens: the process has not died before it.
    fn changes(&mut self) -> bool {
        self.changes += 1;
        self.changes <= self.budget
    }

    /// One of two machines with the same memory has ended its page. If it has sent nothing since, the other one keeps its slot.
    fn original_goes_on(&mut self, tenure: &Tenure) {
        let World { pages, stores, processes, late, has_lost, has_recovered, .. } =
            &mut *self.world;
        let key = 1 + (tenure.worker / self.config.size) as usize;
        let host = processes[self.at].host;
        let writes = |process: &Process| {
            let call = process.sent.as_ref().map(|sent| &sent.call);
            process.host == host
                && matches!(call, Some(Call::Write { key: of, .. }) if index(*of) == key)
        };
        let Some(bucket) = bucket_of(&stores[0][key]) else { return };
        if *has_lost || *has_recovered || !late.is_empty() || processes.iter().any(writes) {
            return;
        }
        let line = bucket.lines.get(&tenure.worker);
        for page in pages.iter_mut().filter(|page| page.tenure == *tenure && page.host != host) {
            let has_line = |line: &Line| line.owner == tenure.owner && page.word.has(line.token);
            if page.phase == Phase::Open && page.store == 0 && line.is_some_and(has_line) {
                see("the original goes on");
                page.is_disturbed = false;
            }
        }
    }

    fn end_at(&mut self, page: usize, loss: Loss, last: Tick) {
        let ended = &mut self.world.pages[page];
        (ended.phase, ended.loss, ended.window.ceiling) = (Phase::Ended, loss, last);
    }
}

impl Host for Step<'_> {
    type Page = usize;

    fn random(&mut self) -> u64 {
        self.world.next += 1;
        self.world.next
    }

    fn choose(&mut self, of: usize) -> usize {
        let chosen = self.script.get(self.asked.len()).copied().unwrap_or(0);
        self.asked.push((chosen, of));
        chosen
    }

    fn pages(&mut self) -> Vec<usize> {
        let host = self.me().host;
        let is_here =
            |page: &Page| page.host == host && page.phase != Phase::Ended && !page.is_gone;
        let mut pages: Vec<usize> =
            (0..self.world.pages.len()).filter(|at| is_here(&self.world.pages[*at])).collect();
        pages.sort_by_key(|page| self.world.pages[*page].tenure.worker);
        pages
    }

    fn create(&mut self, tenure: Tenure, word: Word) -> Option<usize> {
        let Process { host, number, store, .. } = *self.me();
        if !self.changes() {
            return None;
        }
        for at in 0..self.world.pages.len() {
            let page = &self.world.pages[at];
            if page.host == host
                && page.phase == Phase::Pending
                && page.tenure.worker == tenure.worker
            {
                see("a pending page ended by another process");
                self.end_at(at, Loss::Released, NEVER);
            }
        }
        // One whose ceiling has passed may be renewed yet; then it is replaced all the same.
        let is_kept = |page: &Page| {
            let is_node = page.host == host && page.tenure.worker == tenure.worker;
            let is_renewed = self.world.real - page.renewal.at < HALF;
            is_node
                && page.phase == Phase::Open
                && !page.is_gone
                && is_renewed
                && !page.is_disturbed
                && self.world.real <= page.window.ceiling
        };
        if self.world.pages.iter().any(is_kept) {
            self.world.wrong = Some("a page is to be replaced that is renewed".into());
        }
        let mut page = Page::new(host, tenure, word, store);
        page.users = 1 << number;
        self.world.pages.push(page);
        Some(self.world.pages.len() - 1)
    }

    fn join(&mut self, page: &usize) -> bool {
        let number = self.me().number;
        if self.changes() {
            self.world.pages[*page].users |= 1 << number;
        }
        true
    }

    fn leave(&mut self, page: &usize) -> bool {
        let number = self.me().number;
        if self.changes() {
            self.world.pages[*page].users &= !(1 << number);
        }
        self.world.pages[*page].users & !(1 << number) == 0
    }

    fn tenure(&self, page: &usize) -> Tenure {
        self.world.pages[*page].tenure
    }

    fn phase(&self, page: &usize) -> Phase {
        let page = &self.world.pages[*page];
        if page.is_gone { Phase::Ended } else { page.phase }
    }

    fn window(&self, page: &usize) -> Window {
        self.world.pages[*page].window
    }

    fn word(&self, page: &usize) -> Word {
        self.world.pages[*page].word
    }

    fn swap(&mut self, page: &usize, from: Word, to: Word) -> bool {
        let is_same = self.world.pages[*page].word == from;
        if is_same && self.changes() {
            self.world.pages[*page].word = to;
        }
        is_same
    }

    fn renewal(&self, page: &usize) -> Renewal {
        self.world.pages[*page].renewal
    }

    fn renew(&mut self, page: &usize, renewal: Renewal) {
        if self.changes() {
            self.world.pages[*page].renewal = renewal;
        }
        see("renewed");
    }

    fn open(&mut self, page: &usize, window: Window) {
        if !self.changes() {
            return;
        }
        let Page { host, tenure, .. } = self.world.pages[*page];
        let mut floor = window.floor;
        for at in 0..self.world.pages.len() {
            let other = &self.world.pages[at];
            let is_node = other.host == host && other.tenure.worker == tenure.worker && at != *page;
            if is_node && other.phase == Phase::Open && !other.is_gone {
                see("replaces a page");
                let last = self.world.top(other);
                floor = floor.max(last);
                self.end_at(at, Loss::Released, last);
            } else if is_node && self.config.knows_earlier && other.phase == Phase::Ended {
                floor = floor.max(other.window.ceiling);
            }
        }
        if self.config.knows_earlier {
            let of = |issued: &&Issued| issued.host == host && issued.worker == tenure.worker;
            floor =
                self.world.issued.iter().filter(of).fold(floor, |top, one| top.max(one.ceiling));
        }
        let line_floor = bucket_of(
            &self.world.stores[self.me().store][1 + (tenure.worker / self.config.size) as usize],
        )
        .and_then(|bucket| bucket.lines.get(&tenure.worker))
        .map_or(NEVER, |line| line.floor);
        if floor > line_floor {
            see("above the namespace floor");
        }
        see("opens");
        let page = &mut self.world.pages[*page];
        page.phase = Phase::Open;
        page.window = Window { floor, ceiling: window.ceiling.max(floor) };
    }

    fn raise(&mut self, page: &usize, ceiling: Tick) {
        if self.changes() && self.world.pages[*page].phase == Phase::Open {
            let window = &mut self.world.pages[*page].window;
            window.ceiling = window.ceiling.max(ceiling);
        }
    }

    fn end(&mut self, page: &usize, loss: Loss) -> Option<Tick> {
        let Page { phase, window, is_disturbed, store, tenure, .. } =
            self.world.pages[*page].clone();
        if phase == Phase::Ended || !self.changes() {
            return None;
        }
        let top = self.world.top(&self.world.pages[*page]);
        if phase == Phase::Pending {
            if loss == Loss::Restored {
                see("a pending page restored");
            }
            self.end_at(*page, loss, NEVER);
            return Some(window.floor);
        }
        if loss == Loss::Restored {
            see("lost: restored");
            self.end_at(*page, loss, top);
            self.original_goes_on(&tenure);
            return Some(top);
        }
        if loss != Loss::Released {
            see(if loss == Loss::Taken { "lost: taken" } else { "lost: reverted" });
            if loss == Loss::Reverted {
                // It has to raise the floor, whatever it makes of that.
                self.world.processes[self.at].noted = self.world.losses + 1;
            }
            let id = namespace_of(&self.world.stores[0][0]).map(|namespace| namespace.id);
            if !is_disturbed && (store == 1 || id == Some(tenure.namespace)) {
                self.world.wrong =
                    Some(format!("a living host whose store answers loses its slot: {loss:?}"));
            }
            let key = 1 + (tenure.worker / self.config.size) as usize;
            if loss == Loss::Taken
                && store == 0
                && self.found.is_some()
                && self.found == token_of(&self.world.stores[0][key])
            {
                // It says that later takers of this line are above it.
                self.world.open_losses &= !(1 << tenure.worker);
            }
            self.end_at(*page, loss, top);
            return Some(top);
        }
        let last = window.floor + self.choose((top - window.floor + 1) as usize) as i64;
        self.end_at(*page, loss, last);
        Some(last)
    }

    fn loss(&self, page: &usize) -> Loss {
        self.world.pages[*page].loss
    }

    fn lock(&mut self) -> bool {
        let host = self.me().host;
        let at = self.at;
        let is_other = |(other, process): (usize, &Process)| {
            other != at && process.host == host && process.has_lock
        };
        let is_free = !self.world.processes.iter().enumerate().any(is_other);
        if is_free {
            self.world.processes[at].has_lock = true;
        }
        is_free
    }

    fn break_lock(&mut self) {
        let host = self.me().host;
        for process in self.world.processes.iter_mut().filter(|process| process.host == host) {
            process.has_lock = false;
        }
    }

    fn unlock(&mut self) {
        self.world.processes[self.at].has_lock = false;
    }
}

/// A step of the world: what happened, and what the world is then.
pub type Next = Vec<(String, World)>;

impl World {
    /// Runs a machine's step in all ways that chance allows.
    fn run(&self, config: &Config, at: usize, event: &Event, label: &str, next: &mut Next) {
        let mut scripts: Vec<Vec<usize>> = vec![vec![]];
        while let Some(script) = scripts.pop() {
            let mut world = self.clone();
            let (asked, changes) = world.step(config, at, event.clone(), &script, usize::MAX);
            for position in script.len()..asked.len() {
                for other in 1..asked[position].1 {
                    let mut other_script: Vec<usize> =
                        asked[..position].iter().map(|(chosen, _)| *chosen).collect();
                    other_script.push(other);
                    scripts.push(other_script);
                }
            }
            if self.faults.contains(&Fault::Die) {
                for budget in 1..changes {
                    let mut world = self.clone();
                    world.step(config, at, event.clone(), &script, budget);
                    world.use_fault(Fault::Die);
                    world.kill(config, at, false);
                    next.push((format!("FAULT #{at} dies in the middle"), world));
                }
            }
            let told = &world.processes[at];
            let what = match (&told.sent, &told.told) {
                (Some(sent), _) => describe(&sent.call),
                (None, command) => format!("{command:?}"),
            };
            next.push((format!("h{}p{}: {label}: {what}", told.host, told.number), world));
        }
    }

    fn step(
        &mut self,
        config: &Config,
        at: usize,
        event: Event,
        script: &[usize],
        budget: usize,
    ) -> (Vec<(usize, usize)>, usize) {
        let mut machine = self.processes[at].machine.clone();
        let clocks = At { mono: self.real, wall: self.wall(config, &self.processes[at]) };
        let found = match &event {
            Event::Reply(Reply::Found(found), ..) => found.as_ref().map(|(token, _)| *token),
            Event::Reply(Reply::Written, ..) => match &self.processes[at].sent {
                Some(Sent { call: Call::Write { token, .. }, .. }) => Some(*token),
                _ => None,
            },
            _ => None,
        };
        if matches!(event, Event::Reply(..)) {
            self.processes[at].sent = None;
        }
        let was_lost = machine.is_lost;
        let mut step =
            Step { world: self, config, at, script, asked: vec![], budget, changes: 0, found };
        let command = machine.step(event, clocks, &mut step);
        let (asked, changes) = (step.asked, step.changes);
        let losses = self.losses;
        let called = self.real;
        let process = &mut self.processes[at];
        if machine.is_lost && !was_lost {
            process.noted = losses + 1;
        }
        process.machine = machine;
        match &command {
            Command::Call(call) => {
                let call = call.clone();
                if matches!(call, Call::Read(Key::Bucket(..)))
                    && process.machine.user.is_none()
                    && !process.machine.is_lost
                    && std::mem::take(&mut process.noted) == losses + 1
                {
                    // Who noted it has raised the floor before it looks for a slot.
                    self.open_losses = 0;
                }
                let is_read = !matches!(call, Call::Write { .. });
                self.processes[at].sent = Some(Sent { call, reply: None, time: 0, called, losses });
                if is_read && !config.is_fine {
                    self.apply_call(config, at);
                }
            }
            Command::Released => {
                let Process { host, number, store, noted, .. } = self.processes[at];
                let mut fresh = self.process(config, host, number, store);
                (fresh.is_done, fresh.noted) = (!config.restarts, noted);
                self.processes[at] = fresh;
                see("released");
            }
            Command::Refused(Refusal::Layout(_)) => {
                see("refused: another layout");
                process.is_done = true;
            }
            Command::Refused(_) => {
                see(if process.machine.is_watching() { "watched" } else { "no slot" })
            }
            _ => {}
        }
        self.processes[at].told = command;
        if let Known::Found(_, namespace) = &self.processes[at].machine.namespace
            && let Look::Found(_, bucket, _) = &self.processes[at].machine.search.look
            && bucket.id != namespace.id
        {
            see("another id");
        }
        if self.processes[at]
            .machine
            .user
            .as_ref()
            .is_some_and(|user| matches!(user.stage, Stage::Using(None)))
            && self.processes[at].told == Command::Wait
            && self.processes[at].sent.is_none()
        {
            see("held");
        }
        (asked, changes)
    }

    /// The call of a process reaches its store.
    fn apply_call(&mut self, config: &Config, at: usize) {
        let Process { store, .. } = self.processes[at];
        let Some(mut sent) = self.processes[at].sent.take() else { return };
        let reply = match &sent.call {
            Call::Now => Reply::Time,
            Call::Read(key) => {
                let found = self.stores[store][index(*key)].clone();
                if *key == Key::Namespace
                    && let Some(User { page, stage: Stage::Checking, .. }) =
                        self.processes[at].machine.user
                {
                    let page = &mut self.pages[page];
                    page.is_tainted = self.open_losses >> page.tenure.worker & 1 == 1;
                }
                Reply::Found(found.map(|(token, record)| (token, Ok(record))))
            }
            Call::Write { key, token, record, before } => {
                let record = (*token, record.clone());
                match self.apply(
                    config,
                    store,
                    index(*key),
                    *before,
                    record,
                    (sent.losses, sent.called),
                ) {
                    true => Reply::Written,
                    false => {
                        if matches!(key, Key::Bucket(..)) {
                            see("a conflict");
                        }
                        let found = self.stores[store][index(*key)].clone();
                        Reply::Found(found.map(|(token, record)| (token, Ok(record))))
                    }
                }
            }
        };
        (sent.reply, sent.time) = (Some(reply), self.time);
        self.processes[at].sent = Some(sent);
    }

    /// A write reaches a store.
    fn apply(
        &mut self,
        config: &Config,
        store: usize,
        key: usize,
        before: Option<Token>,
        record: (Token, Record),
        when: When,
    ) -> bool {
        let current = self.stores[store][key].clone();
        if token_of(&current) != before {
            return false;
        }
        if store == 0 {
            match &record.1 {
                Record::Namespace(namespace) => {
                    let floor = namespace_of(&current).map(|current| current.floor);
                    if namespace.floor > floor.unwrap_or(NEVER) {
                        if when.0 == self.losses && self.open_losses != 0 {
                            self.open_losses = 0;
                            see("raised after a loss");
                        }
                        if !self.has_lost
                            && !self.has_recovered
                            && !config.forgets
                            && !config.faults.contains(&Fault::Clone)
                        {
                            self.wrong = Some("the floor is raised though nothing was lost".into());
                        }
                    }
                    if floor.is_some_and(|floor| namespace.floor < floor) {
                        self.wrong = Some("the floor falls".into());
                    }
                }
                Record::Bucket(bucket) => {
                    self.note_lines(config, key, bucket_of(&current), bucket, when)
                }
            }
        }
        self.stores[store][key] = Some(record);
        true
    }

    fn note_lines(
        &mut self,
        config: &Config,
        key: usize,
        before: Option<&Bucket>,
        bucket: &Bucket,
        when: When,
    ) {
        for (worker, line) in &bucket.lines {
            let old = before.and_then(|before| before.lines.get(worker));
            if old.is_some_and(|old| old.token == line.token) {
                continue;
            }
            let place = (worker % config.size) as usize;
            let written = std::mem::replace(&mut self.written[key - 1][place], (self.real, when.1));
            if bucket.floor > before.map_or(NEVER, |before| before.floor) {
                see("a bucket above the horizon");
                if config.is_confirmed && !self.has_lost && !self.has_recovered {
                    self.wrong = Some("the first holder waits in a namespace that is new".into());
                }
            }
            let of = |page: &Page, owner| page.tenure.owner == owner;
            let host = self.pages.iter().find(|page| of(page, line.owner)).map(|page| page.host);
            let over = old.is_some_and(|old| {
                let is_early = old.expires + SKEW >= self.real;
                let mut ended = self.processes.iter().filter(|process| Some(process.host) == host);
                is_early
                    && ended.any(|process| {
                        process.machine.search.over.is_some_and(|over| over.owner == old.owner)
                    })
            });
            match old {
                Some(old) if old.owner != line.owner => {
                    if old.is_held {
                        see("taken over");
                        let may_wait = self.has_lost || self.has_recovered || config.forgets;
                        if over && !may_wait && line.floor > self.real + SKEW + self.ahead {
                            self.wrong = Some("a host that comes back within the ttl waits".into());
                        }
                        let is_own = self.pages.iter().any(|page| {
                            page.tenure.owner == old.owner && page.phase == Phase::Ended
                        });
                        let is_alive = self.pages.iter().any(|page| {
                            page.tenure.owner == old.owner && page.phase == Phase::Open
                        });
                        // It was sent so long ago that it had expired when it was written.
                        let has_expired = old.expires + SKEW < self.real;
                        let since = if has_expired { written.1 } else { written.0 };
                        if self.real - since < HALF && !is_own && is_alive {
                            self.wrong = Some(
                                "a line is taken that was written less than half a ttl ago".into(),
                            );
                        }
                    }
                    for page in self.pages.iter_mut().filter(|page| page.tenure.owner == old.owner)
                    {
                        page.is_disturbed = true;
                    }
                }
                Some(old) if !line.is_held && line.ceiling < old.ceiling => see("released low"),
                _ => {}
            }
        }
    }

    fn use_fault(&mut self, fault: Fault) {
        if let Some(at) = self.faults.iter().position(|one| *one == fault) {
            self.faults.remove(at);
        }
    }

    /// A process is gone at once. Its call may be applied later.
    fn kill(&mut self, config: &Config, at: usize, is_late: bool) {
        if is_late {
            self.give_up(at);
        }
        let Process { host, number, store, .. } = self.processes[at];
        for page in self.pages.iter_mut().filter(|page| page.host == host) {
            page.users &= !(1 << number);
        }
        self.processes[at] = self.process(config, host, number, store);
    }

    /// The call of a process may be applied later.
    fn give_up(&mut self, at: usize) {
        let Process { store, ref sent, .. } = self.processes[at];
        if let Some(Sent {
            call: Call::Write { key, token, record, before },
            reply: None,
            losses,
            called,
            ..
        }) = sent.clone()
        {
            let (key, record) = (index(key), (token, record));
            self.late.push(Late { store, key, before, record, when: (losses, called) });
        }
    }

    /// All worlds that are one step further.
    pub fn steps(&self, config: &Config, is_calm: bool) -> Next {
        let mut next = Next::new();
        for at in 0..self.processes.len() {
            self.process_steps(config, at, is_calm, &mut next);
        }
        if is_calm {
            return next;
        }
        if self.real < config.ticks {
            next.push((
                "time".into(),
                World { real: self.real + 1, time: self.time + 1, ..self.clone() },
            ));
        }
        for at in 0..self.late.len() {
            let mut world = self.clone();
            let Late { store, key, before, record, when } = world.late.remove(at);
            if world.apply(config, store, key, before, record, when) {
                see("late write applied");
                next.push(("a late write is applied".into(), world));
            }
        }
        self.fault_steps(config, &mut next);
        self.operator_steps(config, &mut next);
        next
    }

    pub fn process_steps(&self, config: &Config, at: usize, is_calm: bool, next: &mut Next) {
        let process = &self.processes[at];
        let is_at_work = process.sent.is_some() || process.machine.user.is_some();
        if self.faults.contains(&Fault::Restore) && !is_calm && is_at_work {
            let mut world = self.clone();
            world.use_fault(Fault::Restore);
            world.run(config, at, &Event::Restored, "restored", next);
        }
        match &process.sent {
            Some(sent) if sent.reply.is_none() => {
                let mut world = self.clone();
                world.apply_call(config, at);
                next.push((format!("store: h{}p{}'s call", process.host, process.number), world));
                return;
            }
            Some(Sent { reply: Some(reply), time, called, .. }) => {
                let is_taking = process
                    .machine
                    .user
                    .as_ref()
                    .is_some_and(|user| matches!(user.stage, Stage::Taking | Stage::Checking));
                if config.may_release && is_taking && !is_calm && !process.machine.is_closing {
                    self.run(config, at, &Event::Close, "closes while it opens", next);
                }
                let event = Event::Reply(reply.clone(), Some(*time), *called);
                return self.run(config, at, &event, &reply_text(reply), next);
            }
            _ => {}
        }
        if process.is_done {
            return;
        }
        let page = process.machine.page().map(|page| &self.pages[*page]);
        match &process.told {
            Command::Wait | Command::Open | Command::Locked | Command::Failed if page.is_some() => {
                let Some(page) = page else { return };
                let users = page.users & !(1 << process.number);
                let has_ended = page.phase == Phase::Ended || page.is_gone;
                let is_old = page.renewal.at < self.real;
                if process.told == Command::Locked {
                    self.locked(config, at, is_calm, next);
                } else if has_ended {
                    self.run(config, at, &Event::Go, "looks", next);
                } else if let Some(joined) = process.machine.unproven() {
                    let is_news = !joined.has(page.word.known);
                    if is_news || self.real - page.renewal.at >= HALF {
                        self.run(config, at, &Event::Go, "proves", next);
                    }
                } else if page.word.pending != Token(0)
                    || is_old
                    || page.window.ceiling < self.wanted(config, process)
                {
                    self.run(config, at, &Event::Renew, "renews", next);
                }
                if config.may_release && !is_calm && users == 0 {
                    self.run(config, at, &Event::Close, "closes", next);
                }
            }
            Command::Locked => self.locked(config, at, is_calm, next),
            _ => self.run(config, at, &Event::Go, "goes on", next),
        }
    }

    fn locked(&self, config: &Config, at: usize, is_calm: bool, next: &mut Next) {
        let host = self.processes[at].host;
        let is_locked = |(other, process): (usize, &Process)| {
            other != at && process.host == host && process.has_lock
        };
        if !self.processes.iter().enumerate().any(is_locked) {
            return self.run(config, at, &Event::Go, "goes on", next);
        }
        // In the end also a stopped process goes on.
        if config.breaks && !is_calm {
            let mut world = self.clone();
            for process in world.processes.iter_mut().filter(|process| process.host == host) {
                process.has_lock = false;
            }
            see("does not wait any longer");
            world.run(config, at, &Event::Go, "does not wait", next);
        }
    }

    fn wanted(&self, config: &Config, process: &Process) -> Tick {
        let ahead = config.ahead_of(process.host, process.number);
        (self.wall(config, process) + TTL).min(self.time + TTL + SKEW) + ahead
    }

    fn loss(&mut self, config: &Config, is_strict: bool) {
        self.pages.iter_mut().for_each(|page| page.is_disturbed = true);
        self.has_lost = true;
        if is_strict {
            return;
        }
        self.horizon = self.horizon.max(self.time + TTL + SKEW + config.most_ahead());
        self.losses += 1;
        self.open_losses = u64::MAX;
        self.pages.iter_mut().for_each(|page| page.is_tainted = true);
        self.issued.iter_mut().for_each(|issued| issued.is_tainted = true);
    }

    fn fault_steps(&self, config: &Config, next: &mut Next) {
        let mut kinds = self.faults.clone();
        kinds.dedup();
        for fault in kinds {
            let with = || {
                let mut world = self.clone();
                world.use_fault(fault);
                world
            };
            let is_strict = config.forgets
                || fault == Fault::DeleteNamespace
                    && !config
                        .faults
                        .iter()
                        .any(|one| matches!(one, Fault::DeleteBucket | Fault::Empty))
                || fault == Fault::DeleteBucket
                    && !self.has_lost
                    && !config.faults.contains(&Fault::Late);
            let has_lines =
                |stored: &Stored| bucket_of(stored).is_some_and(|bucket| !bucket.lines.is_empty());
            match fault {
                Fault::Lost | Fault::Reply | Fault::Late => {
                    for (at, process) in self.processes.iter().enumerate() {
                        let Some(sent) = &process.sent else { continue };
                        let is_write = matches!(sent.call, Call::Write { .. });
                        let is_applied = sent.reply.is_some();
                        let may_fail = match fault {
                            Fault::Reply => is_applied,
                            Fault::Lost => !is_applied || (!is_write && !config.is_fine),
                            _ => !is_applied && is_write,
                        };
                        if may_fail {
                            let mut world = with();
                            if fault == Fault::Late {
                                world.give_up(at);
                            }
                            let event = Event::Reply(Reply::Failed, None, sent.called);
                            world.run(config, at, &event, &format!("FAULT {fault:?}"), next);
                        }
                    }
                }
                Fault::Die => {
                    for (at, process) in self.processes.iter().enumerate() {
                        if process.is_done
                            || (process.sent.is_none()
                                && process.machine.user.is_none()
                                && !process.has_lock)
                        {
                            continue;
                        }
                        let is_sent =
                            process.sent.as_ref().is_some_and(|sent| sent.reply.is_none());
                        for is_late in [false, true] {
                            if !is_late || is_sent {
                                let mut world = with();
                                world.kill(config, at, is_late);
                                next.push((
                                    format!(
                                        "FAULT h{}p{} dies, late {is_late}",
                                        process.host, process.number
                                    ),
                                    world,
                                ));
                            }
                        }
                    }
                }
                Fault::Page => {
                    for at in 0..self.pages.len() {
                        if self.pages[at].phase == Phase::Open && !self.pages[at].is_gone {
                            let mut world = with();
                            world.pages[at].is_gone = true;
                            see("page lost");
                            next.push((format!("FAULT page {at} is lost"), world));
                        }
                    }
                }
                Fault::Reboot => {
                    for host in 0..config.hosts {
                        if !self.pages.iter().any(|page| page.host == host) {
                            continue;
                        }
                        for is_late in [false, true] {
                            let mut world = with();
                            for at in 0..world.processes.len() {
                                if world.processes[at].host == host {
                                    world.kill(config, at, is_late);
                                }
                            }
                            for at in 0..world.pages.len() {
                                if world.pages[at].host == host
                                    && world.pages[at].phase != Phase::Ended
                                {
                                    let last = if world.pages[at].phase == Phase::Open {
                                        world.top(&world.pages[at])
                                    } else {
                                        NEVER
                                    };
                                    let page = &mut world.pages[at];
                                    (page.phase, page.window.ceiling) = (Phase::Ended, last);
                                }
                            }
                            next.push((format!("FAULT h{host} reboots"), world));
                        }
                    }
                }
                Fault::Clone => {
                    for host in 0..config.hosts {
                        if self
                            .pages
                            .iter()
                            .any(|page| page.host == host && page.phase == Phase::Open)
                        {
                            with().clone_machine(config, host, next);
                        }
                    }
                }
                Fault::Revert | Fault::Failover => match &self.snapshot {
                    None => {
                        let snapshot = Some((self.stores[0].clone(), self.written.clone()));
                        next.push((
                            "the store is remembered".into(),
                            World { snapshot, ..self.clone() },
                        ));
                    }
                    Some((snapshot, written)) => {
                        let differs =
                            |(one, other): (&Stored, &Stored)| token_of(one) != token_of(other);
                        if snapshot.iter().zip(&self.stores[0]).any(differs) {
                            let mut world = with();
                            world.loss(config, false);
                            if fault == Fault::Failover {
                                world.time -= SKEW;
                            }
                            world.stores[0] = snapshot.clone();
                            world.written = written.clone();
                            world.snapshot = None;
                            next.push((format!("FAULT {fault:?}"), world));
                        }
                    }
                },
                Fault::Empty => {
                    if self.stores[0].iter().any(has_lines) {
                        let mut world = with();
                        world.loss(config, is_strict);
                        world.stores[0].fill(None);
                        next.push(("FAULT all is deleted".into(), world));
                    }
                }
                Fault::DeleteNamespace => {
                    if self.stores[0][0].is_some() {
                        let mut world = with();
                        world.loss(config, is_strict);
                        world.stores[0][0] = None;
                        next.push(("FAULT the namespace is deleted".into(), world));
                    }
                }
                Fault::DeleteBucket => {
                    for key in 1..self.stores[0].len() {
                        if has_lines(&self.stores[0][key]) {
                            let mut world = with();
                            world.loss(config, is_strict && !self.is_creating(key));
                            world.stores[0][key] = None;
                            next.push((format!("FAULT bucket {} is deleted", key - 1), world));
                        }
                    }
                }
                Fault::Recover => {
                    let mut world = with();
                    let token = Token(world.token());
                    let id = Token(world.token());
                    let time = self.time;
                    let Some((old, Record::Namespace(namespace))) = &mut world.stores[0][0] else {
                        continue;
                    };
                    *old = token;
                    *namespace = namespace.recovered(id, namespace.limits, time);
                    world.has_recovered = true;
                    world.operator = (1 << config.buckets) - 1;
                    see("recovered");
                    next.push(("FAULT recover".into(), world));
                }
                Fault::Jump => {
                    let left = self.faults.iter().filter(|fault| **fault == Fault::Jump).count();
                    let jump = config.jumps[config.jumps.len() - left];
                    let mut world = with();
                    world.time += jump;
                    see("jumped");
                    next.push((format!("FAULT the store's clock jumps by {jump}"), world));
                }
                Fault::Copy => {
                    let is_new = |process: &Process| {
                        process.number > 0
                            && process.machine.user.is_none()
                            && process.sent.is_none()
                            && !process.has_lock
                    };
                    if !self.processes.iter().any(is_new) {
                        continue;
                    }
                    let mut world = with();
                    world.stores[1] = world.stores[0].clone();
                    for at in 0..world.processes.len() {
                        if is_new(&world.processes[at]) {
                            let Process { host, number, .. } = world.processes[at];
                            world.processes[at] = self.process(config, host, number, 1);
                        }
                    }
                    world.has_recovered = true;
                    next.push(("FAULT the store is copied".into(), world));
                }
                Fault::Restore => {}
            }
        }
    }

    /// Whether a process has found a bucket absent, and creates it. Not guaranteed: if it is deleted meanwhile, only its holders
    /// see that lines are lost.
    fn is_creating(&self, key: usize) -> bool {
        self.processes.iter().any(|process| {
            let search = &process.machine.search;
            let is_absent = matches!(search.look, Look::Absent(_));
            let is_sent = matches!(
                &process.sent,
                Some(Sent { call: Call::Write { key: of, before: None, .. }, .. }) if index(*of) == key
            );
            is_absent && search.bucket.map(|bucket| 1 + bucket as usize) == Some(key) || is_sent
        })
    }

    fn token(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn clone_machine(mut self, config: &Config, host: usize, next: &mut Next) {
        let ceiling_in = |record: &Record, worker: u64| match record {
            Record::Bucket(bucket) => bucket.lines.get(&worker).map_or(NEVER, |line| line.ceiling),
            Record::Namespace(_) => NEVER,
        };
        let mut map = vec![usize::MAX; self.pages.len()];
        for (at, place) in map.iter_mut().enumerate() {
            if self.pages[at].host != host {
                continue;
            }
            let Page { tenure: Tenure { worker, .. }, word, window, .. } = self.pages[at];
            let key = 1 + (worker / config.size) as usize;
            let mut base = window.ceiling;
            for process in &self.processes {
                if let Some(Sent { call: Call::Write { key: of, record, .. }, .. }) = &process.sent
                    && index(*of) == key
                {
                    base = base.max(ceiling_in(record, worker));
                }
                if let Some(User { announced: Some((token, ceiling)), .. }) = &process.machine.user
                    && *token == word.pending
                {
                    base = base.max(*ceiling);
                }
            }
            for late in self.late.iter().filter(|late| late.key == key) {
                base = base.max(ceiling_in(&late.record.1, worker));
            }
            if let Some((_, record)) = &self.stores[0][key] {
                base = base.max(ceiling_in(record, worker));
            }
            (self.pages[at].base, self.pages[at].is_disturbed) = (base, true);
            *place = self.pages.len();
            let clone = Page { host: config.hosts, ..self.pages[at].clone() };
            self.pages.push(clone);
        }
        let mut calls = Vec::new();
        for at in 0..self.processes.len() {
            if self.processes[at].host != host {
                continue;
            }
            let mut clone = Process { host: config.hosts, ..self.processes[at].clone() };
            if let Some(user) = &mut clone.machine.user {
                user.page = map[user.page];
            }
            if let Some(sent) = clone.sent.take() {
                calls.push((self.processes.len(), sent.called));
            }
            self.processes.push(clone);
        }
        let mut worlds = vec![self];
        for (at, called) in calls {
            let mut after = Next::new();
            for world in worlds {
                world.run(config, at, &Event::Reply(Reply::Failed, None, called), "", &mut after);
            }
            worlds = after.into_iter().map(|(_, world)| world).collect();
        }
        next.extend(worlds.into_iter().map(|world| (format!("FAULT h{host} is cloned"), world)));
    }

    fn operator_steps(&self, config: &Config, next: &mut Next) {
        for bucket in 0..config.buckets {
            if self.operator >> bucket & 1 == 0 {
                continue;
            }
            let mut world = self.clone();
            world.operator &= !(1 << bucket);
            world.touch(bucket as usize);
            next.push((format!("the operator touches bucket {bucket}"), world));
        }
    }

    /// The operator writes the namespace's new ID into a bucket.
    fn touch(&mut self, bucket: usize) {
        let token = Token(self.token());
        let Some(namespace) = namespace_of(&self.stores[0][0]).cloned() else { return };
        let time = self.time;
        if let Some((old, Record::Bucket(bucket))) = &mut self.stores[0][1 + bucket]
            && let Some(recovered) = bucket.recovered(&namespace, time)
        {
            see("touched");
            (*old, *bucket) = (token, recovered);
        }
    }

    /// Forgets what no later step depends on.
    pub fn tidy(&mut self, config: &Config) {
        if !self.faults.iter().any(|fault| matches!(fault, Fault::Revert | Fault::Failover)) {
            self.snapshot = None;
        }
        for at in (0..self.pages.len()).rev() {
            let page = &self.pages[at];
            let is_used = |process: &Process| {
                process.machine.user.as_ref().is_some_and(|user| user.page == at)
            };
            let is_found = page.phase == Phase::Open && !page.is_gone;
            if is_found || self.processes.iter().any(is_used) {
                continue;
            }
            let highest = match page.phase {
                Phase::Pending => NEVER,
                Phase::Open => self.top(page),
                Phase::Ended => page.window.ceiling,
            };
            let Page { tenure, window, base, is_tainted, store, host, .. } = *page;
            if highest > window.floor {
                let layout = if config.has_layouts { host } else { 0 };
                let (worker, floor) = (tenure.worker, window.floor);
                self.issued.push(Issued {
                    worker,
                    layout,
                    floor,
                    ceiling: highest,
                    base,
                    is_tainted,
                    store,
                    host,
                });
            }
            self.pages.remove(at);
            for user in
                self.processes.iter_mut().filter_map(|process| process.machine.user.as_mut())
            {
                if user.page > at {
                    user.page -= 1;
                }
            }
        }
        let may_vanish = self.faults.iter().any(|fault| {
            matches!(fault, Fault::Empty | Fault::DeleteBucket | Fault::DeleteNamespace)
        });
        let stores = &self.stores;
        let snapshot = &self.snapshot;
        self.late.retain(|late| {
            late.before == token_of(&stores[late.store][late.key])
                || snapshot.as_ref().is_some_and(|(snapshot, _)| {
                    late.store == 0 && late.before == token_of(&snapshot[late.key])
                })
                || late.before.is_none() && may_vanish
        });
        self.issued.sort();
        self.issued.dedup();
    }

    /// Whether two pages may issue the same tick.
    pub fn overlap(&self, config: &Config) -> Option<String> {
        let open =
            self.pages.iter().filter(|page| page.phase != Phase::Pending).map(|page| Issued {
                worker: page.tenure.worker,
                layout: if config.has_layouts { page.host } else { 0 },
                floor: page.window.floor,
                ceiling: page.window.ceiling,
                base: page.base,
                is_tainted: page.is_tainted,
                store: page.store,
                host: page.host,
            });
        let all: Vec<Issued> = open.chain(self.issued.iter().cloned()).collect();
        for (at, one) in all.iter().enumerate() {
            for other in &all[..at] {
                let is_apart = one.worker != other.worker && one.layout == other.layout;
                let is_copy = one.store != other.store && one.host != other.host
                    || one.store == 1 && other.store == 1 && one.host != other.host;
                if is_apart || is_copy {
                    continue;
                }
                let excused = if one.is_tainted && other.is_tainted { self.horizon } else { NEVER };
                let low = one.floor.max(other.floor).max(excused).max(one.base).max(other.base);
                let high = one.ceiling.min(other.ceiling);
                if low < high {
                    return Some(format!(
                        "two pages issue tick {high} of worker {}: {one:?} and {other:?}",
                        one.worker
                    ));
                }
            }
        }
        None
    }

    /// From here on nothing goes wrong any more: what keeps processes from holding a slot in the end.
    pub fn settle(&self, config: &Config) -> Option<String> {
        let mut world = self.clone();
        world.faults.clear();
        for round in 0..240 {
            if world.is_settled(config) {
                return None;
            }
            for at in 0..world.processes.len() {
                let mut next = Next::new();
                world.process_steps(config, at, true, &mut next);
                if !next.is_empty() {
                    world = next.swap_remove(0).1;
                    world.tidy(config);
                    if let Some(wrong) = world.wrong.take().or_else(|| world.overlap(config)) {
                        return Some(wrong);
                    }
                }
            }
            if world.operator != 0 {
                let bucket = world.operator.trailing_zeros();
                world.operator &= world.operator - 1;
                world.touch(bucket as usize);
            }
            if round % 8 == 7 {
                (world.real, world.time) = (world.real + 1, world.time + 1);
            }
        }
        Some(format!(
            "nobody comes to hold a slot any more: {:?}",
            world
                .processes
                .iter()
                .map(|process| (&process.told, &process.machine.user, &process.machine.search.look))
                .collect::<Vec<_>>()
        ))
    }

    fn is_settled(&self, config: &Config) -> bool {
        let holds = |process: &Process| {
            let page = &self.pages[*process.machine.page()?];
            let key = 1 + (page.tenure.worker / config.size) as usize;
            let line =
                bucket_of(&self.stores[process.store][key])?.lines.get(&page.tenure.worker)?;
            let is_mine =
                line.is_held && line.owner == page.tenure.owner && line.token == page.word.known;
            let is_open = page.phase == Phase::Open
                && !page.is_gone
                && page.window.ceiling > page.window.floor;
            (is_mine && is_open).then_some(page.tenure.worker)
        };
        let workers = if config.claim.is_some() { 1 } else { config.buckets * config.size };
        self.processes.iter().all(|process| {
            let others = self
                .processes
                .iter()
                .filter(|other| other.store == process.store || other.host == process.host);
            let mut held: Vec<u64> = others.filter_map(holds).collect();
            held.sort();
            held.dedup();
            process.is_done || holds(process).is_some() || held.len() as u64 >= workers
        })
    }

    /// A number for all states that are alike.
    pub fn fingerprint(&self, config: &Config) -> u128 {
        NAMES.with_borrow_mut(|names| names.clear());
        let mut lanes = super::fingerprint::Lanes::default();
        self.hash_all(config, &mut lanes);
        lanes.value()
    }

    fn hash_all(&self, config: &Config, state: &mut impl Hasher) {
        let World { real, time, stores, written, snapshot, pages, issued, late, .. } = self;
        let (remembered, remembered_written) = match snapshot {
            Some((stored, written)) => (Some(stored), &written[..]),
            None => (None, &[][..]),
        };
        (real, time, stores, remembered).hash(state);
        for line in written.iter().chain(remembered_written).flatten() {
            ((real - line.0).min(HALF), (real - line.1).min(HALF)).hash(state);
        }
        for page in pages {
            let Page { host, tenure, word, phase, window, renewal, loss, is_gone, users, .. } =
                page;
            (host, tenure, word, phase, window.floor, window.ceiling).hash(state);
            (loss, is_gone, users, page.base, page.is_tainted, page.is_disturbed, page.store)
                .hash(state);
            ((real - renewal.at).min(HALF.max(1))).hash(state);
        }
        for process in &self.processes {
            self.hash_process(config, process, state);
        }
        for one in late {
            let Late { store, key, before, record, when } = one;
            (store, key, before, record, when.0 == self.losses, (real - when.1).min(HALF))
                .hash(state);
        }
        (
            issued,
            &self.faults,
            self.horizon,
            self.open_losses,
            self.has_lost,
            self.has_recovered,
            self.operator,
        )
            .hash(state);
    }

    /// A record that is the present one, or the remembered one, needs no second look.
    fn hash_found(
        &self,
        store: usize,
        key: usize,
        token: Token,
        record: Option<HashRecord<'_>>,
        state: &mut impl Hasher,
    ) {
        if token_of(&self.stores[store][key]) == Some(token) {
            state.write_u8(1);
        } else if self
            .snapshot
            .as_ref()
            .is_some_and(|(snapshot, _)| store == 0 && token_of(&snapshot[key]) == Some(token))
        {
            state.write_u8(2);
        } else {
            state.write_u8(3);
            if let Some(record) = record {
                record(state);
            }
        }
    }

    fn hash_process(&self, config: &Config, process: &Process, state: &mut impl Hasher) {
        let Process { host, number, store, machine, sent, told, is_done, has_lock, noted } =
            process;
        (host, number, store, told, is_done, has_lock, *noted == self.losses + 1).hash(state);
        let Machine {
            limits,
            time,
            namespace,
            is_lost,
            search,
            watched,
            contradicted,
            user,
            renewing,
            is_timed,
            ..
        } = machine;
        (
            limits.max_ahead,
            time.map(|time| (time.least, time.most)),
            is_lost,
            &search.over,
            machine.is_closing,
            machine.id,
            contradicted,
            renewing.map(|since| self.real - since),
            is_timed,
        )
            .hash(state);
        match namespace {
            Known::Unread => state.write_u8(1),
            Known::Absent => state.write_u8(2),
            Known::Found(token, namespace) => {
                state.write_u8(3);
                self.hash_found(
                    *store,
                    0,
                    *token,
                    Some(&|mut state| {
                        (&namespace.id, &namespace.created, namespace.floor, namespace.limits)
                            .hash(&mut state)
                    }),
                    state,
                );
            }
        }
        for (worker, (token, since)) in watched {
            (worker, token, (self.real - since).min(HALF)).hash(state);
        }
        (search.bucket, search.full, &search.damage).hash(state);
        let key_of = |worker: u64| 1 + (worker / config.size) as usize;
        match &search.look {
            Look::Found(token, bucket, is_asked) => {
                (4, is_asked).hash(state);
                let key = 1 + search.bucket.unwrap_or_default() as usize;
                self.hash_found(
                    *store,
                    key,
                    *token,
                    Some(&|mut state| bucket.hash(&mut state)),
                    state,
                );
            }
            look => look.hash(state),
        }
        if let Some(User { page, stage, seen, announced }) = user {
            (page, stage, announced).hash(state);
            if let Some((token, bucket)) = seen {
                let worker = self.pages[*page].tenure.worker;
                self.hash_found(
                    *store,
                    key_of(worker),
                    *token,
                    Some(&|mut state| (bucket.id, bucket.lines.get(&worker)).hash(&mut state)),
                    state,
                );
            }
        }
        let Some(Sent { call, reply, time, called, losses }) = sent else { return };
        (time, called, *losses == self.losses, &machine.word_then()).hash(state);
        match (call, reply) {
            (Call::Read(key), Some(Reply::Found(found))) => {
                (1, key).hash(state);
                self.hash_reply(*store, index(*key), found, state);
            }
            (Call::Write { key, .. }, Some(Reply::Found(found))) => {
                (2, key).hash(state);
                self.hash_reply(*store, index(*key), found, state);
            }
            (Call::Write { key, token, record, .. }, Some(_)) => {
                (3, key).hash(state);
                self.hash_found(
                    *store,
                    index(*key),
                    *token,
                    Some(&|mut state| record.hash(&mut state)),
                    state,
                );
            }
            (Call::Write { key, token, record, before }, None) => {
                let current = token_of(&self.stores[*store][index(*key)]);
                let is_remembered = self
                    .snapshot
                    .as_ref()
                    .is_some_and(|(snapshot, _)| token_of(&snapshot[index(*key)]) == *before);
                let is_possible = *before == current || is_remembered || before.is_none();
                (4, key, *before == current, is_possible).hash(state);
                if is_possible {
                    (before, token, record).hash(state);
                }
            }
            (call, _) => (5, call).hash(state),
        }
    }

    fn hash_reply(&self, store: usize, key: usize, found: &Found, state: &mut impl Hasher) {
        match found {
            None => state.write_u8(0),
            Some((token, record)) => self.hash_found(
                store,
                key,
                *token,
                Some(&|mut state| record.hash(&mut state)),
                state,
            ),
        }
    }
}

impl Machine<usize> {
    fn word_then(&self) -> Option<Word> {
        let (call, word) = self.call.as_ref()?;
        call.is_some().then_some(*word)
    }
}

fn describe(call: &Call) -> String {
    match call {
        Call::Now => "asks for the time".into(),
        Call::Read(key) => format!("reads {key}"),
        Call::Write { key, record: Record::Namespace(namespace), .. } => {
            format!("writes {key}: {namespace:?}")
        }
        Call::Write { key, record: Record::Bucket(bucket), .. } => format!(
            "writes {key}: floor {} {:?}",
            bucket.floor,
            bucket
                .lines
                .values()
                .map(|line| (
                    line.owner.0,
                    line.token.0,
                    line.is_held,
                    line.floor,
                    line.ceiling,
                    line.expires
                ))
                .collect::<Vec<_>>()
        ),
    }
}

fn reply_text(reply: &Reply) -> String {
    match reply {
        Reply::Found(None) => "found nothing".into(),
        Reply::Found(Some(_)) => "found".into(),
        reply => format!("{reply:?}"),
    }
}
