//! The embedded store: a directory with a file for each slot.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::record::Record;
use super::slot::{SlotFile, file_of};
use crate::core::fault::Failure;
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::core::sequencer::NEVER;
use crate::files::named::{Flush, NamedDirectory, to_disk};
use crate::files::path::{FileResult, paths_in};

/// A slot that a store has a record of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The worker ID.
    pub worker_id: u64,
    /// The highest tick that may have been issued. None if the record is unusable: acquiring the slot returns the
    /// reason.
    pub ceiling: Option<Tick>,
}

/// Slots in a directory.
#[derive(Clone)]
pub struct FileStore {
    directory: NamedDirectory,
    flush: Flush,
}

impl FileStore {
    /// The store in this directory. If its parent exists, the directory need not: a slot that can be opened creates it.
    pub fn open(directory: &Path) -> Result<FileStore, Failure> {
        FileStore::with(directory, to_disk())
    }

    /// The same, with a flush that tests control.
    pub fn with(directory: &Path, flush: Flush) -> Result<FileStore, Failure> {
        Ok(FileStore { directory: NamedDirectory::open(directory)?, flush })
    }

    /// The store in an existing directory.
    pub fn existing(directory: &Path) -> Result<FileStore, Failure> {
        Ok(FileStore { directory: NamedDirectory::existing(directory)?, flush: to_disk() })
    }

    /// The path, without symbolic links.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its name for people, a URL.
    pub fn name(&self) -> String {
        // Spaces and percent signs are not escaped: the name is for people.
        format!("file://{}", self.directory().display())
    }

    /// A slot's file.
    pub fn path_of(&self, slot: &Node) -> PathBuf {
        self.directory().join(file_name(slot.datacenter_id(), slot.worker_id()))
    }

    /// A slot's current record and its identity. Locks nothing.
    pub fn identified(&self, slot: &Node) -> Result<(Record, u128), Failure> {
        let slot = SlotFile::open(self.path_of(slot), false, to_disk())?;
        let record = slot.read()?;
        let id = slot.identity(&record)?;
        Ok((record, id))
    }

    /// The slots of a datacenter that ever had a holder, in any order.
    pub fn recorded(&self, layout: &Layout, datacenter_id: u64) -> Result<Vec<Recorded>, Failure> {
        let mut slots = Vec::new();
        let paths = match paths(self.directory()) {
            Err(failure) if failure.is_missing() && self.directory.is_absent() => Vec::new(),
            paths => paths?,
        };
        for path in paths {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let Some(worker_id) = worker_of(name, datacenter_id) else { continue };
            let record = read(path.clone()).ok();
            if let Some(record) = &record {
                record.check_layout(layout, &path)?;
            }
            slots.push(Recorded { worker_id, ceiling: record.map(|record| record.ceiling) });
        }
        Ok(slots)
    }

    /// Creates the file of a new slot, unless another process just did.
    fn create(&self, slot: &Node, path: &Path) -> Result<(), Failure> {
        let bytes = file_of(&Record::starting_at(slot, NEVER));
        self.directory.create_file(path, &bytes, &self.flush).map(drop)
    }

    /// Whether the slot has a file, so that pages of its record may be in use.
    pub fn has(&self, slot: &Node) -> bool {
        fs::symlink_metadata(self.path_of(slot)).is_ok()
    }

    /// A slot's file, created when missing. Locks nothing.
    pub fn slot(&self, slot: &Node) -> Result<SlotFile, Failure> {
        let path = self.path_of(slot);
        match self.slot_at(path.clone()) {
            Err(failure) if failure.is_missing() => {
                self.create(slot, &path)?;
                self.slot_at(path)
            }
            opened => opened,
        }
    }

    /// An existing slot's file. Locks nothing.
    pub(crate) fn slot_at(&self, path: PathBuf) -> Result<SlotFile, Failure> {
        SlotFile::open(path, true, self.flush.clone())
    }
}

/// The records of all slots in a directory. Changes nothing.
pub fn look(directory: &Path) -> Result<Vec<FileResult<Record>>, Failure> {
    let found = |path: PathBuf| (path.clone(), read(path));
    Ok(paths(directory)?.into_iter().map(found).collect())
}

fn read(path: PathBuf) -> Result<Record, Failure> {
    SlotFile::open(path, false, to_disk())?.read()
}

/// The files of the slots in a directory.
fn paths(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    paths_in(directory, "slot").map_err(Failure::io("slot-io", "read the directory", directory))
}

/// The worker ID of a slot's file name, if it is of this datacenter.
fn worker_of(name: &str, datacenter_id: u64) -> Option<u64> {
    let number = name.strip_suffix(".slot")?.rsplit('-').next()?;
    let worker_id = number.parse().ok()?;
    (file_name(datacenter_id, worker_id) == name).then_some(worker_id)
}

pub(crate) fn file_name(datacenter_id: u64, worker_id: u64) -> String {
    format!("datacenter-{datacenter_id}-worker-{worker_id}.slot")
}
