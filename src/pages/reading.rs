//! The time of a reservation from a page, and the reasons why one ends.

use std::time::{Duration, Instant};

use super::Page;
use crate::core::clock::{Clock, UnixTime};
use crate::core::fault::Failure;
use crate::core::layout::Tick;
use crate::core::sequence::{Run, Time};
use crate::core::sequencer::Stall;

/// Time to recheck an apparent clock rollback: some machines' clocks flicker backwards.
const DOUBT: Duration = Duration::from_micros(50);

/// The reason a reservation ended.
#[derive(Debug)]
pub enum Halt {
    /// The sequencer's rule refuses.
    Stall(Stall),
    /// The page lost its name, or is of the user that the process was.
    Unnamed,
    /// The page is not usable.
    Host(Box<Failure>),
}

impl From<Stall> for Halt {
    fn from(stall: Stall) -> Self {
        Halt::Stall(stall)
    }
}

impl From<Failure> for Halt {
    fn from(error: Failure) -> Self {
        Halt::Host(Box::new(error))
    }
}

/// Reads the time for a reservation, and ends the reservation if its page lost its name.
pub struct Reading<'a> {
    clock: &'a dyn Clock,
    page: &'a Page,
    doubted: Option<Instant>,
    /// The last time read.
    pub last: UnixTime,
    /// The previous run, if the block begins another one.
    pub left: Option<Run>,
}

impl<'a> Reading<'a> {
    /// For one reservation, from this page only.
    pub fn new(clock: &'a dyn Clock, page: &'a Page) -> Self {
        Reading { clock, page, doubted: None, last: UnixTime::from_ms(0), left: None }
    }
}

impl Time for Reading<'_> {
    type Refusal = Halt;

    #[inline]
    fn now(&mut self) -> Result<Tick, Halt> {
        self.left = None;
        self.last = self.clock.now();
        let now = self.last;
        if !self.page.is_checked(now.ms) && !self.page.check(now.ms)? {
            return Err(Halt::Unnamed);
        }
        Ok(self.page.header().node.layout().tick_at(now.ms))
    }

    fn doubts(&mut self) -> bool {
        self.clock.may_flicker() && self.doubted.get_or_insert_with(Instant::now).elapsed() < DOUBT
    }

    fn is_damaged(&mut self) -> Result<(), Halt> {
        if self.page.path().is_some() { Err(self.page.overwritten())? } else { Ok(()) }
    }

    fn begins(&mut self, left: &Run, _: &Run) {
        self.left = Some(*left);
    }
}
