//! Windows: pages are in the user's local application data, and outlive a boot, of which Windows gives no
//! ID.
//!
//! Who may write there is said by the directory's access list, which its files inherit: in the default
//! place the user, administrators and the system. All who may write to a directory that
//! `SNOWDRIFT_SHARED` names share its pages, of whichever user they are.
//!
//! The name of a page is checked as elsewhere: Windows does not delete a file that is mapped, but it
//! renames it, and directories above it.

use std::ffi::{OsString, c_void};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::iter::once;
use std::os::windows::ffi::{OsStrExt, OsStringExt};
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::ptr::{null_mut, without_provenance_mut};
use std::slice;

use windows_sys::Win32::Foundation::{FILETIME, WAIT_TIMEOUT};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_OPEN_REPARSE_POINT, GetDriveTypeW, GetVolumePathNameW,
};
use windows_sys::Win32::System::Com::CoTaskMemFree;
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
    WaitForSingleObject,
};
use windows_sys::Win32::System::WindowsProgramming::{DRIVE_FIXED, DRIVE_RAMDISK};
use windows_sys::Win32::UI::Shell::{FOLDERID_LocalAppData, SHGetKnownFolderPath};

use crate::host::HostError;
use crate::store::path::identity_of;
pub use crate::store::path::{Identity, identity_at, is_at};

/// A page on a disk may be of another boot.
pub const IN_MEMORY: bool = false;

/// The user's local application data, as the system knows it: `LOCALAPPDATA` is what each process makes
/// of it, as `TEMP` is.
pub fn default_place() -> Option<PathBuf> {
    let mut path = null_mut();
    // SAFETY: the folder's ID is a constant, and `path` is set to a string that ends with a zero, or to
    // null.
    let place = unsafe {
        let status = SHGetKnownFolderPath(&FOLDERID_LocalAppData, 0, null_mut(), &mut path);
        (status == 0 && !path.is_null()).then(|| {
            let len = (0..).take_while(|&index| *path.add(index) != 0).count();
            PathBuf::from(OsString::from_wide(slice::from_raw_parts(path, len)))
        })
    };
    // SAFETY: the call above has allocated it, or left null, and it was copied.
    unsafe { CoTaskMemFree(path.cast::<c_void>()) };
    place
}

/// Why this directory cannot hold pages, if it cannot.
pub fn unfit(place: &Path) -> Option<&'static str> {
    (!is_local(place)).then_some(
        "is not on a fixed disk of this machine, so processes of other machines could change it, or it \
         could be removed from under the processes that share it. Name a directory on a fixed disk in \
         SNOWDRIFT_SHARED",
    )
}

fn is_local(path: &Path) -> bool {
    let path: Vec<u16> = path.as_os_str().encode_wide().chain(once(0)).collect();
    let mut root = vec![0; path.len() + 4];
    // SAFETY: `path` ends with a zero, and `root` has room for as much as it says.
    let drive = unsafe {
        match GetVolumePathNameW(path.as_ptr(), root.as_mut_ptr(), root.len() as u32) {
            0 => return false,
            _ => GetDriveTypeW(root.as_ptr()),
        }
    };
    matches!(drive, DRIVE_FIXED | DRIVE_RAMDISK)
}

/// Users have no numbers here.
pub fn user() -> u32 {
    0
}

/// The directory of pages in the one that holds it.
pub fn directory_name(_: u32) -> String {
    "snowdrift".to_owned()
}

/// Other users' directories are elsewhere.
pub fn user_of(_: &str) -> Option<u32> {
    None
}

/// Not asked for: see `user_of`.
pub fn is_file_of(_: &Path, _: u32) -> bool {
    false
}

/// Creates the directory when missing, then checks what has the name.
pub fn create_directory(path: &Path, _: u32) -> Result<(), HostError> {
    match fs::create_dir(path) {
        Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
            return Err(HostError::io("create the directory", path)(cause));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(path).map_err(HostError::io("look at", path))?;
    let what = if found.is_symlink() {
        "is a link, and must be a directory. Find out who made it, and remove it"
    } else if !found.is_dir() {
        "is no directory. Find out who made it, and remove it"
    } else {
        return Ok(());
    };
    Err(HostError::unusable(path, what))
}

/// Makes temporary files, which inherit the directory's access list.
pub fn private() -> tempfile::Builder<'static, 'static> {
    tempfile::Builder::new()
}

/// A user's own folders are private by what they inherit.
pub fn set_private(_: &File) -> io::Result<()> {
    Ok(())
}

/// Creates an empty file, unless the name is taken.
pub fn create_private(path: &Path) -> io::Result<File> {
    File::create_new(path)
}

/// Opens a page's file.
pub fn open(path: &Path, _: u32, write: bool) -> Result<(File, Metadata, Identity), HostError> {
    let file = OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
        .open(path)
        .map_err(HostError::io("open", path))?;
    let found = file.metadata().map_err(HostError::io("look at", path))?;
    if !found.is_file() {
        let what = "is a link or a device, and must be a file. Find out who made it, and remove it";
        return Err(HostError::unusable(path, what));
    }
    let identity = identity_of(&file).map_err(HostError::io("identify", path))?;
    Ok((file, found, identity))
}

/// When a process started, in units of 100 ns, if it still runs.
pub fn start_of(pid: u32) -> Option<u64> {
    let access = PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
    // SAFETY: it takes numbers.
    let handle = unsafe { OpenProcess(access, 0, pid) };
    if handle == without_provenance_mut(0) {
        return None;
    }
    // SAFETY: it is open, and nobody else's.
    let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
    let [mut created, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle is open, and there is room for four times. Waiting for 0 ms only asks.
    let is_known = unsafe {
        let handle = handle.as_raw_handle();
        WaitForSingleObject(handle, 0) == WAIT_TIMEOUT
            && GetProcessTimes(handle, &mut created, &mut ended, &mut kernel, &mut user) != 0
    };
    is_known.then_some(u64::from(created.dwHighDateTime) << 32 | u64::from(created.dwLowDateTime))
}
