//! Values for JavaScript: faults, whose texts are in `js/messages/faults.js`, and reports. Layouts as arguments, and
//! their ticks.

use std::ffi::CStr;

use napi::bindgen_prelude::{
    Either, FromNapiValue, JsObjectValue, JsValue, Null, Object, ToNapiValue,
};
use napi::{Env, Property, sys};
use napi_derive::napi;

use crate::core::fault::{Detail, Fault};
use crate::core::layout::{Layout, Tick};
use crate::core::sequencer::NEVER;

/// A value for JavaScript.
#[derive(Clone)]
pub enum Value {
    /// No value, explicitly.
    Null,
    /// A detail. A property with [`Detail::None`] is left out.
    Detail(Detail),
    /// Values in an order.
    List(Vec<Value>),
    /// Values by name.
    Record(Vec<(&'static str, Value)>),
}

impl<D: Into<Detail>> From<D> for Value {
    fn from(detail: D) -> Value {
        Value::Detail(detail.into())
    }
}

impl From<Option<Value>> for Value {
    fn from(value: Option<Value>) -> Value {
        value.unwrap_or(Value::Detail(Detail::None))
    }
}

impl From<Fault> for Value {
    fn from(Fault { kind, details }: Fault) -> Value {
        record_of([("kind", kind.into())].into_iter().chain(details))
    }
}

/// A report with these properties: variables, or `name: value`.
macro_rules! report {
    ($($values:tt)*) => {
        $crate::binding::values::Value::Record($crate::core::fault::values!($($values)*))
    };
}
pub(super) use report;

/// The value, or null.
pub fn or_null(value: Option<impl Into<Value>>) -> Value {
    value.map_or(Value::Null, Into::into)
}

/// Values in an order.
pub fn list(values: impl IntoIterator<Item = impl Into<Value>>) -> Value {
    Value::List(values.into_iter().map(Into::into).collect())
}

/// The value, or the fault.
pub fn answer<T>(of: impl FnOnce() -> Result<T, Fault>) -> Either<T, Fault> {
    of().map_or_else(Either::B, Either::A)
}

impl ToNapiValue for Fault {
    unsafe fn to_napi_value(env: sys::napi_env, fault: Fault) -> napi::Result<sys::napi_value> {
        // SAFETY: the caller's promise.
        unsafe { ToNapiValue::to_napi_value(env, Value::from(fault)) }
    }
}

impl ToNapiValue for Value {
    unsafe fn to_napi_value(env: sys::napi_env, value: Value) -> napi::Result<sys::napi_value> {
        // SAFETY: the caller passes the environment of this thread.
        unsafe {
            match value {
                Value::Null => ToNapiValue::to_napi_value(env, Null),
                Value::Detail(Detail::None) => ToNapiValue::to_napi_value(env, ()),
                Value::Detail(Detail::Flag(flag)) => ToNapiValue::to_napi_value(env, flag),
                Value::Detail(Detail::Number(number)) => ToNapiValue::to_napi_value(env, number),
                Value::Detail(Detail::Text(text)) => ToNapiValue::to_napi_value(env, text),
                Value::Detail(Detail::Faults(parts)) => ToNapiValue::to_napi_value(env, parts),
                Value::List(values) => ToNapiValue::to_napi_value(env, values),
                Value::Record(values) => object_of(env, values),
            }
        }
    }
}

/// An object with these properties.
fn object_of(
    env: sys::napi_env,
    values: Vec<(&'static str, Value)>,
) -> napi::Result<sys::napi_value> {
    let env = &Env::from_raw(env);
    let mut object = Object::new(env)?;
    let known =
        values.into_iter().filter(|(_, value)| !matches!(value, Value::Detail(Detail::None)));
    let property =
        |(name, value)| Property::new().with_utf8_name(name)?.with_napi_value(env, value);
    // All at once, which takes less time.
    object.define_properties(&known.map(property).collect::<napi::Result<Vec<_>>>()?)?;
    Ok(object.raw())
}

const WIDTHS: [&CStr; 5] =
    [c"timestampBits", c"datacenterBits", c"workerBits", c"clockBackBits", c"sequenceBits"];

/// A layout as an argument, or its fault.
pub struct GivenLayout(pub Result<Layout, Fault>);

impl FromNapiValue for GivenLayout {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        // SAFETY: the caller's promise.
        let object = unsafe { Object::from_napi_value(env, value)? };
        let number = |name| object.get_c_named_property_unchecked::<f64>(name);
        let mut widths = [0; 5];
        for (width, name) in widths.iter_mut().zip(WIDTHS) {
            // `as` saturates, and a saturated value is out of range for every width.
            *width = number(name)? as u8;
        }
        let layout = Layout::new(widths, number(c"tickMs")? as i64, number(c"epoch")? as i64);
        Ok(GivenLayout(layout.checked()))
    }
}

/// A layout in a report.
pub fn layout_of(layout: &Layout) -> Value {
    record_of(layout.described().details)
}

fn record_of(details: impl IntoIterator<Item = (&'static str, Detail)>) -> Value {
    Value::Record(details.into_iter().map(|(name, detail)| (name, detail.into())).collect())
}

/// The last ms of a tick.
pub fn end_of(layout: &Layout, tick: Tick) -> i64 {
    layout.tick_end_ms(tick)
}

/// The tick of a Unix time in ms, within the layout; -1 before its epoch.
#[napi(catch_unwind)]
pub fn tick_at(layout: GivenLayout, unix_ms: f64) -> Either<i64, Fault> {
    answer(|| {
        let layout = layout.0?;
        Ok(layout.tick_at(unix_ms.floor() as i64).clamp(NEVER, layout.last_tick()))
    })
}

/// The last Unix ms of a tick.
#[napi(catch_unwind)]
pub fn tick_end(layout: GivenLayout, tick: f64) -> Either<i64, Fault> {
    answer(|| Ok(end_of(&layout.0?, tick as Tick)))
}
