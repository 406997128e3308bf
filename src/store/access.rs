//! Checks that no other user of the machine has put a slot's file or its directory there, or can write to the file.
//!
//! An application names the directory. It may name one that other users can write to, or one in `/tmp`. There another
//! user can create a directory, a file, a symbolic link or a hard link before this user does.
//!
//! Windows has access lists, which a directory passes on to its files.

use std::fs::File;
#[cfg(unix)]
use std::fs::{self, Metadata, Permissions};
use std::io;
#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;
#[cfg(unix)]
use std::{thread, time::Duration};

use crate::core::fault::{Class, Failure, fault};

/// The mode of a new file. Miri knows one mode only.
#[cfg(unix)]
const PRIVATE: u32 = if cfg!(miri) { 0o666 } else { 0o600 };

/// Time in which a new file loses its first name. It has two for a moment on file systems that cannot rename a file
/// without replacing another one.
#[cfg(unix)]
const CREATING: Duration = Duration::from_millis(1);
#[cfg(unix)]
const CREATING_TRIES: usize = 5;

/// The user of this process.
#[cfg(unix)]
pub fn user() -> u32 {
    // SAFETY: the call takes no arguments, changes nothing and always succeeds.
    unsafe { libc::geteuid() }
}

/// Builds temporary files that only this user can open.
pub(super) fn private() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".new-");
    #[cfg(unix)]
    builder.permissions(Permissions::from_mode(PRIVATE));
    builder
}

/// Creates a directory that only this user can list and write to.
#[cfg(unix)]
pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o711).create(path)
}

/// Creates a directory.
#[cfg(not(unix))]
pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)
}

/// Checks a directory, by the path that the application names and by the path without symbolic links.
#[cfg(unix)]
pub(super) fn check_directory(named: &Path, directory: &Path) -> Result<(), Failure> {
    let inspected =
        |found: io::Result<Metadata>| found.map_err(Failure::io("slot-io", "inspect", directory));
    // A slash at the end would follow the link.
    let named = named.components().as_path();
    let found = inspected(fs::symlink_metadata(named))?;
    if found.is_symlink() && !is_trusted(found.uid()) {
        return Err(foreign(named, &found));
    }
    let found = inspected(fs::metadata(directory))?;
    // Of a directory elsewhere, those who may write there have decided: an administrator who mounts a volume.
    let around = || inspected(fs::metadata(directory.join("..")));
    if !is_trusted(found.uid()) && around()?.mode() & 0o002 != 0 {
        return Err(foreign(directory, &found));
    }
    Ok(())
}

/// Checks a slot's file.
#[cfg(unix)]
pub(super) fn check_file(file: &File, path: &Path) -> Result<(), Failure> {
    let inspected =
        |found: io::Result<Metadata>| found.map_err(Failure::io("slot-io", "inspect", path));
    let directory = path.parent().unwrap_or(Path::new("."));
    let around = inspected(fs::metadata(directory))?;
    let is_shared = around.mode() & 0o022 != 0 || !is_trusted(around.uid());
    let mut found = inspected(file.metadata())?;
    for _ in 0..CREATING_TRIES {
        if found.nlink() < 2 || !is_shared {
            break;
        }
        thread::sleep(CREATING);
        found = inspected(file.metadata())?;
    }
    let mode = found.mode() & 0o7777;
    if found.nlink() > 1 && is_shared {
        return Err(Failure::new(Class::Slot, fault!("slot-linked", place: path)));
    }
    // The users of a volume with a group, as of Kubernetes' fsGroup, have been chosen like its owner.
    let is_of_group = around.mode() & 0o2022 == 0o2020 && found.gid() == around.gid();
    // Its directory's owner could put any file there.
    let is_known = is_trusted(found.uid()) || found.uid() == around.uid() || is_of_group;
    let error = if !is_known {
        foreign(path, &found)
    } else if mode & 0o002 != 0 {
        Failure::new(Class::Slot, fault!("slot-writable", place: path, mode: format!("{mode:04o}")))
    } else {
        return Ok(());
    };
    if is_like_new(&found, directory) { Ok(()) } else { Err(error) }
}

/// Whether this user or root owns it.
#[cfg(unix)]
fn is_trusted(owner: u32) -> bool {
    owner == user() || owner == 0
}

/// Whether a new private file would have the same owner and be as writable. Some network file systems and mounts give
/// all files one owner and one mode.
#[cfg(unix)]
fn is_like_new(found: &Metadata, directory: &Path) -> bool {
    let new = private().tempfile_in(directory).and_then(|file| file.as_file().metadata());
    let traits = |of: &Metadata| (of.uid(), of.mode() & 0o002);
    new.is_ok_and(|new| traits(&new) == traits(found))
}

#[cfg(unix)]
fn foreign(path: &Path, found: &Metadata) -> Failure {
    Failure::new(Class::Slot, fault!("slot-owner", place: path, owner: found.uid(), user: user()))
}

/// Checks a directory.
#[cfg(not(unix))]
pub(super) fn check_directory(_: &Path, _: &Path) -> Result<(), Failure> {
    Ok(())
}

/// Checks a slot's file.
#[cfg(not(unix))]
pub(super) fn check_file(_: &File, path: &Path) -> Result<(), Failure> {
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return Err(link_error(path));
    }
    Ok(())
}

/// The error of an attempt to open a slot's file.
pub(super) fn open_error(path: &Path, cause: io::Error) -> Failure {
    // The path of the directory has no links.
    #[cfg(unix)]
    if cause.raw_os_error() == Some(libc::ELOOP) {
        return link_error(path);
    }
    Failure::io("slot-io", "open", path)(cause)
}

/// The error for a symbolic link in the place of a slot's file.
pub(super) fn link_error(path: &Path) -> Failure {
    Failure::new(Class::Slot, fault!("slot-link", place: path))
}
