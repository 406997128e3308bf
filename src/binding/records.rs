//! What generators and leases tell JavaScript of themselves.

use napi::bindgen_prelude::{Either, Null};
use napi_derive::napi;

use super::HolderRecord;
use crate::cached::RingStats;
use crate::generator::{ClockStep, Generator, Refusal, Waits};
use crate::layout::{Layout, Tick};
use crate::lease::Standing;
use crate::registry::Share;
use crate::reset::{Plan, Reset};
use crate::sequencer::{NEVER, Stall};
use crate::store::file::Found;
use crate::store::record::{Record, Skip};

/// Why there is no ID, for `js/errors.js` to word.
#[napi(object)]
pub struct RefusalRecord {
    #[napi(
        ts_type = "'closed' | 'used-up' | 'clock-back' | 'before-epoch' | 'floor' | 'ceiling' | 'time-ended' | 'page'"
    )]
    pub kind: String,
    /// What the clock showed, Unix ms.
    pub now: f64,
    /// Whole ms, at least 1; none where waiting does not help.
    pub retry_after_ms: Option<f64>,
    /// What is wrong with the host's page, where that is why.
    pub why: Option<String>,
    /// The host's page, if IDs come from one that no store records.
    pub page: Option<String>,
}

impl RefusalRecord {
    pub fn closed() -> Self {
        RefusalRecord {
            kind: "closed".to_owned(),
            now: 0.0,
            retry_after_ms: None,
            why: None,
            page: None,
        }
    }
}

impl From<Refusal> for RefusalRecord {
    fn from(refusal: Refusal) -> Self {
        RefusalRecord {
            kind: kind_of(refusal.stall).to_owned(),
            now: refusal.now.ms as f64,
            retry_after_ms: refusal
                .retry_after
                .map(|after| after.as_nanos().div_ceil(1_000_000) as f64),
            why: None,
            page: None,
        }
    }
}

fn kind_of(stall: Stall) -> &'static str {
    match stall {
        Stall::SequenceUsedUp { .. } => "used-up",
        Stall::ClockBehind { .. } => "clock-back",
        Stall::BeforeEpoch => "before-epoch",
        Stall::AtFloor { .. } => "floor",
        Stall::AboveCeiling { .. } => "ceiling",
        Stall::TimeEnded => "time-ended",
        Stall::NoPage => "page",
    }
}

/// What an instance has met that is to be told of.
#[napi(object)]
pub struct NewsRecord {
    pub step: Option<StepRecord>,
    pub waits: Option<WaitsRecord>,
}

/// What an instance has waited for.
#[napi(object)]
pub struct WaitsRecord {
    /// As in [`RefusalRecord`].
    pub reason: String,
    pub waits: f64,
    pub waited_ms: f64,
}

impl WaitsRecord {
    pub fn of(waits: Waits) -> Option<Self> {
        let reason = kind_of(waits.last?).to_owned();
        let waited_ms = waits.time.as_secs_f64() * 1000.0;
        Some(WaitsRecord { reason, waits: waits.count as f64, waited_ms })
    }
}

/// A step of the clock back.
#[napi(object)]
pub struct StepRecord {
    pub back_ms: f64,
    pub counter: u32,
    pub unreported: f64,
}

impl From<ClockStep> for StepRecord {
    fn from(step: ClockStep) -> Self {
        StepRecord {
            back_ms: step.back_ms as f64,
            counter: step.counter as u32,
            unreported: step.unreported as f64,
        }
    }
}

/// What a generator has done so far. Times in ms.
#[napi(object)]
pub struct StatsRecord {
    pub issued: f64,
    pub waits: f64,
    pub waited_ms: f64,
    pub clock_steps_back: f64,
    pub clock_back: u32,
    /// Unix ms of the tick, by counter value; null where nothing was issued.
    pub high_marks: Vec<Either<f64, Null>>,
    /// Unix ms.
    pub end_of_time: f64,
    #[napi(ts_type = "'host' | 'process'")]
    pub scope: String,
    /// The file of the page that the host's processes share.
    pub page: Option<String>,
    pub ring: Option<RingStatsRecord>,
}

impl StatsRecord {
    pub fn of(generator: &Generator, ring: Option<RingStats>) -> Self {
        let layout = generator.node().layout();
        let stats = generator.stats();
        let time_of = |&tick: &Tick| match tick {
            NEVER => Either::B(Null),
            tick => Either::A(layout.tick_start_ms(tick) as f64),
        };
        StatsRecord {
            // What is in the ring was issued by the generator, and to nobody yet.
            issued: ring.map_or(stats.issued, |ring| ring.taken) as f64,
            waits: stats.waits as f64,
            waited_ms: stats.waited.as_secs_f64() * 1000.0,
            clock_steps_back: stats.steps as f64,
            clock_back: stats.high.current as u32,
            high_marks: stats.high.marks[..layout.counters()].iter().map(time_of).collect(),
            end_of_time: layout.end_ms() as f64,
            scope: if generator.page().is_some() { "host" } else { "process" }.to_owned(),
            page: generator.page().map(|page| page.path().display().to_string()),
            ring: ring.map(RingStatsRecord::from),
        }
    }
}

/// What a ring has done so far.
#[napi(object)]
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

/// What the file of a slot says. Times in Unix ms.
#[napi(object)]
pub struct SlotRecord {
    pub path: String,
    /// Why it cannot be used; then there is nothing else.
    pub fault: Option<String>,
    pub datacenter_id: f64,
    pub worker_id: f64,
    /// Who holds it, or held it when it died; none after a release.
    pub holder: Option<HolderRecord>,
    /// The end of the last tick that may have been issued.
    pub ceiling: f64,
}

impl From<Found> for SlotRecord {
    fn from(found: Found) -> Self {
        let path = found.path.display().to_string();
        match found.record {
            Ok(Record { node, ceiling, holder, .. }) => SlotRecord {
                path,
                fault: None,
                datacenter_id: node.datacenter_id() as f64,
                worker_id: node.worker_id() as f64,
                holder: holder.map(|holder| HolderRecord::new(&holder, None)),
                ceiling: end_of(node.layout(), ceiling) as f64,
            },
            Err(error) => SlotRecord {
                path,
                fault: Some(error.to_string()),
                datacenter_id: 0.0,
                worker_id: 0.0,
                holder: None,
                ceiling: 0.0,
            },
        }
    }
}

/// The last ms of a tick.
pub fn end_of(layout: &Layout, tick: Tick) -> i64 {
    layout.tick_start_ms(tick.saturating_add(1)).saturating_sub(1)
}

/// How a lease stands. Times in Unix ms.
#[napi(object)]
pub struct LeaseRecord {
    pub store: String,
    /// Hexadecimal.
    pub owner: String,
    /// The end of the last tick that may not be issued; null where there is none.
    pub floor: Either<f64, Null>,
    /// The end of the last tick that may be issued.
    pub ceiling: f64,
    pub renewals: f64,
    #[napi(ts_type = "'held' | 'failing' | 'lost'")]
    pub state: String,
    pub failure: Option<String>,
}

impl LeaseRecord {
    pub fn of(share: &Share) -> Option<LeaseRecord> {
        let report = share.lease()?;
        let layout = share.node().layout();
        let state = match report.standing {
            Standing::Held => "held",
            Standing::Failing => "failing",
            Standing::Lost => "lost",
        };
        Some(LeaseRecord {
            store: report.store,
            owner: format!("{:032x}", report.holder.token),
            floor: match report.floor {
                NEVER => Either::B(Null),
                floor => Either::A(end_of(layout, floor) as f64),
            },
            ceiling: end_of(layout, report.ceiling) as f64,
            renewals: report.renewals as f64,
            state: state.to_owned(),
            failure: report.failure,
        })
    }
}

/// What is known of a slot, and what a reset makes of it. Times in Unix ms; null for none.
#[napi(object)]
pub struct ResetRecord {
    pub path: String,
    pub datacenter_id: f64,
    pub worker_id: f64,
    /// Why the file cannot be used; then the clock alone tells where to start.
    pub fault: Option<String>,
    /// Who held it when it died; none after a release.
    pub holder: Option<HolderRecord>,
    /// What was issued up to here is not known, if the machine stays up.
    pub floor: Either<f64, Null>,
    /// Nothing was issued after it.
    pub ceiling: Either<f64, Null>,
    /// The last IDs under each value of the clock-back counter, if the machine stayed up.
    pub high_marks: Option<Vec<Either<f64, Null>>>,
    /// Null where nothing is to be done.
    pub plan: Either<PlanRecord, Null>,
}

/// How a slot is put right.
#[napi(object)]
pub struct PlanRecord {
    /// IDs go on after this.
    pub floor: f64,
    /// The times that no ID will have again: the first and the last ms.
    pub skip: Option<Vec<f64>>,
    /// IDs after the floor that may come again have times up to this; infinite where that is unknown.
    pub repeats_to: Either<f64, Null>,
}

impl From<Reset> for ResetRecord {
    fn from(reset: Reset) -> Self {
        let Reset { path, node, found, high, plan, .. } = reset;
        let layout = node.layout();
        let time_of = |tick: Tick| match tick {
            NEVER => Either::B(Null),
            Tick::MAX => Either::A(f64::INFINITY),
            tick => Either::A(end_of(layout, tick) as f64),
        };
        let record = found.as_ref().ok();
        ResetRecord {
            path: path.display().to_string(),
            datacenter_id: node.datacenter_id() as f64,
            worker_id: node.worker_id() as f64,
            fault: found.as_ref().err().map(ToString::to_string),
            holder: record
                .and_then(|record| record.holder.as_ref())
                .map(|holder| HolderRecord::new(holder, None)),
            floor: time_of(record.map_or(NEVER, |record| record.floor)),
            ceiling: time_of(record.map_or(NEVER, |record| record.ceiling)),
            high_marks: high
                .map(|high| high.marks[..layout.counters()].iter().copied().map(time_of).collect()),
            plan: plan.map_or(Either::B(Null), |Plan { floor, skip, repeats_to }| {
                let skipped =
                    || vec![layout.tick_start_ms(skip.from) as f64, end_of(layout, skip.to) as f64];
                Either::A(PlanRecord {
                    floor: end_of(layout, floor) as f64,
                    skip: (skip != Skip::NONE).then(skipped),
                    repeats_to: time_of(repeats_to),
                })
            }),
        }
    }
}
