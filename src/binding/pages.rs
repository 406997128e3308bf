//! Reports on the host's pages. Times in Unix ms.

use std::path::Path;

use napi::bindgen_prelude::Either;
use napi_derive::napi;

use super::fault::answer;
use super::layout::LayoutRecord;
use super::report::{Item, Report, report};
use crate::core::fault::Fault;
use crate::pages::{Directory, Found, Process, Snapshot};

/// The pages that this user's processes share on this host; none where the system has no directory for them.
#[napi(catch_unwind)]
pub fn host_pages(shared: Option<String>) -> Either<Option<Report>, Fault> {
    let look = || -> Result<Option<Report>, Fault> {
        let Some(directory) = Directory::find(shared.as_ref().map(Path::new))? else {
            return Ok(None);
        };
        let pages: Item = directory.pages()?.into_iter().map(page_of).collect();
        Ok(Some(report!(directory: directory.path(), pages)))
    };
    answer(look())
}

/// The contents of a page, or the reason why it is unusable.
fn page_of(found: Found) -> Report {
    let path = found.path;
    let Snapshot { header, processes, leasing } = match found.snapshot {
        Ok(snapshot) => snapshot,
        Err(error) => return report!(path, fault: error.fault),
    };
    let layout = header.node.layout();
    report!(
        path,
        layout: LayoutRecord::from(layout),
        datacenterId: header.node.datacenter_id(),
        workerId: header.node.worker_id(),
        maxAhead: header.terms.max_ahead.saturating_mul(layout.tick_ms),
        created: header.created_ms,
        // The use that its processes make of it.
        kind: header.terms.authority.word(),
        // Of a lease from a store: the process that renewed it last, the start of its renewals, and the time at which
        // others may have the slot, unless it is renewed.
        renewer: leasing.map(|leasing| leasing.renewer),
        since: leasing.map(|leasing| leasing.since_ms),
        expires: leasing.and_then(|leasing| leasing.expires_ms),
        processes: processes.iter().map(process_of).collect::<Item>(),
    )
}

/// A process that has registered itself with a page: the number of its instances and threads, and whether it runs, as
/// far as this PID namespace shows.
pub fn process_of(process: &Process) -> Report {
    let Process { pid, users, opened_ms, .. } = *process;
    report!(pid, users, opened: opened_ms, isAlive: process.is_alive())
}
