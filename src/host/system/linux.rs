//! Linux: pages are in `/dev/shm`, which `TMPDIR`, working directories and cgroups do not change.

use std::fs;
use std::path::{Path, PathBuf};

/// What is in memory does not outlive its boot.
pub const IN_MEMORY: bool = true;

const DEFAULT: &str = "/dev/shm";

/// The directory that holds all users' directories. None where `/dev/shm` is not in memory.
pub fn default_place() -> Option<PathBuf> {
    let place = Path::new(DEFAULT);
    is_memory(place).then(|| place.to_owned())
}

/// Why this directory cannot hold pages, if it cannot.
pub fn unfit(place: &Path) -> Option<&'static str> {
    (!is_memory(place)).then_some(
        "is not in memory (tmpfs or ramfs), so a full or frozen disk would stop or end the processes \
         that share it. Name a directory in a tmpfs in SNOWDRIFT_SHARED",
    )
}

/// Whether this is a directory of a memory file system: tmpfs or ramfs.
fn is_memory(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(name) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    let mut found = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: `name` is a C string, and `found` has room for the answer.
    let status = unsafe { libc::statfs(name.as_ptr(), found.as_mut_ptr()) };
    // SAFETY: all zeros is a value of these numbers, and the call has overwritten them or failed.
    let found = unsafe { found.assume_init() };
    // The constants' types differ between C libraries; all of them are 32 bits.
    let is_memory = matches!(found.f_type as u32, 0x0102_1994 | 0x8584_58f6);
    status == 0 && is_memory && path.is_dir()
}

/// When a process started, in the kernel's ticks since the boot: field 22 of `/proc/<pid>/stat`. The
/// second field, in parentheses, may hold any characters.
pub fn start_of(pid: u32) -> Option<u64> {
    // Another PID namespace's /proc knows this process under another number.
    let name = if pid == std::process::id() { "self".to_owned() } else { pid.to_string() };
    let stat = fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The number of a user outside of this process's user namespace, where it has one of its own: rootless
/// containers number their users anew, and may see the same directory.
pub fn outer_user(uid: u32) -> u32 {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let outer = map.lines().find_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u32>);
        let [first, outer, count] =
            [numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?];
        let at = uid.checked_sub(first)?;
        (at < count).then(|| outer.checked_add(at))?
    });
    outer.unwrap_or(uid)
}
