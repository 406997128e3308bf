//! The beginning of a page, above the ticks of its node's earlier pages, and its end.

use super::header::Header;
use super::page::Page;
use crate::core::layout::Tick;
use crate::core::sequence::NotBegun;
use crate::core::sequencer::{NEVER, Window};

/// The ticks that a node's earlier pages may have issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// They may have issued ticks up to this one.
    pub floor: Tick,
    /// Ticks up to this one count as exhausted, but a rollback below it is allowed.
    pub mark: Tick,
}

impl Page {
    /// The ticks that the node's earlier pages may have issued. Call it before this page begins. `now`: the clock's
    /// tick, read while the page has both its names. So an earlier page that this one does not know has issued nothing
    /// above `now` plus its own `max_ahead`.
    ///
    /// A node's first page cannot be told from one whose directory was removed. So a leased first page begins
    /// `max_ahead` ahead: a lease of another namespace, unknown to this store, may have issued IDs that far ahead. So
    /// each leased page begins above all IDs of leases with the same or a smaller `max_ahead`, and the next page knows
    /// that. If ticks are longer than 1 ms, a first page that cannot run ahead begins within the clock's tick: a wait
    /// for the next tick would be long.
    pub fn earlier(&self, now: Tick) -> Earlier {
        let (Header { node, terms, .. }, before) = (self.header(), self.sequence().before());
        let now = now.clamp(0, node.layout().last_tick());
        let reach = now.saturating_add(terms.max_ahead);
        let (floor, mark) = match before {
            // No other process uses a page in the process's own memory.
            _ if self.path().is_none() => (before, NEVER),
            _ if terms.max_ahead > 0 => {
                let floor = before.max(if self.knows_earlier { now } else { reach });
                // Noted even if this page issues nothing, for the next page.
                self.sequence().note_before(floor);
                (floor, NEVER)
            }
            NEVER if node.layout().tick_ms == 1 => (NEVER, now),
            NEVER => (NEVER, NEVER),
            _ => (before.max(now), NEVER),
        };
        Earlier { floor, mark }
    }

    /// Begins a free page that has both its names, unless it has ended. Other processes may begin it at the same time.
    ///
    /// A page issues nothing after it lost its name. So no earlier page of the node has issued above the tick that
    /// `now` returns, and this page begins above it. If there were earlier pages, that tick is the floor, so that IDs
    /// after a rollback stay above theirs. A node's first page has no floor. If ticks are longer than 1 ms, it begins
    /// within the current tick, since a wait for the next one would be long: in tick 0 at the second number, since a
    /// word of 0 is damage.
    pub fn begin_free(&self, now: impl Fn() -> Tick) {
        let (sequence, layout) = (self.sequence(), self.header().node.layout());
        while let Some(closed) = sequence.closed().filter(|_| !sequence.is_begun()) {
            let now = now().clamp(0, layout.last_tick());
            let all = layout.last_sequence() + 1;
            let used = match now {
                _ if layout.tick_ms == 1 => (now, all),
                0 => (0, 1),
                _ => (now - 1, all),
            };
            let window = Window { floor: self.earlier(now).floor, ceiling: Tick::MAX };
            let begun = sequence.begin(&closed, window, Some(used));
            if begun != Err(NotBegun::Overtaken) {
                return;
            }
        }
    }

    /// Opens a pending page with the window that the store confirmed, above the ticks of the node's earlier pages.
    /// `now`: the clock's tick.
    pub fn open_lease(&self, window: Window, now: Tick) {
        let sequence = self.sequence();
        // A page that another process has ended never begins again.
        if let Some(closed) = sequence.closed().filter(|_| !sequence.is_begun()) {
            let Earlier { floor, mark } = self.earlier(now);
            let window = Window { floor: window.floor.max(floor), ..window };
            let all = self.header().node.layout().last_sequence() + 1;
            // If the layout has no tick left, this fails and the page stays closed.
            let _ = sequence.begin(&closed, window, (mark > NEVER).then_some((mark, all)));
        }
        if !self.is_current() {
            // Another process has replaced it. This is no failure, since a failure means that nothing was issued, but
            // others may have joined the page.
            self.end();
        }
    }

    /// Ends the page: no process issues anything from it any more. Returns the highest tick that it or earlier pages
    /// may have issued; `None` if the page was overwritten, so that this is unknown.
    pub fn end(&self) -> Option<Tick> {
        let is_known = self.is_possible();
        // An impossible word issues nothing. Closing it would make it possible.
        if !is_known && !self.sequence().is_word_possible(self.header().terms.max_ahead) {
            return None;
        }
        let reached = self.sequence().end().highest().max(self.sequence().before());
        is_known.then_some(reached)
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.sequence().has_ended()
    }

    /// Whether its cells are possible: see [`Sequence::is_possible`](crate::core::sequence::Sequence::is_possible). No other program writes to the process's own
    /// memory.
    pub fn is_possible(&self) -> bool {
        self.place.is_none() || self.sequence().is_possible(self.header().terms.max_ahead)
    }
}
