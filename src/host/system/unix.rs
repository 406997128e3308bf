//! Users, modes and file identities, as all Unix systems have them.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::host::HostError;
use crate::host::page::REMEDY;
use crate::store::path::identity_of;
pub use crate::store::path::{Identity, identity_at, is_at};

/// The user whose pages this process uses.
pub fn user() -> u32 {
    // SAFETY: it takes nothing, changes nothing and always succeeds.
    unsafe { libc::geteuid() }
}

/// The user's directory in one that all users share. A user namespace does not change it.
pub fn directory_name(uid: u32) -> String {
    format!("snowdrift-{}", super::outer_user(uid))
}

/// Whose directory has this name.
pub fn user_of(directory_name: &str) -> Option<u32> {
    directory_name.strip_prefix("snowdrift-")?.parse().ok()
}

/// Whether this is a file of this user, or of this process's. What is another's is squatted, and nobody draws
/// from it.
pub fn is_file_of(path: &Path, uid: u32) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| {
        let owner = found.uid();
        found.is_file() && (super::outer_user(owner) == uid || owner == user())
    })
}

/// Creates the directory when missing, then checks what has the name: not before, or another user could
/// put something there in between.
pub fn create_directory(path: &Path, uid: u32) -> Result<(), HostError> {
    match DirBuilder::new().mode(0o711).create(path) {
        // Whatever the umask is.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o711))
            .map_err(HostError::io("set the mode of", path))?,
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {}
        Err(cause) => return Err(HostError::io("create the directory", path)(cause)),
    }
    let found = fs::symlink_metadata(path).map_err(HostError::io("look at", path))?;
    let mode = found.mode() & 0o7777;
    let what = if found.is_symlink() {
        "is a symbolic link, and must be a directory. Find out who made it, and remove it"
            .to_owned()
    } else if !found.is_dir() {
        "is no directory. Find out who made it, and remove it".to_owned()
    } else if found.uid() != uid {
        format!(
            "belongs to user {}, not to user {uid} of this process. Have its owner or root remove it, or \
             name another directory in SNOWDRIFT_SHARED",
            found.uid()
        )
    } else if mode & 0o022 != 0 {
        format!(
            "may be written to by other users (mode {mode:04o}). Find out who changed that, end this \
             user's processes that use snowdrift, and remove it"
        )
    } else {
        return Ok(());
    };
    Err(HostError::unusable(path, what))
}

/// Makes temporary files that are this user's alone.
pub fn private() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(0o600));
    builder
}

/// Makes a file this user's alone, whatever the umask was.
pub fn set_private(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Creates an empty file that is this user's alone, unless the name is taken.
pub fn create_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    set_private(&file)?;
    Ok(file)
}

/// Opens a page's file, if it is one of this user's that nobody else may write to.
pub fn open(path: &Path, uid: u32, write: bool) -> Result<(File, Metadata, Identity), HostError> {
    let file = OpenOptions::new()
        .read(true)
        .write(write)
        // A pipe in its place is refused below and must not be waited for.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|cause: io::Error| match cause.raw_os_error() {
            Some(libc::ELOOP) => HostError::unusable(
                path,
                "is a symbolic link, and must be a file. Find out who made it, and remove it",
            ),
            _ => HostError::io("open", path)(cause),
        })?;
    let found = file.metadata().map_err(HostError::io("look at", path))?;
    let what = if !found.is_file() {
        "is no file. Find out who made it, and remove it".to_owned()
    } else if found.uid() != uid {
        format!(
            "belongs to user {}, not to user {uid} of this process. Find out how it came here, and \
             remove it",
            found.uid()
        )
    } else if found.mode() & 0o022 != 0 {
        let mode = found.mode() & 0o7777;
        format!("may be written to by other users (mode {mode:04o}). {REMEDY}")
    } else {
        let identity = identity_of(&file).map_err(HostError::io("look at", path))?;
        return Ok((file, found, identity));
    };
    Err(HostError::unusable(path, what))
}
