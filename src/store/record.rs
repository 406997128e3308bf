//! A record: what a block of a slot's file says of the slot, in one disk sector, so that it is written
//! whole or not at all. Little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `snowdrft` |
//! | 8..12 | version of this format: 3 |
//! | 12..16 | CRC-32 of bytes 16..512 |
//! | 16..40 | the layout: five widths, 3 zeros, tick in ms, epoch in Unix ms |
//! | 40..56 | datacenter ID, worker ID |
//! | 56..72 | a random ID of the file |
//! | 72..88, 88..96 | the page that is drawn from, and how many were opened or closed until then |
//! | 96..112 | floor, ceiling: ticks |
//! | 112..240 | the high marks before the page was opened |
//! | 240..248 | how many numbers of the current counter's mark were used; 0 where that is not known |
//! | 248, 249 | the current counter; whether the page was closed |
//! | 250..256 | zeros |
//! | 256..272 | the last jump of the ceiling: before, since |
//! | 272..288 | what is skipped: from, to |
//! | 288..508 | the holder: held (0 or 1), pid, start in Unix ms, token, length of its host, UTF-8 |

use crate::layout::{Layout, MAX_COUNTERS, Tick};
use crate::node::Node;
use crate::sequencer::{HighMarks, NEVER};
use crate::store::Holder;

/// A sector of any disk.
pub const BYTES: usize = 512;

const MAGIC: [u8; 8] = *b"snowdrft";
/// 2 was one record and a memory map.
pub const VERSION: u32 = 3;

const HOLDER_AT: usize = 288;
const LONGEST_HOST: usize = 190;

/// What is known of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Whose slot it is.
    pub node: Node,
    /// Tells its file from every other.
    pub file: u128,
    /// The page that is drawn from, or the process's memory; 0 for none.
    pub page: u128,
    /// Rises when a page is opened or closed. Of two records the one with the higher
    /// ([`Record::rank`]) counts.
    pub generation: u64,
    /// What was issued at or below it is not known; above it, the high marks tell.
    pub floor: Tick,
    /// Nothing was issued above it.
    pub ceiling: Tick,
    /// What was issued above the floor before the page was opened.
    pub high: HighMarks,
    /// How many numbers of the current counter's mark were used; 0 where that is not known.
    pub used: u64,
    /// Whether nothing was issued since: the page was closed.
    pub is_closed: bool,
    /// Who wrote it. None after the last user has closed the page.
    pub holder: Option<Holder>,
    /// When the ceiling last rose by hours at once.
    pub jump: Jump,
    /// Ticks that were issued by a clock that stood ahead, and are not issued again.
    pub skip: Skip,
}

/// A rise of the ceiling by hours at once: the slot was unused for so long, or the clock jumped. What
/// was issued until then lies at or below `before`; what was issued by the clock since then lies at or
/// above `since`, unless it rolled back. Both [`NEVER`] where that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The ceiling before it.
    pub before: Tick,
    /// Some hours below the ceiling after it.
    pub since: Tick,
}

impl Jump {
    /// Nothing is known of one.
    pub const NONE: Jump = Jump { before: NEVER, since: NEVER };
}

/// The ticks from `from` to `to`, both included. None where `to` is [`NEVER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skip {
    /// The first.
    pub from: Tick,
    /// The last.
    pub to: Tick,
}

impl Skip {
    /// No tick.
    pub const NONE: Skip = Skip { from: NEVER, to: NEVER };
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Something else altogether.
    Foreign,
    /// A record of a later version.
    Newer(u32),
    /// A record of an earlier version.
    Older(u32),
    /// A record once.
    Damaged,
}

/// A rise of the ceiling by more than this is a jump.
const JUMP_MS: i64 = 4 * HOUR_MS;

/// How far below the ceiling a clock may stand: ttl and maxAhead are an hour each at the most, and an
/// hour is for small rollbacks.
const REACH_MS: i64 = 3 * HOUR_MS;

/// Ms.
pub const HOUR_MS: i64 = 3_600_000;

impl Record {
    /// Nobody's, from which nothing was issued above a tick.
    pub fn starting_at(node: &Node, tick: Tick) -> Record {
        Record {
            node: *node,
            file: fastrand::u128(1..),
            page: 0,
            generation: 0,
            floor: tick,
            ceiling: tick,
            high: HighMarks::default(),
            used: 0,
            is_closed: true,
            holder: None,
            jump: Jump::NONE,
            skip: Skip::NONE,
        }
    }

    /// Of a file's records the one with the highest counts.
    pub fn rank(&self) -> (u64, Tick) {
        (self.generation, self.ceiling)
    }

    /// The same with a ceiling of at least this.
    pub fn raised(&self, ceiling: Tick) -> Record {
        let ceiling = ceiling.max(self.ceiling);
        let jump = if ceiling.saturating_sub(self.ceiling) > self.ticks(JUMP_MS) {
            Jump { before: self.ceiling, since: ceiling - self.ticks(REACH_MS) }
        } else {
            self.jump
        };
        Record { ceiling, jump, ..self.clone() }
    }

    /// The same after a release, with a ceiling that may be lower.
    pub fn lowered(&self, ceiling: Tick) -> Record {
        // A jump under which nothing was issued was none; where the last one ended is not known.
        let jump = if ceiling < self.jump.since { Jump::NONE } else { self.jump };
        Record { ceiling, jump, holder: None, ..self.clone() }
    }

    /// The same with a floor above what is skipped, where the clock behind this ceiling has certainly
    /// passed it.
    pub fn passing_what_is_skipped(self, ceiling: Tick) -> Record {
        let Skip { from, to } = self.skip;
        if self.skip == Skip::NONE || ceiling.saturating_sub(to) <= self.ticks(REACH_MS) {
            return self;
        }
        // Should that clock be wrong again, the next reset skips this, too.
        let jump = Jump { before: self.ceiling, since: from };
        Record { floor: to, ceiling, jump, skip: Skip::NONE, ..self }
    }

    /// At least as many ticks as that.
    pub fn ticks(&self, ms: i64) -> Tick {
        ms / self.node.layout().tick_ms + 1
    }

    /// The sector.
    pub fn to_bytes(&self) -> [u8; BYTES] {
        let mut to = Cursor { bytes: [0; BYTES], at: 16 };
        let layout = self.node.layout();
        to.put(&[
            layout.timestamp_bits,
            layout.datacenter_bits,
            layout.worker_bits,
            layout.clock_back_bits,
            layout.sequence_bits,
        ]);
        to.put(&[0; 3]);
        to.put(&layout.tick_ms.to_le_bytes());
        to.put(&layout.epoch_ms.to_le_bytes());
        to.put(&self.node.datacenter_id().to_le_bytes());
        to.put(&self.node.worker_id().to_le_bytes());
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
    pub fn from_bytes(bytes: &[u8; BYTES]) -> Result<Record, Fault> {
        if bytes[..8] != MAGIC {
            return Err(Fault::Foreign);
        }
        let mut from = Cursor { bytes: *bytes, at: 8 };
        let version = u32::from_le_bytes(from.take());
        if version > VERSION {
            return Err(Fault::Newer(version));
        }
        if (1..VERSION).contains(&version) {
            return Err(Fault::Older(version));
        }
        let check = u32::from_le_bytes(from.take());
        if version != VERSION || check != crc32fast::hash(&bytes[16..]) {
            return Err(Fault::Damaged);
        }
        // What no writer of this version writes is damage, too, though its check is right.
        let is_whole = |record: &Record| record.to_bytes() == *bytes;
        Record::read(&mut from).filter(is_whole).ok_or(Fault::Damaged)
    }

    fn read(from: &mut Cursor) -> Option<Record> {
        let widths = from.take();
        let _: [u8; 3] = from.take();
        let tick_ms = i64::from_le_bytes(from.take());
        let epoch_ms = i64::from_le_bytes(from.take());
        let layout = Layout::cut(widths, tick_ms, epoch_ms);
        let datacenter_id = u64::from_le_bytes(from.take());
        let worker_id = u64::from_le_bytes(from.take());
        let file = u128::from_le_bytes(from.take());
        let page = u128::from_le_bytes(from.take());
        let generation = u64::from_le_bytes(from.take());
        let mut tick = || i64::from_le_bytes(from.take());
        let (floor, ceiling) = (tick(), tick());
        let marks: [Tick; MAX_COUNTERS] = std::array::from_fn(|_| tick());
        let used = u64::from_le_bytes(from.take());
        let [current, is_closed] = from.take();
        let _: [u8; 6] = from.take();
        let mut tick = || i64::from_le_bytes(from.take());
        let jump = Jump { before: tick(), since: tick() };
        let skip = Skip { from: tick(), to: tick() };
        let record = Record {
            node: Node::new(layout, datacenter_id, worker_id).ok()?,
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

/// Writes to and reads from a sector, field after field.
#[derive(Clone, Copy)]
struct Cursor {
    bytes: [u8; BYTES],
    at: usize,
}

impl Cursor {
    fn put(&mut self, field: &[u8]) {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
    }

    /// A text in a field of one byte more than `longest`. A longer one is cut.
    fn put_text(&mut self, text: &str, longest: usize) {
        let start = self.at;
        let mut len = text.len().min(longest);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        self.put(&[len as u8]);
        self.put(&text.as_bytes()[..len]);
        self.at = start + 1 + longest;
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.bytes[self.at..self.at + N]);
        self.at += N;
        field
    }

    fn take_text(&mut self, longest: usize) -> Option<String> {
        let [len] = self.take();
        let start = self.at;
        self.at += longest;
        let len = usize::from(len);
        if len > longest {
            return None;
        }
        String::from_utf8(self.bytes[start..start + len].to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn high() -> HighMarks {
        let mut high = HighMarks { current: 3, ..HighMarks::default() };
        high.marks[3] = 214_999_999_999;
        high
    }

    fn record() -> Record {
        Record {
            node: Node::new(Layout::NODE, 7, 31).unwrap(),
            file: u128::MAX / 7,
            page: u128::MAX / 5,
            generation: 12,
            floor: 5,
            ceiling: 215_000_000_000,
            high: high(),
            used: 4096,
            is_closed: false,
            holder: Some(Holder {
                token: u128::MAX / 3,
                pid: 4711,
                host: "web-1.example".to_owned(),
                started_ms: 1_795_000_000_000,
            }),
            jump: Jump { before: 7, since: 214_000_000_000 },
            skip: Skip { from: 216_000_000_000, to: 216_000_000_000 },
        }
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        let released = Record {
            holder: None,
            page: 0,
            used: 0,
            high: HighMarks::default(),
            is_closed: true,
            floor: NEVER,
            jump: Jump::NONE,
            skip: Skip::NONE,
            ..record()
        };
        for record in [record(), released] {
            assert_eq!(Record::from_bytes(&record.to_bytes()), Ok(record));
        }
    }

    #[test]
    fn a_long_host_is_cut_between_characters() {
        let host = "ü".repeat(200);
        let holder = Holder { host: host.clone(), ..record().holder.unwrap() };
        let written = Record { holder: Some(holder), ..record() };
        let read = Record::from_bytes(&written.to_bytes()).unwrap();
        assert_eq!(read.holder.unwrap().host, host[..LONGEST_HOST]);
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let whole = record().to_bytes();
        // Miri takes a minute for all.
        for at in (0..BYTES).step_by(if cfg!(miri) { 37 } else { 1 }) {
            for mask in [1, 0x80, 0xff] {
                let mut damaged = whole;
                damaged[at] ^= mask;
                assert!(Record::from_bytes(&damaged).is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn what_is_foreign_newer_or_damaged_is_told_apart() {
        assert_eq!(Record::from_bytes(&[0; BYTES]), Err(Fault::Foreign));
        let mut newer = record().to_bytes();
        newer[8] = 4;
        assert_eq!(Record::from_bytes(&newer), Err(Fault::Newer(4)));
        let mut older = record().to_bytes();
        older[8] = 1;
        assert_eq!(Record::from_bytes(&older), Err(Fault::Older(1)));
        older[8] = 0;
        assert_eq!(Record::from_bytes(&older), Err(Fault::Damaged), "no version at all");
        let mut damaged = record().to_bytes();
        damaged[60] ^= 1;
        assert_eq!(Record::from_bytes(&damaged), Err(Fault::Damaged));
    }

    #[test]
    fn what_no_writer_writes_is_damage() {
        let written = Record { holder: None, ..record() };
        // Padding of the layout, a counter that the layout has not, `is_closed`, padding, `held`, and
        // after the holder.
        for at in [21, 150, 249, 252, 288, 509] {
            let mut bytes = written.to_bytes();
            bytes[at] = 2;
            let check = crc32fast::hash(&bytes[16..]);
            bytes[12..16].copy_from_slice(&check.to_le_bytes());
            assert_eq!(Record::from_bytes(&bytes), Err(Fault::Damaged), "byte {at}");
        }
    }

    #[test]
    fn ticks_in_the_wrong_order_are_damage() {
        let free = Record { jump: Jump::NONE, skip: Skip::NONE, ..record() };
        for wrong in [
            Record { floor: 9, ceiling: 8, high: HighMarks::default(), ..free.clone() },
            Record { ceiling: 214_999_999_998, ..free.clone() },
            Record { used: 4097, ..free.clone() },
            Record { high: HighMarks { current: 4, ..high() }, ..free.clone() },
            Record { jump: Jump { before: 9, since: 8 }, ..free.clone() },
            Record { jump: Jump { before: -2, since: 8 }, ..free.clone() },
            Record { skip: Skip { from: free.ceiling, to: free.ceiling + 9 }, ..free.clone() },
            Record { skip: Skip { from: free.ceiling + 9, to: free.ceiling + 8 }, ..free.clone() },
            Record { skip: Skip { from: free.ceiling + 9, to: NEVER }, ..free },
        ] {
            assert_eq!(Record::from_bytes(&wrong.to_bytes()), Err(Fault::Damaged), "{wrong:?}");
        }
    }
}
