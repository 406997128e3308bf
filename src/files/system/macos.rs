//! macOS: the shared directory is in the user's cache directory. macOS has no memory file system that all processes
//! see, so it is on a disk, and survives a reboot.

use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::core::fault::{Fault, fault};

/// A file on a disk may be of an earlier boot.
pub const IN_MEMORY: bool = false;

/// `_CS_DARWIN_USER_CACHE_DIR` depends only on the user. A process can change `TMPDIR` and `HOME`.
pub fn default_parent() -> Result<Option<PathBuf>, Fault> {
    let mut path = vec![0; libc::PATH_MAX as usize];
    // SAFETY: `path` has room for `path.len()` bytes.
    let len = unsafe {
        libc::confstr(libc::_CS_DARWIN_USER_CACHE_DIR, path.as_mut_ptr().cast(), path.len())
    };
    // `len` includes the terminating zero.
    if !(2..=path.len()).contains(&len) {
        return Err(super::no_parent());
    }
    path.truncate(len - 1);
    Ok(Some(PathBuf::from(OsString::from_vec(path))))
}

/// Refuses a directory that other machines can change.
pub fn check_parent(place: &Path) -> Result<(), Fault> {
    let found = super::unix::file_system(place).map_err(super::unchecked(place))?;
    match found.f_flags & libc::MNT_LOCAL as u32 {
        0 => Err(fault!("not-local", place)),
        _ => Ok(()),
    }
}

/// Start time of a process as the kernel recorded it, in Unix microseconds.
pub fn start_of(pid: u32) -> Option<u64> {
    let mut found = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let len = size_of::<libc::proc_bsdinfo>() as i32;
    // SAFETY: `found` has room for `len` bytes.
    let written = unsafe {
        let room = found.as_mut_ptr().cast();
        libc::proc_pidinfo(pid as i32, libc::PROC_PIDTBSDINFO, 0, room, len)
    };
    // SAFETY: all zeros is a value of these numbers, and the call has overwritten them or failed.
    let found = unsafe { found.assume_init() };
    (written == len).then_some(found.pbi_start_tvsec * 1_000_000 + found.pbi_start_tvusec)
}

/// The kernel's ID of this boot, if it reports one.
pub fn boot_id() -> Option<String> {
    let mut id = [0u8; 64];
    let mut len = id.len();
    // SAFETY: the name is a C string, `id` has room for `len` bytes, and nothing is set.
    let status = unsafe {
        libc::sysctlbyname(
            c"kern.bootsessionuuid".as_ptr(),
            id.as_mut_ptr().cast(),
            &mut len,
            std::ptr::null_mut(),
            0,
        )
    };
    let id = std::ffi::CStr::from_bytes_until_nul(&id).ok()?.to_str().ok()?;
    (status == 0 && !id.is_empty()).then(|| id.to_owned())
}
