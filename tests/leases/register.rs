//! A register as a map.

use std::collections::BTreeMap;

use snowdrift::lease::{BUCKET, Call, Key, Record, Reply, Token};

pub type Records = BTreeMap<Key, (Token, Record)>;

/// What a register replies to a call, in one atomic step.
pub fn answer(records: &mut Records, call: &Call) -> Reply {
    match call {
        Call::Now => Reply::Time,
        Call::Read(key) => Reply::Read(records.get(key).cloned()),
        Call::List { datacenter, bucket } => {
            let prefix = Key::prefix(*datacenter, *bucket);
            let workers = bucket * BUCKET..(bucket + 1) * BUCKET;
            let slots = workers.map(|worker| Key::Slot(*datacenter, worker));
            let keys = slots.chain([Key::Bucket(*datacenter, *bucket)]);
            let found = keys.filter_map(|key| {
                debug_assert!(key.text().starts_with(&prefix));
                let (token, record) = records.get(&key)?;
                Some((key, *token, record.clone()))
            });
            Reply::Listed(found.collect())
        }
        Call::Write { key, token, record, before } => {
            let found = records.get(key).cloned();
            if found.as_ref().map(|(token, _)| *token) != *before {
                return Reply::Differs(found);
            }
            records.insert(*key, (*token, record.clone()));
            Reply::Written
        }
    }
}
