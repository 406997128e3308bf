//! Fingerprints of a search's states. The search in `src/lease/tests` has them from here, too.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// The states that a search has seen.
pub type Fingerprints = HashSet<u128, BuildHasherDefault<Identity>>;

/// Two hashes at once: 128 bits tell more states apart than a search can visit.
pub struct Lanes(u64, u64);

impl Default for Lanes {
    fn default() -> Lanes {
        Lanes(0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03)
    }
}

impl Lanes {
    /// The fingerprint of what was hashed.
    pub fn value(&self) -> u128 {
        u128::from(self.0) << 64 | u128::from(self.1)
    }

    fn mix(&mut self, value: u64) {
        let fold = |lane: u64, by: u64| {
            let product = u128::from(lane ^ value) * u128::from(by);
            (product as u64) ^ (product >> 64) as u64
        };
        self.0 = fold(self.0, 0xa076_1d64_78bd_642f).wrapping_add(value);
        self.1 = fold(self.1.rotate_left(23), 0xe703_7ed1_a0b4_28db).wrapping_add(self.0);
    }
}

impl Hasher for Lanes {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, value: u8) {
        self.mix(value.into());
    }
    fn write_i8(&mut self, value: i8) {
        self.mix(value as u64);
    }
    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }
    fn write_isize(&mut self, value: isize) {
        self.mix(value as u64);
    }
    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A fingerprint is a hash already.
#[derive(Default)]
pub struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, _: &[u8]) {
        unreachable!("fingerprints are numbers");
    }
    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
