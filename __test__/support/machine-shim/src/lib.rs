//! Stands between a process and its machine. Preload it (`LD_PRELOAD`) and name a file of 40 bytes
//! in `MACHINE_SHIM`, five little-endian i64:
//!
//! 1. the ns by which the wall clock is off,
//! 2. the number of the error with which flushing a file to the disk fails, or 0,
//! 3. a number that stands for this boot of the machine, or 0 for the real one,
//! 4. the number of the error with which the question for a file system (`statfs`) fails, or 0,
//! 5. the Unix ns at which the wall clock stands still, or 0.
//!
//! Writing to that file shifts the clock of every process that maps it, at once, in the middle
//! of whatever they do. Monotonic clocks, timers and sleeps are left alone.
#![cfg(target_os = "linux")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

const SECOND: i64 = 1_000_000_000;
const BOOT_ID: &CStr = c"/proc/sys/kernel/random/boot_id";

/// What the file says.
struct Machine {
    clock_offset: AtomicI64,
    flush_error: AtomicI64,
    boot: AtomicI64,
    statfs_error: AtomicI64,
    standing: AtomicI64,
}

static MACHINE: LazyLock<&'static Machine> = LazyLock::new(|| {
    static REAL: Machine = Machine {
        clock_offset: AtomicI64::new(0),
        flush_error: AtomicI64::new(0),
        boot: AtomicI64::new(0),
        statfs_error: AtomicI64::new(0),
        standing: AtomicI64::new(0),
    };
    let Some(path) = std::env::var_os("MACHINE_SHIM") else { return &REAL };
    let path = CString::new(path.as_encoded_bytes()).expect("the environment has no NUL");
    // SAFETY: a system call on a C string, since `File::open` would come to `open64` below, which
    // waits for this; then a fresh shared mapping of the file's bytes at an address of the kernel's
    // choice, never unmapped.
    unsafe {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let fd = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) as c_int;
        assert!(fd >= 0, "MACHINE_SHIM names a file of 40 bytes");
        let len = size_of::<Machine>();
        let map = libc::mmap(ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, fd, 0);
        assert_ne!(map, libc::MAP_FAILED, "MACHINE_SHIM cannot be mapped");
        &*map.cast::<Machine>()
    }
});

fn real_time(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system call writes to `time` alone. The libc function cannot be used: this is it.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut time) };
    time
}

fn shifted(clock: libc::clockid_t) -> libc::timespec {
    let time = real_time(clock);
    if clock != libc::CLOCK_REALTIME && clock != libc::CLOCK_REALTIME_COARSE {
        return time;
    }
    let ns = match MACHINE.standing.load(Relaxed) {
        0 => time.tv_sec * SECOND + time.tv_nsec + MACHINE.clock_offset.load(Relaxed),
        standing => standing,
    };
    libc::timespec { tv_sec: ns.div_euclid(SECOND), tv_nsec: ns.rem_euclid(SECOND) }
}

/// Takes the place of libc's.
///
/// # Safety
/// As libc's: `out` is null or points to a `timespec`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, out: *mut libc::timespec) -> c_int {
    // SAFETY: as the caller promises.
    if let Some(out) = unsafe { out.as_mut() } {
        *out = shifted(clock);
    }
    0
}

/// Takes the place of libc's.
///
/// # Safety
/// As libc's: `out` is null or points to a `timeval`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(out: *mut libc::timeval, _zone: *mut libc::c_void) -> c_int {
    // SAFETY: as the caller promises.
    if let Some(out) = unsafe { out.as_mut() } {
        let time = shifted(libc::CLOCK_REALTIME);
        *out = libc::timeval { tv_sec: time.tv_sec, tv_usec: time.tv_nsec / 1000 };
    }
    0
}

/// Takes the place of libc's.
#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(fd: c_int) -> c_int {
    let error = MACHINE.flush_error.load(Relaxed);
    // SAFETY: errno is this thread's; the system call gets what the caller passed.
    unsafe {
        if error != 0 {
            *libc::__errno_location() = error as c_int;
            return -1;
        }
        libc::syscall(libc::SYS_fdatasync, fd) as c_int
    }
}

/// Takes the place of libc's.
///
/// # Safety
/// As libc's: `path` is a C string, and `out` points to a `statfs`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statfs(path: *const c_char, out: *mut libc::statfs) -> c_int {
    let error = MACHINE.statfs_error.load(Relaxed);
    // SAFETY: errno is this thread's; the system call gets what the caller passed.
    unsafe {
        if error != 0 {
            *libc::__errno_location() = error as c_int;
            return -1;
        }
        libc::syscall(libc::SYS_statfs, path, out) as c_int
    }
}

/// Takes the place of libc's, which is variadic: the mode is only there to be passed on.
///
/// # Safety
/// As libc's: `path` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    let boot = MACHINE.boot.load(Relaxed);
    // SAFETY: as the caller promises; a new file in memory is written and rewound.
    unsafe {
        if boot == 0 || CStr::from_ptr(path) != BOOT_ID {
            return libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) as c_int;
        }
        let id = format!("00000000-0000-0000-0000-{boot:012}\n");
        let fd = libc::memfd_create(c"boot_id".as_ptr(), libc::MFD_CLOEXEC);
        libc::write(fd, id.as_ptr().cast(), id.len());
        libc::lseek(fd, 0, libc::SEEK_SET);
        fd
    }
}
