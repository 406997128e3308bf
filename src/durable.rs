//! A node's page and its record on a disk, which has what a page has not: it outlives the machine.
//!
//! What keeps IDs from being issued twice, wherever a process is killed or stopped (`tests/store`):
//!
//! 1. The window of a durable page is opened after a record that names the page, with this ceiling, is on
//!    the disk. Its ceiling is raised after a record with the higher one is on the disk.
//! 2. All who draw from the page share a lock on the record's file. Who opens another page for the record,
//!    or ends the window, has that lock alone. So nobody draws from a page of the record then, nor raises
//!    its ceiling.
//! 3. A page is for one record for ever, and the record of it names one page. A page that the record does
//!    not name is replaced, never drawn from.
//! 4. Another page starts above the recorded ceiling; or above what was issued, where that is known: from
//!    the last user, who has closed the page and recorded it, or from a page that this process has closed.
//!
//! The process's own memory takes the place of the page where there is none. Then one process at a time
//! has the slot.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::generator::Generator;
use crate::host::{HostError, Opened, Origin, Page};
use crate::layout::Tick;
use crate::sequencer::{HighMarks, NEVER, Window};
use crate::shared::{NotReopened, WindowNumber};
use crate::store::file::{self, FileStore, OPENING, RENEWING, SlotFile};
use crate::store::lock::{Hold, USERS};
use crate::store::record::Record;
use crate::store::{Holder, StoreError};

/// How long others that open the slot are waited for; each takes as long as the disk. Shorter than what a
/// constructor waits for the disk.
const TURN: Duration = Duration::from_secs(5);
/// How long the last user waits for its turn to record what was issued.
const LAST_TURN: Duration = Duration::from_millis(100);
const POLL: Duration = Duration::from_millis(1);

/// How many pages are replaced in one call.
const PAGES: usize = 8;

/// Why a slot cannot be used.
#[derive(Debug, Error)]
pub enum Refused {
    /// By its record.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// By its page.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// A record and the page that is drawn from.
pub struct Durable {
    slot: SlotFile,
    holder: Holder,
    /// Whether no other process may use the slot at the same time.
    is_alone: bool,
    bound: Option<Bound>,
    /// The page that was lost last.
    last: Option<Known>,
}

/// The page that the record names.
struct Bound {
    opened: Arc<Opened>,
    generation: u64,
    window: WindowNumber,
    floor: Tick,
}

/// What was issued before a page is opened: nothing is known of what lies at or below the floor, the marks
/// tell of the rest.
struct Known {
    /// From which page; 0 where that does not matter.
    page: u128,
    floor: Tick,
    high: HighMarks,
    /// As in a [`Record`].
    used: u64,
}

impl Durable {
    /// Opens the slot of the generator's node, and has the generator draw within its window: `ttl` ahead of
    /// the clock. Waits for the disk.
    pub fn open(
        store: &FileStore,
        generator: &Generator,
        holder: Holder,
        ttl: Duration,
        is_alone: bool,
    ) -> Result<Durable, Refused> {
        let slot = store.slot(generator.node())?;
        // Processes that have no page in common cannot share.
        let is_alone = is_alone || !generator.sequences().has_pages();
        let mut durable = Durable { slot, holder, is_alone, bound: None, last: None };
        durable.bind(generator, ttl)?;
        Ok(durable)
    }

    /// Nothing at or below this tick is issued.
    pub fn floor(&self) -> Tick {
        self.bound.as_ref().map_or(NEVER, |bound| bound.floor)
    }

    /// Whether the page is still the one that all who open the node find, and its window is open.
    pub fn is_bound(&self) -> bool {
        self.bound.as_ref().is_some_and(|Bound { opened, .. }| {
            !opened.sequence().is_closed()
                // What cannot be looked at at present is looked at later.
                && opened.page().is_none_or(|page| page.is_named().unwrap_or(true))
        })
    }

    /// Opens the node's page for the record, after the one before has lost its name.
    pub fn bind(&mut self, generator: &Generator, ttl: Duration) -> Result<(), Refused> {
        self.unbind()?;
        if !take_within(&self.slot, OPENING, TURN)? {
            return Err(self.slot.in_use().into());
        }
        let bound = self.bind_in_turn(generator, ttl);
        if bound.is_err() {
            self.slot.release(USERS)?;
        }
        self.slot.release(OPENING)?;
        self.bound = Some(bound?);
        self.last = None;
        // A page that all have left may have been left long ago.
        let ceiling = generator.next_ceiling(ttl);
        if generator.window().ceiling < generator.next_ceiling(ttl / 2) {
            self.renew(ceiling)?;
        }
        Ok(())
    }

    /// Issues nothing from the page any more, and lets another one be opened for the record.
    fn unbind(&mut self) -> Result<(), StoreError> {
        if let Some(Bound { opened, .. }) = self.bound.take() {
            let high = opened.sequence().close_once().high;
            let floor = opened.sequence().floor();
            self.last = Some(Known { page: opened.id(), floor, high, used: 0 });
            self.slot.release(USERS)?;
        }
        Ok(())
    }

    fn bind_in_turn(&self, generator: &Generator, ttl: Duration) -> Result<Bound, Refused> {
        let slot = &self.slot;
        slot.check_place()?;
        let hold = if self.is_alone { Hold::Exclusive } else { Hold::Shared };
        for _ in 0..PAGES {
            let opened = generator.sequences().next()?;
            if !slot.try_take(USERS, hold)? {
                return Err(slot.in_use().into());
            }
            let record = slot.read()?;
            file::check_node(&record.node, generator.node(), slot.path())?;
            let is_joined = is_of(opened.page(), &record)
                && record.page == opened.id()
                && !opened.sequence().is_closed()
                && is_of_this_boot(opened.page())?;
            let bound = if is_joined {
                let window = opened.sequence().window_number();
                let floor = opened.sequence().floor();
                Bound { opened, generation: record.generation, window, floor }
            } else if !slot.try_take(USERS, Hold::Exclusive)? {
                return Err(slot.in_use().into());
            } else if claim(opened.page(), &opened, &record)? {
                let bound = self.begin(generator, ttl, opened, &slot.read()?)?;
                slot.try_take(USERS, hold)?;
                bound
            } else {
                generator.sequences().replace(&opened)?;
                continue;
            };
            generator.sequences().adopt(&bound.opened)?;
            return Ok(bound);
        }
        Err(slot.in_use().into())
    }

    /// Names the page in the record, and opens its window after that is on the disk.
    fn begin(
        &self,
        generator: &Generator,
        ttl: Duration,
        opened: Arc<Opened>,
        record: &Record,
    ) -> Result<Bound, Refused> {
        let sequence = opened.sequence();
        if !sequence.is_closed() {
            // The process's own memory, which was used without a record.
            sequence.close();
        }
        let closed = sequence.closed().ok_or_else(|| self.slot.in_use())?;
        let mut before = self.known(&opened, record);
        let other = other_pages_issued(generator, &opened);
        let mut floor = before.floor;
        if opened.page().is_some_and(|page| page.origin() == Origin::First) {
            // There was none, unless both it and its trace were removed: not worth refusing a rollback.
            let mark = &mut before.high.marks[before.high.current];
            if *mark < other {
                (*mark, before.used) = (other, 0);
            }
        } else {
            floor = floor.max(other);
        }
        let ceiling = generator.next_ceiling(ttl).max(before.high.highest()).max(floor);
        let passed = record.clone().passing_what_is_skipped(ceiling);
        file::check_skip(&passed, ceiling, self.slot.path())?;
        let next = Record {
            page: opened.id(),
            generation: record.generation + 1,
            floor: floor.max(passed.floor),
            high: before.high,
            used: before.used,
            is_closed: false,
            holder: Some(self.holder.clone()),
            ..passed.raised(ceiling)
        };
        self.slot.record(&next)?;
        if opened.page().is_none() && sequence.is_last_window() {
            // Nobody else confirms anything of it.
            sequence.renumber_windows();
        }
        let closed = sequence.closed().unwrap_or(closed);
        let bounds = Window { floor: next.floor, ceiling: next.ceiling };
        let window = match sequence.resume(&closed, bounds, &before.high, before.used) {
            Ok(window) => window,
            Err(NotReopened::Overtaken) => return Err(self.slot.in_use().into()),
            // The layout has no tick left: it stays closed.
            Err(NotReopened::Ended) => sequence.window_number(),
        };
        Ok(Bound { opened, generation: next.generation, window, floor: next.floor })
    }

    /// What is known of what was issued until now.
    fn known(&self, opened: &Opened, record: &Record) -> Known {
        let sequence = opened.sequence();
        let is_named = record.page == opened.id();
        let recorded =
            || Known { page: 0, floor: record.floor, high: record.high, used: record.used };
        match &self.last {
            // It was closed, perhaps by a process that died before it recorded that.
            _ if is_named && sequence.is_begun() => Known {
                floor: record.floor.max(sequence.floor()),
                high: sequence.high_marks(),
                used: if record.is_closed { record.used } else { 0 },
                ..recorded()
            },
            // Nothing was issued since it was recorded.
            _ if record.is_closed || is_named => recorded(),
            Some(last) if last.page == record.page => Known { page: 0, ..*last },
            _ => Known { page: 0, floor: record.ceiling, high: HighMarks::default(), used: 0 },
        }
    }

    /// As [`Durable::renew`], unless another process does so at this moment: then false.
    pub fn renew_in_turn(&mut self, ceiling: Tick) -> Result<bool, StoreError> {
        if !self.slot.try_take(RENEWING, Hold::Exclusive)? {
            return Ok(false);
        }
        let renewed = self.renew(ceiling);
        self.slot.release(RENEWING)?;
        renewed.map(|()| true)
    }

    /// Records a ceiling, and raises that of the page's window to it. Waits for the disk.
    pub fn renew(&mut self, ceiling: Tick) -> Result<(), StoreError> {
        let Some(Bound { opened, generation, window, .. }) = &self.bound else { return Ok(()) };
        let record = self.slot.read()?;
        if (record.generation, record.page) != (*generation, opened.id()) {
            return Err(file::overtaken(self.slot.path()));
        }
        let record = record.passing_what_is_skipped(ceiling);
        file::check_skip(&record, ceiling, self.slot.path())?;
        let holder = Some(self.holder.clone());
        let record = Record { holder, ..record.raised(ceiling) };
        self.slot.record(&record)?;
        // Only now: what is not recorded must not be issued. The floor first: it is above what is skipped.
        opened.sequence().raise_floor(record.floor);
        opened.sequence().raise_ceiling(*window, record.ceiling);
        Ok(())
    }

    /// Gives the slot up. The last user closes the page and records what was issued.
    pub fn close(mut self) -> Result<(), StoreError> {
        let Some(bound) = self.bound.take() else { return Ok(()) };
        // So that of two who close it one is the last.
        take_within(&self.slot, OPENING, LAST_TURN)?;
        if !self.slot.try_take(USERS, Hold::Exclusive)? {
            return Ok(());
        }
        let ended = bound.opened.sequence().close_once();
        let record = self.slot.read()?;
        if (record.generation, record.page) != (bound.generation, bound.opened.id()) {
            return Ok(());
        }
        // Not flushed: should it be lost, the higher ceiling counts, which is as safe.
        let mut high = ended.high;
        for mark in &mut high.marks {
            // A counter that was left before it was used has a mark one above.
            *mark = (*mark).min(record.ceiling);
        }
        let last = high.highest().max(record.floor);
        let numbers = record.node.layout().last_sequence() + 1;
        self.slot.record_lightly(&Record {
            generation: record.generation + 1,
            high,
            used: if ended.run.next <= numbers { ended.run.next } else { 0 },
            is_closed: true,
            ..record.lowered(last)
        })
    }
}

impl Drop for Durable {
    /// Unlocks now, though a process that was just forked off still has the open file, too.
    fn drop(&mut self) {
        let _ = self.slot.release(USERS);
        let _ = self.slot.release(OPENING);
    }
}

/// Whether the page, if there is one, is for this record.
fn is_of(page: Option<&Page>, record: &Record) -> bool {
    page.is_none_or(|page| page.owner() == record.file)
}

/// Whether the page, if there is one, has what was issued from it: another boot may have left it on a disk.
fn is_of_this_boot(page: Option<&Page>) -> Result<bool, HostError> {
    match page {
        // Who uses it has replaced it in this boot.
        Some(page) if page.may_be_old() => Ok(!page.try_alone()?),
        _ => Ok(true),
    }
}

/// Makes a page that is not open this record's for ever, if it may be. False where another one must be put
/// in its place.
fn claim(page: Option<&Page>, opened: &Opened, record: &Record) -> Result<bool, HostError> {
    let Some(page) = page else { return Ok(true) };
    let sequence = opened.sequence();
    if page.owner() != 0 || sequence.is_begun() {
        let is_closed = record.page == opened.id() && sequence.is_closed() && !page.may_be_old();
        let is_usable = (is_closed || !sequence.is_begun()) && !sequence.is_last_window();
        return Ok(is_of(Some(page), record) && is_usable);
    }
    if !page.try_alone()? {
        return Ok(false);
    }
    page.set_owner(record.file);
    page.share()?;
    Ok(true)
}

/// The highest tick that the node's earlier pages may have reached without this record: nothing above the
/// clock, if that is read when the page had its name.
fn other_pages_issued(generator: &Generator, opened: &Opened) -> Tick {
    let Some(page) = opened.page().filter(|_| !opened.sequence().is_begun()) else { return NEVER };
    let now = generator.tick_now().max(NEVER);
    match (page.origin(), page.header().node.layout().tick_ms) {
        (Origin::First, 1) => now,
        (Origin::First, _) => NEVER,
        _ => now.saturating_add(page.header().max_ahead),
    }
}

fn take_within(slot: &SlotFile, at: u64, at_most: Duration) -> Result<bool, StoreError> {
    let deadline = Instant::now() + at_most;
    while !slot.try_take(at, Hold::Exclusive)? {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        thread::sleep(POLL);
    }
    Ok(true)
}
