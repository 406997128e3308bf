//! A record's file.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8, 8..12, 12..16 | `snowdrft`; version of this format: 4; 0 |
//! | 16..64 | the record's key, then zeros |
//! | 64..72 | the process that changes the record, or did so last |
//! | 72..80 | the turn up to which the record is known to be on the disk |
//! | 4096.., 24576.. | two blocks, written by turns |
//! | beyond the end | nothing: bytes for [locks](crate::files::lock) |
//!
//! | bytes of a block | content |
//! |---|---|
//! | 0..4 | CRC-32 of what follows |
//! | 4..8 | length of the text |
//! | 8..16 | the turn: one more than that of the other block |
//! | 16..24, 24.. | the record's token, and its text |
//!
//! - The block of the higher turn counts. A change writes the other one, so where a writer is killed, or the power fails, the
//!   record is the one of before.
//! - A reader trusts a record on the disk only. Where that is not known, since its writer was killed or its flush failed, the reader
//!   writes the block again first: a flush that has failed once may have dropped the bytes, though the next one succeeds.
//! - One process at a time changes a file, under a lock. Others wait for it within bounds, and name it.
//! - A new file is written whole under another name, then gets its own. It never grows, so a disk that is full later does not affect it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::core::fault::{Failure, fault};
use crate::files::lock::{self, LockMode, USERS, within};
use crate::files::named::{self, Flush, NamedDirectory, unusable};
use crate::files::path::is_at;
use crate::files::whole;
use crate::lease::{Key, MOST_BYTES, Token};

const MAGIC: [u8; 8] = *b"snowdrft";
/// Version 3 had eight records of another kind.
const VERSION: u32 = 4;
const PID: usize = 64;
const SETTLED: usize = 72;

const PAGE: usize = 4096;
const BLOCK_BYTES: usize = PAGE + MOST_BYTES;
/// Block 0 and block 1.
const BLOCKS: [usize; 2] = [PAGE, PAGE + BLOCK_BYTES];
const FILE_BYTES: usize = PAGE + 2 * BLOCK_BYTES;
const HEAD_BYTES: usize = 24;

/// Locked by the process that changes the record. Where a system locks whole files only, holders lock another file.
const CHANGING: u64 = if lock::HAS_BYTES { USERS + 1 } else { USERS };

/// Repeated readings of a block that is not whole: a writer may be writing it.
const READINGS: u32 = 5;
const BETWEEN_READINGS: Duration = Duration::from_micros(200);

/// A record, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// How many writes the file had.
    turn: u64,
    /// The token of its write.
    pub token: Token,
    /// The text.
    pub text: String,
}

/// A record's open file. Closing it releases its locks.
pub struct RecordFile {
    file: File,
    path: PathBuf,
    key: Key,
}

/// What a file's bytes say.
struct Contents {
    /// Of the two blocks; none where it is torn, damaged, or never written.
    blocks: [Option<Stored>; 2],
    settled: u64,
}

impl RecordFile {
    /// Creates a file with a first record. Returns false if there is one by now.
    pub fn create(
        directory: &NamedDirectory,
        path: &Path,
        key: Key,
        (token, text): (Token, String),
        flush: &Flush,
    ) -> Result<bool, Failure> {
        let mut bytes = vec![0; FILE_BYTES];
        bytes[..PAGE].copy_from_slice(&head_of(key));
        bytes[SETTLED] = 1;
        let block = Stored { turn: 1, token, text }.to_bytes();
        bytes[BLOCKS[0]..][..block.len()].copy_from_slice(&block);
        directory.create_file(path, &bytes, flush)
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
            let pid = self.number(PID).map_err(self.failed("read"))?;
            let (place, waited) = (&*self.path, at_most.as_secs_f64());
            return Err(fault!("slot-changing", place, pid, waited).into());
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

    /// What the file says, once two readings agree where a block is not whole. None while others write.
    fn contents(&self) -> Result<Option<Contents>, Failure> {
        let mut before = None;
        for reading in 0..READINGS {
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

    fn read_once(&self) -> Result<(Vec<u8>, Contents), Failure> {
        // Accepts any length: the first bytes of another format show its version.
        let mut bytes = Vec::with_capacity(FILE_BYTES + 1);
        let mut from = &self.file;
        let read =
            from.rewind().and_then(|()| from.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes));
        read.map_err(self.failed("read"))?;
        let contents = Contents::of(&bytes, self.key, &self.path)?;
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
        match named::open_file(&path, true) {
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

impl Stored {
    fn to_bytes(&self) -> Vec<u8> {
        let Stored { turn, token, text } = self;
        let mut bytes = vec![0; 4];
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(turn.to_le_bytes());
        bytes.extend(token.0.to_le_bytes());
        bytes.extend(text.as_bytes());
        let check = crc32fast::hash(&bytes[4..]);
        bytes[..4].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The record of a block, if it is whole.
    fn of_bytes(block: &[u8]) -> Option<Stored> {
        let number = |at: usize| Some(u64::from_le_bytes(*block.get(at..)?.first_chunk()?));
        let len = (number(0)? >> 32) as usize;
        let text = block.get(HEAD_BYTES..)?.get(..len)?;
        let (turn, token) = (number(8)?, Token(number(16)?));
        let stored = Stored { turn, token, text: String::from_utf8(text.to_vec()).ok()? };
        (turn > 0 && block.starts_with(&stored.to_bytes())).then_some(stored)
    }
}

impl Contents {
    fn of(bytes: &[u8], key: Key, place: &Path) -> Result<Contents, Failure> {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        if bytes.len() < 12 || bytes[..8] != MAGIC {
            return Err(unusable(fault!("slot-foreign", place)));
        }
        let format = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        if format != VERSION {
            let known = VERSION;
            return Err(unusable(match format < VERSION {
                true => fault!("slot-older", place, format, known),
                false => fault!("slot-newer", place, format, known),
            }));
        }
        if bytes.len() != FILE_BYTES {
            let (length, wanted) = (bytes.len(), FILE_BYTES);
            return Err(unusable(fault!("slot-length", place, length, wanted)));
        }
        if bytes[..PID] != head_of(key)[..PID] {
            let name = std::str::from_utf8(&bytes[16..PID]).unwrap_or_default();
            return Err(match Key::of_text(name.trim_end_matches('\0')) {
                Some(Key::Bucket(datacenter, worker)) => {
                    unusable(fault!("slot-misnamed", place, datacenter, worker))
                }
                _ => damaged(place),
            });
        }
        let blocks = BLOCKS.map(|at| Stored::of_bytes(&bytes[at..][..BLOCK_BYTES]));
        Ok(Contents { blocks, settled: number(SETTLED) })
    }

    /// The record that counts. None where there is none: a writer is writing both blocks, or they are damaged.
    fn newest(&self, place: &Path) -> Result<Option<Stored>, Failure> {
        let newest = self.blocks.iter().flatten().max_by_key(|stored| stored.turn);
        // A turn is known to be on the disk after it was. So a later one is damaged: what it confirmed is unknown.
        match newest {
            Some(stored) if stored.turn < self.settled => Err(damaged(place)),
            newest => Ok(newest.cloned()),
        }
    }
}

/// The first bytes of a new file.
fn head_of(key: Key) -> [u8; PAGE] {
    let mut head = [0; PAGE];
    head[..8].copy_from_slice(&MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let name = key.to_string();
    head[16..16 + name.len()].copy_from_slice(name.as_bytes());
    head
}

fn damaged(place: &Path) -> Failure {
    unusable(fault!("slot-damaged", place))
}
