//! Faults for JavaScript: `js/faults.js` words them.

use napi::bindgen_prelude::{Either, JsValue, Object, ToNapiValue};
use napi::{Env, sys};
use napi_derive::napi;

use super::property::define;
use crate::core::fault::{Fault, Value};
use crate::store::Holder;

/// An object with the kind, and each value under its name.
impl ToNapiValue for Fault {
    unsafe fn to_napi_value(env: sys::napi_env, fault: Fault) -> napi::Result<sys::napi_value> {
        let env = Env::from_raw(env);
        let mut object = Object::new(&env)?;
        define(&env, &mut object, "kind", fault.kind, Default::default())?;
        for (name, value) in fault.values {
            define(&env, &mut object, name, value, Default::default())?;
        }
        Ok(object.raw())
    }
}

impl ToNapiValue for Value {
    unsafe fn to_napi_value(env: sys::napi_env, value: Value) -> napi::Result<sys::napi_value> {
        // SAFETY: the caller passes the environment of this thread.
        unsafe {
            match value {
                Value::None => ToNapiValue::to_napi_value(env, ()),
                Value::Flag(flag) => ToNapiValue::to_napi_value(env, flag),
                Value::Number(number) => ToNapiValue::to_napi_value(env, number),
                Value::Text(text) => ToNapiValue::to_napi_value(env, text),
                Value::Faults(parts) => ToNapiValue::to_napi_value(env, parts),
            }
        }
    }
}

/// The holder of a slot.
#[napi(object, object_from_js = false)]
pub struct HolderRecord {
    pub pid: u32,
    pub host: String,
    /// The start of the process, Unix ms.
    pub started: i64,
}

impl From<&Holder> for HolderRecord {
    fn from(holder: &Holder) -> Self {
        let Holder { pid, host, started_ms, .. } = holder;
        HolderRecord { pid: *pid, host: host.clone(), started: *started_ms }
    }
}

/// The value, or the fault in its place.
pub fn answer<T>(result: Result<T, impl Into<Fault>>) -> Either<T, Fault> {
    result.map_or_else(|error| Either::B(error.into()), Either::A)
}
