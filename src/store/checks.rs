//! Checks of slot files, and the errors that they return.

use std::io;
use std::path::Path;

use super::StoreError;
use super::record::{Record, Skip, Unsound, VERSION};
use crate::core::fault::{Fault, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;

pub(super) fn refused(unsound: Unsound, path: &Path) -> StoreError {
    let known = VERSION;
    StoreError::Unusable(match unsound {
        Unsound::Foreign => fault!("slot-foreign", place: path),
        Unsound::Newer(format) => fault!("slot-newer", place: path, format, known),
        Unsound::Older(format) => fault!("slot-older", place: path, format, known),
        Unsound::Damaged => return damaged(path),
    })
}

pub(crate) fn check_node(found: &Node, slot: &Node, path: &Path) -> Result<(), StoreError> {
    check_layout(found.layout(), slot.layout(), path)?;
    if found != slot {
        let (datacenter, worker) = (found.datacenter_id(), found.worker_id());
        let fault = fault!("slot-misnamed", place: path, datacenter, worker);
        return Err(StoreError::Unusable(fault));
    }
    Ok(())
}

/// Checks that no tick up to this ceiling is skipped.
pub(crate) fn check_skip(record: &Record, ceiling: Tick, path: &Path) -> Result<(), StoreError> {
    let Skip { from, to } = record.skip;
    if record.skip == Skip::NONE || ceiling < from {
        return Ok(());
    }
    let layout = record.node.layout();
    let (from, to) = (layout.tick_start_ms(from), layout.tick_start_ms(to.saturating_add(1)));
    Err(StoreError::Unusable(fault!("slot-skips", place: path, from, to)))
}

pub(crate) fn check_layout(found: &Layout, layout: &Layout, path: &Path) -> Result<(), StoreError> {
    if found == layout {
        return Ok(());
    }
    let layouts: Vec<Fault> = [found, layout].into_iter().map(described).collect();
    Err(StoreError::OtherLayout(fault!("slot-layout", place: path, layouts)))
}

fn described(layout: &Layout) -> Fault {
    fault!(
        "layout",
        timestampBits: layout.timestamp_bits,
        datacenterBits: layout.datacenter_bits,
        workerBits: layout.worker_bits,
        clockBackBits: layout.clock_back_bits,
        sequenceBits: layout.sequence_bits,
        tickMs: layout.tick_ms,
        epoch: layout.epoch_ms,
    )
}

pub(super) fn damaged(path: &Path) -> StoreError {
    StoreError::Unusable(fault!("slot-damaged", place: path))
}

pub(super) fn replaced(path: &Path) -> StoreError {
    StoreError::Lost(fault!("slot-replaced", place: path))
}

pub(crate) fn overtaken(path: &Path) -> StoreError {
    StoreError::Lost(fault!("slot-overtaken", place: path))
}

pub(super) fn io_error(doing: &'static str, place: &Path, cause: io::Error) -> StoreError {
    StoreError::Io { doing, place: place.to_owned(), cause }
}
