//! Options as `js/` passes them, turned into the core's types.

use std::path::Path;
use std::time::Duration;

use napi::bindgen_prelude::Either;
use napi_derive::napi;

use super::Fault;
use crate::cached::Caching;
use crate::generator::{ClockBack, Policies};
use crate::host::{Directory, IS_DEFAULT};
use crate::layout::{Layout, LayoutError};
use crate::registry::{Opening, Recording};

/// A layout as applications write it. Whole numbers all.
#[napi(object)]
pub struct LayoutRecord {
    pub timestamp_bits: f64,
    pub datacenter_bits: f64,
    pub worker_bits: f64,
    pub clock_back_bits: f64,
    pub sequence_bits: f64,
    pub tick_ms: f64,
    pub epoch: f64,
}

impl From<&Layout> for LayoutRecord {
    fn from(layout: &Layout) -> Self {
        LayoutRecord {
            timestamp_bits: layout.timestamp_bits.into(),
            datacenter_bits: layout.datacenter_bits.into(),
            worker_bits: layout.worker_bits.into(),
            clock_back_bits: layout.clock_back_bits.into(),
            sequence_bits: layout.sequence_bits.into(),
            tick_ms: layout.tick_ms as f64,
            epoch: layout.epoch_ms as f64,
        }
    }
}

impl TryFrom<&LayoutRecord> for Layout {
    type Error = LayoutError;

    fn try_from(record: &LayoutRecord) -> Result<Layout, LayoutError> {
        // `as` saturates, and what saturates is out of range of every width.
        Layout {
            timestamp_bits: record.timestamp_bits as u8,
            datacenter_bits: record.datacenter_bits as u8,
            worker_bits: record.worker_bits as u8,
            clock_back_bits: record.clock_back_bits as u8,
            sequence_bits: record.sequence_bits as u8,
            tick_ms: record.tick_ms as i64,
            epoch_ms: record.epoch as i64,
        }
        .checked()
    }
}

/// A preset and its name.
#[napi(object)]
pub struct Preset {
    pub name: String,
    pub layout: LayoutRecord,
}

/// The layouts that have a name.
#[napi]
pub fn presets() -> Vec<Preset> {
    Layout::PRESETS
        .iter()
        .map(|(name, layout)| Preset { name: (*name).to_owned(), layout: layout.into() })
        .collect()
}

/// What is wrong with a layout, if anything.
#[napi]
pub fn check_layout(layout: LayoutRecord) -> Option<Fault> {
    Layout::try_from(&layout).err().map(Fault::from)
}

/// What a generator is opened with. Times in ms.
#[napi(object)]
pub struct OpenRequest {
    pub layout: LayoutRecord,
    pub datacenter_id: f64,
    /// None for any: then it is recorded.
    pub worker_id: Option<f64>,
    #[napi(ts_type = "'counter' | 'wait' | 'throw'")]
    pub clock_back: String,
    pub max_wait: f64,
    pub max_ahead: f64,
    #[napi(ts_type = "'zero' | 'random'")]
    pub sequence_start: String,
    /// 'auto': of the host where the system has a directory in memory, else of the process.
    #[napi(ts_type = "'auto' | 'host' | 'process'")]
    pub scope: String,
    /// A directory in memory, in place of the system's.
    pub shared: Option<String>,
    /// Whether the application tells the time: see `setClock` of the channel.
    pub own_clock: bool,
    pub recording: Option<RecordingRecord>,
    /// Whether IDs come by a ring, and how that is filled.
    pub ring: Option<RingRecord>,
}

/// How a ring is filled and drained. Times in ms.
#[napi(object)]
pub struct RingRecord {
    pub boost_power: u32,
    /// Percent.
    pub padding_factor: u32,
    /// 0 for none.
    pub schedule_interval: f64,
    pub max_age: f64,
}

impl RingRecord {
    /// For a layout.
    pub fn caching(&self, layout: &Layout) -> Caching {
        let schedule = Duration::from_millis(self.schedule_interval as u64);
        Caching {
            boost_power: self.boost_power,
            padding_factor: self.padding_factor.into(),
            schedule: (!schedule.is_zero()).then_some(schedule),
            max_age: (self.max_age / layout.tick_ms as f64).ceil() as i64,
        }
    }
}

/// Where and how a node is recorded. Times in ms.
#[napi(object)]
pub struct RecordingRecord {
    pub directory: String,
    pub ttl: f64,
    pub wait: f64,
    pub host: String,
    /// When this process started, Unix ms.
    pub started: f64,
    /// Whether all of the process who want any worker ID get the same one.
    pub common: bool,
}

impl OpenRequest {
    /// How a node is to be opened that no store records.
    pub fn opening(&self) -> Result<Opening, Fault> {
        let shared = self.shared.as_ref().map(Path::new);
        let host = match self.scope.as_str() {
            "process" => None,
            "host" => Some(Directory::find(shared)?.ok_or_else(Fault::no_directory)?),
            _ if IS_DEFAULT => Directory::find(shared)?,
            _ => None,
        };
        Ok(Opening { host, ..self.opening_alone() })
    }

    /// The same for this process alone.
    pub fn opening_alone(&self) -> Opening {
        Opening { policies: self.policies(), max_ahead_ms: self.max_ahead as i64, host: None }
    }

    /// How IDs are to be issued.
    fn policies(&self) -> Policies {
        let clock_back = match self.clock_back.as_str() {
            "counter" => ClockBack::Counter,
            "wait" => ClockBack::Wait,
            _ => ClockBack::Throw,
        };
        Policies {
            clock_back,
            max_wait: Duration::from_millis(self.max_wait as u64),
            random_start: self.sequence_start == "random",
        }
    }
}

impl From<&RecordingRecord> for Recording {
    fn from(record: &RecordingRecord) -> Self {
        Recording {
            directory: record.directory.as_str().into(),
            ttl: Duration::from_millis(record.ttl as u64),
            wait: Duration::from_millis(record.wait as u64),
            host: record.host.clone(),
            started_ms: record.started as i64,
        }
    }
}

/// The answer where a value or a fault may come back.
pub fn answer<T>(result: Result<T, Fault>) -> Either<T, Fault> {
    result.map_or_else(Either::B, Either::A)
}
