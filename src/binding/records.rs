//! Reports of an instance for JavaScript. Times in ms.

use super::report::{Item, Report, or_null, report};
use super::source::Source;
use crate::core::layout::Tick;
use crate::core::sequencer::{NEVER, Stall};
use crate::generator::{Generator, Refusal, Rollback, Waits};
use crate::ring::RingStats;

/// The refusal of a closed instance.
pub fn closed() -> Report {
    report!(kind: "closed", now: 0u32)
}

/// The reason why there is no ID. Its kind is a key in `js/faults.js`.
pub fn refusal_of(refusal: Refusal, generator: &Generator) -> Report {
    let Refusal { stall, now, retry_after } = refusal;
    let is_of_page = matches!(stall, Stall::NoPage);
    report!(
        kind: kind_of(stall),
        // The time that the clock showed, Unix ms.
        now: now.ms,
        // Whole ms, at least 1; none where waiting does not help.
        retryAfterMs: retry_after.map(|after| after.as_nanos().div_ceil(1_000_000)),
        // The failure of the host's page, if that is the reason.
        why: is_of_page.then(|| generator.page_failure()).flatten(),
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

/// Events of an instance since the last report. Mostly there is none, and an object takes time to make.
pub fn news_of(rollback: Option<Rollback>, waits: Waits) -> Option<Report> {
    let rollback = rollback.map(|rollback| {
        report!(
            backMs: rollback.back_ms,
            counter: rollback.counter,
            // Whether IDs stop until the clock has caught up.
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
pub fn stats_of(source: &Source) -> Report {
    let generator = source.generator();
    let layout = generator.node().layout();
    let stats = generator.stats();
    let ring = source.ring.as_ref().map(|ring| ring.cached.stats());
    let time_of = |&tick: &Tick| or_null((tick != NEVER).then(|| layout.tick_start_ms(tick)));
    let page = page_of(generator);
    report!(
        // The generator has issued the IDs in the ring, but to nobody yet.
        issued: ring.map_or(stats.issued, |ring| ring.taken),
        waits: stats.waits,
        waitedMs: stats.waited.as_secs_f64() * 1000.0,
        clockRollbacks: stats.rollbacks,
        clockBack: stats.high.current,
        // Unix ms of the tick, by counter value; null where nothing was issued.
        highMarks: stats.high.marks[..layout.counters()].iter().map(time_of).collect::<Item>(),
        endOfTime: layout.end_ms(),
        scope: if page.is_some() { "host" } else { "process" },
        page,
        ring: ring.map(|RingStats { size, left, dropped, rejected_puts, rejected_takes, .. }| {
            report!(size, left, dropped, rejectedPuts: rejected_puts, rejectedTakes: rejected_takes)
        }),
    )
}
