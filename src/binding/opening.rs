//! From a request to a channel, at once or later.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use napi::Env;
use napi::bindgen_prelude::{Either, FromNapiValue, JsValue, Object, Unknown};
use napi_derive::napi;

use super::Fault;
use super::channel::{Source, build};
use super::options::{LayoutRecord, OpenRequest, answer};
use super::records::{ResetRecord, SlotRecord};
use super::ring::RingShare;
use crate::cached::{self, MOST_SLOTS, RingError};
use crate::clock::{Clock, ManualClock, SystemClock};
use crate::generator::{Generator, Policies};
use crate::host::Directory;
use crate::layout::{Layout, Tick};
use crate::node::Node;
use crate::registry::{self, OpenError, Opening, Share};
use crate::reset;
use crate::sequencer::{HighMarks, NEVER};
use crate::store::Terms;
use crate::store::file::{FileStore, look};

/// How long the end of the process waits for slots that are given up.
#[cfg(unix)]
const AT_EXIT: Duration = Duration::from_millis(500);

/// How long a constructor waits for the disk. It takes some ms, unless the disk hangs.
const DISK: Duration = Duration::from_secs(10);

/// Opens a generator, or a share in one. Where it is recorded in a store, this holds the thread while
/// the disk answers, and until the slot is free if it may wait for that.
#[napi(ts_return_type = "object")]
pub fn open<'env>(
    env: &'env Env,
    request: OpenRequest,
) -> napi::Result<Either<Object<'env>, Fault>> {
    channel(env, source(request))
}

fn channel<'env>(
    env: &'env Env,
    source: Result<Source, Fault>,
) -> napi::Result<Either<Object<'env>, Fault>> {
    match source {
        Ok(source) => Ok(Either::A(build(env, source)?)),
        Err(fault) => Ok(answer(Err(fault))),
    }
}

/// What the files of a directory say of its slots. Holds the thread while the disk answers.
#[napi]
pub fn slots_in(directory: String) -> Either<Vec<SlotRecord>, Fault> {
    let found = look(Path::new(&directory)).map_err(Fault::from);
    answer(found.map(|all| all.into_iter().map(SlotRecord::from).collect()))
}

/// What the file of a slot says that nobody holds, and what a reset makes of it; with `is_meant`, does
/// it. `layout` is for a file that cannot be read. Holds the thread while the disk answers.
#[napi]
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

/// As [`reset_slot`], for the page of a node that no store records; null where it has none.
#[napi]
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

type Later = Either<Unknown<'static>, Fault>;

/// As `open`, but without holding the thread.
#[napi(ts_return_type = "Promise<object>")]
pub fn open_later(env: &Env, request: OpenRequest) -> napi::Result<Object<'_>> {
    type Resolver = Box<dyn FnOnce(Env) -> napi::Result<Later>>;
    let (deferred, promise) = env.create_deferred::<Later, Resolver>()?;
    let work = move || {
        let source = open_share(&request);
        deferred.resolve(Box::new(move |env| match source {
            Ok(source) => {
                let object = build(&env, source)?;
                // SAFETY: the value is passed on within the scope in which it was made.
                Ok(Either::A(unsafe { Unknown::from_napi_value(env.raw(), object.raw())? }))
            }
            Err(fault) => Ok(Either::B(fault)),
        }));
    };
    thread::Builder::new().name("snowdrift-open".to_owned()).spawn(work)?;
    Ok(promise)
}

/// The ticks (floor, ceiling] that an engine has confirmed. A floor of -1: nothing was issued before.
#[napi(object)]
pub struct WindowRecord {
    pub floor: f64,
    pub ceiling: f64,
    /// Whether the lease is kept by a thread of its own.
    pub in_thread: bool,
}

/// Opens the generator of a slot that JavaScript has leased from an engine.
#[napi(ts_return_type = "object")]
pub fn open_leased<'env>(
    env: &'env Env,
    request: OpenRequest,
    window: WindowRecord,
) -> napi::Result<Either<Object<'env>, Fault>> {
    channel(env, leased(&request, &window))
}

/// The generator of a slot that was leased.
pub fn leased(request: &OpenRequest, window: &WindowRecord) -> Result<Source, Fault> {
    let node = node(request, request.worker_id.unwrap_or_default())?;
    let terms = Terms {
        floor: window.floor as Tick,
        ceiling: window.ceiling as Tick,
        high: HighMarks::default(),
    };
    by_ring(
        request,
        registry::open_leased(node, &request.opening_alone(), &terms, window.in_thread)?,
    )
}

/// Joins the generator of a slot that another thread of this process has leased.
#[napi(ts_return_type = "object")]
pub fn join_leased<'env>(
    env: &'env Env,
    request: OpenRequest,
) -> napi::Result<Either<Object<'env>, Fault>> {
    channel(env, joined(&request))
}

/// A generator that another thread has opened.
pub fn joined(request: &OpenRequest) -> Result<Source, Fault> {
    let node = node(request, request.worker_id.unwrap_or_default())?;
    by_ring(request, registry::join_leased(node, &request.opening_alone())?)
}

/// What is drawn from: the generator, or the ring in front of it.
fn by_ring(request: &OpenRequest, share: Share) -> Result<Source, Fault> {
    let Some(ring) = &request.ring else { return Ok(Source::Shared(share)) };
    let cached = cached::open(&share, ring.caching(share.node().layout()))?;
    Ok(Source::Ring(RingShare::new(share, cached)))
}

/// The ceiling to lease up to at first: that many ms ahead of the clock, in ticks.
#[napi]
pub fn first_ceiling(layout: LayoutRecord, ms: f64) -> Either<f64, Fault> {
    answer(Layout::try_from(&layout).map_err(Fault::from).map(|layout| {
        let tick = layout.tick_at(SystemClock.now().ms.saturating_add(ms as i64));
        tick.clamp(NEVER, layout.last_tick()) as f64
    }))
}

fn source(request: OpenRequest) -> Result<Source, Fault> {
    if request.own_clock {
        let clock = Arc::new(ManualClock::default());
        let node = node(&request, request.worker_id.unwrap_or_default())?;
        let Opening { policies, max_ahead_ms, .. } = request.opening_alone();
        let generator = Generator::new(node, max_ahead_ms, Box::new(clock.clone()));
        return Ok(Source::Own(Box::new(generator), clock, policies));
    }
    let Some(recording) = &request.recording else {
        return open_share(&request);
    };
    // What a file system does can take for ever; a JavaScript thread must not.
    let at_most = DISK + Duration::from_millis(recording.wait as u64);
    let directory = recording.directory.clone();
    let (send, receive) = sync_channel(1);
    thread::Builder::new()
        .name("snowdrift-open".to_owned())
        // If nobody waits any more, what was opened is closed again.
        .spawn(move || drop(send.send(open_share(&request))))
        .map_err(|error| {
            Fault::new("ERR_SNOWFLAKE_STORE", format!("cannot start a thread: {error}"))
        })?;
    receive.recv_timeout(at_most).unwrap_or_else(|_| {
        let message =
            format!("{directory} did not answer within {} s: look at its disk", at_most.as_secs());
        Err(Fault::new("ERR_SNOWFLAKE_STORE", message))
    })
}

fn node(request: &OpenRequest, worker_id: f64) -> Result<Node, Fault> {
    let layout = Layout::try_from(&request.layout)?;
    Ok(Node::new(layout, request.datacenter_id as u64, worker_id as u64)?)
}

/// Has the slots' files say, when the process ends by `process.exit()`, that they were given up: Node
/// then ends without dropping what instances have. At that time no JavaScript runs any more.
///
/// On Windows all other threads have ended by then, those that give slots up, too.
#[cfg(unix)]
fn release_at_exit() {
    extern "C" fn release() {
        // It must not unwind into libc.
        let _ = std::panic::catch_unwind(|| registry::release_all(AT_EXIT));
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function unwinds nowhere, and stays loaded: napi-build links it so. If there is
        // no room for it, slots are shown as those of a process that died.
        let _ = unsafe { libc::atexit(release) };
    });
}

/// Keeps the addon loaded as long as the process lives. Node unloads it with the last thread that loaded
/// it, and with it would be forgotten what the process has issued. (On Unix napi-build links it so.)
#[cfg(windows)]
fn stay_loaded() {
    use std::ptr::{null_mut, without_provenance};
    use windows_sys::Win32::System::LibraryLoader::{
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN, GetModuleHandleExW,
    };
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN;
        let mut module = null_mut();
        let inside = without_provenance((&raw const ONCE).addr());
        // SAFETY: the address is one of the addon's own, and `module` has room for the answer.
        let _ = unsafe { GetModuleHandleExW(flags, inside, &mut module) };
    });
}

/// Opens a share in the node's generator. May block, if it is recorded.
fn open_share(request: &OpenRequest) -> Result<Source, Fault> {
    #[cfg(windows)]
    stay_loaded();
    #[cfg(unix)]
    if request.recording.is_some() {
        release_at_exit();
    }
    let opening = request.opening()?;
    let opened = match (&request.recording, request.worker_id) {
        (None, worker_id) => {
            registry::open(node(request, worker_id.unwrap_or_default())?, &opening)
        }
        (Some(recording), Some(worker_id)) => {
            registry::open_recorded(node(request, worker_id)?, &opening, &recording.into())
        }
        (Some(recording), None) => {
            let lease = if recording.common { registry::lease_common } else { registry::lease };
            let layout = Layout::try_from(&request.layout)?;
            lease(layout, request.datacenter_id as u64, &opening, &recording.into())
        }
    };
    by_ring(request, opened?)
}

impl From<RingError> for Fault {
    fn from(refused: RingError) -> Fault {
        match refused {
            RingError::TooLarge(slots) => Fault::new(
                "ERR_SNOWFLAKE_CONFIG",
                format!(
                    "a ring of {slots} IDs, the sequence numbers of a tick << boostPower, is larger \
                     than {MOST_SLOTS}, which take 128 MiB: choose a smaller boostPower, or fewer \
                     sequenceBits"
                ),
            ),
            RingError::Otherwise(in_force, policies) => Fault::new(
                "ERR_SNOWFLAKE_CONFLICT",
                format!(
                    "this process has a ring for the same datacenterId, workerId and layout with \
                     other options (boostPower {}, paddingFactor {}, scheduleInterval {}, maxAge of \
                     {} ticks, {}): give all of them the same, or close the others first",
                    in_force.boost_power,
                    in_force.padding_factor,
                    in_force.schedule.map_or(0, |every| every.as_millis()),
                    in_force.max_age,
                    described(&policies),
                ),
            ),
            RingError::NoThread => Fault::new(
                "ERR_SNOWFLAKE_STORE",
                "cannot start a thread to pad the ring: look at the process's limits".to_owned(),
            ),
        }
    }
}

impl From<OpenError> for Fault {
    fn from(refused: OpenError) -> Fault {
        match refused {
            OpenError::MaxAhead(in_force) => Fault::new(
                "ERR_SNOWFLAKE_CONFLICT",
                format!(
                    "this process has the same datacenterId, workerId and layout open with maxAhead \
                     {in_force}: give all of them the same, or close the others first"
                ),
            ),
            OpenError::Host(error) => error.into(),
            OpenError::Elsewhere(how) => Fault::new(
                "ERR_SNOWFLAKE_CONFLICT",
                format!(
                    "this process has the same datacenterId, workerId and layout open {how}: give \
                     all of them the same scope, state and ttl, or close the others first"
                ),
            ),
            OpenError::Layout(error) => error.into(),
            OpenError::Store(error) => error.into(),
        }
    }
}

fn described(policies: &Policies) -> String {
    format!(
        "clockBack '{}', maxWait {}, sequenceStart '{}'",
        format!("{:?}", policies.clock_back).to_lowercase(),
        policies.max_wait.as_millis(),
        if policies.random_start { "random" } else { "zero" },
    )
}
