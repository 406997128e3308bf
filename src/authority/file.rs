//! The embedded store: a directory with a file for each slot.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::NamedTempFile;

use super::record::Record;
use super::slot::{Flush, SlotFile, file_of, foreign_owner};
use crate::core::fault::Failure;
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::core::sequencer::NEVER;
use crate::files::path::{FileResult, canonical, paths_in};
use crate::files::{access, system, whole};

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
    directory: PathBuf,
    /// Whether it is created with its first slot.
    is_absent: bool,
    flush: Flush,
}

impl FileStore {
    /// The store in this directory. If its parent exists, the directory need not: a slot that can be opened creates it.
    pub fn open(directory: &Path) -> Result<FileStore, Failure> {
        FileStore::with(directory, to_disk())
    }

    /// The same, with a flush that tests control.
    pub fn with(directory: &Path, flush: Flush) -> Result<FileStore, Failure> {
        let store = match fs::symlink_metadata(directory) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => FileStore::absent(directory)?,
            _ => FileStore::existing(directory)?,
        };
        Ok(FileStore { flush, ..store })
    }

    fn absent(named: &Path) -> Result<FileStore, Failure> {
        let named = named.components().as_path();
        let parent = named.parent().filter(|parent| *parent != Path::new(""));
        let parent = canonical(parent.unwrap_or(Path::new("."))).map_err(Failure::io(
            "slot-io",
            "create the directory",
            named,
        ))?;
        let directory = parent.join(named.file_name().unwrap_or_default());
        Ok(FileStore { directory, is_absent: true, flush: to_disk() })
    }

    /// Creates the directory, unless it was there. Another user may have been first.
    fn create_directory(&self) -> Result<(), Failure> {
        if !self.is_absent {
            return Ok(());
        }
        match system::create_directory(&self.directory) {
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                Err(Failure::io("slot-io", "create the directory", &self.directory)(cause))
            }
            _ => FileStore::existing(&self.directory).map(drop),
        }
    }

    /// The store in an existing directory.
    pub fn existing(named: &Path) -> Result<FileStore, Failure> {
        let failed = |doing| Failure::io("slot-io", doing, named);
        // One path for one directory.
        let directory = canonical(named).map_err(failed("find the directory"))?;
        let failed = |doing| Failure::io("slot-io", doing, &directory);
        let foreign = access::foreign_directory(named, &directory).map_err(failed("inspect"))?;
        if let Some((place, owner)) = foreign {
            return Err(foreign_owner(place, owner));
        }
        fs::read_dir(&directory).map_err(failed("read the directory"))?;
        Ok(FileStore { directory, is_absent: false, flush: to_disk() })
    }

    /// The path, without symbolic links.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its name for people, a URL.
    pub fn name(&self) -> String {
        // Spaces and percent signs are not escaped: the name is for people.
        format!("file://{}", self.directory.display())
    }

    /// A slot's file.
    pub fn path_of(&self, slot: &Node) -> PathBuf {
        self.directory.join(file_name(slot.datacenter_id(), slot.worker_id()))
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
        let paths = match paths(&self.directory) {
            Err(failure) if failure.is_missing() && self.is_absent => Vec::new(),
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
        self.create_directory()?;
        let bytes = file_of(&Record::starting_at(slot, NEVER));
        let made = || -> io::Result<()> {
            let flush = |file: &NamedTempFile| (self.flush)(file.path(), file.as_file());
            let file = whole::write(&self.directory, &bytes, flush)?;
            match file.persist_noclobber(path) {
                Err(lost_race) if lost_race.error.kind() == ErrorKind::AlreadyExists => Ok(()),
                Err(failure) => Err(failure.error),
                // Flushes the directory where the system can open it as a file.
                Ok(_) if cfg!(unix) => (self.flush)(&self.directory, &File::open(&self.directory)?),
                Ok(_) => Ok(()),
            }
        };
        made().map_err(Failure::io("slot-io", "make", path))
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

/// Flushes to the disk.
fn to_disk() -> Flush {
    Arc::new(|_, file| file.sync_data())
}
