//! Windows: the shared directory is in the user's local application data. It survives a reboot, and Windows reports no
//! boot ID.
//!
//! Files inherit the directory's access list. In the default directory, only the user, administrators and the system
//! may write. If `SNOWDRIFT_SHARED` names a directory, all users who may write to it share its files.
//!
//! The checks of names are necessary on Windows, too: it does not delete a mapped file, but can rename the file and the
//! directories above it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::iter::once;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::ptr::without_provenance_mut;

use known_folders::{KnownFolder, get_known_folder_path};
use windows_sys::Win32::Foundation::{FILETIME, WAIT_TIMEOUT};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT,
    GetDriveTypeW, GetVolumePathNameW,
};
use windows_sys::Win32::System::SystemInformation::GetTickCount64;
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
    WaitForSingleObject,
};
use windows_sys::Win32::System::WindowsProgramming::{DRIVE_FIXED, DRIVE_RAMDISK};

use super::Ownership;
use crate::core::fault::{Fault, fault};

/// A file on a disk may be of an earlier boot.
pub const IN_MEMORY: bool = false;

/// The user's local application data, as the system reports it. A process can change `LOCALAPPDATA` and `TEMP`.
pub fn default_parent() -> Result<Option<PathBuf>, Fault> {
    get_known_folder_path(KnownFolder::LocalAppData).map(Some).ok_or_else(super::no_parent)
}

/// Refuses a directory on a network drive or a removable drive.
pub fn check_parent(place: &Path) -> Result<(), Fault> {
    let path: Vec<u16> = place.as_os_str().encode_wide().chain(once(0)).collect();
    let mut root = vec![0; path.len() + 4];
    // SAFETY: `path` ends with a zero, and `root` has room for `root.len()` units.
    let drive = unsafe {
        match GetVolumePathNameW(path.as_ptr(), root.as_mut_ptr(), root.len() as u32) {
            0 => return Err(super::unchecked(place)(io::Error::last_os_error())),
            _ => GetDriveTypeW(root.as_ptr()),
        }
    };
    match drive {
        DRIVE_FIXED | DRIVE_RAMDISK => Ok(()),
        _ => Err(fault!("not-fixed", place)),
    }
}

/// The host's monotonic clock, which its processes share, ms.
pub fn monotonic_ms() -> i64 {
    // SAFETY: the call takes no arguments and cannot fail.
    (unsafe { GetTickCount64() }) as i64
}

/// Windows users have no numeric IDs.
pub fn user() -> u32 {
    0
}

/// Name of the user's directory. Each user has a parent of its own.
pub fn directory_name(_: u32) -> String {
    "snowdrift".to_owned()
}

/// The parent has no directories of other users.
pub fn user_of(_: &str) -> Option<u32> {
    None
}

/// Access lists decide on Windows: each file counts as this user's own, and as private.
pub fn ownership(_: &Metadata) -> Ownership {
    Ownership { owner: user(), group: 0, mode: 0, links: 1 }
}

/// Creates a directory.
pub fn create_directory(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Does nothing: see `set_private`.
pub fn set_directory_mode(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Builds temporary files, which inherit the directory's access list.
pub fn private() -> tempfile::Builder<'static, 'static> {
    tempfile::Builder::new()
}

/// Does nothing: the inherited access list makes the file private.
pub fn set_private(_: &File) -> io::Result<()> {
    Ok(())
}

/// Opens a path; `None` if it is a symbolic link. Opens directories, too: callers refuse everything but files.
pub fn open_unless_link(path: &Path, is_writable: bool) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(is_writable);
    let of_directory = if path.is_dir() { FILE_FLAG_BACKUP_SEMANTICS } else { 0 };
    let flags = FILE_FLAG_OPEN_REPARSE_POINT | of_directory;
    let file = options.clone().custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if found.is_symlink() {
        return Ok(None);
    }
    // The bytes of some reparse points are stored elsewhere, such as those of a deduplicated file.
    let is_elsewhere = found.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0;
    if is_elsewhere { options.open(path).map(Some) } else { Ok(Some(file)) }
}

/// Start time of a running process, in units of 100 ns.
pub fn start_of(pid: u32) -> Option<u64> {
    let access = PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
    // SAFETY: the arguments are numbers.
    let handle = unsafe { OpenProcess(access, 0, pid) };
    if handle == without_provenance_mut(0) {
        return None;
    }
    // SAFETY: the handle is open, and nothing else owns it.
    let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
    let [mut created, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle is open, and there is room for four times. A wait of 0 ms returns at once.
    let is_known = unsafe {
        let handle = handle.as_raw_handle();
        WaitForSingleObject(handle, 0) == WAIT_TIMEOUT
            && GetProcessTimes(handle, &mut created, &mut ended, &mut kernel, &mut user) != 0
    };
    is_known.then_some(u64::from(created.dwHighDateTime) << 32 | u64::from(created.dwLowDateTime))
}

/// Windows reports no boot ID.
pub fn boot_id() -> Option<String> {
    None
}
