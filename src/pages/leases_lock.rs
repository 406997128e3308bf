//! Prevents two processes of a host from leasing two slots for one purpose. A process holds this lock while it looks
//! for the host's slot and acquires one.
//!
//! On Linux and Windows it is a byte of an empty file in the directory of pages; elsewhere, the whole file. It belongs
//! to the open file. So it ends with the process, and also excludes threads and copies of this package in one process.
//! Without the lock nothing is issued twice, either: two processes may acquire two slots, and each slot has one holder.
//!
//! A stopped process keeps the lock. Callers try for a bounded time, then continue without it.

use std::fs::File;

use super::{Directory, own};
use crate::core::fault::{Class, Failure, fault};
use crate::files::lock::{self, Hold, USERS};
use crate::files::path::is_at;

const NAME: &str = "leases.lock";

/// Attempts to create or open the file after a deletion.
const TRIES: usize = 100;

/// Holds the lock until dropped.
#[derive(Debug)]
pub struct LeasesLock {
    file: File,
    at: u64,
}

impl Directory {
    /// Locks a key: a store, layout and datacenter. None while another process or caller holds it.
    pub fn lock_leases(&self, key: u128) -> Result<Option<LeasesLock>, Failure> {
        let path = self.path().join(NAME);
        for _ in 0..TRIES {
            own::create_directory(self.path(), self.uid)?;
            let opened = own::open(&path, self.uid);
            let file = match opened {
                Ok((file, ..)) => file,
                Err(failure) if failure.is_missing() => {
                    own::create(&path, "").map_err(Failure::io("page-io", "create", &path))?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let lock = LeasesLock { file, at: byte_of(key) };
            let is_taken = lock::try_take(&lock.file, lock.at, Hold::Exclusive)
                .map_err(Failure::io("page-io", "lock", &path))?;
            if !is_taken {
                return Ok(None);
            }
            // After a deletion of this file, others lock another one.
            if is_at(&path, &lock.file) {
                return Ok(Some(lock));
            }
        }
        Err(Failure::new(Class::Page, fault!("page-replaced", place: path)))
    }
}

/// The byte of a key. Two keys with the same byte only wait for each other.
fn byte_of(key: u128) -> u64 {
    if cfg!(any(target_os = "linux", windows)) {
        let mixed = (key ^ key >> 64) as u64;
        mixed & (i64::MAX as u64 >> 1)
    } else {
        // The whole file.
        USERS
    }
}

impl Drop for LeasesLock {
    /// Unlocks at once, even if a forked process still has the open file.
    fn drop(&mut self) {
        let _ = lock::release(&self.file, self.at);
    }
}
