//! The present state of the cells.

use std::borrow::Borrow;

use super::super::atomic::Ordering::Acquire;
use super::cells::{Cells, Run, Shape, ceiling_of, mark_of};
use crate::core::layout::{Layout, Tick};
use crate::core::sequencer::{HighMarks, Window};

/// A node's sequencer over shared [`Cells`].
pub struct Sequence<M> {
    cells: M,
    pub(super) shape: Shape,
}

impl<M: Borrow<Cells>> Sequence<M> {
    /// The sequencer of these cells. All who share them must use one layout.
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
        self.shape.unpack(self.cells().word.0.load(Acquire))
    }

    /// Whether the cells issue nothing until they are begun or reopened.
    pub fn is_closed(&self) -> bool {
        self.run().next == self.shape.closed()
    }

    /// Whether a sequencer can have written the cells. If not, something else has, and what they issued is unknown.
    pub fn is_possible(&self, max_ahead: Tick) -> bool {
        self.is_word_possible(max_ahead) && self.are_marks_possible()
    }

    /// Whether a sequencer can have written the word.
    pub fn is_word_possible(&self, max_ahead: Tick) -> bool {
        self.shape.is_possible(self.cells().word.0.load(Acquire), max_ahead)
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

    /// The floor, also while no window is open.
    pub fn floor(&self) -> Tick {
        mark_of(self.cells().floor.load(Acquire))
    }

    /// The highest tick that cells before these may have issued; [`crate::core::sequencer::NEVER`] if there were none.
    pub fn before(&self) -> Tick {
        mark_of(self.cells().before.load(Acquire))
    }

    /// The highest tick that may have been issued, from these cells or before them.
    pub fn highest(&self) -> Tick {
        self.high_marks().highest().max(self.before())
    }

    /// Whether the cells were ever begun, reopened or closed.
    pub fn is_begun(&self) -> bool {
        self.run() != self.not_begun()
    }

    /// The run of cells that were never begun.
    pub(super) fn not_begun(&self) -> Run {
        Run { next: self.shape.closed(), ..Run::default() }
    }

    /// Whether the cells have issued, and issue no more until they are reopened.
    pub fn has_ended(&self) -> bool {
        self.is_closed() && self.is_begun()
    }

    /// Loads the ceiling before the floor (invariant 3).
    pub(super) fn bounds(&self) -> Window {
        let ceiling = ceiling_of(self.cells().window.load(Acquire));
        let floor = mark_of(self.cells().floor.load(Acquire));
        Window { floor, ceiling }
    }

    /// Exact enough if the mark is read after the word (invariant 2).
    pub(super) fn mark(&self, run: &Run, counter: usize) -> Tick {
        if counter == run.counter {
            run.mark()
        } else {
            mark_of(self.cells().marks[counter].load(Acquire))
        }
    }

    /// The highest tick under a counter value when it was last left; [`crate::core::sequencer::NEVER`] if it never was.
    pub fn mark_left(&self, counter: usize) -> Tick {
        mark_of(self.cells().marks[counter].load(Acquire))
    }
}
