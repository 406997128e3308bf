//! How a window begins, is raised and ends, while others draw.

use std::borrow::Borrow;

use super::super::atomic::{Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use super::cells::{CEILING_BITS, LAST_WINDOW, ceiling_code, mark_code};
use super::{Cells, Run, Sequence};
use crate::layout::Tick;
use crate::sequencer::{HighMarks, Window};

/// Which window of the cells a ceiling is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowNumber(u64);

/// What [`Sequence::close`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The run that the closed state replaced; of cells that were closed already, the closed one.
    pub run: Run,
    /// Nothing above these was issued, nor will be: the highest is what a release records.
    pub high: HighMarks,
}

/// Closed cells, as they were before their slot was acquired anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    word: u64,
    window: u64,
}

/// Why closed cells were not reopened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReopened {
    /// Another has reopened them, or closed them again, since [`Closed`] was read. Acquire the slot again.
    Overtaken,
    /// The layout has no tick left, or the cells no window: they need new cells.
    Ended,
}

impl<M: Borrow<Cells>> Sequence<M> {
    /// The present window, of which a store may confirm a higher ceiling. Read it before the store is
    /// asked.
    pub fn window_number(&self) -> WindowNumber {
        WindowNumber(self.cells().window.load(Acquire) >> CEILING_BITS)
    }

    /// Moves the ceiling up to what the store has confirmed. It may lie beside the word because it only
    /// rises: a caller that has read a lower one issues less. Of another window than the present one it changes
    /// nothing, so a confirmation may come late. Says whether the window is still that one.
    pub fn raise_ceiling(&self, number: WindowNumber, ceiling: Tick) -> bool {
        let window = &self.cells().window;
        let raised = number.0 << CEILING_BITS | ceiling_code(ceiling);
        let mut seen = window.load(Acquire);
        while seen >> CEILING_BITS == number.0 && raised < seen {
            match window.compare_exchange(seen, raised, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        seen >> CEILING_BITS == number.0
    }

    /// Issues nothing at or below this tick from now on, but for what is being reserved at this moment.
    pub fn raise_floor(&self, tick: Tick) {
        self.cells().floor.fetch_max(mark_code(tick), AcqRel);
    }

    /// Ends the window: nothing is issued from now on.
    ///
    /// It is a swap of the word, so a reservation that was decided before it fails. Of closed cells the
    /// tick is raised by one: a process about to reopen them, for a slot that is released now, fails.
    /// The marks are read after the swap, and so are final.
    pub fn close(&self) -> Ended {
        let word = &self.cells().word.0;
        loop {
            let loaded = word.load(Acquire);
            let run = self.shape.unpack(loaded);
            let raised = Tick::from(run.next == self.shape.closed());
            // Tick 0 is for cells that were not begun.
            let tick = (run.tick + raised).clamp(1, self.shape.last_tick);
            let closed = Run { tick, next: self.shape.closed(), lead: 0, ..run };
            let swapped = word.compare_exchange(loaded, self.shape.pack(closed), AcqRel, Acquire);
            if swapped.is_ok() {
                return Ended { run, high: self.marks_beside(&run) };
            }
        }
    }

    /// As [`Sequence::close`], but leaves cells alone that are closed. For those who may all find a reason to
    /// close, again and again: the tick of closed cells would run away.
    pub fn close_once(&self) -> Ended {
        let run = self.run();
        if run.next != self.shape.closed() {
            return self.close();
        }
        Ended { run, high: self.marks_beside(&run) }
    }

    /// The closed cells, if they are closed. Read it before the slot is acquired.
    pub fn closed(&self) -> Option<Closed> {
        let Cells { word, window, .. } = self.cells();
        let closed = Closed { word: word.0.load(Acquire), window: window.load(Acquire) };
        let is_closed = self.shape.unpack(closed.word).next == self.shape.closed();
        is_closed.then_some(closed)
    }

    /// Begins a window that a store has granted since `closed` was read, above `high` and what was issued
    /// before. In this order: the floor, for it is raised before its ceiling; the ceiling under a number
    /// of its own, so that late confirmations of other windows do not move it; then the word, one tick
    /// above where its counter ever was, so that no paused caller knows the word. Nothing of that tick is
    /// issued yet, so the tick below it counts as exhausted, and an earlier one is a rollback.
    pub fn reopen(
        &self,
        closed: &Closed,
        bounds: Window,
        high: &HighMarks,
    ) -> Result<WindowNumber, NotReopened> {
        let Cells { word, window, floor, marks } = self.cells();
        let shape = &self.shape;
        let run = shape.unpack(closed.word);
        let number = (closed.window >> CEILING_BITS) + 1;
        let counter = high.current.min(shape.counters - 1);
        if number > LAST_WINDOW {
            return Err(NotReopened::Ended);
        }
        floor.fetch_max(mark_code(bounds.floor), AcqRel);
        for (own, &high) in marks[..shape.counters].iter().zip(&high.marks) {
            own.fetch_max(mark_code(high), AcqRel);
        }
        marks[run.counter].fetch_max(mark_code(run.tick), AcqRel);
        let next_window = number << CEILING_BITS | ceiling_code(bounds.ceiling);
        if window.compare_exchange(closed.window, next_window, AcqRel, Acquire).is_err() {
            return Err(NotReopened::Overtaken);
        }
        let tick = marks[counter].load(Acquire) as Tick;
        if tick > shape.last_tick {
            return Err(NotReopened::Ended);
        }
        let open = shape.pack(Run { tick, counter, next: 0, lead: 0 });
        match word.0.compare_exchange(closed.word, open, AcqRel, Acquire) {
            Ok(_) => Ok(WindowNumber(number)),
            Err(_) => Err(NotReopened::Overtaken),
        }
    }

    /// As [`Sequence::reopen`], but goes on at the next number of a run, of which `used` numbers were issued
    /// and no later tick. Nobody else may have the cells meanwhile, since a caller that was paused within
    /// that run knows the word. Where the cells are past it, they are reopened above.
    pub fn resume(
        &self,
        closed: &Closed,
        bounds: Window,
        high: &HighMarks,
        used: u64,
    ) -> Result<WindowNumber, NotReopened> {
        let (counter, tick) = (high.current, high.marks[high.current]);
        let number = self.reopen(closed, bounds, high)?;
        let Cells { word, .. } = self.cells();
        let above = Run { tick: tick + 1, counter, next: 0, lead: 0 };
        if tick >= 0 && (1..=self.shape.last_sequence + 1).contains(&used) {
            let run = Run { tick, counter, next: used, lead: 0 };
            let (above, run) = (self.shape.pack(above), self.shape.pack(run));
            let _ = word.0.compare_exchange(above, run, AcqRel, Acquire);
        }
        Ok(number)
    }

    /// Has the windows of closed cells counted anew, for they are only so many. For cells of one process,
    /// which sees to it that no late confirmation of an earlier window comes in.
    pub fn renumber_windows(&self) {
        debug_assert!(self.is_closed());
        self.cells().window.store(0, Release);
    }

    /// Whether no window can follow the present one.
    pub fn is_last_window(&self) -> bool {
        self.window_number().0 == LAST_WINDOW
    }
}
