//! The window of a node that a store records.

use std::time::Duration;

use super::{Generator, WindowId};
use crate::core::layout::Tick;
use crate::core::sequencer::{NEVER, Window};

impl Generator {
    /// Begins a window that a store has granted. It issues ticks above its floor and above all issued before, up to its
    /// ceiling. `is_attended`: as for [`Renewals::begin`](super::Renewals::begin).
    pub fn begin_window(&self, bounds: Window, is_attended: bool) -> WindowId {
        let page = self.page();
        let sequence = page.sequence();
        self.renewals.begin(is_attended, || {
            // This process may itself have issued IDs of the node before the node was recorded. A reservation decided
            // in the previous window fails.
            let high = sequence.end().high;
            sequence.forget_floor();
            if sequence.is_last_window() {
                // The lock and the window's ID keep late answers away.
                sequence.renumber_windows();
            }
            if let Some(closed) = sequence.closed() {
                // Fails if the layout has no tick left. The sequencer then stays closed.
                let _ = sequence.reopen(&closed, bounds, &high);
            }
        })
    }

    /// Opens a window bounded by the layout only and recorded nowhere, unless one is open.
    pub fn open_window(&self) {
        if self.window().ceiling != Tick::MAX {
            self.begin_window(Window::OPEN, false);
        }
    }

    /// The next ceiling: `ahead` of the clock or, within `max_ahead`, of the highest tick issued; at least that tick, at
    /// most the layout's last. So nothing waits for a `max_ahead` that was not used.
    pub fn next_ceiling(&self, ahead: Duration) -> Tick {
        let (layout, page) = (self.node.layout(), self.page());
        let ms = |tick: Tick| layout.tick_start_ms(tick);
        // An overwritten page issues nothing, and raises no ceiling.
        let issued =
            if page.is_possible() { page.sequence().high_marks().highest() } else { NEVER };
        let now = self.clock.now().ms;
        let reached = now.max(ms(issued + 1).min(now.saturating_add(self.max_ahead_ms())));
        let ahead_ms = i64::try_from(ahead.as_millis()).unwrap_or(i64::MAX);
        let tick = layout.tick_at(reached.saturating_add(ahead_ms));
        tick.max(issued).clamp(NEVER, layout.last_tick())
    }

    /// Raises the ceiling to the tick that the store confirmed.
    pub fn raise_ceiling(&self, id: WindowId, ceiling: Tick) {
        let page = self.page();
        let sequence = page.sequence();
        self.renewals.note(id, || sequence.raise_ceiling(sequence.window_number(), ceiling));
    }

    /// Ends a window: nothing is issued from now on. Returns the highest tick issued; `None` if another window has
    /// begun since.
    pub fn end_window(&self, id: WindowId) -> Option<Tick> {
        self.renewals.end(id, || self.page().sequence().end().high.highest())
    }
}
