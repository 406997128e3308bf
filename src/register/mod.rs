//! A directory as a register of leases: a file for each record, and so for each worker ID.
//!
//! | file | content |
//! |---|---|
//! | `contents` | the bytes of a record's file: two blocks |
//! | `file` | a record's file: its changes, the lock of its writer, the locks of its holders |
//! | `names` | the names of files |
//! | `place` | the directory's identity in the namespace's ID |
//!
//! What [the protocol](crate::lease) sees differs from the files in two ways:
//!
//! - A held line whose file no process has locked is free, with its ceiling: its holders have died. So a slot whose process was
//!   killed can be taken at once, above all that it may have issued. The lock decides only who may take a line, as expiry
//!   does. Where a file system keeps no locks, holders take slots from each other, and issue no ID twice.
//! - The namespace's ID is mixed with the directory's identity. So a copy is another namespace: processes of this host do not join
//!   its pages, nor take a worker ID that a page of the original has. A renamed directory stays the same.
//!
//! An old copy of a file that is put back in its place shows tokens that the page does not know.

mod contents;
mod file;
mod names;
mod place;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::core::fault::{Class, Failure, Fault};
use crate::core::sequencer::NEVER;
use crate::files::named::{Flush, NamedDirectory, to_disk};
use crate::files::path::identity_at;
use crate::lease::{Bucket, Call, Found, Key, Namespace, Ranges, Record, Reply, Token, Unreadable};

use contents::{Stored, damaged};
use file::{Hold, RecordFile};
use names::bucket_named;
pub use names::record_name;
use place::{mixed, placed};

/// A directory, as one lease of this process uses it.
pub struct Register {
    directory: NamedDirectory,
    flush: Flush,
    /// The slot whose file this lease has locked.
    hold: Option<(Key, Hold)>,
    /// Why files cannot be used, by their keys.
    unusable: BTreeMap<Key, Fault>,
    /// Slots that are passed over as long as another process changes their files.
    passed_over: Vec<Key>,
}

impl Register {
    /// The register in a directory. If its parent exists, the directory need not: the first record creates it.
    pub fn open(directory: &Path) -> Result<Register, Failure> {
        Register::with(directory, to_disk())
    }

    /// The register in a directory that must exist.
    pub fn existing(directory: &Path) -> Result<Register, Failure> {
        Ok(Register::of(NamedDirectory::existing(directory)?, to_disk()))
    }

    /// The same as [`Register::open`], with a flush that tests control.
    pub fn with(directory: &Path, flush: Flush) -> Result<Register, Failure> {
        Ok(Register::of(NamedDirectory::open(directory)?, flush))
    }

    fn of(directory: NamedDirectory, flush: Flush) -> Register {
        Register {
            directory,
            flush,
            hold: None,
            unusable: BTreeMap::new(),
            passed_over: Vec::new(),
        }
    }

    /// The path, without symbolic links.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Makes a call. Waits this long for a process that changes the record, and as long as the disk takes.
    pub fn answer(&mut self, call: &Call, at_most: Duration) -> Result<Reply, Failure> {
        Ok(match call {
            Call::Now => Reply::Time,
            Call::Read(key) => Reply::Found(self.read(*key, at_most)?),
            Call::Write { key, token, record, before } => {
                match self.write(*key, (*token, record), *before, at_most, Writer::Holder)? {
                    None => Reply::Written,
                    Some(found) => Reply::Found(found),
                }
            }
        })
    }

    /// A record as an operator sees it: its token, and its text for the protocol. Changes nothing, so it needs no right to write.
    pub fn look(&self, key: Key, at_most: Duration) -> Result<Option<(Token, String)>, Failure> {
        let Some((file, place)) = self.opened(key, false)? else { return Ok(None) };
        let stored = file.look(at_most)?;
        let text = stored.text.clone();
        let (token, record) = shown(key, stored, &file, place)?;
        Ok(Some((token, record.map_or(text, |record| record.text()))))
    }

    /// Replaces a record, as an operator does, who holds no slot. Returns whether it had the token `before`.
    pub fn replace(
        &mut self,
        key: Key,
        written: (Token, &Record),
        before: Option<Token>,
        at_most: Duration,
    ) -> Result<bool, Failure> {
        Ok(self.write(key, written, before, at_most, Writer::Operator)?.is_none())
    }

    /// The keys of all buckets that have files.
    pub fn buckets(&self) -> Result<Vec<Key>, Failure> {
        let failed = Failure::io("slot-io", "read the directory", self.directory());
        let entries = fs::read_dir(self.directory()).map_err(&failed)?;
        let mut keys = Vec::new();
        for entry in entries {
            let name = entry.map_err(&failed)?.file_name();
            keys.extend(name.to_str().and_then(bucket_named));
        }
        Ok(keys)
    }

    /// Shows others that this process lives, and holds the slot of this key: from when it writes the line, or joins its page.
    pub fn hold(&mut self, key: Key, at_most: Duration) -> Result<(), Failure> {
        let path = self.path_of(key);
        let is_held = self.hold.as_ref().is_some_and(|(_, hold)| hold.is_of(&path));
        if !is_held {
            self.hold = Some((key, Hold::take(&path, at_most)?));
        }
        Ok(())
    }

    /// Shows it no more: the line is free, or another one's.
    pub fn let_go(&mut self) {
        self.hold = None;
    }

    /// Why files could not be used as records, since this was asked last.
    pub fn take_unusable(&mut self) -> BTreeMap<Key, Fault> {
        std::mem::take(&mut self.unusable)
    }

    /// A record's file.
    pub fn path_of(&self, key: Key) -> PathBuf {
        self.directory().join(record_name(key))
    }

    /// Whether a file can never be used by this process, as opposed to a disk that fails.
    pub fn is_unusable(&self, key: Key, failure: &Failure) -> bool {
        let is_held = self.hold.as_ref().is_some_and(|(of, _)| *of == key);
        match failure.class {
            Class::Slot => true,
            Class::Io(ErrorKind::PermissionDenied) => !is_held && failure.is_of(&self.path_of(key)),
            _ => false,
        }
    }

    /// Passes a slot over whose file another process has been changing for too long: it may be stopped. Returns what a read finds
    /// meanwhile.
    pub fn pass_over(&mut self, key: Key, fault: Fault) -> Found {
        self.passed_over.push(key);
        self.unusable.insert(key, fault);
        unusable_record()
    }

    fn read(&mut self, key: Key, at_most: Duration) -> Result<Found, Failure> {
        let found = self.opened(key, true).and_then(|found| {
            let Some((file, place)) = found else { return Ok(None) };
            if self.passed_over.contains(&key) {
                file.change(Duration::ZERO)?;
                self.passed_over.retain(|other| *other != key);
            }
            let stored = file.read(&self.flush, at_most)?;
            shown(key, stored, &file, place).map(Some)
        });
        match found {
            Err(failure) if self.is_unusable(key, &failure) || self.passed_over.contains(&key) => {
                // The first reason says how long was waited.
                self.unusable.entry(key).or_insert(failure.fault);
                Ok(unusable_record())
            }
            found => found,
        }
    }

    /// None where it was written; otherwise what was found.
    fn write(
        &mut self,
        key: Key,
        (token, record): (Token, &Record),
        before: Option<Token>,
        at_most: Duration,
        by: Writer,
    ) -> Result<Option<Found>, Failure> {
        let holds = by == Writer::Holder && is_held(key, record);
        let Some((file, place)) = self.opened(key, true)? else {
            if before.is_some() {
                return Ok(Some(None));
            }
            match self.create(key, token, record) {
                Ok(true) if holds => self.hold(key, at_most)?,
                Ok(true) => {}
                Ok(false) => return self.read(key, at_most).map(Some),
                // The disk may be full: slots that have files can be used.
                Err(Failure { class: Class::Io(_), fault }) if key != Key::Namespace => {
                    self.unusable.insert(key, fault);
                    return Ok(Some(unusable_record()));
                }
                Err(failure) => return Err(failure),
            }
            return Ok(None);
        };
        if holds {
            // Before others see the line.
            self.hold(key, at_most)?;
        }
        let text = placed(record.clone(), place).text();
        let found = file.write((token, text), before, &self.flush, at_most)?;
        found.map(|stored| shown(key, stored, &file, place).map(Some)).transpose()
    }

    /// Creates a record's file. Returns false if there is one by now.
    fn create(&mut self, key: Key, token: Token, record: &Record) -> Result<bool, Failure> {
        self.directory.create()?;
        let text = placed(record.clone(), self.place()?.unwrap_or_default()).text();
        let path = self.path_of(key);
        let new = (token, text, says_nothing(record));
        let is_made = RecordFile::create(&self.directory, &path, key, new, &self.flush)?;
        // From now on it is not created again.
        self.directory = NamedDirectory::existing(self.directory.path())?;
        Ok(is_made)
    }

    /// A record's file, and the directory's place. None where there is none.
    fn opened(&self, key: Key, is_writable: bool) -> Result<Option<(RecordFile, u64)>, Failure> {
        let Some(place) = self.place()? else { return Ok(None) };
        match RecordFile::open(&self.path_of(key), key, is_writable) {
            Err(failure) if failure.is_missing() => Ok(None),
            opened => opened.map(|file| Some((file, place))),
        }
    }

    /// The directory's identity. None where it is created with its first record; an error where it was removed.
    fn place(&self) -> Result<Option<u64>, Failure> {
        match identity_at(self.directory()) {
            Err(cause) if cause.kind() == ErrorKind::NotFound && self.directory.is_absent() => {
                Ok(None)
            }
            found => found.map(|found| Some(mixed(found))).map_err(Failure::io(
                "slot-io",
                "find the directory",
                self.directory(),
            )),
        }
    }
}

/// A record that this process cannot use.
fn unusable_record() -> Found {
    Some((Token::default(), Err(Unreadable::Format)))
}

/// The writer of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// The holder of the slot.
    Holder,
    /// An operator, without a slot.
    Operator,
}

/// A record as the protocol sees it.
fn shown(
    key: Key,
    Stored { token, text, .. }: Stored,
    file: &RecordFile,
    place: u64,
) -> Result<(Token, Result<Record, Unreadable>), Failure> {
    let mut record = Record::of_text(key, &text).map(|record| placed(record, place));
    match &mut record {
        Ok(Record::Bucket(bucket)) => {
            if let Key::Bucket(_, worker) = key
                && let Some(line) = bucket.lines.get_mut(&worker).filter(|line| line.is_held)
            {
                line.is_held = file.is_held()?;
            }
        }
        // A lock is of one worker ID.
        Ok(Record::Namespace(Namespace { size, .. })) if *size != 1 => {
            return Err(damaged(&file.path));
        }
        _ => {}
    }
    Ok((token, record))
}

/// Whether a record says that its file's worker ID is held.
fn is_held(key: Key, record: &Record) -> bool {
    let (Key::Bucket(_, worker), Record::Bucket(Bucket { lines, .. })) = (key, record) else {
        return false;
    };
    lines.get(&worker).is_some_and(|line| line.is_held)
}

/// Whether a new record would say the same: a namespace that counts no bucket yet. The name of the first bucket comes to the disk after
/// its own, or with it. Without that bucket nobody has issued by it.
fn says_nothing(record: &Record) -> bool {
    let Record::Namespace(Namespace { floor, created, .. }) = record else { return false };
    *floor == NEVER && *created == Ranges::default()
}

#[cfg(test)]
#[cfg(all(target_os = "linux", not(miri)))]
mod tests;
