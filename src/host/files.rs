//! The files of a user's directory. Each is written whole under a temporary name, and then gets its own.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tempfile::NamedTempFile;

use super::system;
use crate::core::fault::Failure;

const README: &str = "README";
const TEMPORARY: &str = ".new-";
/// Maximum age of a temporary file. Writing one takes milliseconds, so killed processes left the older ones.
const TEMPORARY_FOR: Duration = Duration::from_secs(60);

/// The directory this process swept last, and the time.
static SWEPT: Mutex<Option<(PathBuf, Instant)>> = Mutex::new(None);

/// Writes a temporary file that only this user can open.
pub fn write(directory: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = system::private().prefix(TEMPORARY).tempfile_in(directory)?;
    system::set_private(file.as_file())?;
    file.write_all(bytes)?;
    if !system::IN_MEMORY {
        // A power cut must not leave the name on a file of zeros.
        file.as_file().sync_all()?;
    }
    Ok(file)
}

/// Creates a file. None if the name exists, or the directory was removed.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<Option<File>> {
    let directory = path.parent().unwrap_or(Path::new(""));
    if_possible(write(directory, bytes).and_then(|file| Ok(file.persist_noclobber(path)?)))
}

/// None where another process was first, or removed the directory.
pub fn if_possible<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(cause) if matches!(cause.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            Ok(None)
        }
        done => done.map(Some),
    }
}

/// Removes a file, if it exists.
pub fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => {
            Err(Failure::io("page-io", "remove", path)(cause))
        }
        _ => Ok(()),
    }
}

/// Writes a README for people. Nothing depends on it.
pub fn explain(directory: &Path) {
    let path = directory.join(README);
    if fs::symlink_metadata(&path).is_err() {
        let _ = create(&path, EXPLANATION.as_bytes());
    }
}

/// Removes the temporary files of killed processes. A slower process creates its page anew. Runs once a minute:
/// listing thousands of pages takes longer than creating one.
pub fn sweep(directory: &Path) {
    let mut swept = SWEPT.lock();
    let is_swept =
        |(path, at): &(PathBuf, Instant)| path == directory && at.elapsed() < TEMPORARY_FOR;
    if swept.as_ref().is_some_and(is_swept) {
        return;
    }
    *swept = Some((directory.to_owned(), Instant::now()));
    drop(swept);
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_left = || -> io::Result<bool> {
            let age = SystemTime::now().duration_since(entry.metadata()?.modified()?);
            Ok(age.is_ok_and(|age| age > TEMPORARY_FOR))
        };
        if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes())
            && is_left().unwrap_or(false)
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

const EXPLANATION: &str = "\
This directory belongs to snowdrift (npm), which gives applications unique 64-bit IDs.

Each .page file is 4096 bytes of shared memory. All processes of this user that issue IDs with the same
layout, epoch, datacenterId and workerId share one page, so that no two of them issue the same ID.

snowdrift slots     lists the pages and the processes that use them

Do not write to the files, copy them or put copies back. Removing a page whose processes have ended is
safe while the clock is right. Truncating a page that is in use ends the processes that use it.
";
