//! A directory that an application names, and its files. Other users may write to it: each file is checked when it is opened.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::NamedTempFile;

use super::access::{self, Insecure};
use super::path::canonical;
use super::{system, whole};
use crate::core::fault::{Class, Failure, Fault, fault};

/// Flushes a file's bytes, or a directory's entries, to the disk.
pub type Flush = Arc<dyn Fn(&Path, &File) -> io::Result<()> + Send + Sync>;

/// The flush that ships.
pub fn to_disk() -> Flush {
    Arc::new(|_, file| file.sync_data())
}

/// A directory that an application names.
#[derive(Clone, Debug)]
pub struct NamedDirectory {
    path: PathBuf,
    /// Whether it is created with its first file.
    is_absent: bool,
}

impl NamedDirectory {
    /// The directory of this path. If its parent exists, it need not: its first file creates it.
    pub fn open(named: &Path) -> Result<NamedDirectory, Failure> {
        match fs::symlink_metadata(named) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => NamedDirectory::absent(named),
            _ => NamedDirectory::existing(named),
        }
    }

    fn absent(named: &Path) -> Result<NamedDirectory, Failure> {
        let named = named.components().as_path();
        let parent = named.parent().filter(|parent| *parent != Path::new(""));
        let failed = Failure::io("slot-io", "create the directory", named);
        let parent = canonical(parent.unwrap_or(Path::new("."))).map_err(failed)?;
        let path = parent.join(named.file_name().unwrap_or_default());
        Ok(NamedDirectory { path, is_absent: true })
    }

    /// An existing directory.
    pub fn existing(named: &Path) -> Result<NamedDirectory, Failure> {
        let failed = |doing| Failure::io("slot-io", doing, named);
        // One path for one directory.
        let path = canonical(named).map_err(failed("find the directory"))?;
        let failed = |doing| Failure::io("slot-io", doing, &path);
        let foreign = access::foreign_directory(named, &path).map_err(failed("inspect"))?;
        if let Some((place, owner)) = foreign {
            return Err(foreign_owner(place, owner));
        }
        fs::read_dir(&path).map_err(failed("read the directory"))?;
        Ok(NamedDirectory { path, is_absent: false })
    }

    /// The path, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is created with its first file.
    pub fn is_absent(&self) -> bool {
        self.is_absent
    }

    /// Creates the directory, unless it was there. Another user may have been first.
    pub fn create(&self) -> Result<(), Failure> {
        if !self.is_absent {
            return Ok(());
        }
        match system::create_directory(&self.path) {
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                Err(Failure::io("slot-io", "create the directory", &self.path)(cause))
            }
            _ => NamedDirectory::existing(&self.path).map(drop),
        }
    }

    /// Creates a file with these bytes, on the disk. Its name is not, before the next [`flush_names`]. Returns none if another process
    /// just did.
    pub fn create_file(
        &self,
        path: &Path,
        bytes: &[u8],
        flush: &Flush,
    ) -> Result<Option<File>, Failure> {
        let flushed = |file: &NamedTempFile| flush(file.path(), file.as_file());
        let made = whole::write(&self.path, bytes, flushed).and_then(|file| {
            match file.persist_noclobber(path) {
                Err(lost_race) if lost_race.error.kind() == ErrorKind::AlreadyExists => Ok(None),
                made => made.map(Some).map_err(|failure| failure.error),
            }
        });
        made.map_err(Failure::io("slot-io", "make", path))
    }
}

/// Flushes a directory's entries, where the system can open it as a file.
pub fn flush_names(directory: &Path, flush: &Flush) -> Result<(), Failure> {
    if !cfg!(unix) {
        return Ok(());
    }
    let flushed = File::open(directory).and_then(|file| flush(directory, &file));
    flushed.map_err(Failure::io("slot-io", "flush", directory))
}

/// Opens a file, if it is a regular one that other users have not placed and cannot write to. Opening a pipe for reading would wait
/// for a writer for ever.
pub fn open_file(place: &Path, is_writable: bool) -> Result<File, Failure> {
    let failed = |doing| Failure::io("slot-io", doing, place);
    let opened = system::open_unless_link(place, is_writable);
    // A socket cannot be opened.
    let is_special = |of: fs::Metadata| !of.is_file() && !of.is_dir() && !of.is_symlink();
    if opened.is_err() && fs::symlink_metadata(place).is_ok_and(is_special) {
        return Err(unusable(fault!("slot-not-a-file", place)));
    }
    let Some(file) = opened.map_err(failed("open"))? else {
        return Err(unusable(fault!("slot-link", place)));
    };
    let found = file.metadata().map_err(failed("open"))?;
    if !found.is_file() {
        return Err(unusable(fault!("slot-not-a-file", place)));
    }
    let directory = place.parent().unwrap_or(Path::new("."));
    let around = access::ownership_at(directory).map_err(failed("inspect"))?;
    if access::has_other_hard_link(&file, &around).map_err(failed("inspect"))? {
        return Err(unusable(fault!("slot-linked", place)));
    }
    match access::check_in_named_directory(&found, &around, directory) {
        None => Ok(file),
        Some(Insecure::Owner(owner)) => Err(foreign_owner(place, owner)),
        Some(Insecure::Writable(mode)) => Err(unusable(fault!("slot-writable", place, mode))),
    }
}

/// The failure of a file that is no usable slot.
pub fn unusable(fault: Fault) -> Failure {
    Failure::new(Class::Slot, fault)
}

fn foreign_owner(place: &Path, owner: u32) -> Failure {
    unusable(fault!("slot-owner", place, owner, user: system::user()))
}
