//! The directory's identity in the namespace's ID.

use crate::files::path::Identity;
use crate::lease::{Bucket, Namespace, Record};

/// The record with the namespace's ID for this place, or the other way round.
pub(super) fn placed(mut record: Record, place: u64) -> Record {
    let id = match &mut record {
        Record::Namespace(Namespace { id, .. }) | Record::Bucket(Bucket { id, .. }) => id,
    };
    id.0 ^= place;
    record
}

/// The identity as one number.
pub(super) fn mixed((device, file): Identity) -> u64 {
    let file = file as u64 ^ (file >> 64) as u64;
    file.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ device.rotate_right(32)
}
