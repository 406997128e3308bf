//! Reads the records of a store, and makes those that an operator writes, for the commands `slots` and `recover`.

use napi_derive::napi;

use super::values::{GivenLayout, Value, layout_of, list, report};
use crate::core::sequencer::NEVER;
use crate::lease::{
    Bucket, Holder, Key, Limits, Line, Namespace, Ranges, Record, SIZES, State, Token, Unreadable,
};

/// The most buckets that a command reads: all of UidGenerator's layout.
const MOST_BUCKETS: usize = 1 << 17;
/// In a layout with so many buckets at most, those that no namespace counts are looked for, too.
const MOST_UNCOUNTED: u64 = 1 << 12;

/// The values of a record, by its key and text: of the kind 'namespace', 'bucket' or 'unreadable'; null for another key.
/// With the store's clock in Unix ms, the lines of a bucket have their states in a search for a slot; without the
/// namespace's text, any limits are assumed. Ceilings and floors are ticks.
#[napi(catch_unwind, ts_return_type = "RecordValues | null")]
pub fn read_record(
    key: String,
    text: String,
    now: Option<f64>,
    namespace: Option<String>,
) -> Value {
    let Some(key) = Key::of_text(&key) else { return Value::Null };
    match Record::of_text(key, &text) {
        Ok(Record::Namespace(namespace)) => values_of_namespace(&namespace),
        Ok(Record::Bucket(bucket)) => {
            let namespace = namespace.and_then(|text| Namespace::of_text(&text).ok());
            values_of_bucket(&bucket, now.map(|now| now as i64), namespace.as_ref())
        }
        Err(Unreadable::Format) => report!(kind: "unreadable", isOther: true),
        Err(Unreadable::Line(line)) => report!(kind: "unreadable", line),
        Err(Unreadable::Long(bytes)) => report!(kind: "unreadable", bytes),
    }
}

fn values_of_namespace(namespace: &Namespace) -> Value {
    let Namespace { id, layout, limits, floor, size, .. } = namespace;
    let Limits { ttl, max_clock_skew, max_ahead } = *limits;
    report!(
        kind: "namespace",
        id: id.to_string(),
        layout: layout_of(layout),
        ttl,
        maxClockSkew: max_clock_skew,
        maxAhead: max_ahead,
        reach: limits.reach(),
        floor: *floor,
        size: *size,
    )
}

fn values_of_bucket(bucket: &Bucket, now: Option<i64>, namespace: Option<&Namespace>) -> Value {
    let lines = bucket.lines.iter().map(|(worker, line)| {
        let Line { is_held, floor, ceiling, expires, holder, .. } = line;
        let Holder { pid, started, address, host } = holder;
        report!(
            workerId: *worker,
            isHeld: *is_held,
            state: now.map(|now| state_word(line.state(now, namespace))),
            ceiling: (*ceiling).max(*floor),
            expires: *expires,
            pid: *pid,
            started: *started,
            address: (!address.is_empty()).then(|| address.clone()),
            host: &**host,
        )
    });
    report!(
        kind: "bucket",
        id: bucket.id.to_string(),
        floor: bucket.floor,
        lines: list(lines),
        // The worker IDs of lines that no holder of this version writes.
        damaged: list(bucket.damaged.keys().copied()),
    )
}

fn state_word(state: State) -> &'static str {
    match state {
        State::Held => "held",
        State::Free => "free",
        State::Impossible => "impossible",
    }
}

/// The keys of a namespace's buckets, and whether these are all: those that it counts, and with `is_all` the others, too, where
/// its layout has few. With a datacenter, of that one only. Null where the text cannot be read.
#[napi(catch_unwind, ts_return_type = "BucketKeys | null")]
pub fn bucket_keys(text: String, is_all: bool, datacenter: Option<f64>) -> Value {
    let Ok(mut namespace) = Namespace::of_text(&text) else { return Value::Null };
    let all = namespace.all_buckets();
    if is_all && all <= MOST_UNCOUNTED {
        (0..all).for_each(|number| namespace.created.insert(number));
    }
    let wanted = namespace.counted(datacenter.map(|one| one as u64)).take(MOST_BUCKETS + 1);
    let mut keys: Vec<String> = wanted.map(|key| key.to_string()).collect();
    let is_whole = keys.len() <= MOST_BUCKETS;
    keys.truncate(MOST_BUCKETS);
    report!(keys: list(keys), isWhole: is_whole)
}

/// The text of a new namespace with this ID, without a floor; null if a value is invalid. `size`: the worker IDs of a bucket.
#[napi(catch_unwind)]
pub fn new_namespace_text(
    id: String,
    layout: GivenLayout,
    ttl: f64,
    max_clock_skew: f64,
    max_ahead: f64,
    size: f64,
) -> Option<String> {
    let size = SIZES.into_iter().find(|one| *one as f64 == size)?;
    let (id, layout) = (Token::of_text(&id)?, layout.0.ok()?);
    let limits = limits_of(ttl, max_clock_skew, max_ahead);
    let created = Ranges::default();
    Some(Namespace { id, layout, limits, floor: NEVER, size, created }.text())
}

/// The text of a namespace once an operator has confirmed that it is new; null where it has a floor, or cannot be read.
#[napi(catch_unwind)]
pub fn confirmed_namespace_text(text: String) -> Option<String> {
    Some(Namespace::of_text(&text).ok()?.confirmed()?.text())
}

/// The text of a namespace after a loss: with another ID, the higher of each limit, and these buckets counted. `now`: the store's
/// clock, Unix ms. Null where the text cannot be read.
#[napi(catch_unwind)]
pub fn recovered_namespace_text(
    text: String,
    id: String,
    limits: Vec<f64>,
    counted: Vec<String>,
    now: f64,
) -> Option<String> {
    let [ttl, max_clock_skew, max_ahead] = limits.try_into().ok()?;
    let namespace = Namespace::of_text(&text).ok()?;
    let limits = limits_of(ttl, max_clock_skew, max_ahead);
    let mut recovered = namespace.recovered(Token::of_text(&id)?, limits, now as i64);
    for key in counted {
        if let Some(Key::Bucket(datacenter, bucket)) = Key::of_text(&key) {
            recovered.count(recovered.number(datacenter, bucket));
        }
    }
    Some(recovered.text())
}

/// The text of a bucket after a loss, for the recovered namespace; null where there is nothing to write, or the text is of another
/// version.
#[napi(catch_unwind)]
pub fn recovered_bucket_text(text: String, namespace: String, now: f64) -> Option<String> {
    let namespace = Namespace::of_text(&namespace).ok()?;
    let now = now as i64;
    let bucket = match Bucket::of_text(&text) {
        Ok(bucket) => bucket.recovered(&namespace, now)?,
        Err(Unreadable::Format) => return None,
        Err(_) => Bucket::replaced(&namespace, now),
    };
    Some(bucket.text())
}

/// Limits from JavaScript, ms.
pub(super) fn limits_of(ttl: f64, max_clock_skew: f64, max_ahead: f64) -> Limits {
    Limits { ttl: ttl as i64, max_clock_skew: max_clock_skew as i64, max_ahead: max_ahead as i64 }
}

/// A new token, for a record that JavaScript writes, or the ID of a namespace.
#[napi(catch_unwind)]
pub fn new_token() -> String {
    format!("{:016x}", crate::core::random::fresh())
}
