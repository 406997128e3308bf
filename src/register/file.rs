//! A record's file.
//!
//! - The block of the higher turn counts. A change writes the other one, so where a writer is killed, or the power fails, the
//!   record is the one of before.
//! - A reader trusts a record on the disk only. Where that is not known, since its writer was killed or its flush failed, the reader
//!   writes the block again first: a flush that has failed once may have dropped the bytes, though the next one succeeds.
//! - One process at a time changes a file, under a lock. Others wait for it within bounds, and name it.
//! - A new file is written whole under another name, then gets its own. It never grows, so a disk that is full later does not affect it.
//!   As long as its name may not be on the disk, no turn is known to be there.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::contents::{BLOCKS, Blocks, FILE_BYTES, PAGE, PID, SETTLED, Stored, damaged, head_of};
use crate::core::fault::{Failure, fault};
use crate::files::lock::{self, LockMode, USERS, within};
use crate::files::named::{self, Flush, NamedDirectory, flush_names};
use crate::files::path::is_at;
use crate::files::whole;
use crate::lease::{Key, Token};

/// Locked by the process that changes the record. Where a system locks whole files only, holders lock another file.
const CHANGING: u64 = if lock::HAS_BYTES { USERS + 1 } else { USERS };

/// Repeated readings of a block that is not whole: a writer may be writing it.
const MOST_READINGS: u32 = 5;
const BETWEEN_READINGS: Duration = Duration::from_micros(200);

/// A record's open file. Closing it releases its locks.
pub struct RecordFile {
    file: File,
    pub path: PathBuf,
    key: Key,
}

impl RecordFile {
    /// Creates a file with a first record. Returns false if there is one by now. A record that `says_nothing` may be lost: a new one in
    /// its place says the same. So its name comes to the disk with the next one.
    pub fn create(
        directory: &NamedDirectory,
        path: &Path,
        key: Key,
        (token, text, says_nothing): (Token, String, bool),
        flush: &Flush,
    ) -> Result<bool, Failure> {
        let mut bytes = vec![0; FILE_BYTES];
        bytes[..PAGE].copy_from_slice(&head_of(key));
        bytes[SETTLED] = says_nothing.into();
        let block = Stored { turn: 1, token, text }.to_bytes();
        bytes[BLOCKS[0]..][..block.len()].copy_from_slice(&block);
        let Some(file) = directory.create_file(path, &bytes, flush)? else { return Ok(false) };
        if !says_nothing {
            flush_names(directory.path(), flush)?;
            // If another process has written meanwhile, this makes the next reader flush its record again.
            let _ = RecordFile { file, path: path.to_owned(), key }.put_number(SETTLED, 1);
        }
        Ok(true)
    }

    /// Opens a record's file.
    pub fn open(path: &Path, key: Key, is_writable: bool) -> Result<RecordFile, Failure> {
        let file = named::open_file(path, is_writable)?;
        Ok(RecordFile { file, path: path.to_owned(), key })
    }

    /// The record. Waits this long for a process that changes it.
    pub fn read(&self, flush: &Flush, at_most: Duration) -> Result<Stored, Failure> {
        if let Some(contents) = self.contents()?
            && let Some(stored) = contents.newest(&self.path)?
            && stored.turn <= contents.settled
        {
            return Ok(stored);
        }
        self.change(at_most)?.settled(flush)
    }

    /// The record, though its writer may have died before it was on the disk. Changes and locks nothing. Waits this long where
    /// processes write it again and again.
    pub fn look(&self, at_most: Duration) -> Result<Stored, Failure> {
        let mut seen = None;
        within(at_most, || {
            seen = self.contents()?;
            Ok(seen.is_some())
        })?;
        match seen {
            Some(contents) => contents.newest(&self.path)?.ok_or_else(|| damaged(&self.path)),
            None => Err(self.changing(at_most)?),
        }
    }

    /// Replaces the record where it has the token `before`. None where it did; otherwise the record as it is.
    pub fn write(
        &self,
        (token, text): (Token, String),
        before: Option<Token>,
        flush: &Flush,
        at_most: Duration,
    ) -> Result<Option<Stored>, Failure> {
        let change = self.change(at_most)?;
        let stored = change.settled(flush)?;
        if Some(stored.token) != before {
            return Ok(Some(stored));
        }
        change.put(&Stored { turn: stored.turn + 1, token, text }, flush).map(|()| None)
    }

    /// Locks it for a change.
    pub fn change(&self, at_most: Duration) -> Result<Change<'_>, Failure> {
        let take = || lock::try_take(&self.file, CHANGING, LockMode::Exclusive);
        if !within(at_most, || take().map_err(self.failed("lock")))? {
            return Err(self.changing(at_most)?);
        }
        let change = Change(self);
        if !is_at(&self.path, &self.file) {
            // The locks of a replaced file exclude nobody.
            return Err(fault!("slot-moved", place: &*self.path).into());
        }
        // For people only.
        let _ = self.put_number(PID, std::process::id().into());
        Ok(change)
    }

    /// Whether any process, this one included, holds the slot by [`Hold`].
    pub fn is_held(&self) -> Result<bool, Failure> {
        let holders = if lock::HAS_BYTES { None } else { Hold::file_of(&self.path, false)? };
        let Some(file) = holders.as_ref().or(lock::HAS_BYTES.then_some(&self.file)) else {
            return Ok(false);
        };
        Ok(lock::lock_of_others(file, USERS).map_err(self.failed("lock"))?.is_some())
    }

    /// The failure where another process changes it for so long.
    fn changing(&self, waited: Duration) -> Result<Failure, Failure> {
        let pid = self.number(PID).map_err(self.failed("read"))?;
        let (place, waited) = (&*self.path, waited.as_secs_f64());
        Ok(fault!("slot-changing", place, pid, waited).into())
    }

    /// What the file says, once two readings agree where a block is not whole. None while others write.
    fn contents(&self) -> Result<Option<Blocks>, Failure> {
        let mut before = None;
        for reading in 0..MOST_READINGS {
            let (bytes, contents) = self.read_once()?;
            // A new file has one block.
            let is_whole = contents.blocks.iter().all(Option::is_some);
            if is_whole || before.as_ref() == Some(&bytes) {
                return Ok(Some(contents));
            }
            before = Some(bytes);
            if reading > 0 {
                thread::sleep(BETWEEN_READINGS);
            }
        }
        Ok(None)
    }

    fn read_once(&self) -> Result<(Vec<u8>, Blocks), Failure> {
        // Accepts any length: the first bytes of another format show its version.
        let (mut bytes, mut len) = (vec![0; FILE_BYTES + 1], 0);
        let mut from = &self.file;
        from.rewind().map_err(self.failed("read"))?;
        // In few calls: an opening reads it often.
        while len < bytes.len() {
            match from.read(&mut bytes[len..]) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) => return Err(self.failed("read")(cause)),
            }
        }
        bytes.truncate(len);
        let contents = Blocks::of(&bytes, self.key, &self.path)?;
        Ok((bytes, contents))
    }

    fn put(&self, at: usize, bytes: &[u8]) -> io::Result<()> {
        // No other thread uses this open file.
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at as u64)).and_then(|_| file.write_all(bytes))
    }

    fn put_number(&self, at: usize, number: u64) -> io::Result<()> {
        self.put(at, &number.to_le_bytes())
    }

    fn number(&self, at: usize) -> io::Result<u64> {
        let (mut file, mut bytes) = (&self.file, [0; 8]);
        file.seek(SeekFrom::Start(at as u64)).and_then(|_| file.read_exact(&mut bytes))?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn failed(&self, doing: &str) -> impl Fn(io::Error) -> Failure {
        Failure::io("slot-io", doing, &self.path)
    }
}

/// A file that no other process changes while this lives.
pub struct Change<'a>(&'a RecordFile);

impl Change<'_> {
    /// The record, on the disk.
    fn settled(&self, flush: &Flush) -> Result<Stored, Failure> {
        let Change(file) = self;
        let (_, contents) = file.read_once()?;
        let stored = contents.newest(&file.path)?.ok_or_else(|| damaged(&file.path))?;
        if stored.turn > contents.settled {
            if contents.settled == 0 {
                // Its creator has not flushed its name.
                flush_names(file.path.parent().unwrap_or(Path::new(".")), flush)?;
            }
            self.put(&stored, flush)?;
        }
        Ok(stored)
    }

    /// Writes a record to the block of its turn, and flushes it.
    fn put(&self, stored: &Stored, flush: &Flush) -> Result<(), Failure> {
        let Change(file) = self;
        let at = BLOCKS[(stored.turn + 1) as usize % 2];
        file.put(at, &stored.to_bytes()).map_err(file.failed("write"))?;
        flush(&file.path, &file.file).map_err(file.failed("flush"))?;
        // If this is lost, the next reader flushes the record again.
        let _ = file.put_number(SETTLED, stored.turn);
        Ok(())
    }
}

impl Drop for Change<'_> {
    /// Unlocks now, though a process that was just forked off still has the file open, too.
    fn drop(&mut self) {
        // Closing the file releases a lock that could not be released here.
        let _ = lock::release(&self.0.file, CHANGING);
    }
}

/// A lock by which others see that a process lives which holds a slot. The kernel releases it when the process dies.
pub struct Hold(File);

impl Hold {
    /// Locks a slot's file. Waits this long for others that look whether it is locked, where that takes the lock.
    pub fn take(path: &Path, at_most: Duration) -> Result<Hold, Failure> {
        let failed = Failure::io("slot-io", "lock", path);
        let file = match Hold::file_of(path, true)? {
            Some(file) => file,
            None => named::open_file(path, true)?,
        };
        let hold = Hold(file);
        let mode = LockMode::Shared;
        match within(at_most, || lock::try_take(&hold.0, USERS, mode).map_err(&failed))? {
            true => Ok(hold),
            false => Err(failed(io::ErrorKind::ResourceBusy.into())),
        }
    }

    /// Whether the path still names the file that is locked.
    pub fn is_of(&self, path: &Path) -> bool {
        match lock::HAS_BYTES {
            true => is_at(path, &self.0),
            false => is_at(&holders(path), &self.0),
        }
    }

    /// The file that holders lock where a system locks whole files only: those are locked for changes.
    fn file_of(path: &Path, is_made: bool) -> Result<Option<File>, Failure> {
        if lock::HAS_BYTES {
            return Ok(None);
        }
        let path = holders(path);
        let failed = Failure::io("slot-io", "open", &path);
        if is_made {
            let directory = path.parent().unwrap_or(Path::new("."));
            let made = whole::write(directory, b"", |_| Ok(())).and_then(|file| {
                whole::if_possible(file.persist_noclobber(&path).map_err(|lost| lost.error))
            });
            made.map_err(failed)?;
        }
        match named::open_file(&path, is_made) {
            Err(failure) if failure.is_missing() => Ok(None),
            opened => opened.map(Some),
        }
    }
}

fn holders(path: &Path) -> PathBuf {
    path.with_extension("held")
}

impl Drop for Hold {
    /// Unlocks now, as [`Change`] does.
    fn drop(&mut self) {
        let _ = lock::release(&self.0, USERS);
    }
}
