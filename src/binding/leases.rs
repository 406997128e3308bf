//! Leases from stores: `js/lease/` drives a [`Machine`]. Each step takes the reply to a call, and returns the next
//! call.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use napi_derive::napi;

use super::values::{Value, digits, end_of, or_null, report};
use crate::core::fault::{Failure, Fault, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::sequencer::NEVER;
use crate::lease::{
    At, Call, Command, Event, Found, Holder, JOIN_MS, Key, LastRenewal, Limits, Machine, POLL_MS,
    Record, RenewalPace, Reply, Settings, Token,
};
use crate::pages::{Loss, Page};
use crate::registry::{LeasedPage, Leases, Request, Share};
use crate::ring::{self, Caching};

/// The settings of a lease. Times in ms.
#[napi(object)]
pub struct LeaseSettings {
    /// The store's name in errors.
    pub store: String,
    pub ttl: f64,
    pub max_clock_skew: f64,
    pub max_ahead: f64,
    /// The longest wait for another process of the host that is taking a slot.
    pub patience: f64,
    /// The name of this host, for people.
    pub host: String,
    /// The start of this process, Unix ms.
    pub started: f64,
    /// The worker ID to claim.
    pub claim: Option<f64>,
    /// The host and port at which this process serves.
    pub address: Option<String>,
    pub may_forget: bool,
}

/// A reply of the store.
#[napi(object)]
pub struct StoreReply {
    /// Whether a record was written.
    pub is_written: Option<bool>,
    /// Key, token and text of each record found; `None` if the call failed.
    pub records: Option<Vec<(String, String, String)>>,
    /// The server's description of its run.
    pub run: Option<String>,
    /// The store's clock, Unix ms.
    pub now: Option<f64>,
    /// The start of the call, ms of the host's monotonic clock.
    pub called: f64,
}

/// The most writes of one record in one try. Other holders may change a bucket 128 times: twice for each of its slots.
const MOST_WRITES: u32 = 150;

/// A lease from a store.
#[napi]
pub struct LeaseMachine {
    machine: Machine<LeasedPage>,
    pub(super) leases: Leases,
    pub(super) terms: LeaseTerms,
    pace: RenewalPace,
    /// The server's description of its run, hashed; 0 if unknown.
    run: u64,
    /// Whether the server was asked for its run, for this slot; and whether to ask again, since it may be another
    /// server.
    is_described: bool,
    may_be_another: bool,
    /// The command after the description.
    described: Option<Value>,
    /// The number of writes of each record in the present try.
    writes: HashMap<Key, u32>,
    /// The function of the last call.
    call: &'static str,
    /// Whether the present try has renewed a second time.
    is_renewed: bool,
}

/// The terms of a lease.
pub(super) struct LeaseTerms {
    pub store: String,
    pub layout: Layout,
    pub datacenter: u64,
    pub claim: Option<u64>,
    pub limits: Limits,
}

#[napi]
impl LeaseMachine {
    /// Claims this worker ID from now on.
    #[napi(catch_unwind)]
    pub fn claim(&mut self, worker: f64) {
        self.machine.claim(worker as u64);
    }

    /// Starts a try: the first one, or one after a pause. Renews the slot for its ttl, or takes another slot after a
    /// loss. `mono`: ms of the host's monotonic clock.
    #[napi(catch_unwind)]
    pub fn go(&mut self, mono: f64) -> Value {
        self.begin(self.renewal(), mono)
    }

    /// The time until [`go`](Self::go) is due, ms; 0 for now. `is_wanted`: whether a caller waits for a renewal.
    #[napi(catch_unwind)]
    pub fn due(&self, mono: f64, is_wanted: bool) -> f64 {
        let Some(page) = self.machine.page().filter(|page| !has_ended(page.page())) else {
            return 0.0;
        };
        let Some(leasing) = page.page().lease_status() else { return 0.0 };
        let last = LastRenewal {
            elapsed: mono as i64 - leasing.renewed_ms,
            ttl: leasing.ttl_ms,
            count: leasing.renewals,
            is_shared: self.leases.is_of_host(),
            is_asked: page.is_asked(),
        };
        self.pace.due(last, is_wanted) as f64
    }

    /// Moves to the lower slot if the host has two. Checks once after each renewal.
    #[napi(catch_unwind)]
    pub fn merge(&mut self, mono: f64) -> Value {
        let renewals =
            self.machine.page().and_then(|page| Some(page.page().lease_status()?.renewals));
        let looks = renewals.is_some_and(|count| self.pace.look(count));
        if looks || self.machine.is_moving() {
            self.begin(Event::Merge, mono)
        } else {
            report!(kind: "wait")
        }
    }

    /// Releases the slot, if no other process of the host uses it.
    #[napi(catch_unwind)]
    pub fn close(&mut self, mono: f64) -> Value {
        self.begin(Event::Close, mono)
    }

    /// Takes the reply to the call under way.
    #[napi(catch_unwind)]
    pub fn reply(&mut self, reply: StoreReply, mono: f64) -> Value {
        let StoreReply { is_written, records, now, called, run } = reply;
        if let Some(next) = self.described.take() {
            if let Some(run) = run {
                self.note_run(&run);
            }
            return next;
        }
        let reply = match records {
            Some(records) => self.read(records, is_written == Some(true)),
            None => Reply::Failed,
        };
        self.step(Event::Reply(reply, now.map(|ms| ms.floor() as i64), called as i64), mono)
    }

    /// The state of the slot; null before there is one. Times in Unix ms: a tick is shown as its last ms.
    #[napi(catch_unwind)]
    pub fn state(&self) -> Value {
        let Some(page) = self.machine.page() else { return Value::Null };
        self.state_of(page.page()).unwrap_or(Value::Null)
    }

    /// The namespace's floor, Unix ms, and the most ms that its holders' ceilings may be ahead of the store's clock.
    #[napi(catch_unwind)]
    pub fn namespace(&self) -> Value {
        let (_, floor, reach) = self.machine.namespace();
        report!(floor: self.end_of(floor), reach)
    }
}

impl LeaseMachine {
    /// A lease without a slot.
    pub(super) fn new(
        request: Request,
        settings: LeaseSettings,
        caching: Option<Caching>,
    ) -> Result<Self, Failure> {
        let limits = limits_of(settings.ttl, settings.max_clock_skew, settings.max_ahead);
        let holder = Holder {
            pid: std::process::id(),
            started: settings.started as i64,
            is_claim: settings.claim.is_some(),
            address: settings.address.unwrap_or_default().replace(' ', ""),
            host: settings.host,
        };
        let (layout, datacenter) = (request.layout, request.datacenter_id);
        let claim = settings.claim.map(|worker| worker as u64);
        let machine = Machine::new(Settings {
            layout,
            datacenter,
            claim,
            limits,
            holder,
            may_forget: settings.may_forget,
        });
        let is_usable =
            Box::new(move |share: &Share| caching.is_none_or(|one| ring::fits(share, &one)));
        let patience = Duration::from_millis(settings.patience as u64);
        let leases = Leases::of(request, limits.ttl, patience, is_usable)?;
        Ok(LeaseMachine {
            machine,
            leases,
            terms: LeaseTerms { store: settings.store, layout, datacenter, claim, limits },
            pace: RenewalPace::new(limits.ttl, fastrand::f64()),
            run: 0,
            is_described: false,
            may_be_another: false,
            described: None,
            writes: HashMap::new(),
            call: "",
            is_renewed: false,
        })
    }

    /// The present slot.
    pub(super) fn slot(&self) -> Option<LeasedPage> {
        self.machine.page().cloned()
    }

    /// Reads a reply: key, token and text of each record found.
    fn read(&self, found: Vec<(String, String, String)>, is_written: bool) -> Reply {
        let mut records = found.into_iter().filter_map(|(key, token, text)| {
            let token = Token::new(u64::from_str_radix(&token, 16).ok()?)?;
            Some((key, token, Record::of_text(&text).unwrap_or(Record::Damaged)))
        });
        let mut first = || -> Found { records.next().map(|(_, token, record)| (token, record)) };
        match self.call {
            "now" => Reply::Time,
            "read" => Reply::Read(first()),
            "write" if is_written => Reply::Written,
            "write" => Reply::Differs(first()),
            _ => {
                let known = |(key, token, record): (String, _, _)| {
                    Some((Key::of_text(&key)?, token, record))
                };
                Reply::Listed(records.filter_map(known).collect())
            }
        }
    }

    fn begin(&mut self, event: Event, mono: f64) -> Value {
        self.is_renewed = false;
        self.pace.begin();
        self.writes.clear();
        self.step(event, mono)
    }

    fn step(&mut self, event: Event, mono: f64) -> Value {
        let has_failed = matches!(event, Event::Reply(Reply::Failed, ..));
        let at = |run| At { mono: mono as i64, fresh: fresh(), run };
        let command = self.machine.step(event, at(self.run), &self.leases);
        let is_busy = self.machine.is_calling();
        let failure = (!is_busy || self.leases.has_failed()).then(|| self.leases.pause()).flatten();
        let refused = failure.map(|failure| failure.fault).or_else(|| match &command {
            Command::Call(Call::Write { key, .. }) => self.changing(*key),
            _ => None,
        });
        if let Some(fault) = refused {
            if let Command::Call(_) = command {
                // The call is not made, so it counts as failed.
                let failed = Event::Reply(Reply::Failed, None, mono as i64);
                self.machine.step(failed, at(self.run), &self.leases);
            }
            return report!(kind: "refused", ms: self.pace.retry(), fault);
        }
        if matches!(command, Command::Held) && self.is_behind(at(self.run)) {
            return self.step(self.renewal(), mono);
        }
        self.command(command, has_failed)
    }

    /// A renewal of the slot for its ttl.
    fn renewal(&self) -> Event {
        let ttl = Duration::from_millis(self.terms.limits.ttl as u64);
        let held = self.machine.page().filter(|page| !has_ended(page.page()));
        held.map_or(Event::Go, |page| Event::Renew(page.next_ceiling(ttl)))
    }

    /// Whether the clock is right, but has passed the ceiling that was just confirmed, for the first time in this try.
    /// After a suspend, only the reply shows the store's clock.
    fn is_behind(&mut self, at: At) -> bool {
        let Some(page) = self.machine.page() else { return false };
        let now = page.next_ceiling(Duration::ZERO);
        let is_behind = now > page.page().cells().ceiling() && self.machine.is_near(now, at);
        is_behind && !std::mem::replace(&mut self.is_renewed, true)
    }

    /// Counts a write. Refuses too many writes of one record: the store or another program does not keep them.
    fn changing(&mut self, key: Key) -> Option<Fault> {
        let writes = self.writes.entry(key).or_default();
        *writes += 1;
        let store = self.terms.store.as_str();
        (*writes > MOST_WRITES).then(|| fault!("store-changing", store, key: key.text()))
    }

    fn command(&mut self, command: Command, has_failed: bool) -> Value {
        match command {
            Command::Call(call) => {
                self.pace.call();
                self.call = name_of(&call);
                let next = call_of(call);
                // Before the call: during the call, other processes may renew the slot that it reads.
                if self.run == 0 && self.machine.wants_run() { self.describe(next) } else { next }
            }
            Command::Wait | Command::Held => {
                let is_wait = matches!(command, Command::Wait);
                let held = self.machine.page().and_then(|page| {
                    let own =
                        Key::Slot(self.terms.datacenter, page.page().header().node.worker_id());
                    let leasing = page.page().lease_status()?;
                    let is_renewer = leasing.renewer == std::process::id();
                    let is_own = is_renewer && self.writes.contains_key(&own);
                    Some((leasing.renewals, is_own))
                });
                let is_own = held.is_some_and(|(_, is_own)| is_own);
                if let Some((renewals, is_own)) = held {
                    self.pace.hold(is_own.then_some(renewals));
                }
                let next = report!(kind: if is_wait { "wait" } else { "held" }, isOwn: is_own);
                if std::mem::take(&mut self.may_be_another) { self.describe(next) } else { next }
            }
            Command::Moved => {
                self.pace.lose();
                report!(kind: "moved")
            }
            Command::Lost(loss) => {
                self.pace.lose();
                // The next slot may be on another server.
                (self.run, self.is_described) = (0, false);
                report!(kind: "lost", lost: word_of(loss), ms: POLL_MS, fault: self.unsettled())
            }
            Command::Released => report!(kind: "released"),
            Command::Retry => {
                let is_held = self.machine.page().is_some();
                self.may_be_another |= has_failed && is_held;
                self.is_described &= !self.may_be_another;
                let ms = if has_failed { self.pace.retry() } else { POLL_MS };
                report!(kind: "retry", ms, fault: self.unsettled())
            }
            Command::Join => report!(kind: "join", ms: JOIN_MS),
            Command::Refused(refusal) => self.refusal(refusal, self.pace.retry()),
        }
    }

    /// The fault of a slot whose record keeps changing.
    fn unsettled(&self) -> Fault {
        let LeaseTerms { store, limits: Limits { ttl, .. }, .. } = &self.terms;
        fault!("store-unsettled", store: store.as_str(), ttl: *ttl)
    }

    /// Asks the server to describe its run before the next command, unless it has.
    fn describe(&mut self, next: Value) -> Value {
        if std::mem::replace(&mut self.is_described, true) {
            return next;
        }
        self.described = Some(next);
        report!(kind: "call", call: "describeRun")
    }

    fn state_of(&self, page: &Page) -> Option<Value> {
        let leasing = page.lease_status()?;
        let is_shared = self.leases.is_of_host();
        let (floor, ceiling) = (page.sequence().floor(), page.cells().ceiling());
        Some(report!(
            scope: if is_shared { "host" } else { "process" },
            slot: report!(
                datacenterId: self.terms.datacenter,
                workerId: page.header().node.worker_id(),
            ),
            owner: digits(leasing.owner),
            floor: self.end_of(floor),
            ceiling: end_of(&self.terms.layout, ceiling.max(floor)),
            expires: or_null(leasing.expires_ms),
            renewals: leasing.renewals,
            // The process that renewed the lease last, and the start of its renewals.
            renewer: is_shared.then(|| report!(pid: leasing.renewer, since: leasing.since_ms)),
            ended: has_ended(page).then(|| loss_of(page).map_or("page", word_of)),
        ))
    }

    /// The last ms of a tick; null for no tick.
    fn end_of(&self, tick: Tick) -> Value {
        or_null((tick > NEVER).then(|| end_of(&self.terms.layout, tick)))
    }

    /// Notes the server's description of its run, also on the page.
    fn note_run(&mut self, run: &str) {
        // FNV-1a.
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.run = run.bytes().fold(0xcbf2_9ce4_8422_2325, mix).max(1);
        if let Some(page) = self.machine.page() {
            page.note_run(self.run);
        }
    }
}

/// The reason of a page's end; `None` before.
fn loss_of(page: &Page) -> Option<Loss> {
    // A page that lost its name has ended, too, but its slot has not.
    let has_ended = page.is_named().unwrap_or(false) && page.has_ended();
    page.lease_status()?.loss.or(has_ended.then_some(Loss::Released))
}

/// Whether a page has ended, or has lost its name.
fn has_ended(page: &Page) -> bool {
    loss_of(page).is_some() || !page.is_named().unwrap_or(false)
}

/// The name of a loss in `js/`.
fn word_of(loss: Loss) -> &'static str {
    match loss {
        Loss::Taken => "taken",
        Loss::Missing => "missing",
        Loss::Reverted => "reverted",
        // A slot in use is released only if its page was deleted.
        Loss::Released => "page",
        Loss::Restored => "restored",
    }
}

/// The name of the register's function.
fn name_of(call: &Call) -> &'static str {
    match call {
        Call::Now => "now",
        Call::Read(_) => "read",
        Call::List { .. } => "list",
        Call::Write { .. } => "write",
    }
}

fn call_of(call: Call) -> Value {
    let name = name_of(&call);
    match call {
        Call::Now => report!(kind: "call", call: name),
        Call::Read(key) => report!(kind: "call", call: name, key: key.text()),
        Call::List { datacenter, bucket } => {
            report!(kind: "call", call: name, prefix: Key::prefix(datacenter, bucket))
        }
        Call::Write { key, token, record, before } => report!(
            kind: "call",
            call: name,
            key: key.text(),
            token: digits_of(token),
            text: record.text(),
            before: before.map(digits_of),
        ),
    }
}

/// Limits from JavaScript, ms.
pub(super) fn limits_of(ttl: f64, max_clock_skew: f64, max_ahead: f64) -> Limits {
    Limits { ttl: ttl as i64, max_clock_skew: max_clock_skew as i64, max_ahead: max_ahead as i64 }
}

/// A new token, for a record that JavaScript writes.
#[napi(catch_unwind)]
pub fn new_token() -> String {
    digits_of(fresh())
}

fn digits_of(token: Token) -> String {
    format!("{token:016x}")
}

/// A unique number: from the kernel's random numbers and, since a machine may be cloned with the kernel's state, from
/// clocks.
fn fresh() -> Token {
    let mut bytes = [0; 8];
    // If this fails, only the clocks remain.
    let _ = getrandom::fill(&mut bytes);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let mixed = (u64::from_ne_bytes(bytes) ^ (nanos as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(counter());
    Token::new(mixed).unwrap_or(Token::MAX)
}

/// A counter of the processor, if it has one.
fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: each processor of this architecture has the instruction.
    let count = unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    let count = 0;
    count
}
