//! Faults for JavaScript, which `js/faults.js` words.

use napi::bindgen_prelude::{Either, JsObjectValue, JsValue, Object, ToNapiValue};
use napi::{Env, Property, sys};

use crate::core::fault::{Fault, Value};

/// An object with the kind, and each value under its name.
impl ToNapiValue for Fault {
    unsafe fn to_napi_value(env: sys::napi_env, fault: Fault) -> napi::Result<sys::napi_value> {
        object_of(env, [("kind", fault.kind.into())].into_iter().chain(fault.values))
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

/// An object with these properties.
pub fn object_of(
    env: sys::napi_env,
    properties: impl Iterator<Item = (&'static str, impl ToNapiValue)>,
) -> napi::Result<sys::napi_value> {
    let env = Env::from_raw(env);
    let mut object = Object::new(&env)?;
    let property =
        |(name, value)| Property::new().with_utf8_name(name)?.with_napi_value(&env, value);
    // At once, which takes less time.
    object.define_properties(&properties.map(property).collect::<napi::Result<Vec<_>>>()?)?;
    Ok(object.raw())
}

/// The value, or the fault in its place.
pub fn answer<T>(result: Result<T, impl Into<Fault>>) -> Either<T, Fault> {
    result.map_or_else(|error| Either::B(error.into()), Either::A)
}
