//! A node's page and its record on a disk. Unlike the page, the record survives a reboot.
//!
//! The rules that keep IDs from being issued twice, wherever a process is killed or stopped (`tests/store`):
//!
//! 1. The window of a durable page opens after a record that names the page, with this ceiling, is on the disk. Its
//!    ceiling rises after a record with the higher one is on the disk.
//! 2. All users of the page share a lock on the record's file. Opening another page for the record, or ending the
//!    window, takes that lock exclusively. So at that time no process draws from a page of the record or raises its
//!    ceiling.
//! 3. A page is for one record for ever, and its record names one page. A page that the record does not name is
//!    replaced, never drawn from.
//! 4. Another page starts above the recorded ceiling, or above the last tick issued where that is known. It is known
//!    from the last user, which has closed the page and recorded it, or from a page that this process has closed.
//!
//! The page of a slot that the host's processes lease has terms of its own: a process that opens the slot with `state` is
//! refused. The last user removes the page under the exclusive lock on the record, so no process joins it, or opens another
//! one, at that moment.
//!
//! Without a page the process's own memory takes its place. Then one process at a time has the slot.

use std::sync::Arc;
use std::time::Duration;

use super::Access;
use super::evidence::{is_usable, up_to_date};
use super::file::FileStore;
use super::record::{Holder, Record};
use super::slot::{OPENING, RENEWING, SlotFile};
use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::Tick;
use crate::core::sequence::{NotBegun, WindowNumber};
use crate::core::sequencer::{HighMarks, NEVER, Window};
use crate::files::lock::{LockMode, USERS, within};
use crate::generator::Generator;
use crate::pages::{Authority, Page, Terms};

/// The longest wait for others that open the slot. Each takes as long as the disk. Shorter than a constructor's wait
/// for the disk.
const TURN: Duration = Duration::from_secs(5);
/// The longest wait for others that open the slot, where others do not wait long, either.
const SHORT_TURN: Duration = Duration::from_millis(100);

/// The most pages replaced in one call.
const PAGES: usize = 8;

/// A record and the page in use.
pub struct Durable {
    slot: SlotFile,
    holder: Holder,
    access: Access,
    /// Whether the host's processes have leased the slot.
    is_leased: bool,
    bound: Option<Bound>,
    /// The page lost last, and its final marks.
    lost: Option<(Bound, HighMarks)>,
}

/// The page that the record names.
struct Bound {
    page: Arc<Page>,
    generation: u64,
    window: WindowNumber,
    floor: Tick,
}

impl Durable {
    /// Opens the slot of the generator's node. The generator then draws within its window, `ttl` ahead of the clock.
    /// Waits for the disk.
    pub fn open(
        store: &FileStore,
        generator: &Generator,
        holder: Holder,
        ttl: Duration,
        access: Access,
    ) -> Result<Durable, Failure> {
        let node = generator.node();
        // Processes without a common page cannot share.
        let access = if generator.directory().is_some() { access } else { Access::Alone };
        let is_leased = matches!(access, Access::Taken | Access::Joined);
        if let Some(directory) = generator.directory()
            && !store.has(node)
        {
            // Before the slot has a file, which would stay.
            let authority = Authority::Record { id: 0, is_leased };
            let present = generator.page();
            directory.refuse_used(node, &Terms { authority, ..present.header().terms })?;
        }
        let slot = store.slot(node)?;
        let mut durable = Durable { slot, holder, access, is_leased, bound: None, lost: None };
        durable.bind(generator, ttl)?;
        if durable.access != Access::Alone {
            durable.access = Access::Shared;
        }
        Ok(durable)
    }

    /// Nothing at or below this tick is issued.
    pub fn floor(&self) -> Tick {
        self.bound.as_ref().map_or(NEVER, |bound| bound.floor)
    }

    /// Whether openers of the node still find this page, and its window is open.
    pub fn is_bound(&self) -> bool {
        self.bound.as_ref().is_some_and(|Bound { page, .. }| {
            // A page that cannot be checked now is checked later.
            !page.sequence().is_closed() && page.is_named().unwrap_or(true)
        })
    }

    /// Opens the node's page for the record, at first or after the previous page has lost its name.
    pub fn bind(&mut self, generator: &Generator, ttl: Duration) -> Result<(), Failure> {
        self.unbind()?;
        let bound = match self.join(generator)? {
            Some(bound) => bound,
            None if self.access == Access::Joined => return Err(self.slot.in_use()),
            None => self.bind_in_turn(generator, ttl)?,
        };
        generator.adopt(bound.page.clone());
        self.bound = Some(bound);
        self.lost = None;
        // All users may have left the page long ago. Of many that join it at once, one raises the ceiling, unless that
        // one is stopped.
        let is_low = || generator.window().ceiling < generator.next_ceiling(ttl / 2);
        if within(TURN, || Ok(!is_low() || self.raise(generator, ttl, false)?))? {
            return Ok(());
        }
        self.raise(generator, ttl, true).map(drop)
    }

    /// Closes the page, and lets another one be opened for the record.
    fn unbind(&mut self) -> Result<(), Failure> {
        if let Some(bound) = self.bound.take() {
            self.lost = bound.page.end_with_state().map(|ended| (bound, ended.high));
            self.slot.release(USERS)?;
        }
        Ok(())
    }

    /// Joins the page that the record names, if it is open. Changes nothing that other openers of the slot depend on, so
    /// a process that is stopped meanwhile keeps no other from the slot.
    fn join(&self, generator: &Generator) -> Result<Option<Bound>, Failure> {
        let slot = &self.slot;
        slot.check_path()?;
        let may_join = matches!(self.access, Access::Joined | Access::Shared);
        if !may_join
            || self.read(generator)?.is_closed
            || !slot.try_take(USERS, LockMode::Shared)?
        {
            return Ok(None);
        }
        let joined = self.open_page(generator);
        if !matches!(joined, Ok(Some(_))) {
            slot.release(USERS)?;
        }
        joined
    }

    /// The record's page, if it is open and has all ticks issued from it: an earlier boot may have left it on a disk.
    fn open_page(&self, generator: &Generator) -> Result<Option<Bound>, Failure> {
        let record = self.read(generator)?;
        // Before the page: one that the record's last user removes must not be opened.
        if record.is_closed {
            return Ok(None);
        }
        let page = self.page(generator, &record)?;
        let sequence = page.sequence();
        if record.page != page.id() || sequence.is_closed() {
            return Ok(None);
        }
        // Another user of an old page has replaced it in this boot.
        if page.may_be_old && page.try_lock_exclusive()? {
            return Ok(None);
        }
        let (window, floor) = (sequence.window_number(), sequence.floor());
        Ok(Some(Bound { generation: record.generation, window, floor, page }))
    }

    fn read(&self, generator: &Generator) -> Result<Record, Failure> {
        let record = self.slot.read()?;
        record.check_node(generator.node(), self.slot.path())?;
        Ok(record)
    }

    /// Opens a page for the record, one process at a time.
    fn bind_in_turn(&self, generator: &Generator, ttl: Duration) -> Result<Bound, Failure> {
        let slot = &self.slot;
        let turn = if self.access == Access::Taken { SHORT_TURN } else { TURN };
        if !within(turn, || slot.try_take(OPENING, LockMode::Exclusive))? {
            let (place, waited) = (slot.path(), turn.as_secs_f64());
            return Err(Failure::new(Class::InUse, fault!("slot-opening", place, waited)));
        }
        let bound = self.bind_alone(generator, ttl);
        if bound.is_err() {
            slot.release(USERS)?;
        }
        slot.release(OPENING)?;
        bound
    }

    fn bind_alone(&self, generator: &Generator, ttl: Duration) -> Result<Bound, Failure> {
        let slot = &self.slot;
        let hold =
            if self.access == Access::Alone { LockMode::Exclusive } else { LockMode::Shared };
        for _ in 0..PAGES {
            // Another process may have opened it before the turn.
            if let Some(bound) = self.join(generator)? {
                return Ok(bound);
            }
            if !slot.try_take(USERS, LockMode::Exclusive)? {
                break;
            }
            let record = self.read(generator)?;
            let page = self.page(generator, &record)?;
            if !is_usable(&page, &record) {
                // Nobody draws from a page of this record: all users have given it up.
                page.end();
                page.remove()?;
                continue;
            }
            let bound = self.begin(generator, ttl, page)?;
            if bound.page.is_current() {
                slot.try_take(USERS, hold)?;
                return Ok(bound);
            }
            // It was replaced meanwhile.
            bound.page.end();
        }
        Err(slot.in_use())
    }

    /// The node's page for the record. Without a directory: the process's own memory. Nothing draws from it yet.
    fn page(&self, generator: &Generator, record: &Record) -> Result<Arc<Page>, Failure> {
        let present = generator.page();
        let Some(directory) = generator.directory() else { return Ok(present) };
        let id = self.slot.identity(record)?;
        let authority = Authority::Record { id, is_leased: self.is_leased };
        let terms = Terms { authority, ..present.header().terms };
        if present.header().terms == terms && present.is_current() {
            return Ok(present);
        }
        Ok(Arc::new(directory.obtain(generator.node(), terms)?))
    }

    /// Names the page in the record, and opens its window after that is on the disk.
    fn begin(
        &self,
        generator: &Generator,
        ttl: Duration,
        page: Arc<Page>,
    ) -> Result<Bound, Failure> {
        let (slot, sequence) = (&self.slot, page.sequence());
        let record = slot.read()?;
        let closed = sequence.closed().ok_or_else(|| slot.in_use())?;
        let lost = self.lost.as_ref().filter(|(lost, _)| lost.is_of(&record));
        let lost = lost.map(|(lost, high)| (lost.page.sequence().floor(), *high));
        let known = up_to_date(&record, generator, &page, lost);
        let ceiling = generator.ceiling_above(known.high.highest().max(known.floor), ttl);
        let used = known.is_closed.then_some(known.used);
        let next = Record {
            page: page.id(),
            generation: record.generation + 1,
            is_closed: false,
            holder: Some(self.holder.clone()),
            ..known.raised(ceiling, slot.path())?
        };
        slot.record(&next, true)?;
        page.notes().note_renewer();
        page.notes().note_recorded(0);
        let Record { floor, ceiling, generation, high, .. } = next;
        let window = match page.begin(&closed, Window { floor, ceiling }, &high, used) {
            Ok(window) => window,
            Err(NotBegun::Overtaken) => return Err(slot.in_use()),
            // The layout has no tick left: the page stays closed.
            Err(NotBegun::Ended) => sequence.window_number(),
        };
        Ok(Bound { page, generation, window, floor })
    }

    /// Renews for `ttl`. Returns false while another process does, unless it `is_urgent`.
    pub fn raise(
        &mut self,
        generator: &Generator,
        ttl: Duration,
        is_urgent: bool,
    ) -> Result<bool, Failure> {
        if !is_urgent && !self.slot.try_take(RENEWING, LockMode::Exclusive)? {
            return Ok(false);
        }
        let renewed = self.renew(generator.next_ceiling(ttl));
        self.slot.release(RENEWING)?;
        renewed.map(|()| true)
    }

    /// Records a ceiling, and raises the ceiling of the page's window to it. Waits for the disk.
    pub fn renew(&mut self, ceiling: Tick) -> Result<(), Failure> {
        let Some(bound @ Bound { page, window, .. }) = &self.bound else { return Ok(()) };
        let record = self.slot.read()?;
        if !bound.is_of(&record) {
            return Err(self.slot.overtaken());
        }
        let record = record.raised(ceiling, self.slot.path())?;
        let record = Record { holder: Some(self.holder.clone()), ..record };
        self.slot.record(&record, true)?;
        // Only now: ticks that are not recorded must not be issued. The floor first: it is above the skipped ticks.
        page.sequence().raise_floor(record.floor);
        page.sequence().raise_ceiling(*window, page.allowed(record.ceiling));
        page.notes().note_renewer();
        Ok(())
    }

    /// Releases the slot. The last user closes the page and records the ticks issued. Of a leased slot it removes the
    /// page.
    pub fn close(self, generator: &Generator) -> Result<(), Failure> {
        let Some(bound) = &self.bound else { return Ok(()) };
        let (slot, page) = (&self.slot, &bound.page);
        // Of two users that close it, one is the last.
        within(SHORT_TURN, || slot.try_take(OPENING, LockMode::Exclusive))?;
        let is_last = slot.try_take(USERS, LockMode::Exclusive)?;
        let recorded = if is_last { self.record_end(bound) } else { Ok(()) };
        if page.header().terms.authority.is_host_lease() {
            // The node's next page may be for another record, which knows nothing of this one. A page that stays is closed,
            // and harms nobody. Former users may still have it open for a moment, as may processes that look up its owner.
            let is_alone = || within(SHORT_TURN, || page.try_lock_exclusive()).unwrap_or(false);
            if is_last && recorded.is_ok() && is_alone() {
                page.remove_passed(|| generator.tick_now());
            }
            page.retire();
        }
        recorded
    }

    /// Closes the page, and records the ticks issued.
    fn record_end(&self, bound: &Bound) -> Result<(), Failure> {
        // What an overwritten page has issued is unknown: the recorded ceiling counts.
        let Some(ended) = bound.page.end_with_state() else { return Ok(()) };
        let record = self.slot.read()?;
        if !bound.is_of(&record) {
            return Ok(());
        }
        // Not flushed: if it is lost, the higher ceiling counts, which is as safe.
        let record = record.closed(&ended);
        self.slot.record(&record, false)?;
        bound.page.notes().note_recorded(record.generation);
        Ok(())
    }
}

impl Bound {
    /// Whether the record still names the page, under the window that this process has joined.
    fn is_of(&self, record: &Record) -> bool {
        (record.generation, record.page) == (self.generation, self.page.id())
    }
}
