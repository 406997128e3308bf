//! Reports of an instance and its lease. Times in ms.

use super::source::Source;
use super::values::{Value, digits, end_of, list, or_null, report};
use crate::authority::Status;
use crate::core::layout::Tick;
use crate::core::sequencer::{NEVER, Stall};
use crate::generator::{Generator, Refusal, Rollback, Waits};
use crate::registry::Share;
use crate::ring::RingStats;

/// A refusal. `js/messages/refusals.js` has a text for each kind.
pub fn refusal_of(refusal: Refusal, generator: &Generator) -> Value {
    let Refusal { stall, now, retry_after } = refusal;
    let is_of_page = matches!(stall, Stall::NoPage);
    report!(
        kind: kind_of(stall),
        // The clock reading, Unix ms.
        now: now.ms,
        // Whole ms, at least 1; left out if waiting does not help.
        retryAfterMs: retry_after.map(|after| after.as_nanos().div_ceil(1_000_000)),
        // The failure of the host's page, if that is the reason.
        why: is_of_page.then(|| generator.page_failure()).flatten().map(Value::from),
        page: page_of(generator),
    )
}

fn kind_of(stall: Stall) -> &'static str {
    match stall {
        Stall::SequenceExhausted { .. } => "exhausted",
        Stall::ClockBehind { .. } => "clock-back",
        Stall::BeforeEpoch => "before-epoch",
        Stall::AtFloor { .. } => "floor",
        Stall::AboveCeiling { .. } => "ceiling",
        Stall::TimeEnded => "time-ended",
        Stall::NoPage => "page",
    }
}

/// The host's page, if IDs come from one.
fn page_of(generator: &Generator) -> Option<String> {
    generator.page().path().map(|path| path.display().to_string())
}

/// The events of an instance since the last report; `None` if there are none.
pub fn news_of(rollback: Option<Rollback>, waits: Waits) -> Option<Value> {
    let rollback = rollback.map(|rollback| {
        report!(
            backMs: rollback.back_ms,
            counter: rollback.counter,
            // Whether IDs are refused until the clock has caught up.
            isRefused: rollback.is_refused,
            unreported: rollback.unreported,
        )
    });
    let waits = waits.last.map(|stall| {
        let waited_ms = waits.time.as_secs_f64() * 1000.0;
        report!(reason: kind_of(stall), waits: waits.count, waitedMs: waited_ms)
    });
    (rollback.is_some() || waits.is_some()).then_some(report!(rollback, waits))
}

/// The counters of a generator.
pub fn stats_of(source: &Source) -> Value {
    let generator = &*source.generator;
    let layout = generator.node().layout();
    let stats = generator.stats();
    let ring = source.ring.as_ref().map(|ring| ring.cached.stats());
    let time_of = |&tick: &Tick| or_null((tick != NEVER).then(|| layout.tick_start_ms(tick)));
    let page = page_of(generator);
    report!(
        // IDs in the ring are issued by the generator, but not handed out.
        issued: ring.map_or(stats.issued, |ring| ring.taken),
        waits: stats.waits,
        waitedMs: stats.waited.as_secs_f64() * 1000.0,
        clockRollbacks: stats.rollbacks,
        clockBack: stats.high.current,
        // The Unix ms of the highest tick of each counter value; null if nothing was issued.
        highMarks: list(stats.high.marks[..layout.counters()].iter().map(time_of)),
        endOfTime: layout.end_ms(),
        scope: if page.is_some() { "host" } else { "process" },
        page,
        ring: ring.map(|RingStats { size, left, dropped, rejected_puts, rejected_takes, .. }| {
            report!(size, left, dropped, rejectedPuts: rejected_puts, rejectedTakes: rejected_takes)
        }),
    )
}

/// The state of a lease from a directory. Times in Unix ms.
pub fn lease_of(share: &Share) -> Option<Value> {
    let report = share.lease()?;
    let layout = share.node().layout();
    let state = match report.status {
        Status::Held => "held",
        Status::Failing => "failing",
        Status::Lost => "lost",
    };
    Some(report!(
        store: report.store,
        scope: if report.renewer.is_some() { "host" } else { "process" },
        slot: report!(
            datacenterId: share.node().datacenter_id(),
            workerId: share.node().worker_id(),
        ),
        expires: Value::Null,
        owner: digits(report.holder.token),
        // The ends of the last tick that may not be issued (null if there is none), and of the last tick that may.
        floor: or_null((report.floor != NEVER).then(|| end_of(layout, report.floor))),
        ceiling: end_of(layout, report.ceiling),
        renewals: report.renewals,
        state,
        failure: report.failure.map(Value::from),
        // The host's process that renews it; left out if only this process uses the slot.
        renewer: report.renewer.map(|(pid, since)| report!(pid, since)),
    ))
}
