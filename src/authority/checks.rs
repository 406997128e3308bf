//! Checks of slot files, and the errors that they return.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use super::record::{Record, Skip, Unsound, VERSION};
use crate::core::fault::{Class, Failure, Fault, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::files::access::{self, Wrong};
use crate::files::system::user;

pub(super) fn refused(unsound: Unsound, path: &Path) -> Failure {
    let known = VERSION;
    let fault = match unsound {
        Unsound::Foreign => fault!("slot-foreign", place: path),
        Unsound::Newer(format) => fault!("slot-newer", place: path, format, known),
        Unsound::Older(format) => fault!("slot-older", place: path, format, known),
        Unsound::Damaged => return damaged(path),
    };
    Failure::new(Class::Slot, fault)
}

pub(crate) fn check_node(found: &Node, slot: &Node, path: &Path) -> Result<(), Failure> {
    check_layout(found.layout(), slot.layout(), path)?;
    if found != slot {
        let (datacenter, worker) = (found.datacenter_id(), found.worker_id());
        let fault = fault!("slot-misnamed", place: path, datacenter, worker);
        return Err(Failure::new(Class::Slot, fault));
    }
    Ok(())
}

/// Checks that no tick up to this ceiling is skipped.
pub(crate) fn check_skip(record: &Record, ceiling: Tick, path: &Path) -> Result<(), Failure> {
    let Skip { from, to } = record.skip;
    if record.skip == Skip::NONE || ceiling < from {
        return Ok(());
    }
    let layout = record.node.layout();
    let (from, to) = (layout.tick_start_ms(from), layout.tick_start_ms(to.saturating_add(1)));
    Err(Failure::new(Class::Slot, fault!("slot-skips", place: path, from, to)))
}

pub(crate) fn check_layout(found: &Layout, layout: &Layout, path: &Path) -> Result<(), Failure> {
    if found == layout {
        return Ok(());
    }
    let layouts: Vec<Fault> = [found, layout].into_iter().map(described).collect();
    Err(fault!("slot-layout", place: path, layouts).into())
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

pub(super) fn damaged(path: &Path) -> Failure {
    Failure::new(Class::Slot, fault!("slot-damaged", place: path))
}

pub(super) fn replaced(path: &Path) -> Failure {
    Failure::new(Class::Lost, fault!("slot-replaced", place: path))
}

pub(crate) fn opening(path: &Path, waited: Duration) -> Failure {
    let waited = waited.as_secs_f64();
    Failure::new(Class::InUse, fault!("slot-opening", place: path, waited))
}

pub(crate) fn overtaken(path: &Path) -> Failure {
    Failure::new(Class::Lost, fault!("slot-overtaken", place: path))
}

/// Checks a directory, by the path that the application names and by the path without symbolic links.
pub(super) fn check_directory(named: &Path, directory: &Path) -> Result<(), Failure> {
    let foreign = access::foreign_directory(named, directory);
    match foreign.map_err(Failure::io("slot-io", "inspect", directory))? {
        Some((place, owner)) => Err(foreign_owner(place, owner)),
        None => Ok(()),
    }
}

/// Checks a slot's open file: other users must not have placed it, nor be able to write to it.
pub(super) fn check_file(file: &File, path: &Path) -> Result<(), Failure> {
    let failed = Failure::io("slot-io", "inspect", path);
    let directory = path.parent().unwrap_or(Path::new("."));
    if access::has_second_name(file, directory).map_err(&failed)? {
        return Err(Failure::new(Class::Slot, fault!("slot-linked", place: path)));
    }
    match access::check_placed(file, directory).map_err(&failed)? {
        None => Ok(()),
        Some(Wrong::Owner(owner)) => Err(foreign_owner(path, owner)),
        Some(Wrong::Writable(mode)) => {
            Err(Failure::new(Class::Slot, fault!("slot-writable", place: path, mode)))
        }
    }
}

fn foreign_owner(place: &Path, owner: u32) -> Failure {
    Failure::new(Class::Slot, fault!("slot-owner", place, owner, user: user()))
}
