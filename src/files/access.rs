//! Checks of owners and permissions. If another user can write to a directory, that user may have placed a file, a
//! directory, a symbolic link or a hard link in it first. Two rules apply:
//!
//! - The user's own directory of pages: the user owns it and each file in it, and no other user can write to them:
//!   [`check_own`].
//! - A directory that an application names may be in `/tmp`, or writable for other users: [`foreign_directory`]. A file
//!   in it must belong to this user, root, the directory's owner or its group, and must not be writable for all users:
//!   [`check_in_named_directory`], [`has_other_hard_link`].
//!
//! On Windows files inherit the directory's access list, so these checks accept every file there: see [`ownership`].

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::system::{Ownership, ownership, user};
use super::whole;

/// Pause between two looks at a file with two hard links. A new file has two for a moment on file systems that cannot
/// rename a file without replacing another one.
const LINK_PAUSE: Duration = Duration::from_millis(1);
const LINK_LOOKS: usize = 5;

/// The reason that a file or directory is insecure.
pub enum Insecure {
    /// An untrusted user owns it: that user's ID.
    Owner(u32),
    /// Other users can write to it: its mode, in octal.
    Writable(String),
}

/// Checks a file or directory that must be this user's own.
pub fn check_own(found: &Metadata, user: u32) -> Option<Insecure> {
    let found = ownership(found);
    check(&found, found.owner == user, 0o022)
}

/// The first fault: an untrusted owner, or one of the bits `others` in the mode.
fn check(found: &Ownership, is_known: bool, others: u32) -> Option<Insecure> {
    match is_known {
        false => Some(Insecure::Owner(found.owner)),
        true => {
            (found.mode & others != 0).then(|| Insecure::Writable(format!("{:04o}", found.mode)))
        }
    }
}

/// Checks a directory by the application's path and by the path without symbolic links. If another user placed one of
/// them, returns that path and its owner.
pub fn foreign_directory<'a>(
    named: &'a Path,
    directory: &'a Path,
) -> io::Result<Option<(&'a Path, u32)>> {
    // A slash at the end would follow a symbolic link.
    let named = named.components().as_path();
    let found = fs::symlink_metadata(named)?;
    let owner = ownership(&found).owner;
    if found.is_symlink() && !is_trusted(owner) {
        return Ok(Some((named, owner)));
    }
    let owner = ownership_at(directory)?.owner;
    // A parent that not all users can write to is trusted: an administrator may have mounted a volume there.
    let is_placed = !is_trusted(owner) && ownership_at(&directory.join(".."))?.mode & 0o002 != 0;
    Ok(is_placed.then_some((directory, owner)))
}

/// Whether an open file has another hard link that another user of its directory may have made.
pub fn has_other_hard_link(file: &File, around: &Ownership) -> io::Result<bool> {
    if around.mode & 0o022 == 0 && is_trusted(around.owner) {
        return Ok(false);
    }
    let has_other_link = || Ok(ownership(&file.metadata()?).links > 1);
    for _ in 0..LINK_LOOKS {
        if !has_other_link()? {
            return Ok(false);
        }
        thread::sleep(LINK_PAUSE);
    }
    has_other_link()
}

/// Checks a file in a directory that an application names. `around`: the directory's owner and mode.
pub fn check_in_named_directory(
    found: &Metadata,
    around: &Ownership,
    directory: &Path,
) -> Option<Insecure> {
    let found = ownership(found);
    // The members of a volume's group, such as Kubernetes' fsGroup, are as trusted as its owner.
    let is_of_group = around.mode & 0o2022 == 0o2020 && found.group == around.group;
    // The directory's owner could replace any file in it.
    let is_known = is_trusted(found.owner) || found.owner == around.owner || is_of_group;
    check(&found, is_known, 0o002).filter(|_| !is_like_new(&found, directory))
}

/// The owner and the mode of what is at a path.
pub fn ownership_at(path: &Path) -> io::Result<Ownership> {
    fs::metadata(path).map(|found| ownership(&found))
}

/// Whether the owner is this user or root.
fn is_trusted(owner: u32) -> bool {
    owner == user() || owner == 0
}

/// Whether a new private file has the same owner and is as writable. Some network file systems and mounts give all
/// files one owner and one mode.
fn is_like_new(found: &Ownership, directory: &Path) -> bool {
    let new = whole::write(directory, b"", |_| Ok(())).and_then(|file| file.as_file().metadata());
    new.map(|new| ownership(&new))
        .is_ok_and(|new| (new.owner, new.mode & 0o002) == (found.owner, found.mode & 0o002))
}
