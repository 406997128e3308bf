//! Locks on single bytes of a file, which may be beyond its end. The kernel releases a lock when the process dies. A
//! lock belongs to the open file, so two copies of this package in one process exclude each other as two processes do.
//!
//! On Linux they are open file description locks, also on network file systems; on Windows, locks on ranges. On other
//! systems the byte [`USERS`] stands for the whole file, and locks on other bytes always succeed.

use std::fs::File;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::core::fault::Failure;

/// The byte that all users of a file lock.
pub const USERS: u64 = 1 << 40;

/// Whether the system locks single bytes, or whole files only.
pub const HAS_BYTES: bool = cfg!(any(target_os = "linux", windows));

/// The pause between attempts to take a lock.
pub const POLL: Duration = Duration::from_millis(1);

/// Polls until it is done, or for this long. Returns whether it is done.
pub fn within(
    at_most: Duration,
    mut is_done: impl FnMut() -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let deadline = Instant::now() + at_most;
    while !is_done()? {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        thread::sleep(POLL);
    }
    Ok(true)
}

/// A pause for the process that has a lock.
pub fn pause() {
    thread::sleep(POLL);
}

/// The mode of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Shared with other users.
    Shared,
    /// Exclusive.
    Exclusive,
}

/// Locks a byte, or changes the lock that this open file has on it. Returns false, and changes nothing, if
/// other users have locked the byte.
#[cfg(target_os = "linux")]
pub fn try_take(file: &File, at: u64, mode: LockMode) -> io::Result<bool> {
    let kind = match mode {
        LockMode::Shared => libc::F_RDLCK,
        LockMode::Exclusive => libc::F_WRLCK,
    };
    match control(file, libc::F_OFD_SETLK, at, kind) {
        Ok(_) => Ok(true),
        Err(cause) if matches!(cause.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(cause) => Err(cause),
    }
}

/// Unlocks a byte, even if a forked process shares the open file.
#[cfg(target_os = "linux")]
pub fn release(file: &File, at: u64) -> io::Result<()> {
    control(file, libc::F_OFD_SETLK, at, libc::F_UNLCK).map(drop)
}

/// The mode of another user's lock on the byte; `None` if no other user has locked it.
#[cfg(target_os = "linux")]
pub fn lock_of_others(file: &File, at: u64) -> io::Result<Option<LockMode>> {
    Ok(match control(file, libc::F_OFD_GETLK, at, libc::F_WRLCK)? {
        libc::F_UNLCK => None,
        libc::F_WRLCK => Some(LockMode::Exclusive),
        _ => Some(LockMode::Shared),
    })
}

#[cfg(target_os = "linux")]
fn control(
    file: &File,
    command: libc::c_int,
    at: u64,
    kind: libc::c_int,
) -> io::Result<libc::c_int> {
    use std::os::fd::AsRawFd;
    // 64-bit offsets on every processor, so that processes of 32 and of 64 bits lock the same byte.
    let mut lock = libc::flock64 {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: at as libc::off64_t,
        l_len: 1,
        l_pid: 0,
    };
    loop {
        // SAFETY: the descriptor is open, and these commands read and write `lock` only.
        #[cfg(target_pointer_width = "64")]
        let status = unsafe { libc::fcntl(file.as_raw_fd(), command, &mut lock) };
        // A system call, since the C library's `fcntl` may take 32-bit offsets.
        // SAFETY: as above.
        #[cfg(target_pointer_width = "32")]
        let status =
            unsafe { libc::syscall(libc::SYS_fcntl64, file.as_raw_fd(), command, &mut lock) };
        if status == 0 {
            return Ok(lock.l_type.into());
        }
        let cause = io::Error::last_os_error();
        if cause.kind() != io::ErrorKind::Interrupted {
            return Err(cause);
        }
    }
}

/// Locks a byte, or changes the lock that this open file has on it. Returns false if other users have locked the byte.
///
/// Windows cannot change the mode of a lock. It allows one open file two locks on a byte if the second one is shared,
/// and unlocks an exclusive lock before a shared one. So a change from shared to exclusive unlocks the byte for a
/// moment. If another user locks it then, the result is an error, or false.
#[cfg(windows)]
pub fn try_take(file: &File, at: u64, mode: LockMode) -> io::Result<bool> {
    match mode {
        LockMode::Shared => {
            let is_added = windows::lock(file, at, LockMode::Shared)?;
            if is_added {
                // Releases the exclusive lock, if there is one; otherwise the shared one just added.
                windows::unlock(file, at)?;
            }
            Ok(is_added && windows::lock(file, at, LockMode::Shared)?)
        }
        LockMode::Exclusive => {
            if windows::lock(file, at, LockMode::Exclusive)? {
                return Ok(true);
            }
            let had = windows::unlock(file, at)?;
            release(file, at)?;
            if !had || windows::lock(file, at, LockMode::Exclusive)? {
                return Ok(had);
            }
            // Other users have shared locks: restore this file's shared lock.
            if windows::lock(file, at, LockMode::Shared)? {
                Ok(false)
            } else {
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
    }
}

/// Unlocks a byte.
#[cfg(windows)]
pub fn release(file: &File, at: u64) -> io::Result<()> {
    while windows::unlock(file, at)? {}
    Ok(())
}

#[cfg(windows)]
mod windows {
    use std::fs::File;
    use std::io;
    use std::os::windows::io::AsRawHandle;

    use windows_sys::Win32::Foundation::{
        ERROR_IO_PENDING, ERROR_LOCK_VIOLATION, ERROR_NOT_LOCKED,
    };
    use windows_sys::Win32::Storage::FileSystem::{
        LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
    };
    use windows_sys::Win32::System::IO::OVERLAPPED;

    use super::LockMode;

    /// A byte of a file.
    fn byte(at: u64) -> OVERLAPPED {
        let mut overlapped = OVERLAPPED::default();
        overlapped.Anonymous.Anonymous.Offset = at as u32;
        overlapped.Anonymous.Anonymous.OffsetHigh = (at >> 32) as u32;
        overlapped
    }

    /// Returns whether it locked the byte. Adds a second lock if this file has one already.
    pub fn lock(file: &File, at: u64, mode: LockMode) -> io::Result<bool> {
        let exclusive = if mode == LockMode::Exclusive { LOCKFILE_EXCLUSIVE_LOCK } else { 0 };
        let flags = LOCKFILE_FAIL_IMMEDIATELY | exclusive;
        // SAFETY: the handle is open, and is not overlapped: the call has ended when it returns.
        let done = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &mut byte(at)) };
        outcome(done, &[ERROR_LOCK_VIOLATION, ERROR_IO_PENDING])
    }

    /// Returns whether this file had a lock. Wine reports ERROR_LOCK_VIOLATION instead of ERROR_NOT_LOCKED.
    pub fn unlock(file: &File, at: u64) -> io::Result<bool> {
        // SAFETY: as above.
        let done = unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &mut byte(at)) };
        outcome(done, &[ERROR_NOT_LOCKED, ERROR_LOCK_VIOLATION])
    }

    fn outcome(done: i32, refusals: &[u32]) -> io::Result<bool> {
        let cause = io::Error::last_os_error();
        let is_refusal = cause.raw_os_error().is_some_and(|code| refusals.contains(&(code as u32)));
        if done != 0 || is_refusal { Ok(done != 0) } else { Err(cause) }
    }
}

/// Locks the file if the byte is [`USERS`]. Returns false if other users have locked it.
#[cfg(not(any(target_os = "linux", windows)))]
pub fn try_take(file: &File, at: u64, mode: LockMode) -> io::Result<bool> {
    use std::fs::TryLockError;
    if at != USERS {
        return Ok(true);
    }
    let tried = match mode {
        LockMode::Shared => file.try_lock_shared(),
        LockMode::Exclusive => file.try_lock(),
    };
    match tried {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(cause)) => Err(cause),
    }
}

/// Unlocks the file if the byte is [`USERS`].
#[cfg(not(any(target_os = "linux", windows)))]
pub fn release(file: &File, at: u64) -> io::Result<()> {
    if at == USERS { file.unlock() } else { Ok(()) }
}

/// The same on systems that do not report the mode: every lock counts as shared. The check locks the byte for a moment,
/// which excludes other users.
#[cfg(not(target_os = "linux"))]
pub fn lock_of_others(file: &File, at: u64) -> io::Result<Option<LockMode>> {
    if !try_take(file, at, LockMode::Exclusive)? {
        return Ok(Some(LockMode::Shared));
    }
    release(file, at)?;
    Ok(None)
}

#[cfg(all(test, any(target_os = "linux", windows), not(miri)))]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn users_share_a_byte_or_one_locks_it_exclusively() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        let [one, two] = [open(), open()];
        assert!(try_take(&one, USERS, LockMode::Shared).unwrap());
        assert!(try_take(&two, USERS, LockMode::Shared).unwrap());
        assert!(!try_take(&one, USERS, LockMode::Exclusive).unwrap());
        assert_eq!(lock_of_others(&open(), USERS).unwrap(), Some(LockMode::Shared));
        #[cfg(target_os = "linux")]
        assert_eq!(lock_of_others(&two, USERS).unwrap(), Some(LockMode::Shared));
        assert!(
            try_take(&one, USERS + 1, LockMode::Exclusive).unwrap(),
            "each byte has its own lock"
        );
        release(&two, USERS).unwrap();
        assert!(try_take(&one, USERS, LockMode::Exclusive).unwrap());
        #[cfg(target_os = "linux")]
        assert_eq!(lock_of_others(&two, USERS).unwrap(), Some(LockMode::Exclusive));
        assert!(!try_take(&two, USERS, LockMode::Shared).unwrap());
        assert!(try_take(&one, USERS, LockMode::Exclusive).unwrap());
        assert!(try_take(&one, USERS, LockMode::Shared).unwrap());
        assert!(try_take(&one, USERS, LockMode::Shared).unwrap());
        assert!(try_take(&two, USERS, LockMode::Shared).unwrap());
        assert!(!try_take(&one, USERS, LockMode::Exclusive).unwrap());
        assert!(!try_take(&two, USERS, LockMode::Exclusive).unwrap(), "it has kept its own");
        drop(one);
        assert!(try_take(&two, USERS, LockMode::Exclusive).unwrap());
        release(&two, USERS).unwrap();
        release(&two, USERS).unwrap();
        assert!(try_take(&open(), USERS, LockMode::Exclusive).unwrap());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_lock_is_on_the_same_byte_for_processes_of_32_bits() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        let most = i64::MAX as u64 >> 1;
        for at in [USERS, most] {
            let one = open();
            assert!(try_take(&one, at, LockMode::Exclusive).unwrap());
            for truncated in [at & u64::from(u32::MAX), at & u64::from(u32::MAX >> 1)] {
                assert_eq!(
                    lock_of_others(&open(), truncated).unwrap(),
                    None,
                    "{at} is not {truncated}"
                );
            }
            assert_eq!(lock_of_others(&open(), at).unwrap(), Some(LockMode::Exclusive));
        }
    }

    #[test]
    fn an_inherited_descriptor_does_not_keep_a_released_lock() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        let one = open();
        let inherited = one.try_clone().unwrap();
        assert!(try_take(&one, USERS, LockMode::Exclusive).unwrap());
        release(&one, USERS).unwrap();
        drop(one);
        assert!(try_take(&open(), USERS, LockMode::Exclusive).unwrap());
        drop(inherited);
    }
}
