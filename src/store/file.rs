//! The embedded store: a directory with a file for each slot.
//!
//! | bytes | what |
//! |---|---|
//! | 0..512, 4096..4608, ... | 8 [`Record`]s, each in a block of 4096 bytes |
//! | the rest of each block | zeros |
//! | beyond the end | nothing: bytes that are [locked](super::lock) |
//!
//! - The record with the highest generation, then ceiling, counts. A file whose records are not all
//!   whole is damaged.
//! - A writer locks a block, never the one that counts if another is free, and writes and flushes it. So
//!   one that was stopped in between, and goes on later, writes to no block that another has written
//!   meanwhile, and what it writes does not count any more.
//! - A file is written whole under another name and then given its own. It is never replaced and never
//!   grows: a disk that is full later does not matter to it. It is never mapped: a disk that hangs holds
//!   whoever writes to it and nobody else.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::lock::{self, Hold, USERS};
use super::path::{canonical, is_at};
use super::record::{self, Fault, Record, Skip, VERSION};
use super::{Recorded, StoreError};
use crate::layout::{Layout, Tick};
use crate::node::Node;
use crate::sequencer::NEVER;

const BLOCKS: usize = 8;
/// Larger than what any disk writes at once.
const BLOCK_BYTES: usize = 4096;
/// A slot's file.
pub(super) const FILE_BYTES: usize = BLOCKS * BLOCK_BYTES;

/// Locked by who opens a page for the slot, so that one at a time does.
pub(crate) const OPENING: u64 = USERS + 1;
/// Locked by who raises the ceiling in good time, so that one process does.
pub(crate) const RENEWING: u64 = USERS + 2;
/// Locked by the writer of the first block; the others follow.
const FIRST_BLOCK: u64 = USERS + 16;

/// A record that was being written while it was read seems damaged. How often it is read again.
const READINGS: u32 = 5;
const BETWEEN_READINGS: Duration = Duration::from_micros(200);

/// What to do about a file that cannot be used.
const REMEDY: &str = "It is left as it is. To go on at once, use another workerId; to use this slot \
    again, reset it when the clock has certainly passed its last ID: snowdrift reset --help";

/// What to do about a file of an earlier format.
const RESET: &str = "reset the slot when the clock has certainly passed its last ID: snowdrift reset \
    --help; or use another directory or workerId";

/// Brings a file's bytes, or a directory's entries, safely to the disk.
pub type Flush = Arc<dyn Fn(&Path, &File) -> io::Result<()> + Send + Sync>;

/// Slots in a directory.
#[derive(Clone)]
pub struct FileStore {
    directory: PathBuf,
    flush: Flush,
}

impl FileStore {
    /// The store in this directory, which is made if only its last part is missing.
    pub fn open(directory: &Path) -> Result<FileStore, StoreError> {
        FileStore::with(directory, Arc::new(|_, file| file.sync_data()))
    }

    /// The same on a disk that tests control.
    pub fn with(directory: &Path, flush: Flush) -> Result<FileStore, StoreError> {
        match fs::create_dir(directory) {
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                Err(io_error("make the directory", directory, cause))
            }
            _ => FileStore::in_place(directory, flush),
        }
    }

    /// The store in a directory that is there.
    pub fn existing(directory: &Path) -> Result<FileStore, StoreError> {
        FileStore::in_place(directory, Arc::new(|_, file| file.sync_data()))
    }

    fn in_place(directory: &Path, flush: Flush) -> Result<FileStore, StoreError> {
        // One name for one directory, however it was spelled.
        let directory = canonical(directory)
            .map_err(|cause| io_error("find the directory", directory, cause))?;
        fs::read_dir(&directory)
            .map_err(|cause| io_error("read the directory", &directory, cause))?;
        Ok(FileStore { directory, flush })
    }

    /// Where it is, with no symbolic links on the way.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its name, for people: a URL.
    pub fn name(&self) -> String {
        // No spaces or percent signs are escaped: it is for people.
        format!("file://{}", self.directory.display())
    }

    /// A slot's file.
    pub fn path_of(&self, slot: &Node) -> PathBuf {
        self.directory.join(file_name(slot.datacenter_id(), slot.worker_id()))
    }

    /// The slots of a datacenter that were ever held, in any order.
    pub fn recorded(
        &self,
        layout: &Layout,
        datacenter_id: u64,
    ) -> Result<Vec<Recorded>, StoreError> {
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

    /// Makes the file of a slot that was never held, unless another process has just done so.
    fn create(&self, slot: &Node, path: &Path) -> Result<(), StoreError> {
        let bytes = file_of(&Record::starting_at(slot, NEVER));
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

    /// A slot's file, which is made when missing. Nothing is locked.
    pub fn slot(&self, slot: &Node) -> Result<SlotFile, StoreError> {
        let path = self.path_of(slot);
        let is_missing = |failure: &StoreError| matches!(failure, StoreError::Io { cause, .. } if cause.kind() == ErrorKind::NotFound);
        let file = match open(&path, Access::ReadWrite) {
            Err(failure) if is_missing(&failure) => {
                self.create(slot, &path)?;
                open(&path, Access::ReadWrite).map_err(|failure| match is_missing(&failure) {
                    true => unusable(&path, "is a symbolic link to nothing. Remove it"),
                    false => failure,
                })?
            }
            answer => answer?,
        };
        Ok(SlotFile { file, path, flush: self.flush.clone() })
    }

    /// A slot's file that is there. Nothing is locked.
    pub(crate) fn slot_at(&self, path: PathBuf) -> Result<SlotFile, StoreError> {
        Ok(SlotFile { file: open(&path, Access::ReadWrite)?, path, flush: self.flush.clone() })
    }
}

/// A slot's open file. Its locks end with it.
pub struct SlotFile {
    file: File,
    path: PathBuf,
    flush: Flush,
}

impl SlotFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Locks a byte, or changes the lock on it. False where others have it: then nothing has changed.
    pub(crate) fn try_take(&self, at: u64, hold: Hold) -> Result<bool, StoreError> {
        // Elsewhere a lock on the file is a lock for one alone.
        let hold = if cfg!(target_os = "linux") { hold } else { Hold::Exclusive };
        lock::try_take(&self.file, at, hold).map_err(|cause| io_error("lock", &self.path, cause))
    }

    /// Unlocks a byte.
    pub(crate) fn release(&self, at: u64) -> Result<(), StoreError> {
        lock::release(&self.file, at).map_err(|cause| io_error("unlock", &self.path, cause))
    }

    /// The record that counts.
    pub fn read(&self) -> Result<Record, StoreError> {
        let (records, best) = self.records()?;
        Ok(records[best].clone())
    }

    /// All records, and the index of the one that counts.
    fn records(&self) -> Result<(Vec<Record>, usize), StoreError> {
        let mut tries = 0;
        let records = loop {
            match records_of(&read_whole(&self.file, &self.path)?, &self.path) {
                Err(_) if tries < READINGS => {
                    tries += 1;
                    thread::sleep(BETWEEN_READINGS);
                }
                records => break records?,
            }
        };
        let best = best_of(&records);
        Ok((records, best))
    }

    /// Writes a record to a block that nobody else writes, and flushes it. It is an error where another
    /// page was opened or closed meanwhile, and where the file was replaced.
    pub fn record(&self, record: &Record) -> Result<(), StoreError> {
        self.write(record, true)
    }

    /// The same, but not flushed: what counts when it is lost is as safe.
    pub fn record_lightly(&self, record: &Record) -> Result<(), StoreError> {
        self.write(record, false)
    }

    fn write(&self, record: &Record, is_flushed: bool) -> Result<(), StoreError> {
        debug_assert!(Record::from_bytes(&record.to_bytes()).is_ok(), "not sound: {record:?}");
        self.check_place()?;
        let (records, best) = self.records()?;
        let mut order: Vec<usize> = (0..BLOCKS).collect();
        order.sort_by_key(|&block| (block == best, records[block].rank()));
        for block in order {
            let at = FIRST_BLOCK + block as u64;
            if !self.try_take(at, Hold::Exclusive)? {
                continue;
            }
            let written = self.write_to(block, best, record, is_flushed);
            // A lock that cannot be released ends with the file.
            let _ = self.release(at);
            if written? {
                return Ok(());
            }
        }
        let cause = io::Error::new(ErrorKind::WouldBlock, "8 writers have not come to an end");
        Err(io_error("write", &self.path, cause))
    }

    /// Writes to a locked block. False where it counts by now, and another may be free.
    fn write_to(
        &self,
        block: usize,
        best: usize,
        record: &Record,
        is_flushed: bool,
    ) -> Result<bool, StoreError> {
        // Before the lock it may have been written.
        let (records, now_best) = self.records()?;
        if records[now_best].generation > record.generation {
            return Err(overtaken(&self.path));
        }
        if block == now_best && block != best {
            return Ok(false);
        }
        let start = (block * BLOCK_BYTES) as u64;
        write_at(&self.file, &record.to_bytes(), start)
            .map_err(|cause| io_error("write", &self.path, cause))?;
        if is_flushed {
            (self.flush)(&self.path, &self.file)
                .map_err(|cause| io_error("flush", &self.path, cause))?;
        }
        Ok(true)
    }

    /// Writes the file anew, in its place, so that it stays its user's.
    pub(crate) fn rewrite(&self, record: &Record) -> Result<(), StoreError> {
        let emptied = self.file.set_len(0);
        emptied.map_err(|cause| io_error("empty", &self.path, cause))?;
        write_at(&self.file, &file_of(record), 0)
            .map_err(|cause| io_error("write", &self.path, cause))?;
        (self.flush)(&self.path, &self.file).map_err(|cause| io_error("flush", &self.path, cause))
    }

    /// That the path still names this file. Its locks keep nobody away from another.
    pub(crate) fn check_place(&self) -> Result<(), StoreError> {
        if fs::canonicalize(&self.path).is_ok_and(|path| is_at(&path, &self.file)) {
            Ok(())
        } else {
            Err(replaced(&self.path))
        }
    }

    /// Who has the slot.
    pub(crate) fn in_use(&self) -> StoreError {
        let holder = self.read().ok().and_then(|record| record.holder);
        StoreError::InUse { place: self.path.display().to_string(), holder }
    }
}

/// A whole file that says one thing.
fn file_of(record: &Record) -> Vec<u8> {
    let mut bytes = vec![0; FILE_BYTES];
    for block in bytes.chunks_exact_mut(BLOCK_BYTES) {
        block[..record::BYTES].copy_from_slice(&record.to_bytes());
    }
    bytes
}

fn best_of(records: &[Record]) -> usize {
    (0..records.len()).max_by_key(|&block| records[block].rank()).unwrap_or_default()
}

fn write_at(file: &File, bytes: &[u8], start: u64) -> io::Result<()> {
    // No other thread uses this open file.
    let mut file = file;
    file.seek(SeekFrom::Start(start))?;
    file.write_all(bytes)
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

pub(crate) fn file_name(datacenter_id: u64, worker_id: u64) -> String {
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

fn read_whole(file: &File, path: &Path) -> Result<Vec<u8>, StoreError> {
    let failed = |cause| io_error("read", path, cause);
    // The first bytes of a file of another format tell which.
    let mut bytes = Vec::with_capacity(FILE_BYTES);
    let mut from = file;
    let read =
        from.rewind().and_then(|()| from.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes));
    read.map_err(failed)?;
    Ok(bytes)
}

/// The records of a file's bytes, if all of them are as they should be.
fn records_of(bytes: &[u8], path: &Path) -> Result<Vec<Record>, StoreError> {
    let first = bytes.first_chunk().map(Record::from_bytes);
    let is_other = matches!(first, Some(Err(Fault::Newer(_) | Fault::Older(_))));
    if bytes.len() != FILE_BYTES && !is_other {
        let what = format!(
            "is {}{} bytes long and should be {FILE_BYTES}: it was cut off, or is no file of a slot. \
             {REMEDY}",
            if bytes.len() > FILE_BYTES { "at least " } else { "" },
            bytes.len()
        );
        return Err(unusable(path, &what));
    }
    let mut records: Vec<Record> = Vec::with_capacity(BLOCKS);
    for block in bytes.chunks(BLOCK_BYTES) {
        let (sector, rest) = block.split_first_chunk().ok_or_else(|| damaged(path))?;
        let record = Record::from_bytes(sector).map_err(|fault| refused(fault, path))?;
        let is_of_others = |first: &Record| (first.file, first.node) != (record.file, record.node);
        if records.first().is_some_and(is_of_others) || rest.iter().any(|&byte| byte != 0) {
            return Err(damaged(path));
        }
        records.push(record);
    }
    Ok(records)
}

fn refused(fault: Fault, path: &Path) -> StoreError {
    match fault {
        Fault::Foreign => unusable(path, &format!("is no file of a snowdrift slot. {REMEDY}")),
        Fault::Newer(version) => unusable(
            path,
            &format!(
                "was written by a newer snowdrift (format {version}; this one reads {VERSION}). Update \
                 snowdrift here, or use another workerId"
            ),
        ),
        Fault::Older(version) => unusable(
            path,
            &format!(
                "was written by an older snowdrift (format {version}; this one reads {VERSION}). End the \
             processes that use it. Then {RESET}"
            ),
        ),
        Fault::Damaged => damaged(path),
    }
}

/// A slot's record, for people.
fn read_record(path: &Path) -> Result<Record, StoreError> {
    let file = open(path, Access::Read)?;
    // Nothing is flushed.
    SlotFile { file, path: path.to_owned(), flush: Arc::new(|_, _| Ok(())) }.read()
}

pub(crate) fn check_node(found: &Node, slot: &Node, path: &Path) -> Result<(), StoreError> {
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
pub(crate) fn check_skip(record: &Record, ceiling: Tick, path: &Path) -> Result<(), StoreError> {
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

pub(crate) fn check_layout(found: &Layout, layout: &Layout, path: &Path) -> Result<(), StoreError> {
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

pub(crate) fn unusable(path: &Path, what: &str) -> StoreError {
    StoreError::Unusable { place: path.to_owned(), what: what.to_owned() }
}

fn replaced(path: &Path) -> StoreError {
    StoreError::Lost(format!(
        "{} was removed or replaced while it was in use, so another process may have its slot. \
         Restart this process, and leave the files of running processes alone",
        path.display()
    ))
}

pub(crate) fn overtaken(path: &Path) -> StoreError {
    StoreError::Lost(format!(
        "another process has taken the slot of {}, though this one held its lock: look at its file \
         system. Restart this process",
        path.display()
    ))
}

fn io_error(doing: &'static str, place: &Path, cause: io::Error) -> StoreError {
    StoreError::Io { doing, place: place.to_owned(), cause }
}
