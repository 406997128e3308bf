//! Reports on the host's pages.

use std::path::Path;

use napi::bindgen_prelude::Either;
use napi_derive::napi;

use super::fault::answer;
use super::layout::LayoutRecord;
use crate::core::fault::Fault;
use crate::pages::{Directory, Found, Process, Snapshot};

/// A user's directory of pages. Times in Unix ms.
#[napi(object, object_from_js = false)]
pub struct HostRecord {
    pub directory: String,
    pub pages: Vec<PageRecord>,
}

/// The contents of a page.
#[derive(Default)]
#[napi(object, object_from_js = false)]
pub struct PageRecord {
    pub path: String,
    /// The reason why it is unusable. Then nothing else is set.
    pub fault: Option<Fault>,
    pub layout: Option<LayoutRecord>,
    pub datacenter_id: f64,
    pub worker_id: f64,
    pub max_ahead: i64,
    pub created: i64,
    /// The use that its processes make of it.
    pub kind: &'static str,
    /// Of a lease from a store: the process that renewed it last.
    pub renewer: Option<u32>,
    /// Of a lease from a store: the start of that process's renewals.
    pub since: Option<i64>,
    /// Of a lease from a store: the time at which others may have the slot, unless it is renewed.
    pub expires: Option<i64>,
    pub processes: Vec<ProcessRecord>,
}

/// A process that has registered itself with a page.
#[napi(object, object_from_js = false)]
pub struct ProcessRecord {
    pub pid: u32,
    /// The number of its instances and threads.
    pub users: u32,
    pub opened: i64,
    /// Whether it runs, as far as this PID namespace shows.
    pub is_alive: bool,
}

/// The pages that this user's processes share on this host; none where the system has no directory for them.
#[napi(catch_unwind)]
pub fn host_pages(shared: Option<String>) -> Either<Option<HostRecord>, Fault> {
    let look = || -> Result<Option<HostRecord>, Fault> {
        let Some(directory) = Directory::find(shared.as_ref().map(Path::new))? else {
            return Ok(None);
        };
        let pages = directory.pages()?.into_iter().map(PageRecord::from).collect();
        Ok(Some(HostRecord { directory: directory.path().display().to_string(), pages }))
    };
    answer(look())
}

impl From<Found> for PageRecord {
    fn from(found: Found) -> Self {
        let path = found.path.display().to_string();
        match found.snapshot {
            Ok(Snapshot { header, processes, leasing }) => {
                let layout = header.node.layout();
                PageRecord {
                    path,
                    layout: Some(layout.into()),
                    datacenter_id: header.node.datacenter_id() as f64,
                    worker_id: header.node.worker_id() as f64,
                    max_ahead: header.terms.max_ahead.saturating_mul(layout.tick_ms),
                    created: header.created_ms,
                    kind: header.terms.authority.word(),
                    renewer: leasing.map(|leasing| leasing.renewer),
                    since: leasing.map(|leasing| leasing.since_ms),
                    expires: leasing.and_then(|leasing| leasing.expires_ms),
                    processes: processes.iter().map(ProcessRecord::from).collect(),
                    ..PageRecord::default()
                }
            }
            Err(error) => PageRecord { path, fault: Some(error.into()), ..PageRecord::default() },
        }
    }
}

impl From<&Process> for ProcessRecord {
    fn from(process: &Process) -> Self {
        ProcessRecord {
            pid: process.pid,
            users: process.users,
            opened: process.opened_ms,
            is_alive: process.is_alive(),
        }
    }
}
