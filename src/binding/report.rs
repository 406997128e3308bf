//! Reports: objects for JavaScript.

use napi::bindgen_prelude::{Null, ToNapiValue};
use napi::sys;

use super::fault::object_of;
use super::layout::LayoutRecord;
use crate::authority::Holder;
use crate::core::fault::{Fault, Value};

/// An object by its properties, each with its unit: see [`report!`].
#[derive(Clone)]
pub struct Report(pub Vec<(&'static str, Item)>);

/// The value of a property.
#[derive(Clone)]
pub enum Item {
    /// [`Value::None`] is left out.
    Value(Value),
    Null,
    Layout(Box<LayoutRecord>),
    Fault(Fault),
    Report(Report),
    List(Vec<Item>),
}

/// A [`Report`] by its properties: variables, or `name: value`.
macro_rules! report {
    ($($name:ident $(: $value:expr)?),* $(,)?) => {
        $crate::binding::report::Report(
            vec![$((stringify!($name), $crate::binding::report::report!(@ $name $($value)?))),*],
        )
    };
    (@ $name:ident) => { $name.into() };
    (@ $name:ident $value:expr) => { $value.into() };
}
pub(crate) use report;

impl Report {
    pub fn of_holder(holder: &Holder) -> Report {
        let Holder { pid, host, started_ms, .. } = holder;
        report!(pid: *pid, host: host.as_str(), started: *started_ms)
    }
}

/// The value, or null.
pub fn or_null(value: Option<impl Into<Item>>) -> Item {
    value.map_or(Item::Null, Into::into)
}

impl<V: Into<Value>> From<V> for Item {
    fn from(value: V) -> Item {
        Item::Value(value.into())
    }
}

macro_rules! items {
    ($($kind:ty: $item:expr),*) => {
        $(
            impl From<$kind> for Item {
                fn from(value: $kind) -> Item {
                    $item(value)
                }
            }

            impl From<Option<$kind>> for Item {
                fn from(value: Option<$kind>) -> Item {
                    value.map_or(Item::Value(Value::None), $item)
                }
            }
        )*
    };
}
items!(LayoutRecord: |layout| Item::Layout(Box::new(layout)), Fault: Item::Fault, Report: Item::Report);

impl<I: Into<Item>> FromIterator<I> for Item {
    fn from_iter<T: IntoIterator<Item = I>>(items: T) -> Item {
        Item::List(items.into_iter().map(Into::into).collect())
    }
}

impl ToNapiValue for Report {
    unsafe fn to_napi_value(env: sys::napi_env, report: Report) -> napi::Result<sys::napi_value> {
        let is_left_out = |item: &Item| matches!(item, Item::Value(Value::None));
        object_of(env, report.0.into_iter().filter(|(_, item)| !is_left_out(item)))
    }
}

impl ToNapiValue for Item {
    unsafe fn to_napi_value(env: sys::napi_env, item: Item) -> napi::Result<sys::napi_value> {
        // SAFETY: the caller passes the environment of this thread.
        unsafe {
            match item {
                Item::Value(value) => ToNapiValue::to_napi_value(env, value),
                Item::Null => ToNapiValue::to_napi_value(env, Null),
                Item::Layout(layout) => ToNapiValue::to_napi_value(env, *layout),
                Item::Fault(fault) => ToNapiValue::to_napi_value(env, fault),
                Item::Report(report) => ToNapiValue::to_napi_value(env, report),
                Item::List(items) => ToNapiValue::to_napi_value(env, items),
            }
        }
    }
}
