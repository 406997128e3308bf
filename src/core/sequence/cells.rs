//! The shared cells: the word, the cells beside it, the encoding of runs, ceilings and marks, and the present state.
//! The encoding is part of page format 4 and must not change.
//!
//! ```text
//!   high                                                          low
//!   | lead: remaining bits | tick | counter | next: sequence bits + 1 |
//! ```
//!
//! - `next` is the next sequence number. 2^(sequence bits) means exhausted, one more means closed. These 2^(sequence
//!   bits) + 2 values fit in one bit more than the sequence has, since a sequence has at least one bit.
//! - Tick, counter and next take at most 64 bits, since the widths of a valid layout add up to at most 63.
//! - The *lead* is the tick minus the clock at the swap. It takes the bits of the ID's datacenter and worker, and the
//!   layout's unused bits. Booking needs at least one of them.
//! - All zeros is a fresh sequencer: tick 0, without an issued number. Only the process's own memory starts as zeros.
//!   No sequencer writes a word of 0.
//! - Other programs may write to a page. A value that no sequencer writes is damage ([`Shape::is_possible`]), and
//!   nothing is issued from it. A tick far from the clock is not damage.

use std::borrow::Borrow;

use super::super::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use crate::core::layout::{Layout, MAX_COUNTERS, Tick};
use crate::core::sequencer::{HighMarks, Window};

/// The cells that threads and processes share. All zeros is a fresh sequencer with an unbounded window.
#[derive(Default)]
#[repr(C, align(128))]
pub struct Cells {
    pub(super) word: AtomicU64,
    /// Padding of the word's cache line: every reservation writes the word, and few write another cell.
    _line: [std::sync::atomic::AtomicU64; 15],
    /// High bits: the window number. Low bits: the code of its ceiling ([`ceiling_code`]).
    pub(super) window: AtomicU64,
    /// The floor plus 1.
    pub(super) floor: AtomicU64,
    /// The highest tick that the node's earlier cells may have issued, plus 1.
    pub(super) before: AtomicU64,
    /// The mark of each counter value, plus 1. The mark of the current counter value is in the word.
    pub(super) marks: [AtomicU64; MAX_COUNTERS],
}

impl Cells {
    /// Closes zeroed cells: they issue nothing until [`super::Sequence::begin`]. A new page has such cells when it is
    /// linked.
    pub fn prepare(&self, layout: &Layout) {
        let shape = Shape::of(layout);
        let run = Run { next: shape.closed(), ..Run::default() };
        self.word.store(shape.pack(run), Release);
    }

    /// The window's ceiling.
    pub fn ceiling(&self) -> Tick {
        ceiling_of(self.window.load(Acquire))
    }
}

/// The current run, unpacked from the word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The tick.
    pub tick: Tick,
    /// The counter value.
    pub counter: usize,
    /// The next sequence number. `last_sequence` + 1 means exhausted, + 2 means closed.
    pub next: u64,
    /// The tick minus the clock at the swap; 0 if the tick was not ahead of the clock. The fast path does not update
    /// it.
    pub lead: Tick,
}

/// The encoding of runs in a word, for one layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    next_bits: u32,
    pub(super) next_mask: u64,
    pub(super) tick_at: u32,
    /// Arbitrary if no bits are left for the lead: `last_lead` is 0 then.
    lead_at: u32,
    /// The largest lead that fits in the word. No lead needs more than 32 bits.
    pub(super) last_lead: u64,
    pub(super) counters: usize,
    pub(super) last_sequence: u64,
    pub(super) last_tick: Tick,
    /// The most ticks that a booking may lie ahead of `max_ahead`.
    pub(super) most_booked: Tick,
}

/// The largest `max_wait` that options allow, in ms: the longest wait of a booking.
const LONGEST_WAIT_MS: i64 = 60_000;

impl Shape {
    pub(super) fn of(layout: &Layout) -> Shape {
        let next_bits = u32::from(layout.sequence_bits) + 1;
        let tick_at = next_bits + u32::from(layout.clock_back_bits);
        let lead_bits = 64 - tick_at - u32::from(layout.timestamp_bits);
        Shape {
            next_bits,
            next_mask: (1 << next_bits) - 1,
            tick_at,
            lead_at: (64 - lead_bits) % 64,
            last_lead: (1 << lead_bits.min(32)) - 1,
            counters: layout.counters(),
            last_sequence: layout.last_sequence(),
            last_tick: layout.last_tick(),
            most_booked: LONGEST_WAIT_MS / layout.tick_ms.max(1) + 1,
        }
    }

    /// Whether a sequencer can have written this word. Any tick is possible, since the clock may show any time. These
    /// are impossible: 0 (cleared memory), a number beyond the sequence, a lead longer than any booking's, a bit
    /// outside all fields.
    pub(super) fn is_possible(&self, word: u64, max_ahead: Tick) -> bool {
        let run = self.unpack(word);
        word != 0
            && run.next <= self.closed()
            && run.lead <= self.most_booked.saturating_add(max_ahead)
            && self.pack(run) == word
    }

    /// Whether a sequencer can have written this mark or floor: a tick of the layout, or none.
    pub(super) fn is_possible_mark(&self, code: u64) -> bool {
        code <= mark_code(self.last_tick)
    }

    pub(super) fn closed(&self) -> u64 {
        self.last_sequence + 2
    }

    pub(super) fn pack(&self, run: Run) -> u64 {
        debug_assert!((0..=self.last_tick).contains(&run.tick) && run.counter < self.counters);
        let lead = (run.lead.max(0) as u64).min(self.last_lead);
        lead << self.lead_at
            | (run.tick as u64) << self.tick_at
            | (run.counter as u64) << self.next_bits
            | run.next
    }

    pub(super) fn unpack(&self, word: u64) -> Run {
        Run {
            tick: (word >> self.tick_at) as Tick & self.last_tick,
            counter: (word >> self.next_bits) as usize & (self.counters - 1),
            next: word & self.next_mask,
            lead: (word >> self.lead_at & self.last_lead) as Tick,
        }
    }
}

impl Run {
    /// The last tick that may have been issued under the run's counter value. A run at number 0 has issued nothing of
    /// its tick. [`crate::core::sequencer::NEVER`] for a fresh sequencer.
    pub fn mark(&self) -> Tick {
        if self.next == 0 { self.tick - 1 } else { self.tick }
    }
}

/// Bits of the ceiling in its cell: any two JavaScript Dates are less than 2^54 ms apart.
pub(super) const CEILING_BITS: u32 = 54;
const UNBOUNDED: u64 = (1 << CEILING_BITS) - 1;
pub(super) const LAST_WINDOW: u64 = u64::MAX >> CEILING_BITS;

/// The code of a ceiling in its cell. Zero is unbounded; a higher ceiling has a lower code.
pub(super) fn ceiling_code(ceiling: Tick) -> u64 {
    UNBOUNDED - (ceiling.saturating_add(1).max(0) as u64).min(UNBOUNDED)
}

pub(super) fn ceiling_of(window: u64) -> Tick {
    match UNBOUNDED - (window & UNBOUNDED) {
        UNBOUNDED => Tick::MAX,
        above => above as Tick - 1,
    }
}

/// The code of a tick in a cell where zero is [`crate::core::sequencer::NEVER`].
pub(super) fn mark_code(tick: Tick) -> u64 {
    tick.saturating_add(1).max(0) as u64
}

/// The tick of a code. An impossible code gives the highest tick, so nothing is issued under it.
pub(super) fn mark_of(code: u64) -> Tick {
    Tick::try_from(code).unwrap_or(Tick::MAX) - 1
}

/// A node's sequencer over shared [`Cells`].
pub struct Sequence<M> {
    cells: M,
    pub(super) shape: Shape,
}

impl<M: Borrow<Cells>> Sequence<M> {
    /// The sequencer of these cells. All users of the cells must pass the same layout.
    pub fn new(cells: M, layout: &Layout) -> Self {
        Sequence { cells, shape: Shape::of(layout) }
    }

    /// The owner of the cells.
    pub fn memory(&self) -> &M {
        &self.cells
    }

    pub(super) fn cells(&self) -> &Cells {
        self.cells.borrow()
    }

    /// The current run.
    pub fn run(&self) -> Run {
        self.shape.unpack(self.cells().word.load(Acquire))
    }

    /// Whether the cells are closed: they issue nothing until a window begins.
    pub fn is_closed(&self) -> bool {
        self.run().next == self.shape.closed()
    }

    /// Whether a sequencer can have written the cells. Otherwise another program has, and the issued IDs are unknown.
    pub fn is_possible(&self, max_ahead: Tick) -> bool {
        self.is_word_possible(max_ahead) && self.are_marks_possible()
    }

    /// Whether a sequencer can have written the word.
    pub fn is_word_possible(&self, max_ahead: Tick) -> bool {
        self.shape.is_possible(self.cells().word.load(Acquire), max_ahead)
    }

    pub(super) fn are_marks_possible(&self) -> bool {
        let Cells { floor, before, marks, .. } = self.cells();
        let mut cells = marks[..self.shape.counters].iter().chain([floor, before]);
        cells.all(|cell| self.shape.is_possible_mark(cell.load(Acquire)))
    }

    /// The highest tick issued under each counter value.
    pub fn high_marks(&self) -> HighMarks {
        self.marks_beside(&self.run())
    }

    pub(super) fn marks_beside(&self, run: &Run) -> HighMarks {
        let mut high = HighMarks { current: run.counter, ..HighMarks::default() };
        for (counter, mark) in high.marks[..self.shape.counters].iter_mut().enumerate() {
            *mark = self.mark(run, counter);
        }
        high
    }

    /// The ticks that may be issued at present.
    pub fn window(&self) -> Window {
        if self.is_closed() { Window::CLOSED } else { self.bounds() }
    }

    /// The floor, even while no window is open.
    pub fn floor(&self) -> Tick {
        mark_of(self.cells().floor.load(Acquire))
    }

    /// The highest tick that the node's earlier cells may have issued; [`crate::core::sequencer::NEVER`] if there were
    /// none.
    pub fn before(&self) -> Tick {
        mark_of(self.cells().before.load(Acquire))
    }

    /// The highest tick that these cells or the node's earlier ones may have issued.
    pub fn highest(&self) -> Tick {
        self.high_marks().highest().max(self.before())
    }

    /// Whether a window of the cells ever began, or they were ended.
    pub fn is_begun(&self) -> bool {
        self.run() != self.not_begun()
    }

    /// The run of new cells.
    pub(super) fn not_begun(&self) -> Run {
        Run { next: self.shape.closed(), ..Run::default() }
    }

    /// Whether the cells were begun, and are closed now.
    pub fn has_ended(&self) -> bool {
        self.is_closed() && self.is_begun()
    }

    /// The window of the cells, open or not. Loads the ceiling before the floor (invariant 3).
    pub(super) fn bounds(&self) -> Window {
        let ceiling = ceiling_of(self.cells().window.load(Acquire));
        let floor = mark_of(self.cells().floor.load(Acquire));
        Window { floor, ceiling }
    }

    /// The highest tick issued under a counter value, where `run` is the current run. Read the word before the mark:
    /// then the mark is at least as high (invariant 2).
    pub fn mark(&self, run: &Run, counter: usize) -> Tick {
        if counter == run.counter {
            run.mark()
        } else {
            mark_of(self.cells().marks[counter].load(Acquire))
        }
    }
}

#[cfg(test)]
mod tests;
