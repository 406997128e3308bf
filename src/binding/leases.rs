//! Leases from stores: the steps of [`Machine`], called by `js/lease/`. Each takes the reply to a call, and names the next call.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use napi_derive::napi;

use super::values::{digits, layout_of, or_null, report};
use crate::authority::lease::{
    At, Call, Command, Event, Found, Holder, Key, Limits, Machine, Record, Refusal, Reply,
    Settings, Token,
};
use crate::core::fault::{Failure, Value};
use crate::pages::{Loss, Page};
use crate::registry::{LeasedPage, Leases, Request, Share};
use crate::ring::{self, Caching};

/// The settings of a lease. Times in ms.
#[napi(object)]
pub struct LeaseSettings {
    pub ttl: f64,
    pub max_clock_skew: f64,
    pub max_ahead: f64,
    /// The longest wait for another process of the host that takes a slot.
    pub patience: f64,
    /// The name of this host, for people.
    pub host: String,
    /// The start of this process, Unix ms.
    pub started: f64,
    /// The one worker ID that is wanted.
    pub claim: Option<f64>,
    /// The host and port at which this process serves.
    pub address: Option<String>,
    pub may_forget: bool,
}

/// A reply of the store, or what became of the call.
#[napi(object)]
pub struct StoreReply {
    #[napi(ts_type = "'time' | 'read' | 'listed' | 'written' | 'differs' | 'failed'")]
    pub kind: String,
    /// Key, token and text of what was found.
    pub records: Vec<(String, String, String)>,
    /// The store's clock, Unix ms.
    pub now: Option<f64>,
    /// When the call began, by the host's monotonic clock, ms.
    pub called: f64,
}

/// A lease from a store.
#[napi]
pub struct LeaseMachine {
    machine: Machine<LeasedPage>,
    leases: Leases,
    /// How the server describes its own run; 0 where that is unknown.
    run: u64,
    ttl: Duration,
}

#[napi]
impl LeaseMachine {
    /// Whether the host's processes share the slot.
    #[napi(catch_unwind)]
    pub fn is_of_host(&self) -> bool {
        self.leases.is_of_host()
    }

    /// Notes how the server describes its own run, also on the page.
    #[napi(catch_unwind)]
    pub fn note_run(&mut self, run: String) {
        // FNV-1a.
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.run = run.bytes().fold(0xcbf2_9ce4_8422_2325, mix).max(1);
        if let Some(page) = self.machine.page() {
            page.note_run(self.run);
        }
    }

    /// Whether the description of the server's run is unknown, and counts with the next reply.
    #[napi(catch_unwind)]
    pub fn wants_run(&self) -> bool {
        self.run == 0 && self.machine.wants_run()
    }

    /// Wants this worker ID from now on.
    #[napi(catch_unwind)]
    pub fn claim(&mut self, worker: f64) {
        self.machine.claim(worker as u64);
    }

    /// Goes on: at first, and after a pause. `mono` is the host's monotonic clock, ms.
    #[napi(catch_unwind)]
    pub fn go(&mut self, mono: f64) -> Value {
        self.step(Event::Go, mono)
    }

    /// Renews the slot: as far ahead as its ttl.
    #[napi(catch_unwind)]
    pub fn renew(&mut self, mono: f64) -> Value {
        match self.machine.page().map(|page| page.next_ceiling(self.ttl)) {
            Some(ceiling) => self.step(Event::Renew(ceiling), mono),
            None => self.step(Event::Go, mono),
        }
    }

    /// Moves to the lower slot, if the host has two.
    #[napi(catch_unwind)]
    pub fn merge(&mut self, mono: f64) -> Value {
        self.step(Event::Merge, mono)
    }

    /// Releases the slot, if no other process of the host uses it.
    #[napi(catch_unwind)]
    pub fn close(&mut self, mono: f64) -> Value {
        self.step(Event::Close, mono)
    }

    /// Takes the reply to the call under way.
    #[napi(catch_unwind)]
    pub fn reply(&mut self, reply: StoreReply, mono: f64) -> Value {
        let StoreReply { kind, records, now, called } = reply;
        let mut records = records.into_iter().filter_map(|(key, token, text)| {
            let token = Token::new(u64::from_str_radix(&token, 16).ok()?)?;
            Some((key, token, Record::of_text(&text).unwrap_or(Record::Damaged)))
        });
        let mut found = || -> Found { records.next().map(|(_, token, record)| (token, record)) };
        let reply = match kind.as_str() {
            "time" => Reply::Time,
            "read" => Reply::Read(found()),
            "written" => Reply::Written,
            "differs" => Reply::Differs(found()),
            "listed" => {
                let known = |(key, token, record): (String, _, _)| {
                    Some((Key::of_text(&key)?, token, record))
                };
                Reply::Listed(records.filter_map(known).collect())
            }
            _ => Reply::Failed,
        };
        self.step(Event::Reply(reply, now.map(|ms| ms.floor() as i64), called as i64), mono)
    }

    /// The state of the slot; null before there is one.
    #[napi(catch_unwind)]
    pub fn state(&self) -> Value {
        let Some(page) = self.machine.page() else { return Value::Null };
        let Some(Value::Record(mut state)) = leasing_of(page.page()) else { return Value::Null };
        state.push(("isAsked", page.is_asked().into()));
        Value::Record(state)
    }

    /// The floor of the namespace, a tick, and the furthest that ceilings of its holders may be ahead of the store's clock, ms.
    #[napi(catch_unwind)]
    pub fn namespace(&self) -> Value {
        let (id, floor, reach) = self.machine.namespace();
        report!(id: or_null(id.map(digits)), floor, reach)
    }
}

impl LeaseMachine {
    /// A lease that has no slot yet.
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
        let machine = Machine::new(Settings {
            layout: request.layout,
            datacenter: request.datacenter_id,
            claim: settings.claim.map(|worker| worker as u64),
            limits,
            holder,
            may_forget: settings.may_forget,
        });
        let is_usable =
            Box::new(move |share: &Share| caching.is_none_or(|one| ring::fits(share, &one)));
        let patience = Duration::from_millis(settings.patience as u64);
        let leases = Leases::of(request, limits.ttl, patience, is_usable)?;
        let ttl = Duration::from_millis(settings.ttl as u64);
        Ok(LeaseMachine { machine, leases, run: 0, ttl })
    }

    /// The slot that it has.
    pub(super) fn slot(&self) -> Option<LeasedPage> {
        self.machine.page().cloned()
    }

    fn step(&mut self, event: Event, mono: f64) -> Value {
        let at = |run| At { mono: mono as i64, fresh: fresh(), run };
        let command = self.machine.step(event, at(self.run), &self.leases);
        let is_busy = matches!(command, Command::Call(_) | Command::Wait);
        if (!is_busy || self.leases.has_failed())
            && let Some(failure) = self.leases.pause()
        {
            if let Command::Call(_) = command {
                // It is not made.
                let failed = Event::Reply(Reply::Failed, None, mono as i64);
                self.machine.step(failed, at(self.run), &self.leases);
            }
            return report!(kind: "failed", fault: failure.fault);
        }
        self.command(command)
    }

    fn command(&self, command: Command) -> Value {
        match command {
            Command::Call(call) => call_of(call),
            Command::Wait => report!(kind: "wait"),
            Command::Held => report!(kind: "held"),
            Command::Moved => report!(kind: "moved"),
            Command::Lost(loss) => report!(kind: "lost", lost: word_of(loss)),
            Command::Released => report!(kind: "released"),
            Command::Retry => report!(kind: "retry"),
            Command::Join => report!(kind: "join"),
            Command::Refused(refusal) => self.refusal(refusal),
        }
    }

    /// A refusal. Its kind is a key in `js/lease/`.
    fn refusal(&self, refusal: Refusal) -> Value {
        match refusal {
            Refusal::NoSlot(holders) => {
                if self.leases.take_contended() {
                    return report!(kind: "join");
                }
                if let Some(conflict) = self.leases.take_conflict() {
                    return report!(kind: "failed", fault: conflict.fault);
                }
                let damaged = holders.iter().filter(|(_, holder)| holder.is_none());
                let damaged: Value = damaged.map(|(worker, _)| Value::from(*worker)).collect();
                let held = holders.into_iter().filter_map(|(worker, holder)| {
                    let Holder { pid, started, host, .. } = holder?;
                    Some(report!(workerId: worker, pid, started, host))
                });
                report!(kind: "no-slot", holders: held.collect::<Value>(), damaged)
            }
            Refusal::Layout(layout) => report!(kind: "layout", layout: layout_of(&layout)),
            Refusal::Limits(Limits { ttl, max_clock_skew, max_ahead }) => {
                report!(kind: "limits", ttl, maxClockSkew: max_clock_skew, maxAhead: max_ahead)
            }
            Refusal::Ahead(floor) => report!(kind: "ahead", floor),
            Refusal::Damaged(key) => report!(kind: "damaged", key: key.text()),
            Refusal::Unproven(worker) => report!(kind: "unproven", workerId: worker),
        }
    }
}

/// The state of a leased page. The floor and the ceiling are ticks.
fn leasing_of(page: &Page) -> Option<Value> {
    let leasing = page.leasing()?;
    let is_named = page.is_named().unwrap_or(false);
    // A page without its name has ended, too, though not its slot.
    let has_ended = is_named && page.has_ended();
    let loss = leasing.loss.or(has_ended.then_some(Loss::Released));
    Some(report!(
        workerId: page.header().node.worker_id(),
        owner: digits(leasing.owner),
        floor: page.sequence().floor(),
        ceiling: page.cells().ceiling(),
        expires: leasing.expires_ms,
        // The reason of its end; none before that.
        loss: loss.map(word_of),
        // Whether other processes of the host find it.
        isNamed: is_named,
        // The last renewal by the host's monotonic clock, and the duration of the confirmation, ms.
        renewed: leasing.renewed_ms,
        ttl: leasing.ttl_ms,
        renewals: leasing.renewals,
        // The process that renewed it last, and the start of its renewals, Unix ms.
        renewer: leasing.renewer,
        since: leasing.since_ms,
    ))
}

/// The word of a loss.
fn word_of(loss: Loss) -> &'static str {
    match loss {
        Loss::Taken => "taken",
        Loss::Missing => "missing",
        Loss::Reverted => "reverted",
        Loss::Released => "released",
        Loss::Restored => "restored",
    }
}

fn call_of(call: Call) -> Value {
    match call {
        Call::Now => report!(kind: "call", call: "now"),
        Call::Read(key) => report!(kind: "call", call: "read", key: key.text()),
        Call::List { datacenter, bucket } => {
            report!(kind: "call", call: "list", prefix: Key::prefix(datacenter, bucket))
        }
        Call::Write { key, token, record, before } => report!(
            kind: "call",
            call: "write",
            key: key.text(),
            token: digits_of(token),
            text: record.text(),
            before: before.map(digits_of),
        ),
    }
}

/// Limits of JavaScript, ms.
pub(super) fn limits_of(ttl: f64, max_clock_skew: f64, max_ahead: f64) -> Limits {
    Limits { ttl: ttl as i64, max_clock_skew: max_clock_skew as i64, max_ahead: max_ahead as i64 }
}

/// A token for a record that JavaScript writes.
#[napi(catch_unwind)]
pub fn new_token() -> String {
    digits_of(fresh())
}

fn digits_of(token: Token) -> String {
    format!("{token:016x}")
}

/// A number that nobody else has: from the kernel, and where a machine was cloned with the kernel's state, from its clocks.
fn fresh() -> Token {
    let mut bytes = [0; 8];
    // Without it the clocks are left.
    let _ = getrandom::fill(&mut bytes);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let mixed = (u64::from_ne_bytes(bytes) ^ (nanos as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(counter());
    Token::new(mixed).unwrap_or(Token::MAX)
}

/// A counter of the hardware, where it has one.
fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: each processor of this architecture has the instruction.
    let count = unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    let count = 0;
    count
}
