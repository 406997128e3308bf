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
//! | 240..248 | used sequence numbers of the current counter's mark; 0 for all |
//! | 248, 249 | the current counter; whether the page was closed |
//! | 250..256 | zeros |
//! | 256..272 | the last jump of the ceiling: before, since |
//! | 272..288 | the skipped ticks: from, to |
//! | 288..508 | the holder: held (0 or 1), pid, start in Unix ms, token, length of its host, UTF-8 |

use super::{Record, Skip};
use crate::authority::Holder;
use crate::core::layout::Tick;
use crate::core::node::Node;
use crate::core::sequencer::NEVER;
use crate::files::cursor::{Cursor, Number};

/// The smallest sector of a disk.
pub const BYTES: usize = 512;

const MAGIC: [u8; 8] = *b"snowdrft";
/// Version 2 was one record and a memory map.
pub const VERSION: u32 = 3;

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
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..56].copy_from_slice(&self.node.to_bytes());
        self.clone().pass(&mut Cursor::writing(&mut bytes, 56));
        let check = crc32fast::hash(&bytes[16..]);
        bytes[12..16].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The record of a sector.
    pub fn from_bytes(bytes: &[u8; BYTES]) -> Result<Record, Unsound> {
        let number = |at| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        match number(8) {
            _ if bytes[..8] != MAGIC => return Err(Unsound::Foreign),
            version if version > VERSION => return Err(Unsound::Newer(version)),
            version @ 1..VERSION => return Err(Unsound::Older(version)),
            VERSION if number(12) == crc32fast::hash(&bytes[16..]) => {}
            _ => return Err(Unsound::Damaged),
        }
        // Bytes that no writer of this version produces are damage, even with a correct CRC.
        let is_whole = |record: &Record| record.is_sound() && record.to_bytes() == *bytes;
        Record::read(*bytes).filter(is_whole).ok_or(Unsound::Damaged)
    }

    fn read(mut bytes: [u8; BYTES]) -> Option<Record> {
        let mut from = Cursor::reading(&mut bytes, 16);
        let node = Node::from_bytes(from.pass([0; _])).ok()?;
        let mut record = Record::starting_at(&node, NEVER);
        record.pass(&mut from)?;
        Some(record)
    }

    /// The fields after the node. None if the bytes are no host's name.
    fn pass(&mut self, record: &mut Cursor) -> Option<()> {
        record.numbers(&mut [&mut self.file, &mut self.page, &mut self.generation]);
        record.numbers(&mut [&mut self.floor, &mut self.ceiling]);
        self.high.marks.iter_mut().for_each(|mark| mark.pass(record));
        self.used.pass(record);
        let [current, is_closed, ..] =
            record.pass([self.high.current as u8, self.is_closed.into(), 0, 0, 0, 0, 0, 0]);
        (self.high.current, self.is_closed) = (current.into(), is_closed != 0);
        let Record { jump, skip, .. } = self;
        record.numbers(&mut [&mut jump.before, &mut jump.since, &mut skip.from, &mut skip.to]);
        let [is_held] = record.pass([self.holder.is_some().into()]);
        if is_held == 0 {
            return Some(());
        }
        let none = || Holder { token: 0, pid: 0, host: String::new(), started_ms: 0 };
        let Holder { token, pid, host, started_ms } = self.holder.get_or_insert_with(none);
        record.numbers(&mut [pid, started_ms, token]);
        let mut text = [0; 1 + LONGEST_HOST];
        let mut len = host.len().min(LONGEST_HOST);
        while !host.is_char_boundary(len) {
            len -= 1;
        }
        text[0] = len as u8;
        text[1..=len].copy_from_slice(&host.as_bytes()[..len]);
        let text = record.pass(text);
        let bytes = text.get(1..=usize::from(text[0]))?;
        *host = String::from_utf8(bytes.to_vec()).ok()?;
        Some(())
    }

    fn is_sound(&self) -> bool {
        let Record { node, floor, ceiling, high, used, jump, skip, .. } = self;
        let layout = node.layout();
        let is_mark = |(counter, &mark): (usize, &Tick)| {
            mark == NEVER || (NEVER < mark && mark <= *ceiling && counter < layout.counters())
        };
        high.marks.iter().enumerate().all(is_mark)
            && high.current < layout.counters()
            && *used <= layout.last_sequence() + 1
            && (NEVER..=*ceiling).contains(floor)
            && (NEVER..=jump.since).contains(&jump.before)
            && (*skip == Skip::NONE || (*ceiling < skip.from && skip.from <= skip.to))
    }
}
