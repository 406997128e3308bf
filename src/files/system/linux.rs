//! Linux: the shared directory is in `/dev/shm`. It does not depend on `TMPDIR`, the working directory or cgroups.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::core::fault::{Fault, fault};

/// Files in memory do not survive a reboot.
pub const IN_MEMORY: bool = true;

const DEFAULT: &str = "/dev/shm";

/// The kernel returns its list of locks in parts. If a lock is released between two parts, the list may lack another
/// lock: one reading in a thousand while other processes lock and unlock without a pause.
const READINGS: usize = 5;

/// The directory with all users' directories. `None` if `/dev/shm` is missing, or not in memory.
pub fn default_parent() -> Result<Option<PathBuf>, Fault> {
    let parent = Path::new(DEFAULT);
    match is_memory(parent) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
        checked => Ok(checked.map_err(super::unchecked(parent))?.then(|| parent.to_owned())),
    }
}

/// Refuses a directory that is not in memory.
pub fn check_parent(place: &Path) -> Result<(), Fault> {
    match is_memory(place).map_err(super::unchecked(place))? {
        true => Ok(()),
        false => Err(fault!("not-in-memory", place)),
    }
}

/// Whether this is a directory of a memory file system: tmpfs or ramfs.
fn is_memory(path: &Path) -> io::Result<bool> {
    // The constants' types differ between C libraries; all have 32 bits.
    let kind = super::unix::file_system(path)?.f_type as u32;
    Ok(matches!(kind, 0x0102_1994 | 0x8584_58f6) && fs::metadata(path)?.is_dir())
}

/// Start time of a process, in the kernel's ticks since the boot: field 22 of `/proc/<pid>/stat`. The second field, the
/// name in parentheses, may contain any characters.
pub fn start_of(pid: u32) -> Option<u64> {
    // In the `/proc` of another PID namespace, this process has another ID.
    let name = if pid == std::process::id() { "self".to_owned() } else { pid.to_string() };
    let stat = fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The user's ID outside of this process's user namespace. Rootless containers map user IDs, and may share the
/// directory with the host.
pub fn outer_user(uid: u32) -> u32 {
    // A process with several threads cannot change its namespace.
    static MAP: LazyLock<String> =
        LazyLock::new(|| fs::read_to_string("/proc/self/uid_map").unwrap_or_default());
    let outer = MAP.lines().find_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u32>);
        let [first, outer, count] =
            [numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?];
        let at = uid.checked_sub(first)?;
        (at < count).then(|| outer.checked_add(at))?
    });
    outer.unwrap_or(uid)
}

/// Whether any process, also of another user, has locked this file; `None` if the system does not report it. The kernel
/// lists locks of open files for all PID namespaces.
pub fn is_locked(of: &Metadata) -> Option<bool> {
    let device = of.dev();
    let file = format!("{:02x}:{:02x}:{}", libc::major(device), libc::minor(device), of.ino());
    for _ in 0..READINGS {
        let locks = fs::read_to_string("/proc/locks").ok()?;
        if locks.lines().any(|line| line.split_ascii_whitespace().any(|word| word == file)) {
            return Some(true);
        }
    }
    Some(false)
}

/// The kernel's ID of this boot, if it reports one.
pub fn boot_id() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
    use std::thread;

    use super::*;
    use crate::files::lock::{self, LockMode};

    #[test]
    #[ignore = "a storm: npm run storms -- rust"]
    fn a_lock_is_found_while_others_come_and_go() {
        /// Enough that a few would miss the lock with a single reading each.
        const LOOKS: usize = 12_000;
        let file = || {
            let file = tempfile::tempfile().unwrap();
            file.write_at(&[0; 64], 0).unwrap();
            file
        };
        let held = file();
        assert!(lock::try_take(&held, 0, LockMode::Shared).unwrap());
        let found = held.metadata().unwrap();
        let (changes, is_done) = (AtomicUsize::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    // Enough that the list comes in several parts.
                    let files: Vec<_> = (0..150).map(|_| file()).collect();
                    let any = || &files[fastrand::usize(..files.len())];
                    while !is_done.load(Relaxed) {
                        assert!(lock::try_take(any(), 0, LockMode::Shared).unwrap());
                        lock::release(any(), 0).unwrap();
                        changes.fetch_add(1, Relaxed);
                    }
                });
            }
            let mut missed = 0;
            for _ in 0..LOOKS {
                let before = changes.load(Relaxed);
                missed += usize::from(is_locked(&found) != Some(true));
                while changes.load(Relaxed) == before {
                    thread::yield_now();
                }
            }
            is_done.store(true, Relaxed);
            assert_eq!(missed, 0);
        });
    }
}
