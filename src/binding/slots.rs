//! Reports on the slots of a directory, and resets of slots and pages.

use std::path::Path;

use napi::bindgen_prelude::Either;
use napi_derive::napi;

use super::fault::answer;
use super::layout::{LayoutRecord, end_of};
use super::pages::process_of;
use super::report::{Item, Report, or_null, report};
use crate::authority::file::{FileStore, Found, look};
use crate::authority::record::{Record, Skip};
use crate::authority::reset::{self, Plan, Reset};
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::{Fault, Value};
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::core::sequencer::{HighMarks, NEVER};
use crate::pages::{Directory, Snapshot};

/// The contents of a slot's file, or the reason why it is unusable. `pages` are this host's.
fn slot_of(found: Found, pages: &[Snapshot]) -> Report {
    let path = found.path;
    let Record { node, ceiling, holder, page, .. } = match found.record {
        Ok(record) => record,
        Err(error) => return report!(path, fault: error.fault),
    };
    let processes = pages.iter().filter(|snapshot| snapshot.header.page_id == page);
    report!(
        path,
        datacenterId: node.datacenter_id(),
        workerId: node.worker_id(),
        // The holder, or the last one if it died; none after a release.
        holder: holder.as_ref().map(Report::of_holder),
        // The end of the last tick that may have been issued.
        ceiling: end_of(node.layout(), ceiling),
        // The processes of this host that share it.
        processes: processes.flat_map(|snapshot| &snapshot.processes).map(process_of).collect::<Item>(),
    )
}

/// The state of a slot or page that nobody holds, and the plan of its reset.
fn reset_of(reset: Reset) -> Report {
    let Reset { path, node, found, high, plan, .. } = reset;
    let layout = node.layout();
    let time_of = |tick: Tick| match tick {
        NEVER => Item::Null,
        Tick::MAX => f64::INFINITY.into(),
        tick => end_of(layout, tick).into(),
    };
    // With a fault the file is unusable. Then the clock alone determines where to start.
    let (record, fault) = match found {
        Ok(record) => (Some(record), None),
        Err(error) => (None, Some(error.fault)),
    };
    let record = record.as_ref();
    let marks = |high: HighMarks| -> Item {
        high.marks[..layout.counters()].iter().copied().map(time_of).collect()
    };
    report!(
        path,
        datacenterId: node.datacenter_id(),
        workerId: node.worker_id(),
        fault,
        // The holder at its death; none after a release.
        holder: record.and_then(|record| record.holder.as_ref()).map(Report::of_holder),
        // It is unknown which IDs were issued up to here, if the machine stays up.
        floor: time_of(record.map_or(NEVER, |record| record.floor)),
        // Nothing was issued after it.
        ceiling: time_of(record.map_or(NEVER, |record| record.ceiling)),
        // The time of the last IDs under each value of the clock-back counter, if the machine stayed up.
        highMarks: high.map_or(Item::Value(Value::None), marks),
        // Null where nothing is to be done.
        plan: or_null(plan.map(|Plan { floor, skip, repeats_to }| {
            let skipped = || [layout.tick_start_ms(skip.from), end_of(layout, skip.to)];
            report!(
                // IDs continue after this.
                floor: end_of(layout, floor),
                // The times that no ID will have again: the first and the last ms.
                skip: match skip {
                    Skip::NONE => Item::Value(Value::None),
                    _ => skipped().into_iter().collect(),
                },
                // The last time of IDs after the floor that may come again; infinite where unknown.
                repeatsTo: time_of(repeats_to),
            )
        })),
    )
}

/// The slots of a directory by their files, with their processes by this host's pages. Blocks the thread for the
/// disk.
#[napi(catch_unwind)]
pub fn slots_in(directory: String, shared: Option<String>) -> Either<Vec<Report>, Fault> {
    // Unreadable pages do not hide the files.
    let host = Directory::find(shared.as_deref().map(Path::new)).ok().flatten();
    let pages = host.and_then(|host| host.pages().ok()).unwrap_or_default();
    let pages: Vec<_> = pages.into_iter().filter_map(|page| page.snapshot.ok()).collect();
    let report = |found| slot_of(found, &pages);
    answer(look(Path::new(&directory)).map(|all| all.into_iter().map(report).collect()))
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
) -> Either<Report, Fault> {
    let reset = || -> Result<Report, Fault> {
        let layout = layout.as_ref().map(Layout::try_from).transpose()?;
        let store = FileStore::existing(Path::new(&directory))?;
        let slot = (datacenter_id as u64, worker_id as u64);
        let host = Directory::find(shared.as_deref().map(Path::new))?;
        Ok(reset_of(store.reset(slot, layout, SystemClock.now().ms, is_meant, host.as_ref())?))
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
) -> Either<Option<Report>, Fault> {
    let reset = || -> Result<Option<Report>, Fault> {
        let layout = Layout::try_from(&layout)?;
        let node = Node::new(layout, datacenter_id as u64, worker_id as u64)?;
        let Some(host) = Directory::find(shared.as_deref().map(Path::new))? else {
            return Ok(None);
        };
        let reset = reset::reset_page(&host, &node, SystemClock.now().ms, is_meant)?;
        Ok(reset.map(reset_of))
    };
    answer(reset())
}
