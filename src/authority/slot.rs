//! A slot's file.
//!
//! | bytes | content |
//! |---|---|
//! | 0..512, 4096..4608, ... | 8 [`Record`]s, each in a block of 4096 bytes |
//! | the rest of each block | zeros |
//! | beyond the end | nothing: bytes for [locks](crate::files::lock) |
//!
//! - The current record has the highest generation, then ceiling. A file with a damaged record is damaged.
//! - A writer locks a block, writes it and flushes it. It never takes the current record's block if another is free. So
//!   a writer that was stopped in between, and resumes later, writes to no block that another has written meanwhile.
//!   Its record ranks below those of a later generation.
//! - A new file is written whole under another name, then gets its own. It is never replaced and never grows, so a disk
//!   that is full later does not affect it. It is never mapped, so a disk that hangs stops only the writers.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::record::{self, Holder, Record, Unsound, VERSION};
use crate::core::fault::{Class, Failure, Fault, fault};
use crate::files::lock::{self, LockMode, USERS, within};
use crate::files::named::{self, Flush, unusable};
use crate::files::path::{identity_of, is_at};

const BLOCKS: usize = 8;
/// At least the physical sector of a disk, so that no two blocks share one.
const BLOCK_BYTES: usize = 4096;
/// A slot's file.
const FILE_BYTES: usize = BLOCKS * BLOCK_BYTES;

/// Locked by the process that opens a page for the slot: one at a time.
pub(crate) const OPENING: u64 = USERS + 1;
/// Locked by the process that raises the ceiling ahead of time: one at a time.
pub(crate) const RENEWING: u64 = USERS + 2;
/// Locked by the writer of the first block. The bytes of the other blocks follow.
const FIRST_BLOCK: u64 = USERS + 16;

/// Repeated reads of a record that seems damaged: a writer may have been writing it.
const READINGS: u32 = 5;
const BETWEEN_READINGS: Duration = Duration::from_micros(200);

/// The longest wait for a block to write to. Many processes that renew at once, on a slow disk, write to all of them.
const BUSY: Duration = Duration::from_secs(2);

/// A slot's open file. Closing it releases its locks.
pub struct SlotFile {
    file: File,
    path: PathBuf,
    flush: Flush,
}

impl SlotFile {
    /// Opens a slot's file.
    pub(super) fn open(
        path: PathBuf,
        is_writable: bool,
        flush: Flush,
    ) -> Result<SlotFile, Failure> {
        let file = named::open_file(&path, is_writable)?;
        Ok(SlotFile { file, path, flush })
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Locks a byte, or changes the lock on it. Returns false, and changes nothing, if others hold the byte.
    pub(crate) fn try_take(&self, at: u64, hold: LockMode) -> Result<bool, Failure> {
        // On other systems every lock is exclusive.
        let hold = if cfg!(target_os = "linux") { hold } else { LockMode::Exclusive };
        lock::try_take(&self.file, at, hold).map_err(self.failed("lock"))
    }

    /// Unlocks a byte.
    pub(crate) fn release(&self, at: u64) -> Result<(), Failure> {
        lock::release(&self.file, at).map_err(self.failed("unlock"))
    }

    fn turn(&self, at: u64) -> Result<Option<Turn<'_>>, Failure> {
        Ok(self.try_take(at, LockMode::Exclusive)?.then(|| Turn(self, at)))
    }

    fn failed(&self, doing: &str) -> impl Fn(io::Error) -> Failure {
        Failure::io("slot-io", doing, &self.path)
    }

    /// The identity of its record: of the file, and of the place where it is. A copy beside it has another one.
    pub(crate) fn identity(&self, record: &Record) -> Result<u128, Failure> {
        let (device, file) = identity_of(&self.file).map_err(self.failed("identify"))?;
        Ok(record.file ^ file ^ u128::from(device).rotate_right(32))
    }

    /// The current record.
    pub fn read(&self) -> Result<Record, Failure> {
        let (records, best) = self.records()?;
        Ok(records[best].clone())
    }

    /// All records, and the index of the current one.
    fn records(&self) -> Result<(Vec<Record>, usize), Failure> {
        let mut tries = 0;
        let records = loop {
            match records_of(&self.bytes()?, &self.path) {
                Err(_) if tries < READINGS => {
                    tries += 1;
                    thread::sleep(BETWEEN_READINGS);
                }
                records => break records?,
            }
        };
        let best = (0..BLOCKS).max_by_key(|&block| records[block].rank()).unwrap_or_default();
        Ok((records, best))
    }

    fn bytes(&self) -> Result<Vec<u8>, Failure> {
        // Accepts any length: the first bytes of another format show its version.
        let mut bytes = Vec::with_capacity(FILE_BYTES);
        let mut from = &self.file;
        let read =
            from.rewind().and_then(|()| from.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes));
        read.map_err(self.failed("read"))?;
        Ok(bytes)
    }

    /// Writes a record to a block that nobody else is writing, and waits for one. Returns an error if another page was
    /// opened or closed meanwhile, or the file was replaced. `is_flushed`: not needed for a record whose loss is safe,
    /// since the record before it is as safe.
    pub(crate) fn record(&self, record: &Record, is_flushed: bool) -> Result<(), Failure> {
        debug_assert!(Record::from_bytes(&record.to_bytes()).is_ok(), "not sound: {record:?}");
        match within(BUSY, || self.try_record(record, is_flushed))? {
            true => Ok(()),
            false => Err(self.failed("write")(ErrorKind::ResourceBusy.into())),
        }
    }

    /// Returns false if others are writing to all blocks.
    fn try_record(&self, record: &Record, is_flushed: bool) -> Result<bool, Failure> {
        self.check_path()?;
        let (records, best) = self.records()?;
        let mut order: [usize; BLOCKS] = std::array::from_fn(|block| block);
        order.sort_by_key(|&block| (block == best, records[block].rank()));
        for block in order {
            let Some(_turn) = self.turn(FIRST_BLOCK + block as u64)? else { continue };
            // Another process may have written the block before the lock.
            let (records, now_best) = self.records()?;
            if records[now_best].generation > record.generation {
                return Err(self.overtaken());
            }
            if block == now_best && block != best {
                // It has the current record by now, and another may be free.
                continue;
            }
            self.write_at(block * BLOCK_BYTES, &record.to_bytes())?;
            if is_flushed {
                self.flush()?;
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn write_at(&self, start: usize, bytes: &[u8]) -> Result<(), Failure> {
        // No other thread uses this open file.
        let mut file = &self.file;
        let written = file.seek(SeekFrom::Start(start as u64)).and_then(|_| file.write_all(bytes));
        written.map_err(self.failed("write"))
    }

    fn flush(&self) -> Result<(), Failure> {
        (self.flush)(&self.path, &self.file).map_err(self.failed("flush"))
    }

    /// Rewrites the file in place, so that its owner stays the same.
    pub(crate) fn rewrite(&self, record: &Record) -> Result<(), Failure> {
        self.file.set_len(0).map_err(self.failed("empty"))?;
        self.write_at(0, &file_of(record))?;
        self.flush()
    }

    /// Checks that the path still names this file. The locks of a replaced file exclude nobody.
    pub(crate) fn check_path(&self) -> Result<(), Failure> {
        match is_at(&self.path, &self.file) {
            true => Ok(()),
            false => Err(Failure::new(Class::Lost, fault!("slot-replaced", place: self.path()))),
        }
    }

    /// The error for a record that another process has written under the locks of this one.
    pub(super) fn overtaken(&self) -> Failure {
        Failure::new(Class::Lost, fault!("slot-overtaken", place: self.path()))
    }

    /// The error for a slot in use, with its holder.
    pub(crate) fn in_use(&self) -> Failure {
        let holder = self.read().ok().and_then(|record| record.holder);
        in_use(&self.path, holder.as_ref())
    }
}

/// The bytes of a file with this record in all blocks.
pub(super) fn file_of(record: &Record) -> Vec<u8> {
    let mut bytes = vec![0; FILE_BYTES];
    for block in bytes.chunks_exact_mut(BLOCK_BYTES) {
        block[..record::BYTES].copy_from_slice(&record.to_bytes());
    }
    bytes
}

/// An exclusive lock on a byte, while it lives.
struct Turn<'a>(&'a SlotFile, u64);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Closing the file releases a lock that could not be released here.
        let _ = self.0.release(self.1);
    }
}

impl Drop for SlotFile {
    /// Unlocks now, though a process that was just forked off still has the file open, too.
    fn drop(&mut self) {
        let _ = self.release(USERS);
        let _ = self.release(OPENING);
    }
}

/// The failure of a slot that another holder has, if readable.
pub fn in_use(place: &Path, holder: Option<&Holder>) -> Failure {
    let named = |holder: &Holder| {
        let Holder { pid, host, started_ms, .. } = holder;
        fault!("holder", pid: *pid, host: host.as_str(), started: *started_ms)
    };
    let holders: Vec<Fault> = holder.into_iter().map(named).collect();
    Failure::new(Class::InUse, fault!("slot-in-use", place, holders))
}

/// The records in a file's bytes, if all of them are whole and of one file.
fn records_of(bytes: &[u8], path: &Path) -> Result<Vec<Record>, Failure> {
    let refused = |unsound| {
        unusable(match unsound {
            Unsound::Foreign => fault!("slot-foreign", place: path),
            Unsound::Newer(format) => fault!("slot-newer", place: path, format, known: VERSION),
            Unsound::Older(format) => fault!("slot-older", place: path, format, known: VERSION),
            Unsound::Damaged => fault!("slot-damaged", place: path),
        })
    };
    let first = bytes.first_chunk().map(Record::from_bytes);
    let is_other = matches!(first, Some(Err(Unsound::Newer(_) | Unsound::Older(_))));
    if bytes.len() != FILE_BYTES && !is_other {
        let (length, wanted) = (bytes.len(), FILE_BYTES);
        return Err(unusable(fault!("slot-length", place: path, length, wanted)));
    }
    let mut records: Vec<Record> = Vec::with_capacity(BLOCKS);
    for block in bytes.chunks(BLOCK_BYTES) {
        let (sector, rest) = block.split_first_chunk().ok_or_else(|| refused(Unsound::Damaged))?;
        let record = Record::from_bytes(sector).map_err(refused)?;
        let is_of_others = |first: &Record| (first.file, first.node) != (record.file, record.node);
        if records.first().is_some_and(is_of_others) || rest.iter().any(|&byte| byte != 0) {
            return Err(refused(Unsound::Damaged));
        }
        records.push(record);
    }
    Ok(records)
}

// Miri does not know these locks.
#[cfg(all(test, not(miri)))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::files::lock::POLL;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_writer_waits_while_others_write_to_all_blocks() {
        use crate::core::{layout::Layout, node::Node};
        let node = Node::new(Layout::NODE, 1, 2).unwrap();
        let record = Record::starting_at(&node, 5);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&file_of(&record)).unwrap();
        let flush: Flush = Arc::new(|_, _| Ok(()));
        let open = || SlotFile::open(file.path().to_owned(), true, flush.clone()).unwrap();
        let [slot, others] = [open(), open()];
        for block in 0..BLOCKS as u64 {
            assert!(others.try_take(FIRST_BLOCK + block, LockMode::Exclusive).unwrap());
        }
        let next = Record { ceiling: 9, ..record };
        let (written, has_written) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| written.send(slot.record(&next, true)));
            // If the writer has not begun by then, this shows less, and does not fail.
            assert!(has_written.recv_timeout(50 * POLL).is_err(), "it waits");
            others.release(FIRST_BLOCK + 3).unwrap();
            has_written.recv().unwrap().unwrap();
        });
        assert_eq!(open().read().unwrap().ceiling, 9);
    }

    #[test]
    fn a_closed_slot_is_free_though_a_forked_process_still_has_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let flush: Flush = Arc::new(|_, _| Ok(()));
        let open = || SlotFile::open(file.path().to_owned(), true, flush.clone()).unwrap();
        let slot = open();
        let _inherited = slot.file.try_clone().unwrap();
        for at in [USERS, OPENING] {
            assert!(slot.try_take(at, LockMode::Exclusive).unwrap());
        }
        drop(slot);
        let next = open();
        for at in [USERS, OPENING] {
            assert!(next.try_take(at, LockMode::Exclusive).unwrap());
        }
    }
}
