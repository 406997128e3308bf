//! Who may own a file or directory, and write to it. Where another user can write, too, that user may have placed a
//! directory, a file, a symbolic link or a hard link there first. There are two rules:
//!
//! - A user's own directory, and each file in it, is the user's, and nobody else can write to it: [`check_own`].
//! - A directory that an application names may be in `/tmp`, or other users can write to it: [`foreign_directory`]. Its
//!   owner, its group, this user and root may own a file in it, and not all users can write to the file:
//!   [`check_placed`], [`has_second_name`].
//!
//! Windows has access lists, which a directory passes on to its files.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

#[cfg(unix)]
use {
    super::system::user,
    super::whole,
    std::fs,
    std::os::unix::fs::MetadataExt,
    std::{thread, time::Duration},
};

/// Time in which a new file loses its first name. It has two for a moment on file systems that cannot rename a file
/// without replacing another one.
#[cfg(unix)]
const CREATING: Duration = Duration::from_millis(1);
#[cfg(unix)]
const CREATING_TRIES: usize = 5;

/// What is wrong with a file or directory.
#[cfg_attr(windows, expect(dead_code, reason = "access lists decide there"))]
pub enum Wrong {
    /// This user owns it.
    Owner(u32),
    /// Others can write to it. Its mode.
    Writable(String),
}

/// What is wrong with what must be this user's own.
#[cfg(unix)]
pub fn check_own(found: &Metadata, user: u32) -> Option<Wrong> {
    check(found, found.uid() == user, 0o022)
}

/// The first thing wrong: an owner who is not known, or one of these bits for others in the mode.
#[cfg(unix)]
fn check(found: &Metadata, is_known: bool, others: u32) -> Option<Wrong> {
    let mode = found.mode() & 0o7777;
    match is_known {
        false => Some(Wrong::Owner(found.uid())),
        true => (mode & others != 0).then(|| Wrong::Writable(format!("{mode:04o}"))),
    }
}

/// Checks a directory, by the path that the application names and by the path without symbolic links. Returns the one
/// that another user has placed, and its owner.
#[cfg(unix)]
pub fn foreign_directory<'a>(
    named: &'a Path,
    directory: &'a Path,
) -> io::Result<Option<(&'a Path, u32)>> {
    // A slash at the end would follow the link.
    let named = named.components().as_path();
    let found = fs::symlink_metadata(named)?;
    if found.is_symlink() && !is_trusted(found.uid()) {
        return Ok(Some((named, found.uid())));
    }
    let found = fs::metadata(directory)?;
    // Of a directory elsewhere, those who may write there have decided: an administrator who mounts a volume.
    let is_placed =
        !is_trusted(found.uid()) && fs::metadata(directory.join(".."))?.mode() & 0o002 != 0;
    Ok(is_placed.then_some((directory, found.uid())))
}

/// Whether an open file has a second name, which other users can have given it.
#[cfg(unix)]
pub fn has_second_name(file: &File, directory: &Path) -> io::Result<bool> {
    let around = fs::metadata(directory)?;
    let is_shared = around.mode() & 0o022 != 0 || !is_trusted(around.uid());
    for _ in 0..CREATING_TRIES {
        if !is_shared || file.metadata()?.nlink() < 2 {
            return Ok(false);
        }
        thread::sleep(CREATING);
    }
    Ok(file.metadata()?.nlink() > 1)
}

/// What is wrong with an open file in a directory that an application names.
#[cfg(unix)]
pub fn check_placed(file: &File, directory: &Path) -> io::Result<Option<Wrong>> {
    let (found, around) = (file.metadata()?, fs::metadata(directory)?);
    // The users of a volume with a group, as of Kubernetes' fsGroup, have been chosen like its owner.
    let is_of_group = around.mode() & 0o2022 == 0o2020 && found.gid() == around.gid();
    // Its directory's owner could put any file there.
    let is_known = is_trusted(found.uid()) || found.uid() == around.uid() || is_of_group;
    Ok(check(&found, is_known, 0o002).filter(|_| !is_like_new(&found, directory)))
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
    let new = whole::write(directory, b"", |_| Ok(())).and_then(|file| file.as_file().metadata());
    let traits = |of: &Metadata| (of.uid(), of.mode() & 0o002);
    new.is_ok_and(|new| traits(&new) == traits(found))
}

/// Access lists decide.
#[cfg(windows)]
pub fn check_own(_: &Metadata, _: u32) -> Option<Wrong> {
    None
}

/// Access lists decide.
#[cfg(windows)]
pub fn foreign_directory<'a>(_: &'a Path, _: &'a Path) -> io::Result<Option<(&'a Path, u32)>> {
    Ok(None)
}

/// Access lists decide.
#[cfg(windows)]
pub fn has_second_name(_: &File, _: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Access lists decide.
#[cfg(windows)]
pub fn check_placed(_: &File, _: &Path) -> io::Result<Option<Wrong>> {
    Ok(None)
}
