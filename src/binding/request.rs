//! Requests as `js/` passes them, converted into the core's types once.

use std::path::Path;
use std::time::Duration;

use napi_derive::napi;

use super::layout::LayoutRecord;
use super::leases::{GrantRecord, JoinRecord, WindowRecord};
use crate::core::fault::{Fault, fault};
use crate::core::layout::Layout;
use crate::generator::{ClockBack, Policies};
use crate::pages::Directory;
use crate::registry::{Basis, Opening, Recording, Request};
use crate::ring::Caching;

/// The settings for opening a generator. Times in ms. At most one of the fields from `own_clock` on gives the basis
/// of its IDs.
#[napi(object, object_to_js = false)]
pub struct OpenRequest {
    pub layout: LayoutRecord,
    pub datacenter_id: f64,
    /// None for any free one.
    pub worker_id: Option<f64>,
    pub clock_back: String,
    pub max_wait: f64,
    pub max_ahead: f64,
    pub sequence_start: String,
    /// 'auto' is the host. A lease from a store takes a slot for the process where the system has no place for pages.
    pub scope: String,
    /// A directory in memory, in place of the system's.
    pub shared: Option<String>,
    /// The options of a ring in front of the generator; none for no ring.
    pub ring: Option<RingRecord>,
    /// Whether the application sets the clock: see the channel's `setClock`.
    pub own_clock: Option<bool>,
    pub recording: Option<RecordingRecord>,
    pub window: Option<WindowRecord>,
    /// Whether another thread of this process holds the lease.
    pub of_thread: Option<bool>,
    pub grant: Option<GrantRecord>,
    pub join: Option<JoinRecord>,
}

/// The options of a ring. Times in ms.
#[napi(object, object_to_js = false)]
pub struct RingRecord {
    pub boost_power: u32,
    /// Percent.
    pub padding_factor: u32,
    /// 0 for none.
    pub schedule_interval: f64,
    pub max_age: f64,
}

/// The settings of a node's record. Times in ms.
#[napi(object, object_to_js = false)]
pub struct RecordingRecord {
    pub directory: String,
    pub ttl: f64,
    pub wait: f64,
    pub host: String,
    /// The start of this process, Unix ms.
    pub started: f64,
    /// Whether all threads of the process that request any slot get the same one.
    pub common: bool,
}

impl TryFrom<&OpenRequest> for Request {
    type Error = Fault;

    fn try_from(request: &OpenRequest) -> Result<Request, Fault> {
        let mut wanted = request.unchecked()?;
        wanted.opening.host = request.host(&wanted.basis)?;
        Ok(wanted)
    }
}

impl OpenRequest {
    /// The request for this process alone: without the host's directory, which takes long to find. IDs ahead of the
    /// clock need a ceiling that survives the process and its page.
    pub fn alone(&self) -> Result<Request, Fault> {
        let wanted = self.unchecked()?;
        let is_free = matches!(wanted.basis, Basis::Named) && self.own_clock != Some(true);
        match wanted.opening.max_ahead_ms {
            ahead @ 1.. if is_free => Err(fault!("ahead-unrecorded", maxAhead: ahead)),
            _ => Ok(wanted),
        }
    }

    /// The same before its lease, if it has one.
    fn unchecked(&self) -> Result<Request, Fault> {
        if !["auto", "host", "process"].contains(&self.scope.as_str()) {
            return Err(unknown("scope", &self.scope));
        }
        Ok(Request {
            basis: self.basis()?,
            layout: Layout::try_from(&self.layout)?,
            datacenter_id: self.datacenter_id as u64,
            worker_id: self.worker_id.map(|id| id as u64),
            opening: Opening {
                policies: self.policies()?,
                max_ahead_ms: self.max_ahead as i64,
                host: None,
            },
        })
    }

    /// Whether the generator may draw from the host's page.
    pub fn may_share(&self) -> bool {
        // Windows replaces no page that is mapped, as those of a record are. Its lock refuses other processes.
        let is_record_alone = cfg!(windows) && self.scope == "auto" && self.recording.is_some();
        self.own_clock != Some(true) && self.scope != "process" && !is_record_alone
    }

    /// The directory of the host's pages, if the generator may draw from one.
    pub fn host(&self, basis: &Basis) -> Result<Option<Directory>, Fault> {
        // A window belongs to this process, and so does the lease of one of its threads.
        if !self.may_share() || matches!(basis, Basis::Window { .. } | Basis::Thread) {
            return Ok(None);
        }
        let found = Directory::find(self.shared.as_ref().map(Path::new))?;
        if found.is_none() && self.scope == "host" {
            return Err(fault!("no-shared-memory"));
        }
        Ok(found)
    }

    /// The ring's options, if there is a ring. A fault if it would be too large.
    pub fn caching(&self, layout: &Layout) -> Result<Option<Caching>, Fault> {
        let Some(ring) = &self.ring else { return Ok(None) };
        let schedule = Duration::from_millis(ring.schedule_interval as u64);
        let caching = Caching {
            boost_power: ring.boost_power,
            padding_factor: ring.padding_factor.into(),
            schedule: (!schedule.is_zero()).then_some(schedule),
            max_age: (ring.max_age / layout.tick_ms as f64).ceil() as i64,
        };
        caching.slots(layout)?;
        Ok(Some(caching))
    }

    /// The caller's right to issue IDs.
    fn basis(&self) -> Result<Basis, Fault> {
        Ok(match self {
            OpenRequest { recording: Some(recording), .. } => Basis::Recorded(recording.into()),
            OpenRequest { window: Some(window), .. } => window.into(),
            OpenRequest { grant: Some(grant), .. } => grant.try_into()?,
            OpenRequest { join: Some(join), .. } => join.try_into()?,
            OpenRequest { of_thread: Some(true), .. } => Basis::Thread,
            _ => Basis::Named,
        })
    }

    fn policies(&self) -> Result<Policies, Fault> {
        let clock_back = match self.clock_back.as_str() {
            "counter" => ClockBack::Counter,
            "wait" => ClockBack::Wait,
            "throw" => ClockBack::Throw,
            other => return Err(unknown("clockBack", other)),
        };
        let random_start = match self.sequence_start.as_str() {
            "zero" => false,
            "random" => true,
            other => return Err(unknown("sequenceStart", other)),
        };
        let max_wait = Duration::from_millis(self.max_wait as u64);
        Ok(Policies { clock_back, max_wait, random_start })
    }
}

fn unknown(option: &str, value: &str) -> Fault {
    fault!("no-such-choice", option, value)
}

impl From<&RecordingRecord> for Recording {
    fn from(record: &RecordingRecord) -> Self {
        Recording {
            directory: record.directory.as_str().into(),
            ttl: Duration::from_millis(record.ttl as u64),
            wait: Duration::from_millis(record.wait as u64),
            host: record.host.clone(),
            started_ms: record.started as i64,
            common: record.common,
        }
    }
}
