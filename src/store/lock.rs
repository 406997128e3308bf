//! Locks on single bytes of a file, which may lie beyond its end. The kernel releases them when the
//! process dies. They belong to the open file, so two copies of this package in one process exclude
//! each other as two processes do.
//!
//! Linux has them as open file description locks, on network file systems too; Windows as locks on
//! ranges. Elsewhere the byte [`USERS`] stands for the whole file, and the others are always free.

use std::fs::File;
use std::io;

/// Shared by the users of a file.
pub const USERS: u64 = 1 << 40;

/// How a byte is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Together with others that share it.
    Shared,
    /// Alone.
    Exclusive,
}

/// Locks a byte, or changes the lock that this open file has on it. False where others have it: then
/// nothing has changed.
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

/// Unlocks a byte, also where a process that was forked off has the open file, too.
#[cfg(target_os = "linux")]
pub fn release(file: &File, at: u64) -> io::Result<()> {
    control(file, libc::F_OFD_SETLK, at, libc::F_UNLCK).map(drop)
}

/// Whether another has the byte alone.
#[cfg(target_os = "linux")]
pub fn is_exclusive(file: &File, at: u64) -> io::Result<bool> {
    control(file, libc::F_OFD_GETLK, at, libc::F_RDLCK).map(|kind| kind == libc::F_WRLCK)
}

#[cfg(target_os = "linux")]
fn control(
    file: &File,
    command: libc::c_int,
    at: u64,
    kind: libc::c_int,
) -> io::Result<libc::c_int> {
    use std::os::fd::AsRawFd;
    let mut lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: at as libc::off_t,
        l_len: 1,
        l_pid: 0,
    };
    loop {
        // SAFETY: the descriptor is open, and `lock` is what these commands read and write.
        let status = unsafe { libc::fcntl(file.as_raw_fd(), command, &mut lock) };
        if status == 0 {
            return Ok(lock.l_type.into());
        }
        let cause = io::Error::last_os_error();
        if cause.kind() != io::ErrorKind::Interrupted {
            return Err(cause);
        }
    }
}

/// Locks a byte, or changes the lock that this open file has on it. False where others have it.
///
/// Windows changes no lock, but has two of one file on a byte, where the second one is shared; of an
/// exclusive and a shared one it unlocks the exclusive one first. From a shared one to an exclusive one
/// there is a moment without any: where another gets in between, it is an error, or false.
#[cfg(windows)]
pub fn try_take(file: &File, at: u64, hold: Hold) -> io::Result<bool> {
    match hold {
        Hold::Shared => {
            let is_added = windows::lock(file, at, Hold::Shared)?;
            if is_added {
                // The exclusive one, if there is one; else the shared one that was just added.
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
            // Others share it, as this file did.
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
        let mut place = OVERLAPPED::default();
        place.Anonymous.Anonymous.Offset = at as u32;
        place.Anonymous.Anonymous.OffsetHigh = (at >> 32) as u32;
        place
    }

    /// Whether it was locked, once more if it was this file's.
    pub fn lock(file: &File, at: u64, hold: Hold) -> io::Result<bool> {
        let exclusive = if hold == Hold::Exclusive { LOCKFILE_EXCLUSIVE_LOCK } else { 0 };
        let flags = LOCKFILE_FAIL_IMMEDIATELY | exclusive;
        // SAFETY: the handle is open, and is not overlapped: the call has ended when it returns.
        let done = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &mut byte(at)) };
        answer(done, &[ERROR_LOCK_VIOLATION, ERROR_IO_PENDING])
    }

    /// Whether this file had locked it. Wine says that another has where nobody has.
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

/// Locks the file where the byte is [`USERS`]. False where others have it.
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

/// Unlocks the file where the byte is [`USERS`].
#[cfg(not(any(target_os = "linux", windows)))]
pub fn release(file: &File, at: u64) -> io::Result<()> {
    if at == USERS { file.unlock() } else { Ok(()) }
}

/// Never known.
#[cfg(not(target_os = "linux"))]
pub fn is_exclusive(_: &File, _: u64) -> io::Result<bool> {
    Ok(false)
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
        #[cfg(target_os = "linux")]
        assert!(!is_exclusive(&two, USERS).unwrap());
        assert!(try_take(&one, USERS + 1, Hold::Exclusive).unwrap(), "each byte has its own lock");
        release(&two, USERS).unwrap();
        assert!(try_take(&one, USERS, Hold::Exclusive).unwrap());
        #[cfg(target_os = "linux")]
        assert!(is_exclusive(&two, USERS).unwrap());
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
