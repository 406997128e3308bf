//! Decodes and encodes IDs, as `js/ids/codec.js` does without the addon: core/codec.test.js compares them.

use napi::bindgen_prelude::{BigInt, Either};
use napi_derive::napi;

use super::fault::answer;
use super::layout::LayoutRecord;
use crate::core::fault::Fault;
use crate::core::layout::{Fields, Layout};

/// The fields of an ID.
#[napi(object)]
pub struct FieldsRecord {
    /// Unix ms of the start of the tick.
    pub timestamp: f64,
    pub datacenter_id: f64,
    pub worker_id: f64,
    pub clock_back: f64,
    pub sequence: f64,
}

/// Decodes an ID of 0 to 2^63 - 1.
#[napi(catch_unwind)]
pub fn decode(layout: LayoutRecord, id: BigInt) -> Either<FieldsRecord, Fault> {
    answer(Layout::try_from(&layout).and_then(|layout| {
        let fields = layout.decode(id.get_u64().1)?;
        Ok(FieldsRecord {
            timestamp: layout.tick_start_ms(fields.tick) as f64,
            datacenter_id: fields.datacenter_id as f64,
            worker_id: fields.worker_id as f64,
            clock_back: fields.clock_back as f64,
            sequence: fields.sequence as f64,
        })
    }))
}

/// Encodes whole numbers as an ID. The timestamp may lie anywhere in its tick.
#[napi(catch_unwind)]
pub fn encode(layout: LayoutRecord, fields: FieldsRecord) -> Either<BigInt, Fault> {
    answer(Layout::try_from(&layout).and_then(|layout| {
        let id = layout.encode(&Fields {
            tick: layout.tick_within(fields.timestamp as i64)?,
            datacenter_id: fields.datacenter_id as u64,
            worker_id: fields.worker_id as u64,
            clock_back: fields.clock_back as u64,
            sequence: fields.sequence as u64,
        })?;
        Ok(BigInt::from(id))
    }))
}
