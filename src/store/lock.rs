//! Locks on single bytes of a file, which may lie beyond its end. The kernel releases them when the
//! process dies. They belong to the open file, so two copies of this package in one process exclude
//! each other as two processes do.
//!
//! Linux has them as open file description locks, on network file systems too. Elsewhere the byte
//! [`USERS`] stands for the whole file, and the others are always free.

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

/// Locks the file where the byte is [`USERS`]. False where others have it.
#[cfg(not(target_os = "linux"))]
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
#[cfg(not(target_os = "linux"))]
pub fn release(file: &File, at: u64) -> io::Result<()> {
    if at == USERS { file.unlock() } else { Ok(()) }
}

/// Never known.
#[cfg(not(target_os = "linux"))]
pub fn is_exclusive(_: &File, _: u64) -> io::Result<bool> {
    Ok(false)
}

#[cfg(all(test, target_os = "linux", not(miri)))]
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
        assert!(!is_exclusive(&two, USERS).unwrap());
        assert!(try_take(&one, USERS + 1, Hold::Exclusive).unwrap(), "each byte has its own lock");
        release(&two, USERS).unwrap();
        assert!(try_take(&one, USERS, Hold::Exclusive).unwrap());
        assert!(is_exclusive(&two, USERS).unwrap());
        assert!(!try_take(&two, USERS, Hold::Shared).unwrap());
        drop(one);
        assert!(try_take(&two, USERS, Hold::Exclusive).unwrap());
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
