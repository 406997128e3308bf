//! Who may own a file or directory, and write to it. Where another user can write, too, that user may have placed a
//! directory, a file, a symbolic link or a hard link there first. There are two rules:
//!
//! - A user's own directory, and each file in it, is the user's, and nobody else can write to it: [`check_own`].
//! - A directory that an application names may be in `/tmp`, or other users can write to it: [`foreign_directory`]. Its
//!   owner, its group, this user and root may own a file in it, and not all users can write to the file:
//!   [`check_placed`], [`has_second_name`].
//!
//! Windows has access lists, which a directory passes on to its files: [`traits`] has nothing against a file there.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::system::{Traits, traits, user};
use super::whole;

/// Time in which a new file loses its first name. It has two for a moment on file systems that cannot rename a file
/// without replacing another one.
const CREATING: Duration = Duration::from_millis(1);
const CREATING_TRIES: usize = 5;

/// What is wrong with a file or directory.
pub enum Wrong {
    /// This user owns it.
    Owner(u32),
    /// Others can write to it. Its mode.
    Writable(String),
}

/// What is wrong with what must be this user's own.
pub fn check_own(found: &Metadata, user: u32) -> Option<Wrong> {
    let found = traits(found);
    check(&found, found.owner == user, 0o022)
}

/// The first thing wrong: an owner who is not known, or one of these bits for others in the mode.
fn check(found: &Traits, is_known: bool, others: u32) -> Option<Wrong> {
    match is_known {
        false => Some(Wrong::Owner(found.owner)),
        true => (found.mode & others != 0).then(|| Wrong::Writable(format!("{:04o}", found.mode))),
    }
}

/// Checks a directory, by the path that the application names and by the path without symbolic links. Returns the one
/// that another user has placed, and its owner.
pub fn foreign_directory<'a>(
    named: &'a Path,
    directory: &'a Path,
) -> io::Result<Option<(&'a Path, u32)>> {
    // A slash at the end would follow the link.
    let named = named.components().as_path();
    let found = fs::symlink_metadata(named)?;
    let owner = traits(&found).owner;
    if found.is_symlink() && !is_trusted(owner) {
        return Ok(Some((named, owner)));
    }
    let owner = traits_at(directory)?.owner;
    // Of a directory elsewhere, those who may write there have decided: an administrator who mounts a volume.
    let is_placed = !is_trusted(owner) && traits_at(&directory.join(".."))?.mode & 0o002 != 0;
    Ok(is_placed.then_some((directory, owner)))
}

/// Whether an open file has a second name, which other users can have given it.
pub fn has_second_name(file: &File, directory: &Path) -> io::Result<bool> {
    let around = traits_at(directory)?;
    let is_shared = around.mode & 0o022 != 0 || !is_trusted(around.owner);
    let has_second = || Ok(is_shared && traits(&file.metadata()?).names > 1);
    for _ in 0..CREATING_TRIES {
        if !has_second()? {
            return Ok(false);
        }
        thread::sleep(CREATING);
    }
    has_second()
}

/// What is wrong with an open file in a directory that an application names.
pub fn check_placed(file: &File, directory: &Path) -> io::Result<Option<Wrong>> {
    let (found, around) = (traits(&file.metadata()?), traits_at(directory)?);
    // The users of a volume with a group, as of Kubernetes' fsGroup, have been chosen like its owner.
    let is_of_group = around.mode & 0o2022 == 0o2020 && found.group == around.group;
    // Its directory's owner could put any file there.
    let is_known = is_trusted(found.owner) || found.owner == around.owner || is_of_group;
    Ok(check(&found, is_known, 0o002).filter(|_| !is_like_new(&found, directory)))
}

fn traits_at(path: &Path) -> io::Result<Traits> {
    fs::metadata(path).map(|found| traits(&found))
}

/// Whether this user or root owns it.
fn is_trusted(owner: u32) -> bool {
    owner == user() || owner == 0
}

/// Whether a new private file would have the same owner and be as writable. Some network file systems and mounts give
/// all files one owner and one mode.
fn is_like_new(found: &Traits, directory: &Path) -> bool {
    let new = whole::write(directory, b"", |_| Ok(())).and_then(|file| file.as_file().metadata());
    new.map(|new| traits(&new))
        .is_ok_and(|new| (new.owner, new.mode & 0o002) == (found.owner, found.mode & 0o002))
}
