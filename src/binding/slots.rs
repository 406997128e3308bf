//! Reports on the slots of a directory, and resets of slots and pages.

use std::path::Path;

use napi::bindgen_prelude::Either;
use napi_derive::napi;

use super::fault::{HolderRecord, answer};
use super::layout::{LayoutRecord, OrNull, end_of};
use super::pages::ProcessRecord;
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::Fault;
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::core::sequencer::NEVER;
use crate::lease::reset::{self, Plan, Reset};
use crate::pages::{Directory, Snapshot};
use crate::store::file::{FileStore, Found, look};
use crate::store::record::{Record, Skip};

/// The contents of a slot's file. Times in Unix ms.
#[derive(Default)]
#[napi(object, object_from_js = false)]
pub struct SlotRecord {
    pub path: String,
    /// The reason why it is unusable. Then nothing else is set.
    pub fault: Option<Fault>,
    pub datacenter_id: f64,
    pub worker_id: f64,
    /// The holder, or the last one if it died; none after a release.
    pub holder: Option<HolderRecord>,
    /// The end of the last tick that may have been issued.
    pub ceiling: i64,
    /// The processes of this host that share it.
    pub processes: Vec<ProcessRecord>,
}

impl SlotRecord {
    /// `pages` are this host's.
    fn of(found: Found, pages: &[Snapshot]) -> Self {
        let path = found.path.display().to_string();
        match found.record {
            Ok(Record { node, ceiling, holder, page, .. }) => SlotRecord {
                path,
                datacenter_id: node.datacenter_id() as f64,
                worker_id: node.worker_id() as f64,
                holder: holder.as_ref().map(HolderRecord::from),
                ceiling: end_of(node.layout(), ceiling),
                processes: pages
                    .iter()
                    .filter(|snapshot| snapshot.header.page_id == page)
                    .flat_map(|snapshot| snapshot.processes.iter().map(ProcessRecord::from))
                    .collect(),
                ..SlotRecord::default()
            },
            Err(error) => SlotRecord { path, fault: Some(error.into()), ..SlotRecord::default() },
        }
    }
}

/// The state of a slot, and the plan of its reset. Times in Unix ms; null for none.
#[napi(object, object_from_js = false)]
pub struct ResetRecord {
    pub path: String,
    pub datacenter_id: f64,
    pub worker_id: f64,
    /// The reason why the file is unusable. Then the clock alone determines where to start.
    pub fault: Option<Fault>,
    /// The holder at its death; none after a release.
    pub holder: Option<HolderRecord>,
    /// It is unknown which IDs were issued up to here, if the machine stays up.
    pub floor: OrNull<f64>,
    /// Nothing was issued after it.
    pub ceiling: OrNull<f64>,
    /// The time of the last IDs under each value of the clock-back counter, if the machine stayed up.
    pub high_marks: Option<Vec<Option<f64>>>,
    /// Null where nothing is to be done.
    pub plan: OrNull<PlanRecord>,
}

/// The plan of a slot's reset.
#[napi(object, object_from_js = false)]
pub struct PlanRecord {
    /// IDs continue after this.
    pub floor: i64,
    /// The times that no ID will have again: the first and the last ms.
    pub skip: Option<Vec<i64>>,
    /// The last time of IDs after the floor that may come again; infinite where unknown.
    pub repeats_to: OrNull<f64>,
}

impl From<Reset> for ResetRecord {
    fn from(reset: Reset) -> Self {
        let Reset { path, node, found, high, plan, .. } = reset;
        let layout = node.layout();
        let time_of = |tick: Tick| match tick {
            NEVER => None,
            Tick::MAX => Some(f64::INFINITY),
            tick => Some(end_of(layout, tick) as f64),
        };
        let (record, fault) = match found {
            Ok(record) => (Some(record), None),
            Err(error) => (None, Some(error.into())),
        };
        let record = record.as_ref();
        ResetRecord {
            path: path.display().to_string(),
            datacenter_id: node.datacenter_id() as f64,
            worker_id: node.worker_id() as f64,
            fault,
            holder: record.and_then(|record| record.holder.as_ref()).map(HolderRecord::from),
            floor: time_of(record.map_or(NEVER, |record| record.floor)),
            ceiling: time_of(record.map_or(NEVER, |record| record.ceiling)),
            high_marks: high
                .map(|high| high.marks[..layout.counters()].iter().copied().map(time_of).collect()),
            plan: plan.map(|Plan { floor, skip, repeats_to }| PlanRecord {
                floor: end_of(layout, floor),
                skip: (skip != Skip::NONE)
                    .then(|| vec![layout.tick_start_ms(skip.from), end_of(layout, skip.to)]),
                repeats_to: time_of(repeats_to),
            }),
        }
    }
}

/// The slots of a directory by their files, with their processes by this host's pages. Blocks the thread for the
/// disk.
#[napi(catch_unwind)]
pub fn slots_in(directory: String, shared: Option<String>) -> Either<Vec<SlotRecord>, Fault> {
    // Unreadable pages do not hide the files.
    let host = Directory::find(shared.as_deref().map(Path::new)).ok().flatten();
    let pages = host.and_then(|host| host.pages().ok()).unwrap_or_default();
    let pages: Vec<_> = pages.into_iter().filter_map(|page| page.snapshot.ok()).collect();
    let record = |found| SlotRecord::of(found, &pages);
    answer(look(Path::new(&directory)).map(|all| all.into_iter().map(record).collect()))
}

/// The state of a slot that nobody holds, and the plan of its reset; with `is_meant`, resets it. `layout` is for an
/// unreadable file. Blocks the thread for the disk.
#[napi(catch_unwind)]
pub fn reset_slot(
    directory: String,
    datacenter_id: f64,
    worker_id: f64,
    layout: Option<LayoutRecord>,
    is_meant: bool,
    shared: Option<String>,
) -> Either<ResetRecord, Fault> {
    let reset = || -> Result<ResetRecord, Fault> {
        let layout = layout.as_ref().map(Layout::try_from).transpose()?;
        let store = FileStore::existing(Path::new(&directory))?;
        let slot = (datacenter_id as u64, worker_id as u64);
        let host = Directory::find(shared.as_deref().map(Path::new))?;
        Ok(store.reset(slot, layout, SystemClock.now().ms, is_meant, host.as_ref())?.into())
    };
    answer(reset())
}

/// As [`reset_slot`], for the page of a node that no store records; null where the node has no page.
#[napi(catch_unwind)]
pub fn reset_page(
    layout: LayoutRecord,
    datacenter_id: f64,
    worker_id: f64,
    is_meant: bool,
    shared: Option<String>,
) -> Either<Option<ResetRecord>, Fault> {
    let reset = || -> Result<Option<ResetRecord>, Fault> {
        let layout = Layout::try_from(&layout)?;
        let node = Node::new(layout, datacenter_id as u64, worker_id as u64)?;
        let Some(host) = Directory::find(shared.as_deref().map(Path::new))? else {
            return Ok(None);
        };
        let reset = reset::reset_page(&host, &node, SystemClock.now().ms, is_meant)?;
        Ok(reset.map(ResetRecord::from))
    };
    answer(reset())
}
