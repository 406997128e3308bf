//! The virtual machine's counter of its restores from snapshots, where the system shows it: Linux maps the device
//! `/dev/vmclock0`, whose counter the hypervisor changes before a restored machine runs.

use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed},
    fence,
};

use memmap2::{MmapOptions, MmapRaw};

const DEVICE: &str = "/dev/vmclock0";
const BYTES: usize = 4096;

/// Of Linux's `vmclock_abi`: what the device begins with, and where its little-endian fields are.
const MAGIC: u32 = 0x4b4c_4356;
const SEQUENCE: usize = 12;
const DISRUPTION: usize = 16;
const FLAGS: usize = 24;
const GENERATION: usize = 104;
/// The flag of a device that counts generations.
const COUNTS: u64 = 1 << 8;

/// The most reads of a device that is being changed.
const TRIES: usize = 1000;

/// A mapped device.
struct VmClock(MmapRaw);

impl VmClock {
    fn open(path: &Path) -> Option<VmClock> {
        let file = File::open(path).ok()?;
        let found = file.metadata().ok()?;
        // A device has no length. A read behind the end of a shorter file would end the process.
        if found.is_file() && found.len() < BYTES as u64 {
            return None;
        }
        let clock = VmClock(MmapOptions::new().len(BYTES).map_raw_read_only(&file).ok()?);
        (u32::from_le(clock.word(0).load(Relaxed)) == MAGIC).then_some(clock)
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the map has `BYTES` bytes, of which each offset above leaves enough, at an aligned address. It lives as long
        // as `self`. The hypervisor changes whole fields.
        unsafe { &*self.0.as_ptr().add(at).cast::<AtomicU32>() }
    }

    fn field(&self, at: usize) -> u64 {
        // SAFETY: as above.
        u64::from_le(unsafe { &*self.0.as_ptr().add(at).cast::<AtomicU64>() }.load(Relaxed))
    }

    /// The number of the present restore. An older device has one that changes when the machine moves to another host, too.
    #[inline]
    fn generation(&self) -> u64 {
        let sequence = || u32::from_le(self.word(SEQUENCE).load(Acquire));
        let mut seen = 0;
        for _ in 0..TRIES {
            let before = sequence();
            let counts = self.field(FLAGS) & COUNTS != 0;
            seen = self.field(if counts { GENERATION } else { DISRUPTION });
            fence(Acquire);
            if before & 1 == 0 && sequence() == before {
                break;
            }
        }
        seen
    }
}

/// The number of this machine's present restore; 0 where the system does not show it.
#[inline]
pub fn generation() -> u64 {
    static CLOCK: OnceLock<Option<VmClock>> = OnceLock::new();
    let clock = CLOCK.get_or_init(|| VmClock::open(Path::new(DEVICE)));
    clock.as_ref().map_or(0, VmClock::generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(fields: &[(usize, u64)]) -> Option<VmClock> {
        let mut bytes = vec![0; BYTES];
        for (at, value) in fields {
            bytes[*at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        VmClock::open(file.path())
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps a file")]
    fn the_counter_of_restores_is_read_where_there_is_one() {
        let magic = (0, u64::from(MAGIC));
        let fields = [magic, (DISRUPTION, 7), (GENERATION, 5)];
        assert_eq!(device(&fields).unwrap().generation(), 7);
        let fields = [magic, (DISRUPTION, 7), (FLAGS, COUNTS), (GENERATION, 5)];
        assert_eq!(device(&fields).unwrap().generation(), 5);
        assert!(device(&[(0, 1)]).is_none(), "another device");
        // One that is changed all the time ends the wait.
        let changing = [magic, (SEQUENCE - 4, 1 << 32), (DISRUPTION, 7)];
        assert_eq!(device(&changing).unwrap().generation(), 7);
    }
}
