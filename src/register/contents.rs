//! The bytes of a record's file.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8, 8..12, 12..16 | `snowdrft`; version of this format: 4; 0 |
//! | 16..64 | the record's key, then zeros |
//! | 64..72 | the process that changes the record, or did so last |
//! | 72..80 | the turn up to which the record is known to be on the disk |
//! | 4096.., 24576.. | two blocks, written by turns |
//! | beyond the end | nothing: bytes for [locks](crate::files::lock) |
//!
//! | bytes of a block | content |
//! |---|---|
//! | 0..4 | CRC-32 of what follows |
//! | 4..8 | length of the text |
//! | 8..16 | the turn: one more than that of the other block |
//! | 16..24, 24.. | the record's token, and its text |

use std::path::Path;

use crate::core::fault::{Failure, fault};
use crate::files::named::unusable;
use crate::lease::{Key, MOST_BYTES, Token};

const RECORD_MAGIC: [u8; 8] = *b"snowdrft";
/// Version 3 had eight records of another kind.
const VERSION: u32 = 4;
pub const PID: usize = 64;
pub const SETTLED: usize = 72;

pub const PAGE: usize = 4096;
const BLOCK_BYTES: usize = PAGE + MOST_BYTES;
/// Block 0 and block 1.
pub const BLOCKS: [usize; 2] = [PAGE, PAGE + BLOCK_BYTES];
pub const FILE_BYTES: usize = PAGE + 2 * BLOCK_BYTES;
const HEAD_BYTES: usize = 24;

/// A record, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// How many writes the file had.
    pub turn: u64,
    /// The token of its write.
    pub token: Token,
    /// The text.
    pub text: String,
}

/// What a file's bytes say.
pub struct Blocks {
    /// Of the two blocks; none where it is torn, damaged, or never written.
    pub blocks: [Option<Stored>; 2],
    /// The turn up to which the record is known to be on the disk.
    pub settled: u64,
}

impl Stored {
    pub fn to_bytes(&self) -> Vec<u8> {
        let Stored { turn, token, text } = self;
        let mut bytes = vec![0; 4];
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(turn.to_le_bytes());
        bytes.extend(token.0.to_le_bytes());
        bytes.extend(text.as_bytes());
        let check = crc32fast::hash(&bytes[4..]);
        bytes[..4].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The record of a block, if it is whole.
    fn of_bytes(block: &[u8]) -> Option<Stored> {
        let number = |at: usize| Some(u64::from_le_bytes(*block.get(at..)?.first_chunk()?));
        let len = (number(0)? >> 32) as usize;
        let text = block.get(HEAD_BYTES..)?.get(..len)?;
        let (turn, token) = (number(8)?, Token(number(16)?));
        let stored = Stored { turn, token, text: String::from_utf8(text.to_vec()).ok()? };
        block.starts_with(&stored.to_bytes()).then_some(stored)
    }
}

impl Blocks {
    pub fn of(bytes: &[u8], key: Key, place: &Path) -> Result<Blocks, Failure> {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        if bytes.len() < 12 || bytes[..8] != RECORD_MAGIC {
            return Err(unusable(fault!("slot-foreign", place)));
        }
        let format = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        if format != VERSION {
            let known = VERSION;
            return Err(unusable(match format < VERSION {
                true => fault!("slot-older", place, format, known),
                false => fault!("slot-newer", place, format, known),
            }));
        }
        if bytes.len() != FILE_BYTES {
            let (length, wanted) = (bytes.len(), FILE_BYTES);
            return Err(unusable(fault!("slot-length", place, length, wanted)));
        }
        if bytes[..PID] != head_of(key)[..PID] {
            let name = std::str::from_utf8(&bytes[16..PID]).unwrap_or_default();
            return Err(match Key::of_text(name.trim_end_matches('\0')) {
                Some(Key::Bucket(datacenter, worker)) => {
                    unusable(fault!("slot-misnamed", place, datacenter, worker))
                }
                _ => damaged(place),
            });
        }
        let blocks = BLOCKS.map(|at| Stored::of_bytes(&bytes[at..][..BLOCK_BYTES]));
        Ok(Blocks { blocks, settled: number(SETTLED) })
    }

    /// The record that counts. None where there is none: a writer is writing both blocks, or they are damaged.
    pub fn newest(&self, place: &Path) -> Result<Option<Stored>, Failure> {
        let newest = self.blocks.iter().flatten().max_by_key(|stored| stored.turn);
        // A turn is known to be on the disk after it was. So a later one is damaged: what it confirmed is unknown.
        match newest {
            Some(stored) if stored.turn < self.settled => Err(damaged(place)),
            newest => Ok(newest.cloned()),
        }
    }
}

/// The first bytes of a new file.
pub fn head_of(key: Key) -> [u8; PAGE] {
    let mut head = [0; PAGE];
    head[..8].copy_from_slice(&RECORD_MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let name = key.to_string();
    head[16..16 + name.len()].copy_from_slice(name.as_bytes());
    head
}

/// The failure of a file whose record is damaged.
pub fn damaged(place: &Path) -> Failure {
    unusable(fault!("slot-damaged", place))
}
