//! The end of a holding: the last user records the ticks issued.

use std::thread;
use std::time::Instant;

use super::durable::{Bound, Durable, POLL, SHORT_TURN, take_within};
use crate::authority::record::Record;
use crate::authority::slot::OPENING;
use crate::core::fault::Failure;
use crate::files::lock::{Hold, USERS};
use crate::generator::Generator;
use crate::pages::Page;

impl Durable {
    /// Releases the slot. The last user closes the page and records the ticks issued. Of a leased slot it removes the
    /// page.
    pub fn close(mut self, generator: &Generator) -> Result<(), Failure> {
        let Some(bound) = self.bound.take() else { return Ok(()) };
        // Of two users that close it, one is the last.
        take_within(&self.slot, OPENING, SHORT_TURN)?;
        let is_last = self.slot.try_take(USERS, Hold::Exclusive)?;
        let recorded = if is_last { self.record_end(&bound) } else { Ok(()) };
        let page = &bound.page;
        if page.header().terms.authority.is_host_lease() {
            if is_last && recorded.is_ok() {
                remove_passed(page, generator);
            }
            page.retire();
        }
        recorded
    }

    /// Closes the page, and records the ticks issued.
    fn record_end(&self, bound: &Bound) -> Result<(), Failure> {
        // What an overwritten page has issued is unknown: the recorded ceiling counts.
        let Some(ended) = bound.page.close() else { return Ok(()) };
        let record = self.slot.read()?;
        if (record.generation, record.page) != (bound.generation, bound.page.id()) {
            return Ok(());
        }
        // Not flushed: if it is lost, the higher ceiling counts, which is as safe.
        let mut high = ended.high;
        for mark in &mut high.marks {
            // A counter that was left before its first use has a mark one above.
            *mark = (*mark).min(record.ceiling);
        }
        let last = high.highest().max(record.floor);
        let numbers = record.node.layout().last_sequence() + 1;
        let released = Record {
            generation: record.generation + 1,
            high,
            used: if ended.run.next <= numbers { ended.run.next } else { 0 },
            is_closed: true,
            ..record.lowered(last)
        };
        self.slot.record(&released, false)
    }
}

/// Removes a closed page without users: the node's next page may be for another record, which knows nothing of this one.
/// A page that stays is closed, and harms nobody.
fn remove_passed(page: &Page, generator: &Generator) {
    let deadline = Instant::now() + SHORT_TURN;
    // Former users may still have it open for a moment, as may processes that look up its owner.
    while !page.try_alone().unwrap_or(false) {
        if Instant::now() >= deadline {
            return;
        }
        thread::sleep(POLL);
    }
    page.remove_passed(|| generator.tick_now());
}
