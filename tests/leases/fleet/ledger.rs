//! Which ticks each page has allowed, by worker ID.

use std::collections::HashMap;

use snowdrift::core::layout::Tick;
use snowdrift::lease::Phase;

use super::Wrong;
use crate::leases::pages::Page;

/// The ticks (floor, highest] of a page.
struct Span {
    owner: u128,
    floor: Tick,
    highest: Tick,
    /// Up to here it may overlap with others.
    excused: Tick,
}

#[derive(Default)]
pub struct Ledger(HashMap<u64, Vec<Span>>);

impl Ledger {
    /// Notes what a page allows now: its window while it is open, and what was issued once it has ended.
    pub fn note(&mut self, page: &Page) -> Result<(), Wrong> {
        let highest = match page.phase {
            Phase::Pending => return Ok(()),
            Phase::Open => page.ceiling,
            Phase::Ended => page.issued,
        };
        let spans = self.0.entry(page.worker).or_default();
        let at = spans.iter().position(|span| span.owner == page.owner).unwrap_or_else(|| {
            let (owner, floor) = (page.owner, page.floor);
            spans.push(Span { owner, floor, highest, excused: -1 });
            spans.len() - 1
        });
        spans[at].highest = highest;
        let own = &spans[at];
        for other in spans.iter().filter(|other| other.owner != own.owner) {
            let low = own.floor.max(other.floor).max(own.excused).max(other.excused);
            let high = own.highest.min(other.highest);
            if low < high {
                return Err(Wrong::Overlap(page.worker, high));
            }
        }
        Ok(())
    }

    /// The pages of now may overlap with later ones, up to this tick.
    pub fn excuse(&mut self, excused: Tick) {
        for span in self.0.values_mut().flatten() {
            span.excused = excused;
        }
    }
}
