//! Locks on single bytes of a file, which may lie beyond its end. The kernel releases them when the process dies. They
//! belong to the open file, so two copies of this package in one process exclude each other as two processes do.
//!
//! Linux has them as open file description locks, also on network file systems; Windows as locks on ranges. On other
//! systems the byte [`USERS`] means the whole file, and locks on other bytes always succeed.

use std::fs::File;
use std::io;

/// The byte whose lock the users of a file share.
pub const USERS: u64 = 1 << 40;

/// The mode of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Shared with other users.
    Shared,
    /// Exclusive.
    Exclusive,
}

/// Locks a byte, or changes the lock that this open file has on it. Returns false, and changes nothing, if others hold
/// the byte.
#[cfg(target_os = "linux")]
pub fn try_take(file: &File, at: u64, hold: Hold) -> io::Result<bool> {
    let kind = match hold {
        Hold::Shared => libc::F_RDLCK,
        Hold::Exclusive => libc::F_WRLCK,
    };
    match control(file, libc::F_OFD_SETLK, at, kind) {
        Ok(_) => Ok(true),
        Err(cause) if matches!(cause.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(cause) => Err(cause),
    }
}

/// Unlocks a byte, even if a forked process has the open file, too.
#[cfg(target_os = "linux")]
pub fn release(file: &File, at: u64) -> io::Result<()> {
    control(file, libc::F_OFD_SETLK, at, libc::F_UNLCK).map(drop)
}

/// How another user holds the byte; none if nobody else does.
#[cfg(target_os = "linux")]
pub fn held(file: &File, at: u64) -> io::Result<Option<Hold>> {
    Ok(match control(file, libc::F_OFD_GETLK, at, libc::F_WRLCK)? {
        libc::F_UNLCK => None,
        libc::F_WRLCK => Some(Hold::Exclusive),
        _ => Some(Hold::Shared),
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
    // Of 64 bits on each processor: processes of 32 and of 64 bits lock the same byte.
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
        // Past the C library, whose `fcntl` may take a lock of 32 bits.
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

/// Locks a byte, or changes the lock that this open file has on it. Returns false if others hold the byte.
///
/// Windows cannot change a lock. It allows two locks of one file on a byte if the second one is shared, and unlocks an
/// exclusive lock before a shared one. A change from shared to exclusive has a moment without a lock: if another user
/// gets in between, the result is an error, or false.
#[cfg(windows)]
pub fn try_take(file: &File, at: u64, hold: Hold) -> io::Result<bool> {
    match hold {
        Hold::Shared => {
            let is_added = windows::lock(file, at, Hold::Shared)?;
            if is_added {
                // Unlocks the exclusive lock, if any; otherwise the shared one just added.
                windows::unlock(file, at)?;
            }
            Ok(is_added && windows::lock(file, at, Hold::Shared)?)
        }
        Hold::Exclusive => {
            if windows::lock(file, at, Hold::Exclusive)? {
                return Ok(true);
            }
            let had = windows::unlock(file, at)?;
            release(file, at)?;
            if !had || windows::lock(file, at, Hold::Exclusive)? {
                return Ok(had);
            }
            // Others share it, as this file did: share it again.
            if windows::lock(file, at, Hold::Shared)? {
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

    use super::Hold;

    /// A byte of a file.
    fn byte(at: u64) -> OVERLAPPED {
        let mut overlapped = OVERLAPPED::default();
        overlapped.Anonymous.Anonymous.Offset = at as u32;
        overlapped.Anonymous.Anonymous.OffsetHigh = (at >> 32) as u32;
        overlapped
    }

    /// Returns whether it locked the byte. Adds a lock if this file has one already.
    pub fn lock(file: &File, at: u64, hold: Hold) -> io::Result<bool> {
        let exclusive = if hold == Hold::Exclusive { LOCKFILE_EXCLUSIVE_LOCK } else { 0 };
        let flags = LOCKFILE_FAIL_IMMEDIATELY | exclusive;
        // SAFETY: the handle is open, and is not overlapped: the call has ended when it returns.
        let done = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &mut byte(at)) };
        answer(done, &[ERROR_LOCK_VIOLATION, ERROR_IO_PENDING])
    }

    /// Returns whether this file had locked it. Wine reports a lock of another where there is none.
    pub fn unlock(file: &File, at: u64) -> io::Result<bool> {
        // SAFETY: as above.
        let done = unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &mut byte(at)) };
        answer(done, &[ERROR_NOT_LOCKED, ERROR_LOCK_VIOLATION])
    }

    fn answer(done: i32, refusals: &[u32]) -> io::Result<bool> {
        let cause = io::Error::last_os_error();
        let is_refusal = cause.raw_os_error().is_some_and(|code| refusals.contains(&(code as u32)));
        if done != 0 || is_refusal { Ok(done != 0) } else { Err(cause) }
    }
}

/// Locks the file if the byte is [`USERS`]. Returns false if others hold it.
#[cfg(not(any(target_os = "linux", windows)))]
pub fn try_take(file: &File, at: u64, hold: Hold) -> io::Result<bool> {
    use std::fs::TryLockError;
    if at != USERS {
        return Ok(true);
    }
    let tried = match hold {
        Hold::Shared => file.try_lock_shared(),
        Hold::Exclusive => file.try_lock(),
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

/// The same where the system does not tell how: then it counts as shared. The check tries to lock the byte, which keeps
/// others away for a moment.
#[cfg(not(target_os = "linux"))]
pub fn held(file: &File, at: u64) -> io::Result<Option<Hold>> {
    if !try_take(file, at, Hold::Exclusive)? {
        return Ok(Some(Hold::Shared));
    }
    release(file, at)?;
    Ok(None)
}

#[cfg(all(test, any(target_os = "linux", windows), not(miri)))]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn users_share_a_byte_and_one_alone_has_it_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        let [one, two] = [open(), open()];
        assert!(try_take(&one, USERS, Hold::Shared).unwrap());
        assert!(try_take(&two, USERS, Hold::Shared).unwrap());
        assert!(!try_take(&one, USERS, Hold::Exclusive).unwrap());
        assert_eq!(held(&open(), USERS).unwrap(), Some(Hold::Shared));
        #[cfg(target_os = "linux")]
        assert_eq!(held(&two, USERS).unwrap(), Some(Hold::Shared));
        assert!(try_take(&one, USERS + 1, Hold::Exclusive).unwrap(), "each byte has its own lock");
        release(&two, USERS).unwrap();
        assert!(try_take(&one, USERS, Hold::Exclusive).unwrap());
        #[cfg(target_os = "linux")]
        assert_eq!(held(&two, USERS).unwrap(), Some(Hold::Exclusive));
        assert!(!try_take(&two, USERS, Hold::Shared).unwrap());
        assert!(try_take(&one, USERS, Hold::Exclusive).unwrap());
        assert!(try_take(&one, USERS, Hold::Shared).unwrap());
        assert!(try_take(&one, USERS, Hold::Shared).unwrap());
        assert!(try_take(&two, USERS, Hold::Shared).unwrap());
        assert!(!try_take(&one, USERS, Hold::Exclusive).unwrap());
        assert!(!try_take(&two, USERS, Hold::Exclusive).unwrap(), "it has kept its own");
        drop(one);
        assert!(try_take(&two, USERS, Hold::Exclusive).unwrap());
        release(&two, USERS).unwrap();
        release(&two, USERS).unwrap();
        assert!(try_take(&open(), USERS, Hold::Exclusive).unwrap());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_lock_is_on_the_same_byte_for_processes_of_32_bits() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        let most = i64::MAX as u64 >> 1;
        for at in [USERS, most] {
            let one = open();
            assert!(try_take(&one, at, Hold::Exclusive).unwrap());
            for truncated in [at & u64::from(u32::MAX), at & u64::from(u32::MAX >> 1)] {
                assert_eq!(held(&open(), truncated).unwrap(), None, "{at} is not {truncated}");
            }
            assert_eq!(held(&open(), at).unwrap(), Some(Hold::Exclusive));
        }
    }

    #[test]
    fn a_descriptor_that_was_inherited_does_not_keep_what_was_released() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        let one = open();
        let inherited = one.try_clone().unwrap();
        assert!(try_take(&one, USERS, Hold::Exclusive).unwrap());
        release(&one, USERS).unwrap();
        drop(one);
        assert!(try_take(&open(), USERS, Hold::Exclusive).unwrap());
        drop(inherited);
    }
}
