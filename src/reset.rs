//! A slot or page that a wrong clock made useless: what it says, and how it is put right.
//!
//! A reset lowers the floor of a slot that nobody holds to about the present. What was issued above
//! that by a clock that stood ahead is skipped when the clock comes to it, as far as the record tells
//! which ticks that are: see [`Jump`](crate::store::record::Jump).

use std::path::PathBuf;

use crate::host::{Directory, HostError, Kind, Page};
use crate::layout::{Layout, Tick};
use crate::node::Node;
use crate::sequencer::{HighMarks, NEVER};
use crate::store::StoreError;
use crate::store::file::{self, FileStore};
use crate::store::lock::{Hold, USERS};
use crate::store::record::{HOUR_MS, Jump, Record, Skip};

/// What is known of a slot, and what a reset makes of it.
pub struct Reset {
    /// Its file.
    pub path: PathBuf,
    /// Whose it is.
    pub node: Node,
    /// What the file says, or why it cannot be used.
    pub found: Result<Record, StoreError>,
    /// The high marks, where they are known: from the record of a closed page, or from the page.
    pub high: Option<HighMarks>,
    /// The clock's tick.
    pub now: Tick,
    /// What is done about it. None where nothing is to be done.
    pub plan: Option<Plan>,
}

/// How a slot is put right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Nothing is issued at or below it.
    pub floor: Tick,
    /// Never issued afterwards.
    pub skip: Skip,
    /// The last tick above the floor that may have been issued and may be issued again; [`NEVER`] for
    /// none. [`Tick::MAX`] where that is not known.
    pub repeats_to: Tick,
}

impl Reset {
    /// What the record of a slot calls for at the tick `now`. Nothing, where the clock has passed it.
    fn plan(record: &Record, high: Option<&HighMarks>, now: Tick) -> Option<Plan> {
        if record.ceiling <= now {
            return None;
        }
        // The highest tick that was issued.
        let marks = high.map(|high| high.marks);
        let top =
            marks.map_or(record.ceiling, |marks| marks.into_iter().fold(record.floor, Tick::max));
        let soon = now + record.ticks(HOUR_MS);
        let since = record.jump.since;
        let is_ahead_known = now < since && since <= top;
        // What was issued by the clock before it jumped, and after it was set right.
        let by_right_clock: Vec<Tick> = if is_ahead_known {
            let marks = marks.into_iter().flatten();
            let ticks = marks.chain([record.jump.before, record.floor]);
            ticks.filter(|&tick| tick < since).collect()
        } else {
            vec![top]
        };
        // Less than an hour ahead is waited for.
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
}

impl FileStore {
    /// Looks at a slot that nobody holds; with `is_meant`, resets it, and removes its page. `layout` is that
    /// of a file which cannot be read; of one that can, it must be the same, if it is given. `host` is where
    /// the page is.
    pub fn reset(
        &self,
        (datacenter_id, worker_id): (u64, u64),
        layout: Option<Layout>,
        now_ms: i64,
        is_meant: bool,
        host: Option<&Directory>,
    ) -> Result<Reset, StoreError> {
        let path = self.directory().join(file::file_name(datacenter_id, worker_id));
        let slot = self.slot_at(path.clone())?;
        if !slot.try_take(USERS, Hold::Exclusive)? {
            return Err(slot.in_use());
        }
        slot.check_place()?;
        let found = match slot.read() {
            Err(failure) if !matches!(failure, StoreError::Unusable { .. }) => return Err(failure),
            found => found,
        };
        let recorded = found.as_ref().ok().map(|record| *record.node.layout());
        let layout = layout.or(recorded).unwrap_or(Layout::NODE);
        if let Some(recorded) = &recorded {
            file::check_layout(recorded, &layout, &path)?;
        }
        let node = Node::new(layout, datacenter_id, worker_id).map_err(|error| {
            file::unusable(&path, &format!("is no slot of that layout: {error}"))
        })?;
        let found = found.and_then(|record| {
            file::check_node(&record.node, &node, &path)?;
            Ok(record)
        });
        let now = layout.tick_at(now_ms).clamp(NEVER, layout.last_tick());
        let page = found.as_ref().ok().and_then(|record| unused_page(host?, record));
        let high = match (&found, &page) {
            (Ok(record), _) if record.is_closed => Some(record.high),
            (Ok(_), Some(page)) => Some(page.high_marks()),
            _ => None,
        };
        let plan = match &found {
            Ok(record) => Reset::plan(record, high.as_ref(), now),
            Err(_) => Some(Plan { floor: now, skip: Skip::NONE, repeats_to: Tick::MAX }),
        };
        if let (true, Some(plan)) = (is_meant, &plan) {
            if let Some(page) = &page {
                // First: if this ends here, the slot goes on above its ceiling.
                page.remove().map_err(|error| file::unusable(page.path(), &error.to_string()))?;
            }
            let record = Record { skip: plan.skip, ..Record::starting_at(&node, plan.floor) };
            match &found {
                Ok(Record { file, generation, .. }) => {
                    slot.record(&Record { file: *file, generation: generation + 1, ..record })?;
                }
                Err(_) => slot.rewrite(&record)?,
            }
        }
        drop(page);
        Ok(Reset { path, node, found, high, now, plan })
    }
}

/// Looks at a node's page that nobody uses and no record is for; with `is_meant`, resets it. None where
/// there is no page.
pub fn reset_page(
    host: &Directory,
    node: &Node,
    now_ms: i64,
    is_meant: bool,
) -> Result<Option<Reset>, HostError> {
    let Some(page) = host.unused(node)? else { return Ok(None) };
    if page.header().kind == Kind::Durable {
        return Err(HostError::Unusable {
            place: page.path().to_owned(),
            what: "has a record in a directory: reset that, snowdrift reset file:///...".to_owned(),
        });
    }
    let now = node.layout().tick_at(now_ms).clamp(NEVER, node.layout().last_tick());
    let high = page.high_marks();
    let record = Record { ceiling: page.highest(), ..Record::starting_at(node, NEVER) };
    let soon = now + record.ticks(HOUR_MS);
    // All that lies ahead of the clock must be known to begin somewhere.
    let ahead = (0..high.marks.len()).filter(|&counter| high.marks[counter] > soon);
    let landings = ahead.map(|counter| Some(page.landing(counter)).filter(|&tick| tick > now));
    let since = landings.collect::<Option<Vec<Tick>>>().and_then(|all| all.into_iter().min());
    let jump = since.map_or(Jump::NONE, |since| Jump { before: NEVER, since });
    let record = Record { jump, ..record };
    let plan = Reset::plan(&record, Some(&high), now);
    if let (true, Some(plan)) = (is_meant, &plan) {
        let ceiling = if plan.skip == Skip::NONE { Tick::MAX } else { plan.skip.from - 1 };
        host.reset(&page, plan.floor, ceiling)?;
    }
    let path = page.path().to_owned();
    Ok(Some(Reset { path, node: *node, found: Ok(record), high: Some(high), now, plan }))
}

/// The page that a record names, if it is there and nobody uses it.
fn unused_page(host: &Directory, record: &Record) -> Option<Page> {
    // What cannot be read tells nothing, and is no reason to refuse the reset.
    let page = host.unused(&record.node).ok()??;
    (page.id() == record.page && page.owner() == record.file).then_some(page)
}
