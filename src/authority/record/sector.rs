//! The bytes of a record, in a block of its file. They fit in one disk sector, so that they are written whole or not
//! at all. Little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `snowdrft` |
//! | 8..12 | version of this format: 3 |
//! | 12..16 | CRC-32 of bytes 16..512 |
//! | 16..56 | the node: [`Node::to_bytes`] |
//! | 56..72 | a random ID of the file |
//! | 72..88, 88..96 | the current page, and the number of openings and closings of pages before |
//! | 96..112 | floor, ceiling: ticks |
//! | 112..240 | the high marks before the page was opened |
//! | 240..248 | used sequence numbers of the current counter's mark; 0 where unknown |
//! | 248, 249 | the current counter; whether the page was closed |
//! | 250..256 | zeros |
//! | 256..272 | the last jump of the ceiling: before, since |
//! | 272..288 | the skipped ticks: from, to |
//! | 288..508 | the holder: held (0 or 1), pid, start in Unix ms, token, length of its host, UTF-8 |

use super::{Jump, Record, Skip};
use crate::authority::Holder;
use crate::core::layout::{MAX_COUNTERS, Tick};
use crate::core::node::Node;
use crate::core::sequencer::{HighMarks, NEVER};
use crate::files::cursor::Cursor;

/// The smallest sector of a disk.
pub const BYTES: usize = 512;

const MAGIC: [u8; 8] = *b"snowdrft";
/// Version 2 was one record and a memory map.
pub const VERSION: u32 = 3;

const HOLDER_AT: usize = 288;
pub(super) const LONGEST_HOST: usize = 190;

/// Reasons that bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsound {
    /// The bytes are of another format.
    Foreign,
    /// A record of a later version.
    Newer(u32),
    /// A record of an earlier version.
    Older(u32),
    /// A damaged record.
    Damaged,
}

impl Record {
    /// The bytes of the sector.
    pub fn to_bytes(&self) -> [u8; BYTES] {
        let mut to = Cursor { bytes: [0; BYTES], at: 16 };
        to.put(&self.node.to_bytes());
        to.put(&self.file.to_le_bytes());
        to.put(&self.page.to_le_bytes());
        to.put(&self.generation.to_le_bytes());
        to.put(&self.floor.to_le_bytes());
        to.put(&self.ceiling.to_le_bytes());
        for mark in self.high.marks {
            to.put(&mark.to_le_bytes());
        }
        to.put(&self.used.to_le_bytes());
        to.put(&[self.high.current as u8, self.is_closed.into()]);
        to.put(&[0; 6]);
        for tick in [self.jump.before, self.jump.since, self.skip.from, self.skip.to] {
            to.put(&tick.to_le_bytes());
        }
        debug_assert_eq!(to.at, HOLDER_AT);
        if let Some(holder) = &self.holder {
            to.put(&[1]);
            to.put(&holder.pid.to_le_bytes());
            to.put(&holder.started_ms.to_le_bytes());
            to.put(&holder.token.to_le_bytes());
            to.put_text(&holder.host, LONGEST_HOST);
        }
        let mut bytes = to.bytes;
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        let check = crc32fast::hash(&bytes[16..]);
        bytes[12..16].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The record of a sector.
    pub fn from_bytes(bytes: &[u8; BYTES]) -> Result<Record, Unsound> {
        if bytes[..8] != MAGIC {
            return Err(Unsound::Foreign);
        }
        let mut from = Cursor { bytes: *bytes, at: 8 };
        let version = u32::from_le_bytes(from.take());
        if version > VERSION {
            return Err(Unsound::Newer(version));
        }
        if (1..VERSION).contains(&version) {
            return Err(Unsound::Older(version));
        }
        let check = u32::from_le_bytes(from.take());
        if version != VERSION || check != crc32fast::hash(&bytes[16..]) {
            return Err(Unsound::Damaged);
        }
        // Bytes that no writer of this version produces are damage, even with a correct CRC.
        let is_whole = |record: &Record| record.to_bytes() == *bytes;
        Record::read(&mut from).filter(is_whole).ok_or(Unsound::Damaged)
    }

    fn read(from: &mut Cursor<BYTES>) -> Option<Record> {
        let tick = |from: &mut Cursor<BYTES>| Tick::from_le_bytes(from.take());
        let node = Node::from_bytes(from.take()).ok()?;
        let file = u128::from_le_bytes(from.take());
        let page = u128::from_le_bytes(from.take());
        let generation = u64::from_le_bytes(from.take());
        let (floor, ceiling) = (tick(from), tick(from));
        let marks: [Tick; MAX_COUNTERS] = std::array::from_fn(|_| tick(from));
        let used = u64::from_le_bytes(from.take());
        let [current, is_closed] = from.take();
        let _: [u8; 6] = from.take();
        let jump = Jump { before: tick(from), since: tick(from) };
        let skip = Skip { from: tick(from), to: tick(from) };
        let record = Record {
            node,
            file,
            page,
            generation,
            floor,
            ceiling,
            high: HighMarks { marks, current: current.into() },
            used,
            is_closed: is_closed != 0,
            holder: match from.take() {
                [0] => None,
                [_] => Some(Holder {
                    pid: u32::from_le_bytes(from.take()),
                    started_ms: i64::from_le_bytes(from.take()),
                    token: u128::from_le_bytes(from.take()),
                    host: from.take_text(LONGEST_HOST)?,
                }),
            },
            jump,
            skip,
        };
        let layout = record.node.layout();
        let counters = layout.counters();
        let is_mark = |(counter, &mark): (usize, &Tick)| {
            mark == NEVER || (NEVER < mark && mark <= ceiling && counter < counters)
        };
        let is_sound = marks.iter().enumerate().all(is_mark)
            && record.high.current < counters
            && used <= layout.last_sequence() + 1
            && NEVER <= record.floor
            && record.floor <= record.ceiling
            && NEVER <= jump.before
            && jump.before <= jump.since
            && (skip == Skip::NONE || (record.ceiling < skip.from && skip.from <= skip.to));
        is_sound.then_some(record)
    }
}
