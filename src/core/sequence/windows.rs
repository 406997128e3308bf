//! Begins, raises and ends windows while other callers generate IDs.

use std::borrow::Borrow;

use super::super::atomic::{Ordering::AcqRel, Ordering::Acquire};
use super::cells::{
    CEILING_BITS, Cells, LAST_WINDOW, Run, Sequence, ceiling_code, mark_code, mark_of,
};
use crate::core::layout::Tick;
use crate::core::sequencer::{HighMarks, Window};

/// The state of closed cells, read before their slot was acquired again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    word: u64,
    window: u64,
}

/// The reason that no window of closed cells began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotBegun {
    /// After [`Closed`] was read, another process began a window or closed the cells again. Acquire the slot again.
    Overtaken,
    /// The layout has no tick left, or the cells have no window number left. Create new cells.
    Ended,
}

impl<M: Borrow<Cells>> Sequence<M> {
    /// Raises the ceiling of the present window to the tick that the store confirmed for it.
    ///
    /// The ceiling can be outside the word because it only rises: a caller that reads an older one only issues less.
    pub fn raise_ceiling(&self, ceiling: Tick) {
        let window = &self.cells().window;
        let raised = |seen: u64| seen >> CEILING_BITS << CEILING_BITS | ceiling_code(ceiling);
        let mut seen = window.load(Acquire);
        // A higher ceiling has a lower code.
        while raised(seen) < seen {
            match window.compare_exchange(seen, raised(seen), AcqRel, Acquire) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Raises the floor: nothing at or below this tick is issued from now on, except by reservations under way.
    pub fn raise_floor(&self, tick: Tick) {
        self.cells().floor.fetch_max(mark_code(tick.min(self.shape.last_tick)), AcqRel);
    }

    /// Notes that the node's earlier cells may have issued ticks up to this one. Call it before these cells begin.
    pub fn note_before(&self, tick: Tick) {
        self.cells().before.fetch_max(mark_code(tick.min(self.shape.last_tick)), AcqRel);
    }

    /// As [`Sequence::note_before`], but for cells that may have begun: raises the floor, too.
    pub fn raise_before(&self, tick: Tick) {
        self.note_before(tick);
        self.raise_floor(tick);
    }

    /// Ends the window: nothing is issued from now on, and new cells cannot begin any more. Does not change cells that
    /// have ended. Returns the final marks: nothing above them is ever issued.
    ///
    /// It swaps the word, so a reservation that was decided before fails. It reads the marks after the swap, so they
    /// are final.
    pub fn end(&self) -> HighMarks {
        let word = &self.cells().word;
        loop {
            let loaded = word.load(Acquire);
            let run = self.shape.unpack(loaded);
            let is_begun = run != self.not_begun();
            // Tick 0 is reserved for new cells.
            let closed = Run { tick: run.tick.max(1), next: self.shape.closed(), lead: 0, ..run };
            let has_ended = is_begun && run.next == closed.next;
            let swap = || word.compare_exchange(loaded, self.shape.pack(closed), AcqRel, Acquire);
            if has_ended || swap().is_ok() {
                return if is_begun { self.marks_beside(&run) } else { HighMarks::default() };
            }
        }
    }

    /// The state of the cells if they are closed. Read it before you acquire the slot.
    pub fn closed(&self) -> Option<Closed> {
        let Cells { word, window, .. } = self.cells();
        let closed = Closed { word: word.load(Acquire), window: window.load(Acquire) };
        let is_closed = self.shape.unpack(closed.word).next == self.shape.closed();
        is_closed.then_some(closed)
    }

    /// Begins a window above all issued ticks. The store, if there is one, must have granted it after `closed` was read.
    /// Writes in this order:
    ///
    /// 1. the floor, since it must rise before its ceiling,
    /// 2. the marks,
    /// 3. the ceiling, with a new window number: so of two that begin one at once, one does,
    /// 4. the word, one tick above all runs of its counter value, so that no paused caller has loaded an equal word.
    ///
    /// No ID of that tick is issued yet. So the tick below it counts as exhausted, and an earlier tick as a rollback.
    ///
    /// `used`: a tick, of which this many numbers count as issued, at least 1: new cells begin there, with the next number.
    /// Cells that are past it begin above it, as without.
    pub fn begin(
        &self,
        closed: &Closed,
        bounds: Window,
        used: Option<(Tick, u64)>,
    ) -> Result<(), NotBegun> {
        let Cells { word, window, floor, marks, .. } = self.cells();
        let shape = &self.shape;
        let run = shape.unpack(closed.word);
        let number = (closed.window >> CEILING_BITS) + 1;
        if number > LAST_WINDOW {
            return Err(NotBegun::Ended);
        }
        floor.fetch_max(mark_code(bounds.floor.min(shape.last_tick)), AcqRel);
        if let Some((tick, _)) = used {
            marks[0].fetch_max(mark_code(tick.min(shape.last_tick)), AcqRel);
        }
        marks[run.counter].fetch_max(mark_code(run.tick), AcqRel);
        let next_window = number << CEILING_BITS | ceiling_code(bounds.ceiling);
        if window.compare_exchange(closed.window, next_window, AcqRel, Acquire).is_err() {
            return Err(NotBegun::Overtaken);
        }
        let begun = mark_of(marks[0].load(Acquire));
        let (tick, next) = match used {
            Some(used) if used.0 >= begun.max(0) => used,
            // A word of 0 is damage, so no run begins at number 0 of tick 0.
            _ => ((begun + 1).max(1), 0),
        };
        if tick > shape.last_tick {
            return Err(NotBegun::Ended);
        }
        let open = shape.pack(Run { tick, counter: 0, next, lead: 0 });
        match word.compare_exchange(closed.word, open, AcqRel, Acquire) {
            Ok(_) => Ok(()),
            Err(_) => Err(NotBegun::Overtaken),
        }
    }

    /// Whether a window ever began.
    pub fn has_had_window(&self) -> bool {
        self.cells().window.load(Acquire) >> CEILING_BITS > 0
    }
}
