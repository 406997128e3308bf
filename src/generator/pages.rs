//! A generator's present page, its window, and its replacement after it lost its name.

use std::mem;
use std::sync::Arc;

use super::Generator;
use super::reserving::Halt;
use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::Tick;
use crate::core::sequencer::{NEVER, Stall};
use crate::pages::Page;

/// Maximum number of pages that one call opens.
const REOPENINGS: usize = 16;

impl Generator {
    /// Handles a halt: opens the next page if that helps, else returns the stall. `pages`: the number of pages that
    /// this call has lost. Too many are a failure.
    #[cold]
    pub(super) fn resolve(&self, halt: Halt, page: &Page, pages: usize) -> Option<Stall> {
        if self.page().id() != page.id() {
            // Another thread has opened the next page.
            return None;
        }
        let has_next = self.directory.is_some();
        let reopened = match halt {
            // Another process ended the page because it lost its name.
            Halt::Stall(Stall::AboveCeiling { ceiling: NEVER }) if has_next && page.has_ended() => {
                self.reopen(page, pages)
            }
            Halt::Stall(stall) => return Some(stall),
            Halt::Unnamed if has_next => self.reopen(page, pages),
            Halt::Unnamed => {
                // A lease continues on another page, of this slot or another one.
                page.end();
                return Some(Stall::AboveCeiling { ceiling: NEVER });
            }
            Halt::Failed(error) => Err(*error),
        };
        let error = reopened.err()?;
        *self.failure.lock() = Some(error.into());
        Some(Stall::NoPage)
    }

    /// Ends a page that lost its name and opens the node's next page, unless another thread has.
    fn reopen(&self, lost: &Page, pages: usize) -> Result<(), Failure> {
        let _changing = self.failure.lock();
        let Some(directory) = &self.directory else { return Ok(()) };
        if self.page().id() != lost.id() {
            return Ok(());
        }
        if pages > REOPENINGS {
            let fault = fault!("page-deleted", place: lost.path(), times: pages);
            return Err(Failure::new(Class::Page, fault));
        }
        // If this process has changed its user, other processes may still use the page: do not end it.
        let reached = match lost.leave_after_user_change()? {
            true => Some(lost.sequence().highest()),
            false => lost.end(),
        };
        // The last tick of an overwritten page is unknown. The next page begins above the clock.
        let reached = reached.unwrap_or_else(|| self.tick_now());
        let directory = directory.of_present_user()?;
        let next = directory.open(&self.node, &*self.clock, reached)?;
        self.adopt(Arc::new(next));
        Ok(())
    }

    /// Makes this the present page. This process issues nothing from the previous one any more.
    pub(crate) fn adopt(&self, next: Arc<Page>) {
        let before = mem::replace(&mut *self.page.write(), next.clone());
        if !Arc::ptr_eq(&before, &next) {
            before.retire();
        }
    }

    /// Raises the ceiling to the tick that the store confirmed.
    pub fn raise_ceiling(&self, ceiling: Tick) {
        self.page().sequence().raise_ceiling(ceiling);
        self.renewals.notify_raised();
    }

    /// Ends the window: nothing is issued from now on. Returns the highest issued tick.
    pub fn end_window(&self) -> Tick {
        self.renewals.set_attended(false);
        self.page().sequence().end().highest()
    }
}
