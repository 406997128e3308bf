//! Reads the requests of `js/` into the core's types.

use std::ffi::CStr;
use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{ClassInstance, FromNapiValue, JsObjectValue, Object};
use napi::sys;

use super::leases::LeaseDriver;
use super::values::GivenLayout;
use crate::core::clock::ManualClock;
use crate::core::fault::{Fault, fault};
use crate::core::layout::Layout;
use crate::generator::{ClockBack, Policies};
use crate::registry::{By, DirectoryLeasing, HostPage, Request, Scope};
use crate::ring::Caching;

/// A request as an argument, or its fault.
pub struct Requested(pub Result<Wanted, Fault>);

/// The wanted generator, and the ring in front of it.
pub struct Wanted {
    pub request: Request,
    /// The slot of a lease from a store.
    pub slot: Option<HostPage>,
    /// The settings of a lease from a directory.
    pub leasing: Option<DirectoryLeasing>,
    /// The options of the ring; `None` for no ring.
    pub caching: Option<Caching>,
}

impl FromNapiValue for Requested {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        // SAFETY: the caller's promise.
        Ok(Requested(Fields(unsafe { Object::from_napi_value(env, value)? }).wanted()))
    }
}

const CLOCK_BACK: [(&str, ClockBack); 3] =
    [("counter", ClockBack::Counter), ("wait", ClockBack::Wait), ("throw", ClockBack::Throw)];
const RANDOM_START: [(&str, bool); 2] = [("zero", false), ("random", true)];
const SCOPE: [(&str, Scope); 3] =
    [("auto", Scope::Auto), ("host", Scope::Host), ("process", Scope::Process)];

/// The fields of an object that `js/` passes. Times are in ms.
struct Fields<'call>(Object<'call>);

impl Fields<'_> {
    fn wanted(&self) -> Result<Wanted, Fault> {
        let layout = self.get::<GivenLayout>(c"layout")?.0?;
        let request = Request {
            layout,
            datacenter_id: self.number(c"datacenterId")?,
            worker_id: self.find::<f64>(c"workerId")?.map(|id| id as u64),
            policies: Policies {
                clock_back: self.choice(c"clockBack", CLOCK_BACK)?,
                max_wait: self.time(c"maxWait")?,
                random_start: self.choice(c"sequenceStart", RANDOM_START)?,
            },
            max_ahead_ms: self.get(c"maxAhead")?,
            scope: self.choice(c"scope", SCOPE)?,
            shared: self.find::<String>(c"shared")?.map(Into::into),
            by: self.by()?,
        };
        let lease = self.find::<ClassInstance<LeaseDriver>>(c"lease")?;
        let slot = lease.and_then(|lease| lease.slot());
        let caching = self.find::<Object>(c"ring")?.map(|ring| Fields(ring).caching(&layout));
        let leasing = self.find::<Object>(c"leasing")?.map(|one| Fields(one).leasing());
        Ok(Wanted { request, slot, leasing: leasing.transpose()?, caching: caching.transpose()? })
    }

    /// The authority that allows the IDs.
    fn by(&self) -> Result<By, Fault> {
        Ok(if self.is(c"isLeased")? {
            By::Lease
        } else if self.is(c"ownClock")? {
            By::Clock(Arc::new(ManualClock::default()))
        } else {
            By::Free
        })
    }

    /// The settings of a lease from a directory.
    fn leasing(&self) -> Result<DirectoryLeasing, Fault> {
        Ok(DirectoryLeasing {
            directory: self.get::<String>(c"directory")?.into(),
            ttl: self.time(c"ttl")?,
            wait: self.time(c"wait")?,
            host: self.get(c"host")?,
            started_ms: self.get(c"started")?,
            is_common: self.get(c"isCommon")?,
        })
    }

    /// The options of a ring. Fails if it would be too large.
    fn caching(&self, layout: &Layout) -> Result<Caching, Fault> {
        let schedule = self.time(c"scheduleInterval")?;
        let caching = Caching {
            boost_power: self.get(c"boostPower")?,
            padding_factor: self.number(c"paddingFactor")?,
            schedule: (!schedule.is_zero()).then_some(schedule),
            max_age: (self.get::<f64>(c"maxAge")? / layout.tick_ms as f64).ceil() as i64,
        };
        caching.size(layout)?;
        Ok(caching)
    }

    fn get<T: FromNapiValue>(&self, name: &CStr) -> Result<T, Fault> {
        self.0.get_c_named_property_unchecked(name).map_err(|error| unknown(name, &error.reason))
    }

    /// A field; `None` if it is undefined.
    fn find<T: FromNapiValue>(&self, name: &CStr) -> Result<Option<T>, Fault> {
        self.get(name)
    }

    fn is(&self, name: &CStr) -> Result<bool, Fault> {
        Ok(self.find(name)? == Some(true))
    }

    /// A whole number of 0 or more. Saturates.
    fn number(&self, name: &CStr) -> Result<u64, Fault> {
        Ok(self.get::<f64>(name)? as u64)
    }

    fn time(&self, name: &CStr) -> Result<Duration, Fault> {
        self.number(name).map(Duration::from_millis)
    }

    fn choice<T, const N: usize>(&self, option: &CStr, all: [(&str, T); N]) -> Result<T, Fault> {
        let value = self.get::<String>(option)?;
        let found = all.into_iter().find_map(|(name, choice)| (name == value).then_some(choice));
        found.ok_or_else(|| unknown(option, &value))
    }
}

fn unknown(option: &CStr, value: &str) -> Fault {
    fault!("no-such-choice", option: option.to_string_lossy().as_ref(), value)
}
