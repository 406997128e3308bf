//! The high marks of a generator in shared memory: a page of the slot's file. Writing them costs a
//! few stores, and they outlive any death of the process, since the page is the kernel's.

use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};

use memmap2::MmapRaw;

use crate::layout::{MAX_COUNTERS, Tick};
use crate::sequencer::{HighMarks, NEVER};

/// What a mark is mixed with to make its check, so that zeros are not a mark.
const CHECK: u64 = 0x9e37_79b9_7f4a_7c15;

/// How many bytes the table takes: the counter in use, then a mark and its check for each counter.
pub const BYTES: usize = (1 + 2 * MAX_COUNTERS) * size_of::<u64>();

/// High marks in a memory map. One generator writes them; the next one reads them.
pub struct MarkTable {
    map: MmapRaw,
    at: usize,
}

impl MarkTable {
    /// The table that starts at byte `at` of a map, a multiple of 8.
    ///
    /// # Panics
    /// If the map is too short.
    pub fn new(map: MmapRaw, at: usize) -> Self {
        assert!(at.is_multiple_of(align_of::<u64>()) && at + BYTES <= map.len());
        MarkTable { map, at }
    }

    /// Notes that `tick` is in use under `counter`, before any ID of it is handed out. Any number of
    /// threads may do so at one time: a mark only rises.
    pub fn note(&self, counter: usize, tick: Tick) {
        // In this order. A process that dies in between leaves a mark above its check, which `read`
        // takes for what it is; a mark below its check is damage. Of two threads the one that is late
        // raises neither. The counter in use is then either's: what may be issued does not depend on it.
        raise(self.word(1 + 2 * counter), 0, tick);
        raise(self.word(2 + 2 * counter), CHECK, tick);
        self.word(0).store((counter as u64 ^ CHECK).to_le(), Release);
    }

    /// Notes all marks.
    pub fn write(&self, high: &HighMarks) {
        for (counter, &mark) in high.marks.iter().enumerate() {
            self.note(counter, mark);
        }
        self.note(high.current, high.marks[high.current]);
    }

    /// Makes a table without marks of whatever is there. For one that nobody notes in.
    pub fn clear(&self) {
        for counter in 0..MAX_COUNTERS {
            let never = NEVER as u64;
            self.word(1 + 2 * counter).store(never.to_le(), Release);
            self.word(2 + 2 * counter).store((never ^ CHECK).to_le(), Release);
        }
        self.word(0).store(CHECK.to_le(), Release);
    }

    /// The marks of a table's bytes. None if they are damaged: no writer leaves them so.
    pub fn read(bytes: &[u8], counters: usize) -> Option<HighMarks> {
        let mut words = bytes[..BYTES]
            .chunks_exact(size_of::<u64>())
            .map(|word| u64::from_le_bytes(word.try_into().expect("a word has 8 bytes")));
        let current = usize::try_from(words.next()? ^ CHECK).ok()?;
        let mut marks = [NEVER; MAX_COUNTERS];
        for (counter, mark) in marks.iter_mut().enumerate() {
            *mark = words.next()? as Tick;
            let check = (words.next()? ^ CHECK) as Tick;
            let is_used = counter < counters;
            if *mark < check || check < NEVER || (!is_used && *mark != NEVER) {
                return None;
            }
        }
        (current < counters).then_some(HighMarks { marks, current })
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        // SAFETY: `new` has checked that the table lies within the map, aligned. The map lives as
        // long as `self`. Other writers are excluded by the lock on the slot's file; readers that
        // only show the file to people may see any of its states.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(self.at).cast::<u64>().add(index)) }
    }
}

/// Raises what a word holds, mixed with this, to a tick.
fn raise(word: &AtomicU64, mixed: u64, tick: Tick) {
    let raised = (tick as u64 ^ mixed).to_le();
    let mut seen = word.load(Acquire);
    while ((u64::from_le(seen) ^ mixed) as Tick) < tick {
        match word.compare_exchange(seen, raised, AcqRel, Acquire) {
            Ok(_) => return,
            Err(now) => seen = now,
        }
    }
}

#[cfg(test)]
mod tests {
    use memmap2::MmapMut;

    use super::*;

    fn table() -> MarkTable {
        let table = MarkTable::new(MmapMut::map_anon(4096).unwrap().into(), 1024);
        table.clear();
        table
    }

    fn bytes(table: &MarkTable) -> Vec<u8> {
        (0..1 + 2 * MAX_COUNTERS).flat_map(|i| table.word(i).load(Acquire).to_ne_bytes()).collect()
    }

    #[test]
    fn marks_read_as_they_were_written() {
        let table = table();
        assert_eq!(MarkTable::read(&bytes(&table), 4), Some(HighMarks::default()));
        table.note(0, 90);
        table.note(3, 10);
        let high = MarkTable::read(&bytes(&table), 4).unwrap();
        assert_eq!((high.marks[0], high.marks[3], high.current), (90, 10, 3));
        assert_eq!(MarkTable::read(&bytes(&table), 2), None, "no such counter in this layout");
    }

    #[test]
    fn threads_that_note_at_one_time_leave_the_highest_mark_whole() {
        let table = table();
        std::thread::scope(|scope| {
            for first in 0..4 {
                let table = &table;
                scope.spawn(move || (first..1000).step_by(4).for_each(|tick| table.note(2, tick)));
            }
        });
        let [mark, check] = [5, 6].map(|n| u64::from_le(table.word(n).load(Acquire)));
        assert_eq!((mark, check ^ CHECK), (999, 999));
        table.note(2, 7);
        assert_eq!(MarkTable::read(&bytes(&table), 4).unwrap().marks[2], 999, "it never falls");
    }

    #[test]
    fn a_death_between_the_stores_leaves_the_higher_mark() {
        let table = table();
        table.note(1, 50);
        table.word(3).store(70u64.to_le(), Release);
        assert_eq!(MarkTable::read(&bytes(&table), 4).unwrap().marks[1], 70);
    }

    #[test]
    fn damage_is_noticed_or_makes_a_mark_higher() {
        let table = table();
        table.note(0, 1_000_000);
        table.note(1, 999_000);
        let whole = bytes(&table);
        let before = MarkTable::read(&whole, 4).unwrap();
        // Miri takes a minute for all.
        for bit in (0..whole.len() * 8).step_by(if cfg!(miri) { 97 } else { 1 }) {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Some(after) = MarkTable::read(&damaged, 4) {
                let lower = |n: usize| after.marks[n] < before.marks[n];
                assert!(!(0..MAX_COUNTERS).any(lower), "bit {bit}");
            }
        }
        assert_eq!(MarkTable::read(&vec![0; BYTES], 4), None);
    }
}
