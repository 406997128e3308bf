//! The names of records' files.

use crate::lease::Key;

/// The name of a record's file.
pub fn record_name(key: Key) -> String {
    match key {
        Key::Namespace => "namespace.slot".to_owned(),
        Key::Bucket(datacenter, worker) => format!("datacenter-{datacenter}-worker-{worker}.slot"),
    }
}

/// The key of a bucket's file.
pub(super) fn bucket_named(name: &str) -> Option<Key> {
    let (datacenter, worker) =
        name.strip_prefix("datacenter-")?.strip_suffix(".slot")?.split_once("-worker-")?;
    let key = Key::Bucket(datacenter.parse().ok()?, worker.parse().ok()?);
    (format!("{datacenter}/{worker}") == key.to_string()).then_some(key)
}
