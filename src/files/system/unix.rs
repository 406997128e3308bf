//! Users and modes of all Unix systems.

use std::ffi::CString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::Traits;

/// The mode of a new directory.
const DIRECTORY: u32 = 0o711;

/// The mode of a new file. Miri knows one mode only.
const PRIVATE: u32 = if cfg!(miri) { 0o666 } else { 0o600 };

/// The user of this process.
pub fn user() -> u32 {
    // SAFETY: the call takes no arguments, changes nothing and always succeeds.
    unsafe { libc::geteuid() }
}

/// The file system of a path.
pub(super) fn file_system(path: &Path) -> io::Result<libc::statfs> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let mut found = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: `name` is a C string, and `found` has room for the result.
    match unsafe { libc::statfs(name.as_ptr(), found.as_mut_ptr()) } {
        // SAFETY: all zeros is a value of these numbers, and the call has overwritten them.
        0 => Ok(unsafe { found.assume_init() }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Owner, group and permissions of a file or directory.
pub fn traits(of: &Metadata) -> Traits {
    Traits { owner: of.uid(), group: of.gid(), mode: of.mode() & 0o7777, names: of.nlink() }
}

/// Name of the user's directory in a parent that all users share. The same in every user namespace.
pub fn directory_name(uid: u32) -> String {
    format!("snowdrift-{}", super::outer_user(uid))
}

/// The user whose directory has this name.
pub fn user_of(directory_name: &str) -> Option<u32> {
    directory_name.strip_prefix("snowdrift-")?.parse().ok()
}

/// Creates a directory that only this user can list and write to, as far as the umask permits.
pub fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIRECTORY).create(path)
}

/// Gives a directory the mode of a new one, independent of the umask.
pub fn set_directory_mode(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(DIRECTORY))
}

/// Builds temporary files that only this user can open.
pub fn private() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(PRIVATE));
    builder
}

/// Lets only this user open the file, independent of the umask.
pub fn set_private(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(PRIVATE))
}

/// Opens what has the name; none if that is a symbolic link. Does not wait on a pipe. Opens a directory only for
/// reading: callers refuse what is no file.
pub fn open(path: &Path, is_writable: bool) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(is_writable);
    // Miri does not support these flags.
    #[cfg(not(miri))]
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    match options.open(path) {
        Err(cause) if cause.raw_os_error() == Some(libc::ELOOP) => Ok(None),
        Err(cause) if cause.kind() == io::ErrorKind::IsADirectory && is_writable => {
            open(path, false)
        }
        opened => opened.map(Some),
    }
}
