//! What a page and a record tell before the page opens: whether it is the record's, and the ticks issued so far.

use crate::authority::record::Record;
use crate::core::layout::Tick;
use crate::core::sequencer::{HighMarks, NEVER};
use crate::generator::Generator;
use crate::pages::Page;

/// The record as of now. Nothing is known of the ticks at or below its floor; its marks cover the rest. `lost`: floor and
/// final marks of the record's page, if this process has lost it.
pub fn up_to_date(record: &Record, page: &Page, lost: Option<(Tick, HighMarks)>) -> Record {
    let sequence = page.sequence();
    let is_named = record.page == page.id();
    let known = |floor: Tick, high, used| {
        let floor = floor.max(record.floor);
        Record { floor, high, used, ..record.clone() }
    };
    // The page was closed, perhaps by a process that died before it recorded that.
    if is_named && sequence.is_begun() {
        // It may have been ended before it opened.
        let mut high = sequence.high_marks();
        if record.high.highest() > high.highest() {
            high.current = record.high.current;
        }
        for (mark, recorded) in high.marks.iter_mut().zip(record.high.marks) {
            *mark = recorded.max(*mark);
        }
        return known(sequence.floor(), high, if record.is_closed { record.used } else { 0 });
    }
    // Nothing was issued after the record.
    if record.is_closed || is_named {
        return record.clone();
    }
    if let Some((floor, high)) = lost {
        return known(floor, high, 0);
    }
    // Where its page was ended to begin this one above it, that tick is known.
    let is_before = record.page == page.kept().before() && record.page != 0;
    let reached = if is_before { sequence.before() } else { record.ceiling };
    known(reached, HighMarks::default(), 0)
}

/// Whether a page that is not open can open for this record, as opposed to the next page.
pub fn is_usable(page: &Page, record: &Record) -> bool {
    let sequence = page.sequence();
    if page.path().is_none() {
        return true;
    }
    let is_closed = record.page == page.id() && sequence.is_closed() && !page.may_be_old();
    (is_closed || !sequence.is_begun()) && !sequence.is_last_window()
}

/// The highest tick that the node's earlier pages may have reached without this record. Nothing above the clock, if
/// the clock is read while the page has its name.
pub fn other_pages_issued(generator: &Generator, page: &Page, record: &Record) -> Tick {
    let sequence = page.sequence();
    let is_known = record.page != 0 && page.kept().before() == record.page;
    if is_known || page.path().is_none() || sequence.is_begun() {
        return NEVER;
    }
    let now = generator.tick_now().max(NEVER);
    match (sequence.before(), page.header().node.layout().tick_ms) {
        (NEVER, 1) => now,
        (NEVER, _) => NEVER,
        (before, _) => now.max(before),
    }
}
