//! Users and modes on all Unix systems.

use std::ffi::CString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::Ownership;

/// The mode of a new directory.
const DIRECTORY: u32 = 0o711;

/// The mode of a new file. Miri supports only one mode.
const PRIVATE: u32 = if cfg!(miri) { 0o666 } else { 0o600 };

/// This process's user ID.
pub fn user() -> u32 {
    // SAFETY: the call takes no arguments, changes nothing and always succeeds.
    unsafe { libc::geteuid() }
}

/// The host's monotonic clock, which its processes share, ms.
pub fn monotonic_ms() -> i64 {
    // SAFETY: all zeros is a value of these numbers.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: `time` has room for the result. The call cannot fail with this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    // The types differ between systems.
    #[allow(clippy::unnecessary_cast)]
    let ms = time.tv_sec as i64 * 1000 + time.tv_nsec as i64 / 1_000_000;
    ms
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

/// Owner, group and mode of a file or directory.
pub fn ownership(of: &Metadata) -> Ownership {
    Ownership { owner: of.uid(), group: of.gid(), mode: of.mode() & 0o7777, links: of.nlink() }
}

/// Name of the user's directory in a parent that all users share. It is the same in every user namespace.
pub fn directory_name(uid: u32) -> String {
    format!("snowdrift-{}", super::outer_user(uid))
}

/// The user whose directory has this name.
pub fn user_of(directory_name: &str) -> Option<u32> {
    directory_name.strip_prefix("snowdrift-")?.parse().ok()
}

/// Creates a directory that only this user can list and write to. The umask may restrict it further.
pub fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIRECTORY).create(path)
}

/// Sets the mode of a new directory, independent of the umask.
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

/// Opens a path; `None` if it is a symbolic link. Does not block on a pipe. Opens a directory for reading only: callers
/// refuse everything but files.
pub fn open_unless_link(path: &Path, is_writable: bool) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(is_writable);
    // Miri does not support these flags.
    #[cfg(not(miri))]
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    match options.open(path) {
        Err(cause) if cause.raw_os_error() == Some(libc::ELOOP) => Ok(None),
        Err(cause) if cause.kind() == io::ErrorKind::IsADirectory && is_writable => {
            open_unless_link(path, false)
        }
        opened => opened.map(Some),
    }
}
