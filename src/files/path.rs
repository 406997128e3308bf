//! Canonical paths, the paths in a directory, and the identities of files.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::core::fault::Failure;

/// The path without symbolic links. Windows returns it as `\\?\C:\...`, a form for very long paths that few programs
/// and no URLs accept. So this removes the prefix where it can.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    let path = fs::canonicalize(path)?;
    if !cfg!(windows) {
        return Ok(path);
    }
    let plain = path.to_str().and_then(|path| path.strip_prefix(r"\\?\")).filter(|path| {
        // A path on a drive, short enough that a file in it stays within 260 characters.
        path.as_bytes().get(1) == Some(&b':') && path.len() < 150
    });
    Ok(plain.map(PathBuf::from).unwrap_or(path))
}

/// The paths in a directory with this extension, unordered.
pub fn paths_in(directory: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let all: io::Result<Vec<PathBuf>> =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect();
    let mut paths = all?;
    paths.retain(|path| path.extension() == Some(OsStr::new(extension)));
    Ok(paths)
}

/// A file's path, with its content or the reason that it is unusable.
pub type FileResult<T> = (PathBuf, Result<T, Failure>);

/// The identity of a file: device and inode, or volume and file ID. It is unique while the file is open.
pub type Identity = (u64, u128);

/// Whether the path names this file.
pub fn is_at(path: &Path, file: &File) -> bool {
    matches!((identity_of(file), identity_at(path)), (Ok(own), Ok(found)) if own == found)
}

/// The identity of the file at this path; of a link, the link itself.
#[cfg(unix)]
pub fn identity_at(path: &Path) -> io::Result<Identity> {
    fs::symlink_metadata(path).map(|found| identity(&found))
}

/// The identity of this file.
#[cfg(unix)]
pub fn identity_of(file: &File) -> io::Result<Identity> {
    file.metadata().map(|found| identity(&found))
}

#[cfg(unix)]
fn identity(found: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino().into())
}

/// The identity of the file at this path; of a link, the link itself.
#[cfg(windows)]
pub fn identity_at(path: &Path) -> io::Result<Identity> {
    use std::os::windows::fs::OpenOptionsExt;
    use windows_sys::Win32::Storage::FileSystem::{
        FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_READ_ATTRIBUTES,
    };
    let file = fs::OpenOptions::new()
        .access_mode(FILE_READ_ATTRIBUTES)
        .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS)
        .open(path)?;
    identity_of(&file)
}

/// The identity of this file, whose metadata were just read.
#[cfg(unix)]
pub fn identity_found(_: &File, found: &fs::Metadata) -> io::Result<Identity> {
    Ok(identity(found))
}

/// The identity of this file.
#[cfg(windows)]
pub fn identity_found(file: &File, _: &fs::Metadata) -> io::Result<Identity> {
    identity_of(file)
}

/// The identity of this file.
#[cfg(windows)]
pub fn identity_of(file: &File) -> io::Result<Identity> {
    use std::os::windows::io::AsRawHandle;
    use windows_sys::Win32::Storage::FileSystem::{
        FILE_ID_INFO, FileIdInfo, GetFileInformationByHandleEx,
    };
    let mut found = FILE_ID_INFO::default();
    let len = size_of::<FILE_ID_INFO>() as u32;
    // SAFETY: the handle is open, and `found` has room for `len` bytes.
    let is_known = unsafe {
        let room = (&raw mut found).cast();
        GetFileInformationByHandleEx(file.as_raw_handle(), FileIdInfo, room, len)
    };
    if is_known == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((found.VolumeSerialNumber, u128::from_le_bytes(found.FileId.Identifier)))
}
