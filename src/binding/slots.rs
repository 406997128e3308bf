//! Reports on the host's pages and the slots of a directory, and resets of both. Times in Unix ms.

use std::path::Path;

use napi::bindgen_prelude::Either;
use napi_derive::napi;

use super::values::{GivenLayout, Value, answer, end_of, layout_of, list, or_null, report};
use crate::authority::Holder;
use crate::authority::file::{FileStore, look};
use crate::authority::record::{Record, Skip};
use crate::authority::reset::{self, Plan, Reset};
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::Fault;
use crate::core::layout::Tick;
use crate::core::node::Node;
use crate::core::sequencer::{HighMarks, NEVER};
use crate::files::path::FileResult;
use crate::pages::{Directory, Process, Snapshot};

/// The pages that this user's processes share on this host; `None` if the system has no directory for them.
#[napi(catch_unwind)]
pub fn host_pages(shared: Option<String>) -> Either<Option<Value>, Fault> {
    answer(|| {
        let Some(directory) = Directory::find(shared.as_ref().map(Path::new))? else {
            return Ok(None);
        };
        let pages = list(directory.pages()?.into_iter().map(page_of));
        Ok(Some(report!(directory: directory.path(), pages)))
    })
}

/// The contents of a page, or the reason that it is unusable.
fn page_of((path, snapshot): FileResult<Snapshot>) -> Value {
    let Snapshot { header, processes, lease } = match snapshot {
        Ok(snapshot) => snapshot,
        Err(error) => return report!(path, fault: error.fault),
    };
    let layout = header.node.layout();
    report!(
        path,
        layout: layout_of(layout),
        datacenterId: header.node.datacenter_id(),
        workerId: header.node.worker_id(),
        maxAhead: header.terms.max_ahead.saturating_mul(layout.tick_ms),
        created: header.created_ms,
        // The kind of its authority.
        kind: header.terms.authority.word(),
        // For a lease from a store: the process that renewed it last, the start of its renewals, and the time at which
        // the lease expires unless renewed.
        renewer: lease.map(|lease| lease.renewer),
        since: lease.map(|lease| lease.since_ms),
        expires: lease.and_then(|lease| lease.expires_ms),
        processes: list(processes.iter().map(process_of)),
    )
}

/// A process in a page's table: the number of its users of the page, and whether it runs, as far as this PID namespace
/// shows.
fn process_of(process: &Process) -> Value {
    let Process { pid, users, opened_ms, .. } = *process;
    report!(pid, users, opened: opened_ms, isAlive: process.is_alive())
}

/// The contents of a slot's file, or the reason that it is unusable. `pages`: this host's pages.
fn slot_of((path, record): FileResult<Record>, pages: &[Snapshot]) -> Value {
    let Record { node, ceiling, holder, page, .. } = match record {
        Ok(record) => record,
        Err(error) => return report!(path, fault: error.fault),
    };
    let processes = pages.iter().filter(|snapshot| snapshot.header.page_id == page);
    report!(
        path,
        datacenterId: node.datacenter_id(),
        workerId: node.worker_id(),
        // The holder, or the last one if it died; left out after a release.
        holder: holder.as_ref().map(holder_of),
        // The end of the last tick that may have been issued.
        ceiling: end_of(node.layout(), ceiling),
        // The processes of this host that share the slot.
        processes: list(processes.flat_map(|snapshot| &snapshot.processes).map(process_of)),
    )
}

fn holder_of(holder: &Holder) -> Value {
    let Holder { pid, host, started_ms, .. } = holder;
    report!(pid: *pid, host: host.as_str(), started: *started_ms)
}

/// The state of a slot or page that is not in use, and the plan of its reset.
fn reset_of(reset: Reset) -> Value {
    let Reset { path, node, found, high, plan, .. } = reset;
    let layout = node.layout();
    let time_of = |tick: Tick| match tick {
        NEVER => Value::Null,
        Tick::MAX => f64::INFINITY.into(),
        tick => end_of(layout, tick).into(),
    };
    let record = found.as_ref().ok();
    let marks =
        |high: HighMarks| list(high.marks[..layout.counters()].iter().copied().map(time_of));
    report!(
        path,
        datacenterId: node.datacenter_id(),
        workerId: node.worker_id(),
        // The fault of an unusable file. Then only the clock determines where IDs start.
        fault: found.as_ref().err().map(|error| Value::from(error.fault.clone())),
        // The holder that died; left out after a release.
        holder: record.and_then(|record| record.holder.as_ref()).map(holder_of),
        // Which IDs were issued up to this time is unknown, even if the machine stayed up.
        floor: time_of(record.map_or(NEVER, |record| record.floor)),
        // Nothing was issued after this time.
        ceiling: time_of(record.map_or(NEVER, |record| record.ceiling)),
        // The times of the last IDs under each counter value, if the machine stayed up.
        highMarks: high.map(marks),
        // Null if there is nothing to do.
        plan: or_null(plan.map(|Plan { floor, skip, repeats_to }| {
            let skipped = || list([layout.tick_start_ms(skip.from), end_of(layout, skip.to)]);
            report!(
                // IDs continue after this time.
                floor: end_of(layout, floor),
                // The first and the last ms of the skipped times, for which no IDs will be issued.
                skip: (skip != Skip::NONE).then(skipped),
                // The last time after the floor whose IDs may be issued again; infinite if unknown.
                repeatsTo: time_of(repeats_to),
            )
        })),
    )
}

/// The slots of a directory, from their files, with their processes, from this host's pages. Blocks the thread for the
/// disk.
#[napi(catch_unwind)]
pub fn slots_in(directory: String, shared: Option<String>) -> Either<Vec<Value>, Fault> {
    // If pages are unreadable, the files are still shown.
    let host = Directory::find(shared.as_deref().map(Path::new)).ok().flatten();
    let pages = host.and_then(|host| host.pages().ok()).unwrap_or_default();
    let pages: Vec<_> = pages.into_iter().filter_map(|(_, page)| page.ok()).collect();
    let report = |found| slot_of(found, &pages);
    answer(|| Ok(look(Path::new(&directory))?.into_iter().map(report).collect()))
}

/// The state of a slot that is not held, and the plan of its reset; with `is_meant`, resets it. `layout` is for an
/// unreadable file. Blocks the thread for the disk.
#[napi(catch_unwind)]
pub fn reset_slot(
    directory: String,
    datacenter_id: f64,
    worker_id: f64,
    layout: Option<GivenLayout>,
    is_meant: bool,
    shared: Option<String>,
) -> Either<Value, Fault> {
    answer(|| {
        let layout = layout.map(|layout| layout.0).transpose()?;
        let store = FileStore::existing(Path::new(&directory))?;
        let slot = (datacenter_id as u64, worker_id as u64);
        let host = Directory::find(shared.as_deref().map(Path::new))?;
        Ok(reset_of(store.reset(slot, layout, SystemClock.now().ms, is_meant, host.as_ref())?))
    })
}

/// Like [`reset_slot`], for the page of a node without a record; null if the node has no page.
#[napi(catch_unwind)]
pub fn reset_page(
    layout: GivenLayout,
    datacenter_id: f64,
    worker_id: f64,
    is_meant: bool,
    shared: Option<String>,
) -> Either<Option<Value>, Fault> {
    answer(|| {
        let node = Node::new(layout.0?, datacenter_id as u64, worker_id as u64)?;
        let Some(host) = Directory::find(shared.as_deref().map(Path::new))? else {
            return Ok(None);
        };
        let reset = reset::reset_page(&host, &node, SystemClock.now().ms, is_meant)?;
        Ok(reset.map(reset_of))
    })
}
