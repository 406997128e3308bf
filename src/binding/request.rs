//! Requests as `js/` passes them, read into the core's types.

use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{FromNapiValue, Object};
use napi::sys;

use super::layout::LayoutRecord;
use super::leases::id;
use crate::core::clock::ManualClock;
use crate::core::fault::{Fault, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::sequencer::Window;
use crate::generator::{ClockBack, Policies};
use crate::pages::Grant;
use crate::registry::{By, Joining, Recording, Request, Scope};
use crate::ring::Caching;

/// A request as an argument, or the fault in it.
pub struct Requested(pub Result<Wanted, Fault>);

/// A generator, and the ring in front of it.
pub struct Wanted {
    pub request: Request,
    /// None for no ring.
    pub caching: Option<Caching>,
}

/// Why a value is no request.
enum Unread {
    /// It has a value that the core refuses.
    Fault(Fault),
    /// It is not what `js/` passes.
    Napi(napi::Error),
}

impl From<Fault> for Unread {
    fn from(fault: Fault) -> Unread {
        Unread::Fault(fault)
    }
}

impl From<napi::Error> for Unread {
    fn from(error: napi::Error) -> Unread {
        Unread::Napi(error)
    }
}

impl FromNapiValue for Requested {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        // SAFETY: the caller's promise.
        let object = Fields(unsafe { Object::from_napi_value(env, value)? });
        match object.wanted() {
            Ok(wanted) => Ok(Requested(Ok(wanted))),
            Err(Unread::Fault(fault)) => Ok(Requested(Err(fault))),
            Err(Unread::Napi(error)) => Err(error),
        }
    }
}

/// An object that `js/` passes. Times are in ms.
struct Fields<'call>(Object<'call>);

impl Fields<'_> {
    fn wanted(&self) -> Result<Wanted, Unread> {
        let layout = Layout::try_from(&self.get::<LayoutRecord>("layout")?)?;
        let (by, in_thread) = self.by()?;
        let request = Request {
            layout,
            datacenter_id: self.number("datacenterId")? as u64,
            worker_id: self.find::<f64>("workerId")?.map(|id| id as u64),
            policies: Policies {
                clock_back: self.choice(
                    "clockBack",
                    [
                        ("counter", ClockBack::Counter),
                        ("wait", ClockBack::Wait),
                        ("throw", ClockBack::Throw),
                    ],
                )?,
                max_wait: self.time("maxWait")?,
                random_start: self.choice("sequenceStart", [("zero", false), ("random", true)])?,
            },
            max_ahead_ms: self.number("maxAhead")? as i64,
            scope: self.choice(
                "scope",
                [("auto", Scope::Auto), ("host", Scope::Host), ("process", Scope::Process)],
            )?,
            shared: self.find::<String>("shared")?.map(Into::into),
            by,
            in_thread,
        };
        let caching = self.find::<Object>("ring")?.map(|ring| Fields(ring).caching(&layout));
        Ok(Wanted { request, caching: caching.transpose()? })
    }

    /// Who allows the IDs, and whether the caller renews the lease in a thread of its own.
    fn by(&self) -> Result<(By, bool), Unread> {
        let part = |name| Ok::<_, Unread>(self.find::<Object>(name)?.map(Fields));
        if let Some(recording) = part("recording")? {
            let recording = Recording {
                directory: recording.get::<String>("directory")?.into(),
                ttl: recording.time("ttl")?,
                wait: recording.time("wait")?,
                host: recording.get("host")?,
                started_ms: recording.number("started")? as i64,
                common: recording.get("common")?,
            };
            return Ok((By::Record(recording), false));
        }
        let (by, lease) = if let Some(window) = part("window")? {
            let (floor, ceiling) = (window.tick("floor")?, window.tick("ceiling")?);
            (By::Window(Window { floor, ceiling }), window)
        } else if let Some(grant) = part("grant")? {
            let granted = Grant {
                namespace: grant.id("namespace")?,
                owner: grant.id("owner")?,
                floor: grant.tick("floor")?,
                ceiling: grant.tick("ceiling")?,
                expires_ms: grant.find::<f64>("expires")?.map(|ms| ms as i64),
                now_ms: grant.number("now")? as i64,
                ttl_ms: grant.number("ttl")? as i64,
            };
            (By::Grant(granted), grant)
        } else if let Some(join) = part("join")? {
            let except = join.get::<Vec<String>>("except")?;
            let joining = Joining {
                namespace: join.id("namespace")?,
                owner: join.find::<String>("owner")?.map(|owner| id(&owner)).transpose()?,
                except: except.iter().map(|one| id(one)).collect::<Result<_, Fault>>()?,
            };
            (By::Host(joining), join)
        } else if self.is("ofThread")? {
            return Ok((By::Thread, false));
        } else if self.is("ownClock")? {
            return Ok((By::Clock(Arc::new(ManualClock::default())), false));
        } else {
            return Ok((By::Free, false));
        };
        Ok((by, lease.get("inThread")?))
    }

    /// The options of a ring. A fault if it would be too large.
    fn caching(&self, layout: &Layout) -> Result<Caching, Unread> {
        let schedule = self.time("scheduleInterval")?;
        let caching = Caching {
            boost_power: self.get("boostPower")?,
            padding_factor: self.number("paddingFactor")? as u64,
            schedule: (!schedule.is_zero()).then_some(schedule),
            max_age: (self.number("maxAge")? / layout.tick_ms as f64).ceil() as i64,
        };
        caching.slots(layout)?;
        Ok(caching)
    }

    /// A field; none where it is undefined.
    fn find<T: FromNapiValue>(&self, name: &str) -> napi::Result<Option<T>> {
        self.0.get(name)
    }

    fn get<T: FromNapiValue>(&self, name: &str) -> napi::Result<T> {
        self.find(name)?.ok_or_else(|| napi::Error::from_reason(format!("no {name}")))
    }

    fn is(&self, name: &str) -> napi::Result<bool> {
        Ok(self.find(name)?.unwrap_or(false))
    }

    fn number(&self, name: &str) -> napi::Result<f64> {
        self.get(name)
    }

    fn tick(&self, name: &str) -> napi::Result<Tick> {
        Ok(self.number(name)? as Tick)
    }

    fn time(&self, name: &str) -> napi::Result<Duration> {
        Ok(Duration::from_millis(self.number(name)? as u64))
    }

    fn id(&self, name: &str) -> Result<u128, Unread> {
        Ok(id(&self.get::<String>(name)?)?)
    }

    fn choice<T, const N: usize>(&self, option: &str, all: [(&str, T); N]) -> Result<T, Unread> {
        let value = self.get::<String>(option)?;
        let found = all.into_iter().find_map(|(name, choice)| (name == value).then_some(choice));
        Ok(found.ok_or_else(|| fault!("no-such-choice", option, value))?)
    }
}
