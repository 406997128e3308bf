//! What people ask about the host's pages.

use std::path::Path;

use napi::bindgen_prelude::{Either, Null};
use napi_derive::napi;

use super::Fault;
use super::options::{LayoutRecord, answer};
use super::records::end_of;
use crate::clock::{Clock, SystemClock};
use crate::host::{Directory, Found, Kind, Process, Snapshot};
use crate::layout::{Layout, Tick};
use crate::node::Node;
use crate::sequencer::NEVER;

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

/// A page that a reset removes. Times in Unix ms; null for none.
#[napi(object)]
pub struct PageResetRecord {
    pub path: String,
    /// Whether a state directory has a record of it.
    pub is_durable: bool,
    /// The last IDs under each value of the clock-back counter.
    pub high_marks: Vec<Either<f64, Null>>,
    /// No ID has a later time.
    pub highest: Either<f64, Null>,
    /// Whether that lies ahead of the clock, so that there is something to reset.
    pub is_ahead: bool,
}

/// Looks at a node's page, which no process may use; with `is_meant`, removes it if it is ahead of the clock.
/// None where there is none.
#[napi]
pub fn reset_page(
    datacenter_id: f64,
    worker_id: f64,
    layout: LayoutRecord,
    is_meant: bool,
    shared: Option<String>,
) -> Either<Option<PageResetRecord>, Fault> {
    let reset = || -> Result<Option<PageResetRecord>, Fault> {
        let layout = Layout::try_from(&layout)?;
        let node = Node::new(layout, datacenter_id as u64, worker_id as u64)?;
        let found = Directory::find(shared.as_ref().map(Path::new))?;
        let directory = found.ok_or_else(Fault::no_directory)?;
        let Some(page) = directory.reset(&node, false)? else { return Ok(None) };
        let is_ahead = page.highest > layout.tick_at(SystemClock.now().ms);
        if is_meant && is_ahead {
            directory.reset(&node, true)?;
        }
        let time_of = |tick: Tick| match tick {
            NEVER => Either::B(Null),
            tick => Either::A(end_of(&layout, tick) as f64),
        };
        Ok(Some(PageResetRecord {
            path: page.path.display().to_string(),
            is_durable: page.header.kind == Kind::Durable,
            high_marks: page.high.marks[..layout.counters()].iter().copied().map(time_of).collect(),
            highest: time_of(page.highest),
            is_ahead,
        }))
    };
    answer(reset())
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
