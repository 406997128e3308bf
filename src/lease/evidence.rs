//! What a page and a record tell before the page opens: whether it is the record's, and the ticks issued so far.

use crate::core::fault::Failure;
use crate::core::layout::Tick;
use crate::core::sequencer::{HighMarks, NEVER};
use crate::generator::Generator;
use crate::host::{Opened, Origin, Page};
use crate::store::record::Record;

/// The ticks known to be issued until now. Nothing is known of the ticks at or below the floor; the marks cover the rest.
pub struct Known {
    /// The page that issued it; 0 where that does not matter.
    pub page: u128,
    pub floor: Tick,
    pub high: HighMarks,
    /// As in a [`Record`].
    pub used: u64,
}

impl Known {
    /// From the record and its page, and `last`, the page that this process lost last.
    pub fn of(last: Option<&Known>, opened: &Opened, record: &Record) -> Known {
        let sequence = opened.sequence();
        let is_named = record.page == opened.id();
        let recorded =
            || Known { page: 0, floor: record.floor, high: record.high, used: record.used };
        match last {
            // The page was closed, perhaps by a process that died before it recorded that.
            _ if is_named && sequence.is_begun() => Known {
                floor: record.floor.max(sequence.floor()),
                high: sequence.high_marks(),
                used: if record.is_closed { record.used } else { 0 },
                ..recorded()
            },
            // Nothing was issued after the record.
            _ if record.is_closed || is_named => recorded(),
            Some(last) if last.page == record.page => Known { page: 0, ..*last },
            _ => Known { page: 0, floor: record.ceiling, high: HighMarks::default(), used: 0 },
        }
    }
}

/// Whether the page, if any, is for this record.
pub fn is_of(page: Option<&Page>, record: &Record) -> bool {
    page.is_none_or(|page| page.kept().file() == record.file)
}

/// Whether the page, if any, has all ticks issued from it: an earlier boot may have left the page on a disk.
pub fn is_of_this_boot(page: Option<&Page>) -> Result<bool, Failure> {
    match page {
        // A user of it has replaced it in this boot.
        Some(page) if page.may_be_old() => Ok(!page.try_alone()?),
        _ => Ok(true),
    }
}

/// Makes a page that is not open this record's for ever, if it may be. Returns false where another page must replace
/// it.
pub fn claim(page: Option<&Page>, opened: &Opened, record: &Record) -> Result<bool, Failure> {
    let Some(page) = page else { return Ok(true) };
    let sequence = opened.sequence();
    if page.kept().file() != 0 || sequence.is_begun() {
        let is_closed = record.page == opened.id() && sequence.is_closed() && !page.may_be_old();
        let is_usable = (is_closed || !sequence.is_begun()) && !sequence.is_last_window();
        return Ok(is_of(Some(page), record) && is_usable);
    }
    if !page.try_alone()? {
        return Ok(false);
    }
    page.kept().set_file(record.file);
    page.share()?;
    Ok(true)
}

/// The highest tick that the node's earlier pages may have reached without this record. Nothing above the clock, if
/// the clock is read while the page has its name.
pub fn other_pages_issued(generator: &Generator, opened: &Opened) -> Tick {
    let Some(page) = opened.page().filter(|_| !opened.sequence().is_begun()) else { return NEVER };
    let now = generator.tick_now().max(NEVER);
    match (page.origin(), page.header().node.layout().tick_ms) {
        (Origin::First, 1) => now,
        (Origin::First, _) => NEVER,
        _ => now.saturating_add(page.header().max_ahead),
    }
}
