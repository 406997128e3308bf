//! macOS: pages are in the cache directory that the system gives each user. It has no memory file system
//! that all processes see, so pages are on a disk: they outlive a boot, whose ID they name.

use std::ffi::{CString, OsString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A page on a disk may be of another boot.
pub const IN_MEMORY: bool = false;

/// `_CS_DARWIN_USER_CACHE_DIR`: the system names it by the user alone, where `TMPDIR` and `HOME` are what
/// each process makes of them.
pub fn default_place() -> Option<PathBuf> {
    let mut path = vec![0; libc::PATH_MAX as usize];
    // SAFETY: `path` has room for as many bytes as it says.
    let len = unsafe {
        libc::confstr(libc::_CS_DARWIN_USER_CACHE_DIR, path.as_mut_ptr().cast(), path.len())
    };
    // With its zero.
    (2..=path.len()).contains(&len).then(|| {
        path.truncate(len - 1);
        PathBuf::from(OsString::from_vec(path))
    })
}

/// Why this directory cannot hold pages, if it cannot.
pub fn unfit(place: &Path) -> Option<&'static str> {
    (!is_local(place)).then_some(
        "is not on a local file system, whose files processes of other machines cannot change. Name a \
         directory on a local one in SNOWDRIFT_SHARED",
    )
}

fn is_local(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let mut found = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: `name` is a C string, and `found` has room for the answer.
    let status = unsafe { libc::statfs(name.as_ptr(), found.as_mut_ptr()) };
    // SAFETY: all zeros is a value of these numbers, and the call has overwritten them or failed.
    let found = unsafe { found.assume_init() };
    status == 0 && found.f_flags & libc::MNT_LOCAL as u32 != 0
}

/// When a process started, in microseconds of Unix time as the kernel noted it.
pub fn start_of(pid: u32) -> Option<u64> {
    let mut found = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let len = size_of::<libc::proc_bsdinfo>() as i32;
    // SAFETY: `found` has room for as many bytes as `len` says.
    let written = unsafe {
        let room = found.as_mut_ptr().cast();
        libc::proc_pidinfo(pid as i32, libc::PROC_PIDTBSDINFO, 0, room, len)
    };
    // SAFETY: all zeros is a value of these numbers, and the call has overwritten them or failed.
    let found = unsafe { found.assume_init() };
    (written == len).then_some(found.pbi_start_tvsec * 1_000_000 + found.pbi_start_tvusec)
}

/// There are no user namespaces.
pub fn outer_user(uid: u32) -> u32 {
    uid
}
