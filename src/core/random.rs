//! Random numbers that a cloned machine does not draw, too.

use std::time::{SystemTime, UNIX_EPOCH};

/// A unique number: from the kernel's random numbers and, since a machine may be cloned with the kernel's state, from clocks.
pub fn fresh() -> u64 {
    let mut bytes = [0; 8];
    // If this fails, only the clocks remain.
    let _ = getrandom::fill(&mut bytes);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let mixed = u64::from_ne_bytes(bytes) ^ (nanos as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.wrapping_add(counter()).max(1)
}

/// A counter of the processor, if it has one.
fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: each processor of this architecture has the instruction.
    let count = unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    let count = 0;
    count
}
