//! Leases from stores, by the [`Driver`] that decides and paces: JavaScript makes the calls that it wants, keeps one timer, and
//! publishes reports.

use napi_derive::napi;

use super::page_lease::{loss_word, page_lease};
use super::records::limits_of;
use super::values::{Value, list, or_null, report};
use crate::core::fault::Failure;
use crate::lease::{
    At, Call, Driver, Found, Holder, Input, Key, Next, Patience, Record, Reply, Report, Settings,
    Token,
};
use crate::registry::{HostPage, HostPages, Reasons, Request};
use crate::ring::{self, Caching};

/// The settings of a lease. Times in ms.
#[napi(object)]
pub struct LeaseSettings {
    /// The store's name in errors.
    pub store: String,
    pub ttl: f64,
    pub max_clock_skew: f64,
    pub max_ahead: f64,
    /// How long to wait for a slot, through failed calls, too.
    pub wait: f64,
    pub call_timeout: f64,
    /// The name of this host, for people.
    pub host: String,
    /// The start of this process, Unix ms.
    pub started: f64,
    /// The worker ID to claim.
    pub claim: Option<f64>,
    /// The host and port at which this process serves.
    pub address: Option<String>,
    pub may_forget: bool,
    /// The worker IDs of a record: 32, 8 or 1.
    pub size: f64,
}

/// What happened to a lease.
#[napi(object)]
pub struct LeaseInput {
    /// 'time', 'wanted', 'restored' or 'close'; or the outcome of the call: 'failed', 'written', or 'found' with the record
    /// that was read, or that a write found in place of its predecessor.
    #[napi(ts_type = "'time' | 'wanted' | 'restored' | 'close' | 'failed' | 'written' | 'found'")]
    pub kind: String,
    /// The record's token and text; none if there is none.
    pub token: Option<String>,
    pub text: Option<String>,
    /// The store's clock, Unix ms, if the reply has it.
    pub now: Option<f64>,
}

/// A lease from a store.
#[napi]
pub struct LeaseDriver {
    driver: Driver<HostPage>,
    host: HostPages,
    /// The page from which to issue: from `open` to `lost`.
    slot: Option<HostPage>,
    /// The call under way.
    call: Option<Call>,
    store: String,
}

#[napi]
impl LeaseDriver {
    /// Claims this worker ID from now on.
    #[napi(catch_unwind)]
    pub fn claim(&mut self, worker: f64) {
        self.driver.claim(worker as u64);
    }

    /// Takes an input. Returns `reports`, and what is `next`: a call, a wait, or the end. `mono`: ms of the host's monotonic
    /// clock; `wall`: Unix ms.
    #[napi(catch_unwind, ts_return_type = "LeaseStep")]
    pub fn step(&mut self, input: LeaseInput, mono: f64, wall: f64) -> Value {
        let at = At { mono: mono as i64, wall: wall.floor() as i64 };
        let input = self.read(input);
        let (reports, next) = self.driver.step(input, at, &mut self.host);
        let reports: Vec<Value> = reports.into_iter().map(|one| self.report(one)).collect();
        report!(reports: list(reports), next: self.next(next))
    }

    /// The state of the slot; null while there is none. Times in Unix ms: a tick is shown as its last ms.
    #[napi(catch_unwind, ts_return_type = "PageLease | null")]
    pub fn state(&self) -> Value {
        let state = self.slot.as_ref().and_then(|slot| page_lease(slot.page()));
        or_null(state.map(Value::Record))
    }

    /// How far this host's clock is ahead of the store's at least, or behind it, ms.
    #[napi(catch_unwind)]
    pub fn skew(&self) -> f64 {
        self.driver.skew() as f64
    }

    /// How far ahead of the store's clock the namespace's floor may be after a loss of data, ms.
    #[napi(catch_unwind)]
    pub fn reach(&self) -> f64 {
        let namespace = self.driver.machine().namespace();
        namespace.map_or(0, |namespace| namespace.limits.reach()) as f64
    }
}

impl LeaseDriver {
    /// A lease without a slot.
    pub(super) fn new(
        request: Request,
        settings: LeaseSettings,
        caching: Option<Caching>,
        (mono, wall): (f64, f64),
    ) -> Result<Self, Failure> {
        let LeaseSettings { store, ttl, max_clock_skew, max_ahead, .. } = settings;
        let limits = limits_of(ttl, max_clock_skew, max_ahead);
        let address = settings.address.unwrap_or_default();
        let (layout, datacenter) = (request.layout, request.datacenter_id);
        let claim = settings.claim.map(|worker| worker as u64);
        let started = settings.started as i64;
        let wanted = Settings {
            layout,
            datacenter,
            claim,
            limits,
            holder: Holder::new(std::process::id(), started, &address, &settings.host),
            size: settings.size as u64,
            may_forget: settings.may_forget,
            has_own_clock: false,
        };
        let patience = Patience { wait: settings.wait as i64, call: settings.call_timeout as i64 };
        let at = At { mono: mono as i64, wall: wall.floor() as i64 };
        Ok(LeaseDriver {
            driver: Driver::new(wanted, patience, at, fastrand::f64()),
            host: HostPages::of(request, ring::usable(caching))?,
            slot: None,
            call: None,
            store,
        })
    }

    /// The present slot.
    pub(super) fn slot(&self) -> Option<HostPage> {
        self.slot.clone()
    }

    fn read(&mut self, input: LeaseInput) -> Input {
        let LeaseInput { kind, token, text, now } = input;
        match &*kind {
            "time" => return Input::Time,
            "wanted" => return Input::Wanted,
            "restored" => return Input::Restored,
            "close" => return Input::Close,
            _ => {}
        }
        let reply = match (&*kind, self.call.take()) {
            ("found", Some(Call::Now)) => Reply::Time,
            ("found", Some(Call::Read(key) | Call::Write { key, .. })) => {
                found_of(key, token, text).map_or(Reply::Failed, Reply::Found)
            }
            ("written", Some(Call::Write { .. })) => Reply::Written,
            _ => Reply::Failed,
        };
        Input::Reply(reply, now.map(|ms| ms.floor() as i64))
    }

    fn next(&mut self, next: Next) -> Value {
        match next {
            Next::Call(call, within) => {
                self.call = Some(call.clone());
                call_of(call, within)
            }
            // A wait that has no look ends by a reply, or when it is due.
            Next::Wait { due, look } => report!(kind: "wait", ms: due.min(look)),
            Next::End => report!(kind: "end"),
        }
    }

    fn report(&mut self, one: Report<HostPage>) -> Value {
        match one {
            Report::Open(page) => {
                self.slot = Some(page);
                report!(kind: "open")
            }
            Report::Renewed => report!(kind: "renewed"),
            Report::Lost(loss) => {
                // Others may use the page again, if it is left and has not ended.
                self.slot = None;
                report!(kind: "lost", lost: loss_word(loss))
            }
            Report::Failed => {
                let fault = self.host.take_failure().map(|failure| Value::from(failure.fault));
                report!(kind: "failed", fault)
            }
            Report::Refused(refusal) => {
                let settings = self.driver.machine().settings();
                let fault = Reasons { store: &self.store, settings }.refusal(
                    refusal,
                    Vec::new(),
                    &mut self.host,
                );
                report!(kind: "refused", fault)
            }
            Report::Unsettled => {
                let settings = self.driver.machine().settings();
                let fault = Reasons { store: &self.store, settings }.unsettled();
                report!(kind: "unsettled", fault)
            }
            Report::Unlocked => report!(kind: "unlocked"),
        }
    }
}

/// What was found under a key. None where the token is not one: the call counts as failed.
fn found_of(key: Key, token: Option<String>, text: Option<String>) -> Option<Found> {
    let (Some(token), Some(text)) = (token, text) else { return Some(None) };
    Some(Some((Token::of_text(&token)?, Record::of_text(key, &text))))
}

fn call_of(call: Call, within: i64) -> Value {
    match call {
        Call::Now => report!(kind: "call", call: "now", within),
        Call::Read(key) => report!(kind: "call", call: "read", key: key.to_string(), within),
        Call::Write { key, token, record, before } => report!(
            kind: "call",
            call: "write",
            key: key.to_string(),
            token: token.to_string(),
            text: record.text(),
            before: before.map(|token| token.to_string()),
            within,
        ),
    }
}
