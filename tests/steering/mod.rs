//! What a test and its processes share: a clock that the test moves, and how IDs of both are compared.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

use memmap2::{MmapMut, MmapOptions};
use snowdrift::clock::{Clock, SystemClock, UnixTime};

/// A few numbers in a file that the test and its processes map.
pub struct Steering(MmapMut);

impl Steering {
    pub fn new(path: &Path) -> Steering {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.unwrap();
        file.set_len(4096).unwrap();
        // SAFETY: the file is the test's own, and is only changed atomically.
        Steering(unsafe { MmapOptions::new().map_mut(&file) }.unwrap())
    }

    pub fn word(&self, index: usize) -> &AtomicI64 {
        // SAFETY: the map is larger and aligned, and only changed atomically.
        unsafe { &*self.0.as_ptr().cast::<AtomicI64>().add(index) }
    }

    /// By how many ms the processes' clock is off.
    pub fn clock_off(&self) -> &AtomicI64 {
        self.word(0)
    }

    /// What the processes do, as each test numbers it.
    pub fn phase(&self) -> &AtomicI64 {
        self.word(1)
    }
}

/// The system's clock, off by what the test says.
impl Clock for Steering {
    fn now(&self) -> UnixTime {
        let now = SystemClock.now();
        UnixTime { ms: now.ms + self.clock_off().load(SeqCst), ..now }
    }

    fn wait(&self, duration: Duration) {
        SystemClock.wait(duration);
    }
}

/// How many IDs were issued more than once, by (first ID, how many).
pub fn duplicates(mut issued: Vec<(u64, u64)>) -> u64 {
    issued.sort_unstable();
    let mut end = 0;
    let mut twice = 0;
    for (first, len) in issued {
        twice += end.min(first + len).saturating_sub(first);
        end = end.max(first + len);
    }
    twice
}
