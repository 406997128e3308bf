//! Reads and writes the records of a store for the commands `snowdrift namespace` and `slots`.

use napi_derive::napi;

use super::values::{GivenLayout, Value, digits, layout_of, report};
use crate::core::layout::{Layout, Tick};
use crate::lease::{Bucket, Floor, Holder, Key, Limits, Namespace, Record, Slot, Standing};

/// The values of a record, by its key and text; null if no holder of this version writes such a record. A key of a slot
/// always gives values.
#[napi(catch_unwind)]
pub fn read_record(key: String, text: String) -> Value {
    let Some(key) = Key::of_text(&key) else { return Value::Null };
    match (key, Record::of_text(&text)) {
        (Key::Namespace, Some(Record::Namespace(namespace))) => namespace_of(namespace),
        (Key::Bucket(..), Some(Record::Bucket(Bucket { namespace, .. }))) => {
            report!(kind: "bucket", namespace: digits(namespace))
        }
        (Key::Slot(datacenter, worker), record) => slot_of(datacenter, worker, record),
        _ => Value::Null,
    }
}

fn namespace_of(Namespace { id, layout, limits, floor }: Namespace) -> Value {
    let Limits { ttl, max_clock_skew, max_ahead } = limits;
    report!(
        kind: "namespace",
        id: digits(id),
        layout: layout_of(&layout),
        ttl,
        maxClockSkew: max_clock_skew,
        maxAhead: max_ahead,
        // A tick, 'new' or 'lost'.
        floor: floor.text(),
    )
}

fn slot_of(datacenter: u64, worker: u64, record: Option<Record>) -> Value {
    match record {
        Some(Record::Slot(slot)) => {
            let Slot { namespace, is_held, floor, ceiling, expires, holder, .. } = slot;
            let Holder { pid, started, is_claim, address, host } = holder;
            report!(
                kind: "slot",
                datacenterId: datacenter,
                workerId: worker,
                namespace: digits(namespace),
                isHeld: is_held,
                ceiling: ceiling.max(floor),
                expires,
                pid,
                started,
                isClaim: is_claim,
                address: (!address.is_empty()).then_some(address),
                host,
            )
        }
        Some(Record::Made(namespace)) => report!(
            kind: "made",
            datacenterId: datacenter,
            workerId: worker,
            namespace: digits(namespace),
        ),
        _ => report!(kind: "damaged", datacenterId: datacenter, workerId: worker),
    }
}

/// The standing of a slot's text in a search for a free slot, at this time of the store's clock: 'held', 'free' or
/// 'impossible'; null for any other text. Without the namespace's text, any limits are assumed.
#[napi(catch_unwind)]
pub fn standing_of(text: String, now: f64, namespace: Option<String>) -> Option<&'static str> {
    let Some(Record::Slot(slot)) = Record::of_text(&text) else { return None };
    let any = Limits { ttl: i64::MAX, max_clock_skew: 0, max_ahead: 0 };
    let namespace = match namespace.and_then(|text| Record::of_text(&text)) {
        Some(Record::Namespace(namespace)) => namespace,
        _ => {
            let (id, layout) = (slot.namespace, Layout { epoch_ms: 0, ..Layout::NODE });
            Namespace { id, layout, limits: any, floor: Floor::New }
        }
    };
    let now = now as i64;
    Some(match namespace.standing(&slot, (now, now)) {
        Standing::Held => "held",
        Standing::Free(_) => "free",
        Standing::Impossible => "impossible",
    })
}

/// The text of a namespace. `floor` is a tick, 'new' or 'lost', as [`read_record`] returns it. Null if a value is
/// invalid.
#[napi(catch_unwind)]
pub fn namespace_text(
    id: String,
    layout: GivenLayout,
    ttl: f64,
    max_clock_skew: f64,
    max_ahead: f64,
    floor: String,
) -> Option<String> {
    let limits = limits_of(ttl, max_clock_skew, max_ahead);
    let id = u128::from_str_radix(&id, 16).ok()?;
    let floor = Floor::of_text(&floor)?;
    Some(Record::Namespace(Namespace { id, layout: layout.0.ok()?, limits, floor }).text())
}

/// The text of a held slot after it is freed: of this namespace, with this ceiling or its own if that is higher. Null
/// if `text` is not of a held slot.
#[napi(catch_unwind)]
pub fn freed_slot_text(text: String, namespace: String, least: f64) -> Option<String> {
    let Some(Record::Slot(slot @ Slot { is_held: true, .. })) = Record::of_text(&text) else {
        return None;
    };
    let namespace = u128::from_str_radix(&namespace, 16).ok()?;
    Some(Record::Slot(slot.freed(namespace, least as Tick)).text())
}

/// Limits from JavaScript, ms.
fn limits_of(ttl: f64, max_clock_skew: f64, max_ahead: f64) -> Limits {
    Limits { ttl: ttl as i64, max_clock_skew: max_clock_skew as i64, max_ahead: max_ahead as i64 }
}

/// A new token, for a record that JavaScript writes.
#[napi(catch_unwind)]
pub fn new_token() -> String {
    format!("{:016x}", crate::registry::fresh())
}
