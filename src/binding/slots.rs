//! Reports on the host's pages. Times in Unix ms.

use std::path::Path;

use napi::bindgen_prelude::Either;
use napi_derive::napi;

use super::values::{Value, answer, layout_of, list, report};
use crate::core::fault::Fault;
use crate::files::path::FileResult;
use crate::pages::{Directory, Process, Snapshot};

/// The pages that this user's processes share on this host; `None` if the system has no directory for them.
#[napi(catch_unwind, ts_return_type = "HostPages | Fault | null")]
pub fn host_pages(shared: Option<String>) -> Either<Option<Value>, Fault> {
    answer(|| {
        let Some(directory) = Directory::find(shared.as_ref().map(Path::new))? else {
            return Ok(None);
        };
        let pages = list(directory.pages()?.into_iter().map(page_report));
        Ok(Some(report!(directory: directory.path(), pages)))
    })
}

/// The contents of a page, or the reason that it is unusable.
fn page_report((path, snapshot): FileResult<Snapshot>) -> Value {
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
        kind: header.terms.word(),
        // For a lease: the process that renewed it last, the start of its renewals, and the time at which
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
