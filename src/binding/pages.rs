//! What people ask about the host's pages.

use std::path::Path;

use napi::bindgen_prelude::Either;
use napi_derive::napi;

use super::Fault;
use super::options::{LayoutRecord, answer};
use crate::host::{Directory, Found, Process, Snapshot};

/// A user's directory of pages. Times in Unix ms.
#[napi(object)]
pub struct HostRecord {
    pub directory: String,
    pub pages: Vec<PageRecord>,
}

/// What a page says of itself.
#[napi(object)]
pub struct PageRecord {
    pub path: String,
    /// Why it cannot be used; then there is nothing else.
    pub fault: Option<String>,
    pub layout: Option<LayoutRecord>,
    pub datacenter_id: f64,
    pub worker_id: f64,
    pub max_ahead: f64,
    pub created: f64,
    pub processes: Vec<ProcessRecord>,
}

/// A process that says that it uses a page.
#[napi(object)]
pub struct ProcessRecord {
    pub pid: u32,
    /// How many instances and threads of it.
    pub users: u32,
    pub opened: f64,
    /// Whether it runs, as far as this PID namespace shows.
    pub is_alive: bool,
}

/// The pages that this user's processes share on this host; none where the system has no place for them.
#[napi]
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
            Ok(Snapshot { header, processes, .. }) => {
                let layout = header.node.layout();
                PageRecord {
                    path,
                    fault: None,
                    layout: Some(layout.into()),
                    datacenter_id: header.node.datacenter_id() as f64,
                    worker_id: header.node.worker_id() as f64,
                    max_ahead: header.max_ahead.saturating_mul(layout.tick_ms) as f64,
                    created: header.created_ms as f64,
                    processes: processes.iter().map(ProcessRecord::from).collect(),
                }
            }
            Err(error) => PageRecord {
                path,
                fault: Some(error.to_string()),
                layout: None,
                datacenter_id: 0.0,
                worker_id: 0.0,
                max_ahead: 0.0,
                created: 0.0,
                processes: Vec::new(),
            },
        }
    }
}

impl From<&Process> for ProcessRecord {
    fn from(process: &Process) -> Self {
        ProcessRecord {
            pid: process.pid,
            users: process.users,
            opened: process.opened_ms as f64,
            is_alive: process.is_alive(),
        }
    }
}
