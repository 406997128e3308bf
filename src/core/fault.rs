//! Failures as data: a kind, and the values that its text names. `js/faults.js` words them. Enums of errors are only
//! for callers that decide by them.

use std::io;
use std::path::{Path, PathBuf};

/// A failure, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Its key in `js/faults.js`.
    pub kind: &'static str,
    /// The values, by their names there.
    pub values: Vec<(&'static str, Value)>,
}

/// A value that a text names.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Unknown, or without a meaning here.
    None,
    /// A number: `js/` has no others.
    Number(f64),
    /// Whether it is so.
    Flag(bool),
    /// A path, a name or a word.
    Text(String),
    /// Parts with texts of their own.
    Faults(Vec<Fault>),
}

/// A [`Fault`] by its kind and values: variables, or `name: value`.
macro_rules! fault {
    ($kind:literal $(, $name:ident $(: $value:expr)?)* $(,)?) => {
        $crate::core::fault::Fault {
            kind: $kind,
            values: vec![$((stringify!($name), $crate::core::fault::fault!(@ $name $($value)?))),*],
        }
    };
    (@ $name:ident) => { $name.into() };
    (@ $name:ident $value:expr) => { $value.into() };
}
pub(crate) use fault;

impl Fault {
    /// The value of this name.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(of, _)| *of == name).map(|(_, value)| value)
    }

    /// A failure of the file system.
    pub(crate) fn io(kind: &'static str, doing: &str, place: PathBuf, cause: &io::Error) -> Fault {
        // The name of its variant: numbers differ between systems.
        let reason = format!("{:?}", cause.kind());
        Fault { kind, ..fault!("", doing, place, cause: cause.to_string(), reason) }
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl From<$number> for Value {
            fn from(number: $number) -> Value {
                Value::Number(number as f64)
            }
        })*
    };
}
numbers!(i64, u8, u32, u64, u128, usize);

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Flag(flag)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<&Path> for Value {
    fn from(path: &Path) -> Value {
        Value::Text(path.display().to_string())
    }
}

impl From<PathBuf> for Value {
    fn from(path: PathBuf) -> Value {
        path.as_path().into()
    }
}

impl From<Vec<Fault>> for Value {
    fn from(parts: Vec<Fault>) -> Value {
        Value::Faults(parts)
    }
}

impl<V: Into<Value>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Value {
        value.map_or(Value::None, V::into)
    }
}
