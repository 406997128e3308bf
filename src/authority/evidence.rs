//! What a page and a record tell before the page opens: whether it is the record's, and the ticks issued so far.

use crate::authority::record::Record;
use crate::core::fault::Failure;
use crate::core::layout::Tick;
use crate::core::sequencer::{HighMarks, NEVER};
use crate::generator::Generator;
use crate::pages::Page;

/// The ticks known to be issued until now. Nothing is known of the ticks at or below the floor; the marks cover the rest.
pub struct Known {
    /// The page that issued it; 0 where that does not matter.
    pub page: u128,
    /// The generation of the record under which it was issued.
    pub generation: u64,
    pub floor: Tick,
    pub high: HighMarks,
    /// As in a [`Record`].
    pub used: u64,
}

impl Known {
    /// From the record and its page, and `last`, the page that this process lost last.
    pub fn of(last: Option<&Known>, page: &Page, record: &Record) -> Known {
        let sequence = page.sequence();
        let is_named = record.page == page.id();
        let generation = record.generation;
        let known = |floor, high, used| Known { page: 0, generation, floor, high, used };
        let recorded = || known(record.floor, record.high, record.used);
        match last {
            // The page was closed, perhaps by a process that died before it recorded that.
            _ if is_named && sequence.is_begun() => {
                let used = if record.is_closed { record.used } else { 0 };
                // It may have been ended before it opened.
                let mut high = sequence.high_marks();
                if record.high.highest() > high.highest() {
                    high.current = record.high.current;
                }
                for (mark, recorded) in high.marks.iter_mut().zip(record.high.marks) {
                    *mark = recorded.max(*mark);
                }
                known(record.floor.max(sequence.floor()), high, used)
            }
            // Nothing was issued after the record.
            _ if record.is_closed || is_named => recorded(),
            Some(last) if (last.page, last.generation) == (record.page, generation) => {
                Known { page: 0, ..*last }
            }
            // Its page was ended to begin this one above it.
            _ if record.page == page.kept().before() && record.page != 0 => {
                known(record.floor.max(sequence.before()), HighMarks::default(), 0)
            }
            _ => known(record.ceiling, HighMarks::default(), 0),
        }
    }
}

/// Whether the page has all ticks issued from it: an earlier boot may have left the page on a disk.
pub fn is_of_this_boot(page: &Page) -> Result<bool, Failure> {
    // A user of an old page has replaced it in this boot.
    Ok(!page.may_be_old() || !page.try_alone()?)
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
