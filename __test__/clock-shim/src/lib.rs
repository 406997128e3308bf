//! Stands between a process and its wall clock. Preload it (`LD_PRELOAD`) and name a file of 8
//! bytes in `CLOCK_SHIM`: a little-endian i64, the ns by which the wall clock is off. Whoever writes
//! to that file steps the clock of every process that maps it, at once, in the middle of whatever
//! they do. Monotonic clocks, timers and sleeps are left alone.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

const SECOND: i64 = 1_000_000_000;

static OFFSET: LazyLock<&'static AtomicI64> = LazyLock::new(|| {
    static NONE: AtomicI64 = AtomicI64::new(0);
    let Some(path) = std::env::var_os("CLOCK_SHIM") else { return &NONE };
    let file = File::open(path).expect("CLOCK_SHIM names a file of 8 bytes");
    // SAFETY: a fresh shared mapping of 8 bytes at an address of the kernel's choice, never unmapped.
    unsafe {
        let map =
            libc::mmap(ptr::null_mut(), 8, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(map, libc::MAP_FAILED, "CLOCK_SHIM cannot be mapped");
        &*map.cast::<AtomicI64>()
    }
});

fn real_time(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system call writes to `time` alone. The libc function cannot be used: this is it.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut time) };
    time
}

fn stepped(clock: libc::clockid_t) -> libc::timespec {
    let time = real_time(clock);
    if clock != libc::CLOCK_REALTIME && clock != libc::CLOCK_REALTIME_COARSE {
        return time;
    }
    let ns = time.tv_sec * SECOND + time.tv_nsec + OFFSET.load(Relaxed);
    libc::timespec { tv_sec: ns.div_euclid(SECOND), tv_nsec: ns.rem_euclid(SECOND) }
}

/// Takes the place of libc's.
///
/// # Safety
/// As libc's: `out` is null or points to a `timespec`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, out: *mut libc::timespec) -> i32 {
    // SAFETY: as the caller promises.
    if let Some(out) = unsafe { out.as_mut() } {
        *out = stepped(clock);
    }
    0
}

/// Takes the place of libc's.
///
/// # Safety
/// As libc's: `out` is null or points to a `timeval`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(out: *mut libc::timeval, _zone: *mut libc::c_void) -> i32 {
    // SAFETY: as the caller promises.
    if let Some(out) = unsafe { out.as_mut() } {
        let time = stepped(libc::CLOCK_REALTIME);
        *out = libc::timeval { tv_sec: time.tv_sec, tv_usec: time.tv_nsec / 1000 };
    }
    0
}
