//! Users, modes and file identities of all Unix systems.

use std::ffi::CString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::core::fault::{Class, Failure, fault};
pub use crate::store::access::user;
use crate::store::path::identity_of;
pub use crate::store::path::{Identity, identity_at, is_at};

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

/// Name of the user's directory in a parent that all users share. The same in every user namespace.
pub fn directory_name(uid: u32) -> String {
    format!("snowdrift-{}", super::outer_user(uid))
}

/// The user whose directory has this name.
pub fn user_of(directory_name: &str) -> Option<u32> {
    directory_name.strip_prefix("snowdrift-")?.parse().ok()
}

/// Whether this is a file of user `uid`, numbered as outside of the user namespace, or of this process's user. Any
/// other owner has squatted the name, and nobody draws from the file.
pub fn is_file_of(path: &Path, uid: u32) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| {
        let owner = found.uid();
        found.is_file() && (super::outer_user(owner) == uid || owner == user())
    })
}

/// Creates the directory when missing, then checks what has the name. A check before the creation would let another
/// user put something there in between.
pub fn create_directory(path: &Path, uid: u32) -> Result<(), Failure> {
    match DirBuilder::new().mode(0o711).create(path) {
        // Independent of the umask.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o711)).map_err(Failure::io(
            "page-io",
            "set the mode of",
            path,
        ))?,
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {}
        Err(cause) => return Err(Failure::io("page-io", "create the directory", path)(cause)),
    }
    check_directory(path, uid)
}

/// Checks that the path is a directory of this user that nobody else may write to.
pub fn check_directory(path: &Path, uid: u32) -> Result<(), Failure> {
    let found = fs::symlink_metadata(path).map_err(Failure::io("page-io", "inspect", path))?;
    let mode = found.mode() & 0o7777;
    let fault = if !found.is_dir() {
        fault!("not-a-directory", place: path, isLink: found.is_symlink())
    } else if found.uid() != uid {
        fault!("other-owner", place: path, owner: found.uid(), user: uid)
    } else if mode & 0o022 != 0 {
        fault!("directory-writable", place: path, mode: format!("{mode:04o}"))
    } else {
        return Ok(());
    };
    Err(Failure::new(Class::Page, fault))
}

/// Builds temporary files that only this user can open.
pub fn private() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(0o600));
    builder
}

/// Lets only this user open the file, independent of the umask.
pub fn set_private(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Creates an empty file that only this user can open, unless the name exists.
pub fn create_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    set_private(&file)?;
    Ok(file)
}

/// Opens a page's file, if it is this user's and nobody else may write to it.
pub fn open(path: &Path, uid: u32) -> Result<(File, Metadata, Identity), Failure> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        // Does not wait on a pipe in its place, which the check below refuses.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|cause: io::Error| match cause.raw_os_error() {
            Some(libc::ELOOP) => {
                Failure::new(Class::Page, fault!("not-a-file", place: path, isLink: true))
            }
            _ => Failure::io("page-io", "open", path)(cause),
        })?;
    let found = file.metadata().map_err(Failure::io("page-io", "inspect", path))?;
    let mode = found.mode() & 0o7777;
    let fault = if !found.is_file() {
        fault!("not-a-file", place: path, isLink: false)
    } else if found.uid() != uid {
        fault!("other-owner", place: path, owner: found.uid(), user: uid)
    } else if mode & 0o022 != 0 {
        fault!("page-writable", place: path, mode: format!("{mode:04o}"))
    } else {
        let identity = identity_of(&file).map_err(Failure::io("page-io", "inspect", path))?;
        return Ok((file, found, identity));
    };
    Err(Failure::new(Class::Page, fault))
}
