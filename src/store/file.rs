//! The embedded store: a directory with a file of 4096 bytes for each slot.
//!
//! | bytes | what | who writes it |
//! |---|---|---|
//! | 0..512 | the [`Record`] | the holder's keeper thread: written, then flushed to the disk |
//! | 1024..1288 | the [`MarkTable`] | the holder's generator, through a memory map, never flushed |
//! | the rest | zeros | |
//!
//! - The slot is held by a lock of the operating system on its file. The kernel drops it when the
//!   process dies, however it dies. The lock belongs to the open file, not to the process, so two
//!   copies of this package in one process exclude each other as two processes do.
//! - After any death of the process the marks are exact, and the next holder goes on from them. When
//!   the machine went down they may be lost or old: then the ceiling counts, which was on the disk
//!   before anything was issued under it. The boot's ID tells which.
//! - A file is written whole under another name and then given its own, so a slot's file that is
//!   there is complete, and whatever is not complete is damage. It is never replaced and never grows:
//!   a disk that is full later does not matter to it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::MmapOptions;

use super::boot::boot_id;
use super::marks::{self, MarkTable};
use super::record::{self, Fault, Record, Skip, VERSION};
use super::{Held, Holder, Recorded, Store, StoreError, Terms};
use crate::layout::{Layout, Tick};
use crate::node::Node;
use crate::sequencer::{HighMarks, NEVER};

/// The smallest unit in which systems map memory; of those that have larger ones, a part of one.
pub(super) const FILE_BYTES: usize = 4096;
const MARKS_AT: usize = 1024;

/// What to do about a file that cannot be used.
const REMEDY: &str = "It is left as it is. To go on at once, use another workerId; to use this slot \
    again, reset it when the clock has certainly passed its last ID: snowdrift reset --help";

/// What to do about a file of an earlier format.
const RESET: &str = "reset the slot when the clock has certainly passed its last ID: snowdrift reset \
    --help; or use another directory or workerId";

/// Brings a file's bytes, or a directory's entries, safely to the disk.
pub type Flush = Arc<dyn Fn(&Path, &File) -> io::Result<()> + Send + Sync>;

/// Slots in a directory.
pub struct FileStore {
    directory: PathBuf,
    boot_id: Option<String>,
    flush: Flush,
}

impl FileStore {
    /// The store in this directory, which is made if only its last part is missing.
    pub fn open(directory: &Path) -> Result<FileStore, StoreError> {
        FileStore::with(directory, boot_id(), Arc::new(|_, file| file.sync_data()))
    }

    /// The same on a machine that tests control: its boot, and its disk.
    pub fn with(
        directory: &Path,
        boot_id: Option<String>,
        flush: Flush,
    ) -> Result<FileStore, StoreError> {
        match fs::create_dir(directory) {
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                Err(io_error("make the directory", directory, cause))
            }
            _ => FileStore::in_place(directory, boot_id, flush),
        }
    }

    /// The store in a directory that is there.
    pub fn existing(directory: &Path) -> Result<FileStore, StoreError> {
        FileStore::in_place(directory, boot_id(), Arc::new(|_, file| file.sync_data()))
    }

    fn in_place(
        directory: &Path,
        boot_id: Option<String>,
        flush: Flush,
    ) -> Result<FileStore, StoreError> {
        // One name for one directory, however it was spelled.
        let directory = fs::canonicalize(directory)
            .map_err(|cause| io_error("find the directory", directory, cause))?;
        fs::read_dir(&directory)
            .map_err(|cause| io_error("read the directory", &directory, cause))?;
        Ok(FileStore { directory, boot_id, flush })
    }

    /// Where it is, with no symbolic links on the way.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A slot's file.
    pub fn path_of(&self, slot: &Node) -> PathBuf {
        self.directory.join(file_name(slot.datacenter_id(), slot.worker_id()))
    }

    /// Makes the file of a slot that was never held, unless another process has just done so.
    fn create(&self, slot: &Node, path: &Path) -> Result<(), StoreError> {
        let mut bytes = [0; FILE_BYTES];
        let fresh = Record::starting_at(slot, NEVER);
        bytes[..record::BYTES].copy_from_slice(&fresh.to_bytes());
        let made = || -> io::Result<()> {
            let mut builder = tempfile::Builder::new();
            builder.prefix(".new-");
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                // As any file that a process makes: the umask decides who else may use it.
                builder.permissions(fs::Permissions::from_mode(0o666));
            }
            let mut file = builder.tempfile_in(&self.directory)?;
            file.write_all(&bytes)?;
            (self.flush)(file.path(), file.as_file())?;
            match file.persist_noclobber(path) {
                Err(lost_race) if lost_race.error.kind() == ErrorKind::AlreadyExists => Ok(()),
                Err(failure) => Err(failure.error),
                // A directory can be flushed where it can be opened as a file.
                Ok(_) if cfg!(unix) => (self.flush)(&self.directory, &File::open(&self.directory)?),
                Ok(_) => Ok(()),
            }
        };
        made().map_err(|cause| io_error("make", path, cause))
    }

    /// Whether what was written to a map under this record cannot be lost: it was written in this boot.
    pub(super) fn is_boot_of(&self, record: &Record) -> bool {
        self.boot_id.as_ref().is_some_and(|id| !id.is_empty() && *id == record.boot_id)
    }

    /// Writes a slot's file anew, in its place, so that it stays its user's. The record, which makes it
    /// whole, comes last.
    pub(super) fn rewrite(
        &self,
        file: &mut File,
        path: &Path,
        record: &Record,
    ) -> Result<(), StoreError> {
        let emptied = file
            .set_len(0)
            .and_then(|()| file.set_len(FILE_BYTES as u64))
            .and_then(|()| (self.flush)(path, file));
        emptied.map_err(|cause| io_error("empty", path, cause))?;
        self.overwrite(file, path, record)
    }

    /// Writes a record to a slot's file and flushes it.
    pub(super) fn overwrite(
        &self,
        file: &mut File,
        path: &Path,
        record: &Record,
    ) -> Result<(), StoreError> {
        write(file, path, record)?;
        (self.flush)(path, file).map_err(|cause| io_error("flush", path, cause))
    }

    /// The file of a slot, locked.
    fn lock(&self, slot: &Node, path: &Path) -> Result<File, StoreError> {
        let is_missing = |failure: &StoreError| matches!(failure, StoreError::Io { cause, .. } if cause.kind() == ErrorKind::NotFound);
        let file = match open(path, Access::ReadWrite) {
            Err(failure) if is_missing(&failure) => {
                self.create(slot, path)?;
                open(path, Access::ReadWrite).map_err(|failure| match is_missing(&failure) {
                    true => unusable(path, "is a symbolic link to nothing. Remove it"),
                    false => failure,
                })?
            }
            answer => answer?,
        };
        locked(file, path)
    }
}

pub(super) fn locked(file: File, path: &Path) -> Result<File, StoreError> {
    match file.try_lock() {
        // Between the opening and the lock someone may have put another file in its place.
        Ok(()) if !is_at(path, &file) => Err(replaced(path)),
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(StoreError::InUse { place: path.display().to_string(), holder: holder_of(path) })
        }
        Err(TryLockError::Error(cause)) => Err(io_error("lock", path, cause)),
    }
}

impl Store for FileStore {
    fn name(&self) -> String {
        // No spaces or percent signs are escaped: it is for people.
        format!("file://{}", self.directory.display())
    }

    fn recorded(&self, layout: &Layout, datacenter_id: u64) -> Result<Vec<Recorded>, StoreError> {
        let failed = |cause| io_error("read the directory", &self.directory, cause);
        let mut slots = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let Some(worker_id) = name.to_str().and_then(|name| worker_of(name, datacenter_id))
            else {
                continue;
            };
            let path = entry.path();
            let record = read_record(&path).ok();
            if let Some(record) = &record {
                check_layout(record.node.layout(), layout, &path)?;
            }
            slots.push(Recorded { worker_id, ceiling: record.map(|record| record.ceiling) });
        }
        Ok(slots)
    }

    fn acquire(
        &self,
        slot: &Node,
        holder: &Holder,
        ceiling: Tick,
    ) -> Result<Box<dyn Held>, StoreError> {
        let path = self.path_of(slot);
        let mut file = self.lock(slot, &path)?;
        let bytes = read_whole(&mut file, &path)?;
        let before = record_of(&bytes, &path)?;
        check_node(&before.node, slot, &path)?;
        check_skip(&before.clone().passing_what_is_skipped(ceiling), ceiling, &path)?;
        let boot_id = self.boot_id.clone().unwrap_or_default();
        let is_same_boot = self.is_boot_of(&before);
        let (floor, high) = if is_same_boot {
            (before.floor, high_marks(&bytes, &before).ok_or_else(|| damaged(&path))?)
        } else {
            (before.ceiling, HighMarks::default())
        };
        // At once, so that whoever is refused from now on learns who it is.
        write(&mut file, &path, &Record { holder: Some(holder.clone()), ..before.clone() })?;
        let map = MmapOptions::new()
            .len(FILE_BYTES)
            .map_raw(&file)
            .map_err(|cause| io_error("map", &path, cause))?;
        let marks = MarkTable::new(map, MARKS_AT);
        if !is_same_boot {
            // The map may have been lost. Before the record says that it counts again, it is empty:
            // were it the other way round, a death in between would leave marks of another boot.
            marks.clear();
        }
        let mut held = HeldFile {
            file,
            path,
            record: Record { floor, boot_id, holder: Some(holder.clone()), ..before }
                .passing_what_is_skipped(ceiling),
            high,
            marks: Some(marks),
            flush: self.flush.clone(),
        };
        held.raise(ceiling)?;
        Ok(Box::new(held))
    }
}

struct HeldFile {
    file: File,
    path: PathBuf,
    /// What is known to be on the disk.
    record: Record,
    /// As they were at the start.
    high: HighMarks,
    marks: Option<MarkTable>,
    flush: Flush,
}

impl HeldFile {
    /// Brings the record to the disk with a ceiling that is at least this.
    fn raise(&mut self, ceiling: Tick) -> Result<(), StoreError> {
        let record = self.record.raised(ceiling);
        write(&mut self.file, &self.path, &record)?;
        (self.flush)(&self.path, &self.file)
            .map_err(|cause| io_error("flush", &self.path, cause))?;
        self.record = record;
        Ok(())
    }
}

impl Held for HeldFile {
    fn terms(&self) -> Terms {
        Terms { floor: self.record.floor, ceiling: self.record.ceiling, high: self.high }
    }

    fn marks(&mut self) -> Option<MarkTable> {
        self.marks.take()
    }

    fn renew(&mut self, ceiling: Tick) -> Result<(), StoreError> {
        // The lock keeps every process away from this file, but not from one put in its place.
        if !is_at(&self.path, &self.file) {
            return Err(replaced(&self.path));
        }
        check_skip(&self.record, ceiling, &self.path)?;
        if ceiling > self.record.ceiling { self.raise(ceiling) } else { Ok(()) }
    }

    fn release(mut self: Box<Self>, last: Tick) -> Result<(), StoreError> {
        let record = &self.record;
        // What it was handed over was issued, too.
        let inherited = self.high.marks.into_iter().max().unwrap_or(NEVER);
        let ceiling = last.max(inherited).clamp(record.floor, record.ceiling);
        // Not flushed: should it be lost, the higher ceiling stands, which is as safe.
        let record = self.record.lowered(ceiling);
        write(&mut self.file, &self.path, &record)?;
        // Closing the file does not unlock it while the generator's map of it lives.
        self.file.unlock().map_err(|cause| io_error("unlock", &self.path, cause))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    ReadWrite,
}

/// A slot's file, if it is a file: opening a pipe for reading would wait for a writer for ever.
pub(super) fn open(path: &Path, access: Access) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).write(access == Access::ReadWrite);
    // Miri knows no such flags.
    #[cfg(all(unix, not(miri)))]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    let failed = |cause| io_error("open", path, cause);
    let file = options.open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(unusable(path, "is no regular file. Move it away, or use another workerId"));
    }
    Ok(file)
}

fn write(file: &mut File, path: &Path, record: &Record) -> Result<(), StoreError> {
    file.rewind()
        .and_then(|()| file.write_all(&record.to_bytes()))
        .map_err(|cause| io_error("write", path, cause))
}

pub(super) fn file_name(datacenter_id: u64, worker_id: u64) -> String {
    format!("datacenter-{datacenter_id}-worker-{worker_id}.slot")
}

/// A slot's file, and what it says or why it cannot be used.
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub record: Result<Record, StoreError>,
}

/// What the slots' files of a directory say. Changes nothing.
pub fn look(directory: &Path) -> Result<Vec<Found>, StoreError> {
    let failed = |cause| io_error("read the directory", directory, cause);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "slot") {
            found.push(Found { record: read_record(&path), path });
        }
    }
    Ok(found)
}

/// Whose slot a file name is, if it is one of this datacenter.
fn worker_of(name: &str, datacenter_id: u64) -> Option<u64> {
    let number = name.strip_suffix(".slot")?.rsplit('-').next()?;
    let worker_id = number.parse().ok()?;
    (file_name(datacenter_id, worker_id) == name).then_some(worker_id)
}

pub(super) fn read_whole(file: &mut File, path: &Path) -> Result<Vec<u8>, StoreError> {
    let failed = |cause| io_error("read", path, cause);
    let len = file.metadata().map_err(failed)?.len();
    if len != FILE_BYTES as u64 {
        let what = format!(
            "is {len} bytes long and should be {FILE_BYTES}: it was cut off, or is no file of a \
             slot. {REMEDY}"
        );
        return Err(unusable(path, &what));
    }
    let mut bytes = Vec::with_capacity(FILE_BYTES);
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map_err(failed)?;
    Ok(bytes)
}

/// The record of a file's bytes, if all of them are as they should be.
pub(super) fn record_of(bytes: &[u8], path: &Path) -> Result<Record, StoreError> {
    let sector = bytes.first_chunk().ok_or_else(|| damaged(path))?;
    let record = Record::from_bytes(sector).map_err(|fault| match fault {
        Fault::Foreign => unusable(path, &format!("is no file of a snowdrift slot. {REMEDY}")),
        Fault::Newer(version) => unusable(
            path,
            &format!(
                "was written by a newer snowdrift (format {version}; this one reads {VERSION}). Update \
             snowdrift here, or use another workerId"
            ),
        ),
        Fault::Older(version) => unusable(path, &format!(
            "was written by an older snowdrift (format {version}; this one reads {VERSION}). End the \
             processes that use it. Then {RESET}"
        )),
        Fault::Damaged => damaged(path),
    })?;
    let is_zero = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    if !is_zero(&bytes[record::BYTES..MARKS_AT]) || !is_zero(&bytes[MARKS_AT + marks::BYTES..]) {
        return Err(damaged(path));
    }
    Ok(record)
}

/// The marks that were written in the boot that the record names.
pub(super) fn high_marks(bytes: &[u8], record: &Record) -> Option<HighMarks> {
    let counters = record.node.layout().counters();
    let high = MarkTable::read(&bytes[MARKS_AT..], counters)?;
    high.marks.iter().all(|&mark| mark <= record.ceiling).then_some(high)
}

/// A slot's record, read without its lock, so while it may be rewritten: try a few times.
fn read_record(path: &Path) -> Result<Record, StoreError> {
    let read = || {
        let mut file = open(path, Access::Read)?;
        record_of(&read_whole(&mut file, path)?, path)
    };
    read().or_else(|_| read()).or_else(|_| read())
}

fn holder_of(path: &Path) -> Option<Holder> {
    read_record(path).ok()?.holder
}

pub(super) fn check_node(found: &Node, slot: &Node, path: &Path) -> Result<(), StoreError> {
    check_layout(found.layout(), slot.layout(), path)?;
    if found != slot {
        let what = format!(
            "is the file of datacenterId {} and workerId {} under another name. {REMEDY}",
            found.datacenter_id(),
            found.worker_id()
        );
        return Err(unusable(path, &what));
    }
    Ok(())
}

/// That no ID up to this ceiling is one that is skipped.
fn check_skip(record: &Record, ceiling: Tick, path: &Path) -> Result<(), StoreError> {
    let Skip { from, to } = record.skip;
    if record.skip == Skip::NONE || ceiling < from {
        return Ok(());
    }
    let layout = record.node.layout();
    let what = format!(
        "issues no IDs from {} to {} (Unix ms): a clock that stood ahead has issued IDs of these times, \
         and the slot was reset. Set the clock right; or start this process three hours after them, or \
         use another workerId",
        layout.tick_start_ms(from),
        layout.tick_start_ms(to.saturating_add(1)),
    );
    Err(unusable(path, &what))
}

pub(super) fn check_layout(found: &Layout, layout: &Layout, path: &Path) -> Result<(), StoreError> {
    if found == layout {
        return Ok(());
    }
    let what = format!(
        "is recorded for IDs of another layout or epoch: {}, and not {}. Use another directory for \
         each layout and epoch",
        described(found),
        described(layout)
    );
    Err(StoreError::OtherLayout { place: path.to_owned(), what })
}

fn described(layout: &Layout) -> String {
    format!(
        "{}/{}/{}/{}/{} bits in ticks of {} ms from {} (Unix ms)",
        layout.timestamp_bits,
        layout.datacenter_bits,
        layout.worker_bits,
        layout.clock_back_bits,
        layout.sequence_bits,
        layout.tick_ms,
        layout.epoch_ms
    )
}

pub(super) fn damaged(path: &Path) -> StoreError {
    unusable(path, &format!("is damaged. {REMEDY}"))
}

pub(super) fn unusable(path: &Path, what: &str) -> StoreError {
    StoreError::Unusable { place: path.to_owned(), what: what.to_owned() }
}

fn replaced(path: &Path) -> StoreError {
    StoreError::Lost(format!(
        "{} was removed or replaced while it was in use, so another process may have its slot. \
         Restart this process, and leave the files of running processes alone",
        path.display()
    ))
}

/// Whether the path still names this open file.
#[cfg(unix)]
fn is_at(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |of: fs::Metadata| (of.dev(), of.ino());
    let named = fs::metadata(path).map(identity).ok();
    named.is_some() && named == file.metadata().map(identity).ok()
}

/// Whether the path still names this open file. Windows keeps open files from being replaced.
#[cfg(not(unix))]
fn is_at(_: &Path, _: &File) -> bool {
    true
}

fn io_error(doing: &'static str, place: &Path, cause: io::Error) -> StoreError {
    StoreError::Io { doing, place: place.to_owned(), cause }
}
