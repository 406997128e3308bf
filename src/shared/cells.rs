//! What is shared: the word and the cells beside it, and how a run, a ceiling and a mark are packed into
//! them. Format 1 for ever.
//!
//! ```text
//!   high                                                          low
//!   | lead: what remains | tick | counter | next: sequence bits + 1 |
//! ```
//!
//! - `next` is the next sequence number. 2^sequence bits is exhausted, one more is closed. These are
//!   2^bits + 2 values, which one more bit always holds, since a sequence has at least one.
//! - So tick, counter and next take at most 64 bits of any legal layout, whose widths add up to 63.
//! - The *lead* is the tick minus the clock at the swap. It has the bits that datacenter and worker
//!   have in the ID, and those the layout leaves. Without any, nobody can book.
//! - All zeros is a fresh sequencer: tick 0, of which nothing was drawn.

use super::super::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use crate::layout::{Layout, MAX_COUNTERS, Tick};

/// What is shared. All zeros is a fresh sequencer in a window without bounds.
#[repr(C)]
pub struct Cells {
    pub(super) word: Line,
    /// The number of the window, and below it how far its ceiling lies below the highest one.
    pub(super) window: AtomicU64,
    /// The floor plus one.
    pub(super) floor: AtomicU64,
    /// By counter value, the mark plus one. Of the current one the word has it.
    pub(super) marks: [AtomicU64; MAX_COUNTERS],
}

/// What every reservation writes has a cache line of its own, the rest is read.
#[repr(C, align(128))]
pub(super) struct Line(pub(super) AtomicU64);

impl Default for Cells {
    fn default() -> Self {
        Cells {
            word: Line(AtomicU64::new(0)),
            window: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            marks: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Cells {
    /// Cells that issue nothing until [`super::Sequence::begin`]: what a page is linked with.
    pub fn not_begun(layout: &Layout) -> Cells {
        let shape = Shape::of(layout);
        let run = Run { next: shape.closed(), ..Run::default() };
        Cells { word: Line(AtomicU64::new(shape.pack(run))), ..Cells::default() }
    }

    /// Where the floor is, in bytes.
    pub const FLOOR_AT: usize = std::mem::offset_of!(Cells, floor);

    /// The floor as it is kept there.
    pub fn floor_cell(&self) -> u64 {
        self.floor.load(Acquire)
    }

    /// Where the window is, in bytes.
    pub const WINDOW_AT: usize = std::mem::offset_of!(Cells, window);

    /// The window as it is kept there.
    pub fn window_cell(&self) -> u64 {
        self.window.load(Acquire)
    }

    /// The window's ceiling.
    pub fn ceiling(&self) -> Tick {
        ceiling_of(self.window_cell())
    }

    /// Gives cells that nobody shares yet a ceiling.
    pub fn lower_ceiling(&self, ceiling: Tick) {
        self.window.store(ceiling_code(ceiling), Release);
    }

    /// The word at present: their first 8 bytes.
    pub fn word(&self) -> u64 {
        self.word.0.load(Acquire)
    }
}

/// The current run, as the word holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Its tick.
    pub tick: Tick,
    /// Its counter value.
    pub counter: usize,
    /// The next sequence number; above the last one when it is exhausted, one more when it is closed.
    pub next: u64,
    /// How far the tick lay ahead of the clock at the swap.
    pub lead: Tick,
}

/// How a layout's runs are packed into a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    next_bits: u32,
    pub(super) next_mask: u64,
    pub(super) tick_at: u32,
    /// Anywhere where no bits remain: the last lead is 0 then.
    lead_at: u32,
    /// The largest lead that the word holds. None needs more than 32 bits.
    pub(super) last_lead: u64,
    pub(super) counters: usize,
    pub(super) last_sequence: u64,
    pub(super) last_tick: Tick,
}

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
        }
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
    /// The last tick that may have been issued under its counter: of one whose next number is the first,
    /// nothing was. Of a fresh sequencer it is [`crate::sequencer::NEVER`].
    pub fn mark(&self) -> Tick {
        if self.next == 0 { self.tick - 1 } else { self.tick }
    }
}

/// Bits of the ceiling in its cell. Two JavaScript Dates lie less than 2^54 ms apart.
pub(super) const CEILING_BITS: u32 = 54;
const UNBOUNDED: u64 = (1 << CEILING_BITS) - 1;
pub(super) const LAST_WINDOW: u64 = u64::MAX >> CEILING_BITS;

/// A ceiling in its cell: zero is no bound, and what is higher is less.
pub(super) fn ceiling_code(ceiling: Tick) -> u64 {
    UNBOUNDED - (ceiling.saturating_add(1).max(0) as u64).min(UNBOUNDED)
}

pub(super) fn ceiling_of(window: u64) -> Tick {
    match UNBOUNDED - (window & UNBOUNDED) {
        UNBOUNDED => Tick::MAX,
        above => above as Tick - 1,
    }
}

/// A tick in a cell where zero is [`NEVER`].
pub fn mark_code(tick: Tick) -> u64 {
    tick.saturating_add(1).max(0) as u64
}
