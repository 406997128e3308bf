//! What a page and a record tell before the page opens: whether it is the record's, and the ticks issued so far.

use crate::authority::record::Record;
use crate::core::layout::Tick;
use crate::core::sequencer::HighMarks;
use crate::generator::Generator;
use crate::pages::{Earlier, Page};

/// The record as of now, for a page that is about to open. Nothing is known of the ticks at or below its floor; its
/// marks cover the rest, to the last number if it `is_closed`. `lost`: floor and final marks of the record's page, if
/// this process has lost it.
pub fn up_to_date(
    record: &Record,
    generator: &Generator,
    page: &Page,
    lost: Option<(Tick, HighMarks)>,
) -> Record {
    let (sequence, mut known) = (page.sequence(), record.clone());
    let (is_named, is_begun) = (record.page == page.id(), sequence.is_begun());
    // The record's page was ended to begin this one above it.
    let is_next = record.page != 0 && record.page == page.notes().previous_page();
    // The record may be a copy that was put back, and the page know more.
    let knows_page = page.notes().recorded() == record.generation;
    known.is_closed &= knows_page || !(is_next || is_named && is_begun);
    if is_named && is_begun {
        known.floor = record.floor.max(sequence.floor());
    }
    if is_named && is_begun && !known.is_closed {
        // It may have been ended before it opened.
        let high = sequence.high_marks();
        if record.high.highest() <= high.highest() {
            known.high.current = high.current;
        }
        for (mark, issued) in known.high.marks.iter_mut().zip(high.marks) {
            *mark = issued.max(*mark);
        }
    } else if !is_named && !known.is_closed {
        let reached = if is_next { sequence.before() } else { record.ceiling };
        let (floor, high) = lost.unwrap_or((reached, HighMarks::default()));
        known = Record { floor: floor.max(record.floor), high, used: 0, ..known };
    }
    if is_next || is_begun || page.path().is_none() {
        return known;
    }
    // Earlier pages of the node may have issued without this record.
    let Earlier { floor, mark } = page.earlier(generator.tick_now());
    known.floor = known.floor.max(floor);
    let highest = &mut known.high.marks[known.high.current];
    if *highest < mark {
        (*highest, known.used) = (mark, 0);
    }
    known
}

/// Whether a page that is not open can open for this record, as opposed to the next page.
pub fn is_usable(page: &Page, record: &Record) -> bool {
    let sequence = page.sequence();
    if page.path().is_none() {
        return true;
    }
    let is_closed = record.page == page.id() && sequence.is_closed() && !page.may_be_old;
    (is_closed || !sequence.is_begun()) && !sequence.is_last_window()
}
