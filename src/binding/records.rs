//! Reports of an instance for JavaScript.

use napi_derive::napi;

use super::source::Source;
use crate::core::fault::Fault;
use crate::core::layout::Tick;
use crate::core::sequencer::{NEVER, Stall};
use crate::generator::{Generator, Refusal, Rollback, Waits};
use crate::ring::RingStats;

/// The reason why there is no ID. Its kind is a key in `js/faults.js`.
#[derive(Default)]
#[napi(object, object_from_js = false)]
pub struct RefusalRecord {
    pub kind: &'static str,
    /// The time that the clock showed, Unix ms.
    pub now: i64,
    /// Whole ms, at least 1; none where waiting does not help.
    pub retry_after_ms: Option<f64>,
    /// The failure of the host's page, if that is the reason.
    pub why: Option<Fault>,
    /// The host's page, if IDs come from one.
    pub page: Option<String>,
}

impl RefusalRecord {
    pub fn closed() -> Self {
        RefusalRecord { kind: "closed", ..RefusalRecord::default() }
    }

    pub fn of(refusal: Refusal, generator: &Generator) -> Self {
        let Refusal { stall, now, retry_after } = refusal;
        let is_of_page = matches!(stall, Stall::NoPage);
        RefusalRecord {
            kind: kind_of(stall),
            now: now.ms,
            retry_after_ms: retry_after.map(|after| after.as_nanos().div_ceil(1_000_000) as f64),
            why: is_of_page.then(|| generator.page_failure()).flatten(),
            page: page_of(generator),
        }
    }
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

fn page_of(generator: &Generator) -> Option<String> {
    generator.page().path().map(|path| path.display().to_string())
}

/// Events of an instance since the last report.
#[napi(object, object_from_js = false)]
pub struct NewsRecord {
    pub rollback: Option<RollbackRecord>,
    pub waits: Option<WaitsRecord>,
}

impl NewsRecord {
    /// Mostly there is none, and an object takes time to make.
    pub fn of(rollback: Option<Rollback>, waits: Waits) -> Option<Self> {
        let rollback = rollback.map(|rollback| RollbackRecord {
            back_ms: rollback.back_ms,
            counter: rollback.counter as u32,
            is_refused: rollback.is_refused,
            unreported: rollback.unreported as f64,
        });
        let waits = waits.last.map(|stall| WaitsRecord {
            reason: kind_of(stall),
            waits: waits.count as f64,
            waited_ms: waits.time.as_secs_f64() * 1000.0,
        });
        (rollback.is_some() || waits.is_some()).then_some(NewsRecord { rollback, waits })
    }
}

/// A clock rollback.
#[napi(object, object_from_js = false)]
pub struct RollbackRecord {
    pub back_ms: i64,
    pub counter: u32,
    /// Whether IDs stop until the clock has caught up.
    pub is_refused: bool,
    pub unreported: f64,
}

/// Waits of an instance since the last report.
#[napi(object, object_from_js = false)]
pub struct WaitsRecord {
    /// As [`RefusalRecord::kind`].
    pub reason: &'static str,
    pub waits: f64,
    pub waited_ms: f64,
}

/// The counters of a generator. Times in ms.
#[derive(Clone)]
#[napi(object, object_from_js = false)]
pub struct StatsRecord {
    pub issued: f64,
    pub waits: f64,
    pub waited_ms: f64,
    pub clock_rollbacks: f64,
    pub clock_back: u32,
    /// Unix ms of the tick, by counter value; null where nothing was issued.
    pub high_marks: Vec<Option<i64>>,
    /// Unix ms.
    pub end_of_time: i64,
    pub scope: &'static str,
    /// The file of the page that the host's processes share.
    pub page: Option<String>,
    pub ring: Option<RingStatsRecord>,
}

impl StatsRecord {
    pub fn of(source: &Source) -> Self {
        let generator = source.generator();
        let layout = generator.node().layout();
        let stats = generator.stats();
        let ring = source.ring.as_ref().map(|ring| ring.cached.stats());
        let time_of = |&tick: &Tick| (tick != NEVER).then(|| layout.tick_start_ms(tick));
        StatsRecord {
            // The generator has issued the IDs in the ring, but to nobody yet.
            issued: ring.map_or(stats.issued, |ring| ring.taken) as f64,
            waits: stats.waits as f64,
            waited_ms: stats.waited.as_secs_f64() * 1000.0,
            clock_rollbacks: stats.rollbacks as f64,
            clock_back: stats.high.current as u32,
            high_marks: stats.high.marks[..layout.counters()].iter().map(time_of).collect(),
            end_of_time: layout.end_ms(),
            scope: if generator.page().path().is_some() { "host" } else { "process" },
            page: page_of(generator),
            ring: ring.map(RingStatsRecord::from),
        }
    }
}

/// The counters of a ring.
#[derive(Clone)]
#[napi(object, object_from_js = false)]
pub struct RingStatsRecord {
    pub size: f64,
    pub left: f64,
    pub dropped: f64,
    pub rejected_puts: f64,
    pub rejected_takes: f64,
}

impl From<RingStats> for RingStatsRecord {
    fn from(ring: RingStats) -> Self {
        RingStatsRecord {
            size: ring.size as f64,
            left: ring.left as f64,
            dropped: ring.dropped as f64,
            rejected_puts: ring.rejected_puts as f64,
            rejected_takes: ring.rejected_takes as f64,
        }
    }
}
