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
use std::thread;
use std::time::{Duration, Instant};

use super::Access;
use super::evidence::{Known, is_of_this_boot, is_usable, other_pages_issued};
use crate::authority::Holder;
use crate::authority::checks;
use crate::authority::file::FileStore;
use crate::authority::record::Record;
use crate::authority::slot::{OPENING, RENEWING, SlotFile};
use crate::core::fault::Failure;
use crate::core::layout::Tick;
use crate::core::sequence::{Ended, NotReopened, WindowNumber};
use crate::core::sequencer::{NEVER, Window};
use crate::files::lock::{Hold, USERS};
use crate::generator::Generator;
use crate::pages::{Authority, Page, Terms};

/// The longest wait for others that open the slot. Each takes as long as the disk. Shorter than a constructor's wait
/// for the disk.
const TURN: Duration = Duration::from_secs(5);
/// The longest wait where others do not wait long, either.
pub(super) const SHORT_TURN: Duration = Duration::from_millis(100);
pub(super) const POLL: Duration = Duration::from_millis(1);

/// The most pages replaced in one call.
const PAGES: usize = 8;

/// A record and the page in use.
pub struct Durable {
    pub(super) slot: SlotFile,
    holder: Holder,
    access: Access,
    /// Whether the host's processes have leased the slot.
    is_leased: bool,
    pub(super) bound: Option<Bound>,
    /// The page lost last.
    last: Option<Known>,
}

/// The page that the record names.
pub(super) struct Bound {
    pub page: Arc<Page>,
    pub generation: u64,
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
        let slot = match access {
            Access::Joined => store.slot_at(store.path_of(generator.node()))?,
            _ => store.slot(generator.node())?,
        };
        // Processes without a common page cannot share.
        let access = if generator.directory().is_some() { access } else { Access::Alone };
        let is_leased = matches!(access, Access::Taken | Access::Joined);
        let mut durable = Durable { slot, holder, access, is_leased, bound: None, last: None };
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
        let bound = match self.access {
            Access::Joined => self.join(generator)?.ok_or_else(|| self.slot.in_use())?,
            Access::Taken => self.bind_in_turn(generator, ttl, SHORT_TURN)?,
            Access::Alone => self.bind_in_turn(generator, ttl, TURN)?,
            Access::Shared => match self.join(generator)? {
                Some(bound) => bound,
                None => self.bind_in_turn(generator, ttl, TURN)?,
            },
        };
        generator.adopt(bound.page.clone());
        self.bound = Some(bound);
        self.last = None;
        self.renew_if_low(generator, ttl)
    }

    /// Raises a low ceiling: all users may have left the page long ago. Of many that join it at once, one does so, unless
    /// that one is stopped.
    fn renew_if_low(&mut self, generator: &Generator, ttl: Duration) -> Result<(), Failure> {
        let deadline = Instant::now() + TURN;
        while generator.window().ceiling < generator.next_ceiling(ttl / 2) {
            let ceiling = generator.next_ceiling(ttl);
            if Instant::now() >= deadline {
                return self.renew(ceiling);
            }
            if self.renew_in_turn(ceiling)? {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Closes the page, and lets another one be opened for the record.
    fn unbind(&mut self) -> Result<(), Failure> {
        if let Some(Bound { page, generation, .. }) = self.bound.take() {
            let (id, ended) = (page.id(), page.close());
            let floor = page.sequence().floor();
            let known = |Ended { high, .. }| Known { page: id, generation, floor, high, used: 0 };
            self.last = ended.map(known);
            self.slot.release(USERS)?;
        }
        Ok(())
    }

    /// Joins the page that the record names, if it is open. Changes nothing that other openers of the slot depend on, so
    /// a process that is stopped meanwhile keeps no other from the slot.
    fn join(&self, generator: &Generator) -> Result<Option<Bound>, Failure> {
        let slot = &self.slot;
        slot.check_path()?;
        if self.read(generator)?.is_closed {
            return Ok(None);
        }
        // Before the page: a page that the record's last user removes must not be opened.
        if !slot.try_take(USERS, Hold::Shared)? {
            return Ok(None);
        }
        let joined = self.read(generator).and_then(|record| match record.is_closed {
            true => Ok(None),
            false => self.open_page(&record, self.page(generator, &record)?),
        });
        if !matches!(joined, Ok(Some(_))) {
            slot.release(USERS)?;
        }
        joined
    }

    /// The page, if it is the record's and open.
    fn open_page(&self, record: &Record, page: Arc<Page>) -> Result<Option<Bound>, Failure> {
        let sequence = page.sequence();
        if record.page != page.id() || sequence.is_closed() || !is_of_this_boot(&page)? {
            return Ok(None);
        }
        let (window, floor) = (sequence.window_number(), sequence.floor());
        Ok(Some(Bound { generation: record.generation, window, floor, page }))
    }

    fn read(&self, generator: &Generator) -> Result<Record, Failure> {
        let record = self.slot.read()?;
        checks::check_node(&record.node, generator.node(), self.slot.path())?;
        Ok(record)
    }

    /// Opens a page for the record, one process at a time.
    fn bind_in_turn(
        &self,
        generator: &Generator,
        ttl: Duration,
        turn: Duration,
    ) -> Result<Bound, Failure> {
        let slot = &self.slot;
        if !take_within(slot, OPENING, turn)? {
            return Err(checks::opening(slot.path(), turn));
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
        slot.check_path()?;
        let hold = if self.access == Access::Alone { Hold::Exclusive } else { Hold::Shared };
        let first = if self.access == Access::Shared { Hold::Shared } else { Hold::Exclusive };
        for _ in 0..PAGES {
            if !slot.try_take(USERS, first)? {
                return Err(slot.in_use());
            }
            let record = self.read(generator)?;
            let page = self.page(generator, &record)?;
            // Another process may have opened it before the turn.
            if let Some(bound) = self.open_page(&record, page.clone())? {
                return Ok(bound);
            }
            let bound = if !slot.try_take(USERS, Hold::Exclusive)? {
                return Err(slot.in_use());
            } else if is_usable(&page, &record) {
                let bound = self.begin(generator, ttl, page, &slot.read()?)?;
                if !bound.page.is_current() {
                    // It was replaced meanwhile.
                    bound.page.end();
                    continue;
                }
                slot.try_take(USERS, hold)?;
                bound
            } else {
                // Nobody draws from a page of this record: all users have given it up.
                page.end();
                page.remove()?;
                continue;
            };
            return Ok(bound);
        }
        Err(slot.in_use())
    }

    /// The node's page for the record. Without a directory: the process's own memory. Nothing draws from it yet.
    fn page(&self, generator: &Generator, record: &Record) -> Result<Arc<Page>, Failure> {
        let present = generator.page();
        let Some(directory) = generator.directory() else { return Ok(present) };
        let id = self.slot.identity(record)?;
        let authority = Authority::Record { id, is_leased: self.is_leased };
        let terms = Terms { max_ahead: present.header().terms.max_ahead, authority };
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
        record: &Record,
    ) -> Result<Bound, Failure> {
        let sequence = page.sequence();
        if !sequence.is_closed() {
            // The process's own memory, used before without a record.
            sequence.close();
        }
        let mut closed = sequence.closed().ok_or_else(|| self.slot.in_use())?;
        let mut before = Known::of(self.last.as_ref(), &page, record);
        let other = other_pages_issued(generator, &page, record);
        let mut floor = before.floor;
        if sequence.before() == NEVER {
            // The node had no page before, unless the page and its marker were both removed: not worth refusing a
            // rollback.
            let mark = &mut before.high.marks[before.high.current];
            if *mark < other {
                (*mark, before.used) = (other, 0);
            }
        } else {
            floor = floor.max(other);
        }
        let ceiling = generator.next_ceiling(ttl).max(before.high.highest()).max(floor);
        let passed = record.clone().passing_what_is_skipped(ceiling);
        checks::check_skip(&passed, ceiling, self.slot.path())?;
        let next = Record {
            page: page.id(),
            generation: record.generation + 1,
            floor: floor.max(passed.floor),
            high: before.high,
            used: before.used,
            is_closed: false,
            holder: Some(self.holder.clone()),
            ..passed.raised(ceiling)
        };
        self.slot.record(&next, true)?;
        if page.path().is_none() && sequence.is_last_window() {
            // No other process confirms anything of it.
            sequence.renumber_windows();
            closed = sequence.closed().unwrap_or(closed);
        }
        page.kept().note_renewer();
        let bounds = Window { floor: next.floor, ceiling: next.ceiling };
        let window = match sequence.resume(&closed, bounds, &before.high, before.used) {
            Ok(window) => window,
            Err(NotReopened::Overtaken) => return Err(self.slot.in_use()),
            // The layout has no tick left: the page stays closed.
            Err(NotReopened::Ended) => sequence.window_number(),
        };
        Ok(Bound { page, generation: next.generation, window, floor: next.floor })
    }

    /// As [`Durable::renew`]. Returns false while another process renews.
    pub fn renew_in_turn(&mut self, ceiling: Tick) -> Result<bool, Failure> {
        if !self.slot.try_take(RENEWING, Hold::Exclusive)? {
            return Ok(false);
        }
        let renewed = self.renew(ceiling);
        self.slot.release(RENEWING)?;
        renewed.map(|()| true)
    }

    /// Records a ceiling, and raises the ceiling of the page's window to it. Waits for the disk.
    pub fn renew(&mut self, ceiling: Tick) -> Result<(), Failure> {
        let Some(Bound { page, generation, window, .. }) = &self.bound else { return Ok(()) };
        let record = self.slot.read()?;
        if (record.generation, record.page) != (*generation, page.id()) {
            return Err(checks::overtaken(self.slot.path()));
        }
        let record = record.passing_what_is_skipped(ceiling);
        checks::check_skip(&record, ceiling, self.slot.path())?;
        let holder = Some(self.holder.clone());
        let record = Record { holder, ..record.raised(ceiling) };
        self.slot.record(&record, true)?;
        // Only now: ticks that are not recorded must not be issued. The floor first: it is above the skipped ticks.
        page.sequence().raise_floor(record.floor);
        page.sequence().raise_ceiling(*window, record.ceiling);
        page.kept().note_renewer();
        Ok(())
    }
}

/// Locks a byte, within this time.
pub(super) fn take_within(slot: &SlotFile, at: u64, at_most: Duration) -> Result<bool, Failure> {
    let deadline = Instant::now() + at_most;
    while !slot.try_take(at, Hold::Exclusive)? {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        thread::sleep(POLL);
    }
    Ok(true)
}
