//! Creates files atomically: writes each under a temporary name, then renames it.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tempfile::NamedTempFile;

use super::system;

const TEMPORARY: &str = ".new-";
/// Maximum age of a temporary file. Writing one takes milliseconds, so an older one is of a killed process.
const TEMPORARY_FOR: Duration = Duration::from_secs(60);

/// The directory that this process swept last, and the time.
static LAST_SWEEP: Mutex<Option<(PathBuf, Instant)>> = Mutex::new(None);

/// Writes a temporary file that only this user can open, then calls `finish` with it.
pub fn write(
    directory: &Path,
    bytes: &[u8],
    finish: impl FnOnce(&NamedTempFile) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    let mut file = system::private().prefix(TEMPORARY).tempfile_in(directory)?;
    file.write_all(bytes)?;
    finish(&file)?;
    Ok(file)
}

/// Calls `name` with a temporary path, to link or rename a file to it. Removes that path when dropped.
pub fn named(
    directory: &Path,
    name: impl FnMut(&Path) -> io::Result<()>,
) -> io::Result<NamedTempFile<()>> {
    tempfile::Builder::new().prefix(TEMPORARY).make_in(directory, name)
}

/// `None` if another process was first, or removed the directory.
pub fn if_possible<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(cause) if matches!(cause.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            Ok(None)
        }
        done => done.map(Some),
    }
}

/// Removes the temporary files of killed processes. A slow process whose file is removed writes it again. Runs once a
/// minute, since listing thousands of files takes longer than creating one.
pub fn sweep_temporary(directory: &Path) {
    let mut swept = LAST_SWEEP.lock();
    let is_swept =
        |(path, at): &(PathBuf, Instant)| path == directory && at.elapsed() < TEMPORARY_FOR;
    if swept.as_ref().is_some_and(is_swept) {
        return;
    }
    *swept = Some((directory.to_owned(), Instant::now()));
    drop(swept);
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_temporary = entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes());
        let modified = || entry.metadata().and_then(|found| found.modified());
        let is_old = |at: SystemTime| at.elapsed().is_ok_and(|age| age > TEMPORARY_FOR);
        if is_temporary && modified().is_ok_and(is_old) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
