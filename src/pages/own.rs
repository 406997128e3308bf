//! This user's directory of pages and the files in it. The user owns all of them, and no other user may write to them.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

use tempfile::NamedTempFile;

use crate::core::fault::{Class, Failure, fault};
use crate::files::access::{Insecure, check_own};
use crate::files::path::{Identity, identity_found, identity_of};
use crate::files::{system, whole};

const README: &str = "README";

/// Creates the directory if it is missing. Checks it last, since another user may create something there in between.
pub fn ensure_directory(path: &Path, uid: u32) -> Result<(), Failure> {
    match check_directory(path, uid) {
        Err(failure) if failure.is_missing() => {}
        checked => return checked,
    }
    let failed = |doing| Failure::io("page-io", doing, path);
    match system::create_directory(path) {
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {}
        created => {
            created.map_err(failed("create the directory"))?;
            // Independent of the umask.
            system::set_directory_mode(path).map_err(failed("set the mode of"))?;
        }
    }
    check_directory(path, uid)
}

/// Checks that the path is a directory of this user that no other user may write to.
pub fn check_directory(path: &Path, uid: u32) -> Result<(), Failure> {
    let found = fs::symlink_metadata(path).map_err(Failure::io("page-io", "inspect", path))?;
    if !found.is_dir() {
        let fault = fault!("not-a-directory", place: path, isLink: found.is_symlink());
        return Err(Failure::new(Class::Page, fault));
    }
    check_owner(&found, path, uid)
}

fn check_owner(found: &Metadata, path: &Path, user: u32) -> Result<(), Failure> {
    let place = path;
    let fault = match check_own(found, user) {
        None => return Ok(()),
        Some(Insecure::Owner(owner)) => fault!("other-owner", place, owner, user),
        Some(Insecure::Writable(mode)) if found.is_dir() => {
            fault!("directory-writable", place, mode)
        }
        Some(Insecure::Writable(mode)) => fault!("page-writable", place, mode),
    };
    Err(Failure::new(Class::Page, fault))
}

/// Opens a file, if it is this user's and no other user may write to it.
pub fn open_page(path: &Path, uid: u32) -> Result<(File, Metadata, Identity), Failure> {
    let failed = |doing| Failure::io("page-io", doing, path);
    let not_a_file = |is_link: bool| {
        Failure::new(Class::Page, fault!("not-a-file", place: path, isLink: is_link))
    };
    let opened = system::open_unless_link(path, true).map_err(failed("open"))?;
    let file = opened.ok_or_else(|| not_a_file(true))?;
    let found = file.metadata().map_err(failed("inspect"))?;
    if !found.is_file() {
        return Err(not_a_file(false));
    }
    check_owner(&found, path, uid)?;
    let identity = identity_found(&file, &found).map_err(failed("identify"))?;
    Ok((file, found, identity))
}

/// Writes a temporary file that only this user can open, independent of the umask. Its bytes may depend on the file's
/// identity.
pub fn write_page(
    directory: &Path,
    bytes: impl FnOnce(Identity) -> Vec<u8>,
) -> io::Result<NamedTempFile> {
    whole::write(directory, b"", |file| {
        let mut file = file.as_file();
        file.write_all(&bytes(identity_of(file)?))?;
        system::set_private(file)?;
        // On a disk: after a power cut, the name must not lead to a file of zeros.
        if system::IN_MEMORY { Ok(()) } else { file.sync_all() }
    })
}

/// Opens an empty file for its lock or its modification time. Creates it if it is missing, with the time 1970.
pub fn open_empty(path: &Path, uid: u32) -> Result<File, Failure> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let create = || {
        let file = write_page(directory, |_| Vec::new())?;
        file.as_file().set_modified(UNIX_EPOCH)?;
        file.persist_noclobber(path)?;
        Ok(())
    };
    match open_page(path, uid) {
        Err(failure) if failure.is_missing() => {
            whole::if_possible(create()).map_err(Failure::io("page-io", "create", path))?;
            open_page(path, uid)
        }
        opened => opened,
    }
    .map(|(file, ..)| file)
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
        let written = write_page(directory, |_| EXPLANATION.into());
        let _ = written.map(|file| file.persist_noclobber(path));
    }
}

const EXPLANATION: &str = "\
This directory belongs to snowdrift (npm), which gives applications unique 64-bit IDs.

Each .page file is 4096 bytes of shared memory, and .born is its second name. All processes of this user that issue
IDs with the same layout, epoch, datacenterId and workerId share one page, so that no two of them issue the same ID.

snowdrift slots     lists the pages and the processes that use them

Do not write to the files, copy them or put copies back. Removing a page whose processes have ended is
safe while the clock is right. Truncating a page that is in use ends the processes that use it.
";
