//! Failures as data: a kind, with the details for its text, and a class, by which callers decide.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The failure of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The class, by which callers decide.
    pub class: Class,
    /// The fault, which users read as a text.
    pub fault: Fault,
}

/// The classes of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The file is not a usable record of this slot. Another slot may work.
    Slot,
    /// The page or its directory is unusable, and was left unchanged.
    Page,
    /// Other processes use the node's page on other terms.
    Conflict,
    /// The file system refused an operation.
    Io(ErrorKind),
    /// Any other failure. No caller decides by it.
    Other,
}

impl Failure {
    /// A failure of this class.
    pub fn new(class: Class, fault: Fault) -> Failure {
        Failure { class, fault }
    }

    /// For `map_err`: the file system refused an operation on this file. `kind`: the kind of the fault.
    pub fn io(kind: &'static str, doing: &str, place: &Path) -> impl Fn(io::Error) -> Failure {
        move |cause| {
            let reason = reason_of(&cause);
            let fault = fault!("", doing, place, cause: cause.to_string(), reason);
            Failure::new(Class::Io(cause.kind()), Fault { kind, ..fault })
        }
    }

    /// Whether this file failed.
    pub fn is_of(&self, file: &Path) -> bool {
        self.fault.detail("place") == Some(&file.into())
    }

    /// Whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        self.class == Class::Io(ErrorKind::NotFound)
    }
}

/// The reason, by which the text gets its remedy: the name of the `ErrorKind`, since error numbers differ between
/// systems. Some reasons have no `ErrorKind`.
fn reason_of(cause: &io::Error) -> String {
    let name = match cause.raw_os_error() {
        // EMFILE, ENFILE; ERROR_TOO_MANY_OPEN_FILES.
        Some(24) if cfg!(unix) => "TooManyFiles",
        Some(23) if cfg!(unix) => "TooManyFilesOfSystem",
        Some(4) if cfg!(windows) => "TooManyFiles",
        // ENOLCK.
        Some(37) if cfg!(target_os = "linux") => "NoLocks",
        Some(77) if cfg!(target_os = "macos") => "NoLocks",
        _ => return format!("{:?}", cause.kind()),
    };
    name.to_owned()
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::new(Class::Other, fault)
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Fault {
        failure.fault
    }
}

/// A fault: the kind and details of a failure, or of a part of one, for its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The key of its text.
    pub kind: &'static str,
    /// The details, by their names in the text.
    pub details: Vec<(&'static str, Detail)>,
}

/// A detail of a fault.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// Unknown, or not applicable.
    None,
    /// A number.
    Number(f64),
    /// A flag.
    Flag(bool),
    /// A path, a name or a word.
    Text(String),
    /// Faults with texts of their own.
    Faults(Vec<Fault>),
}

/// A list of names and values, from variables or `name: value`.
macro_rules! values {
    ($($name:ident $(: $value:expr)?),* $(,)?) => {
        vec![$((stringify!($name), $crate::core::fault::values!(@ $name $($value)?))),*]
    };
    (@ $name:ident) => { $name.into() };
    (@ $name:ident $value:expr) => { $value.into() };
}
pub(crate) use values;

/// A [`Fault`] by its kind and details.
macro_rules! fault {
    ($kind:literal $(, $($values:tt)*)?) => {
        $crate::core::fault::Fault {
            kind: $kind,
            details: $crate::core::fault::values!($($($values)*)?),
        }
    };
}
pub(crate) use fault;

impl Fault {
    /// The detail with this name.
    pub fn detail(&self, name: &str) -> Option<&Detail> {
        self.details.iter().find(|(of, _)| *of == name).map(|(_, detail)| detail)
    }
}

/// Conversions to [`Detail`].
macro_rules! conversions {
    ($($($from:ty),+ => $into:expr;)*) => {
        $($(impl From<$from> for Detail {
            fn from(from: $from) -> Detail {
                $into(from)
            }
        })+)*
    };
}
conversions! {
    f64 => Detail::Number;
    i64, u8, u32, u64, u128, usize => |number| Detail::Number(number as f64);
    bool => Detail::Flag;
    String => Detail::Text;
    &str => |text: &str| Detail::Text(text.to_owned());
    &Path => |path: &Path| Detail::Text(path.display().to_string());
    PathBuf => |path: PathBuf| Detail::from(path.as_path());
    Vec<Fault> => Detail::Faults;
}

impl<D: Into<Detail>> From<Option<D>> for Detail {
    fn from(detail: Option<D>) -> Detail {
        detail.map_or(Detail::None, D::into)
    }
}
