//! Repairs of a slot or page that a wrong clock made unusable, and reports on it.
//!
//! A reset lowers the floor of a slot that nobody holds to about the present. A clock that was ahead may have issued
//! ticks above that floor. They are skipped when the clock reaches them, as far as the record names them: see
//! [`Jump`](crate::authority::record::Jump).

use std::path::PathBuf;

use super::file::{self, FileStore};
use super::record::{Jump, Record, Skip};

use crate::core::clock::HOUR_MS;
use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::core::sequencer::{HighMarks, NEVER};
use crate::files::lock::{LockMode, USERS};
use crate::files::named::unusable;
use crate::pages::{Authority, Directory};

/// The state of a slot, and the plan of its reset.
pub struct Reset {
    /// Its file.
    pub path: PathBuf,
    /// Its node.
    pub node: Node,
    /// The file's record, or the reason why the file is unusable.
    pub found: Result<Record, Failure>,
    /// The high marks, where known: from the record of a closed page, or from the page.
    pub high: Option<HighMarks>,
    /// The plan of the reset. None where nothing needs to be done.
    pub plan: Option<Plan>,
}

/// The plan of a slot's reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Nothing is issued at or below it.
    pub floor: Tick,
    /// Never issued afterwards.
    pub skip: Skip,
    /// The last tick above the floor that may have been issued and may be issued again. [`NEVER`] for none,
    /// [`Tick::MAX`] where unknown.
    pub repeats_to: Tick,
}

impl Plan {
    /// For a slot's record at the tick `now`. None where the clock has passed the ceiling.
    fn of(record: &Record, high: Option<&HighMarks>, now: Tick) -> Option<Plan> {
        if record.ceiling <= now {
            return None;
        }
        // The highest tick issued.
        let top = high.map_or(record.ceiling, |high| high.highest().max(record.floor));
        let soon = now + record.ticks(HOUR_MS);
        let since = record.jump.since;
        let is_ahead_known = now < since && since <= top;
        // Issued by the clock before it jumped, and after it was set right.
        let by_right_clock: Vec<Tick> = if is_ahead_known {
            let marks = high.into_iter().flat_map(|high| high.marks);
            let ticks = marks.chain([record.jump.before, record.floor]);
            ticks.filter(|&tick| tick < since).collect()
        } else {
            vec![top]
        };
        // IDs wait for a clock that is less than an hour behind.
        let floor =
            by_right_clock.iter().copied().filter(|&tick| tick <= soon).fold(now, Tick::max);
        let highest = by_right_clock.into_iter().fold(NEVER, Tick::max);
        let skip = match (is_ahead_known, record.skip) {
            (false, skip) => skip,
            (true, Skip::NONE) => Skip { from: since, to: top },
            (true, skip) => Skip { from: since.min(skip.from), to: top.max(skip.to) },
        };
        Some(Plan { floor, skip, repeats_to: if highest > floor { highest } else { NEVER } })
    }

    /// The last tick that a page issues after this reset.
    fn ceiling(&self) -> Tick {
        if self.skip == Skip::NONE { Tick::MAX } else { self.skip.from - 1 }
    }
}

impl FileStore {
    /// Inspects a slot that nobody holds. With `is_meant`, resets it and removes its page. `layout` is the layout of
    /// an unreadable file; a readable file must have the same one, if given. `host` is the directory of the page.
    pub fn reset(
        &self,
        (datacenter_id, worker_id): (u64, u64),
        layout: Option<Layout>,
        now_ms: i64,
        is_meant: bool,
        host: Option<&Directory>,
    ) -> Result<Reset, Failure> {
        let path = self.directory().join(file::file_name(datacenter_id, worker_id));
        let slot = self.slot_at(path.clone())?;
        if !slot.try_take(USERS, LockMode::Exclusive)? {
            return Err(slot.in_use());
        }
        slot.check_path()?;
        let found = match slot.read() {
            Err(failure) if failure.class != Class::Slot => return Err(failure),
            found => found,
        };
        let recorded = found.as_ref().ok().map(|record| *record.node.layout());
        let layout = layout.or(recorded).unwrap_or(Layout::NODE);
        if let Ok(record) = &found {
            record.check_layout(&layout, &path)?;
        }
        let node = Node::new(layout, datacenter_id, worker_id).map_err(|error| {
            unusable(fault!("slot-not-of-layout", place: path.as_path(), why: vec![error]))
        })?;
        let found = found.and_then(|record| record.check_node(&node, &path).map(|()| record));
        let now = layout.tick_at(now_ms).clamp(NEVER, layout.last_tick());
        // An unreadable page tells nothing, and is no reason to refuse the reset.
        let page = host.and_then(|host| host.lock_unused(&node).ok()?);
        let page = page.filter(|page| found.as_ref().is_ok_and(|record| record.page == page.id()));
        let high = match (&found, &page) {
            (Ok(record), _) if record.is_closed => Some(record.high),
            (Ok(_), Some(page)) => Some(page.sequence().high_marks()),
            _ => None,
        };
        let plan = match &found {
            Ok(record) => Plan::of(record, high.as_ref(), now),
            Err(_) => Some(Plan { floor: now, skip: Skip::NONE, repeats_to: Tick::MAX }),
        };
        if let (true, Some(plan)) = (is_meant, &plan) {
            if let Some(page) = &page {
                // First: if the process ends here, the slot continues above its ceiling.
                page.remove_with_marker()?;
            }
            let record = Record { skip: plan.skip, ..Record::starting_at(&node, plan.floor) };
            match &found {
                Ok(Record { file, generation, .. }) => {
                    let generation = generation + 1;
                    slot.record(&Record { file: *file, generation, ..record }, true)?;
                }
                Err(_) => slot.rewrite(&record)?,
            }
        }
        Ok(Reset { path, node, found, high, plan })
    }
}

/// Inspects a node's page without users and without a record. With `is_meant`, resets it. Returns None where there is
/// no page.
pub fn reset_page(
    host: &Directory,
    node: &Node,
    now_ms: i64,
    is_meant: bool,
) -> Result<Option<Reset>, Failure> {
    let Some(page) = host.lock_unused(node)? else { return Ok(None) };
    let place = page.path();
    let refused = |fault| Err(Failure::new(Class::Page, fault));
    match page.header().terms.authority {
        Authority::Free => {}
        Authority::Record { .. } => return refused(fault!("page-recorded", place)),
        Authority::Lease { .. } => return refused(fault!("page-leased", place)),
    }
    let now = node.layout().tick_at(now_ms).clamp(NEVER, node.layout().last_tick());
    let high = page.sequence().high_marks();
    // What pages before it may have issued: by a right clock, or else nobody knows which of those ticks.
    let earlier = page.sequence().before().max(page.sequence().floor());
    let fresh = Record::starting_at(node, NEVER);
    let soon = now + fresh.ticks(HOUR_MS);
    let floor = if earlier <= soon { earlier } else { NEVER };
    // Each mark ahead of the clock must have a known start.
    let ahead = (0..high.marks.len()).filter(|&counter| high.marks[counter] > soon);
    let since = ahead.map(|counter| page.notes().landing(counter)).min().filter(|&tick| tick > now);
    // Of what was issued between two jumps nobody knows by which clock.
    let before = |since| page.notes().jumped_from().min(since - 1);
    let jump = since.map_or(Jump::NONE, |since| Jump { before: before(since), since });
    let record = Record { floor, ceiling: high.highest().max(earlier), jump, ..fresh };
    let mut plan = Plan::of(&record, Some(&high), now);
    if let Some(plan) = plan.as_mut().filter(|_| earlier > soon) {
        plan.repeats_to = plan.repeats_to.max(earlier.min(plan.ceiling()));
    }
    if let (true, Some(plan)) = (is_meant, &plan) {
        host.reset(&page, plan.floor, plan.ceiling())?;
    }
    let path = page.path().unwrap_or(host.path()).to_owned();
    Ok(Some(Reset { path, node: *node, found: Ok(record), high: Some(high), plan }))
}
