//! Reports of an instance and its lease. Times in ms.

use super::page_lease::{loss_word, page_lease};
use super::source::Source;
use super::values::{Value, list, or_null, report};
use crate::core::layout::Tick;
use crate::core::sequencer::{NEVER, Stall};
use crate::generator::{Generator, Rollback, Stalled, Waits};
use crate::registry::Leased;
use crate::ring::RingStats;

/// A refusal. `js/messages/refusals.js` has a text for each kind.
pub fn refusal_of(refusal: Stalled, generator: &Generator) -> Value {
    let Stalled { stall, now, retry_after } = refusal;
    let is_of_page = matches!(stall, Stall::NoPage);
    report!(
        kind: kind_of(stall),
        // The clock reading, Unix ms.
        now: now.ms,
        // Whole ms, at least 1; left out if waiting does not help.
        retryAfterMs: retry_after.map(|after| after.as_nanos().div_ceil(1_000_000)),
        // The failure of the host's page, if that is the reason.
        why: is_of_page.then(|| generator.page_failure()).flatten().map(Value::from),
        page: page_path(generator),
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
fn page_path(generator: &Generator) -> Option<String> {
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
    let page = page_path(generator);
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

/// The state of a lease from a directory, and the slot from which the instance issues.
pub fn directory_lease_of(source: &Source) -> Option<Value> {
    let lease = source.lease.as_ref()?;
    let Leased { slot, lost, failure, .. } = lease.state();
    let page = source.page();
    Some(report!(
        store: lease.store(),
        reach: lease.reach(),
        lost: lost.map(loss_word),
        failure: failure.map(Value::from),
        // Whether the lease has another slot by now.
        hasMoved: slot.is_some_and(|slot| slot.page().id() != page.id()),
        page: Value::Record(page_lease(&page)?),
    ))
}
