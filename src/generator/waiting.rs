//! What a caller does that may wait: for the clock, for the store, or for its turn.
//!
//! Waiters are served in turn. Where the tick is exhausted a waiter books numbers of a coming one, sleeps
//! until that has begun, and hands them out. A caller that only races for each new tick may lose any
//! number of races: 16 threads on 2 cores lost 10 in a row.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::{ClockBack, Generator, Policies, Refusal, Reserved, until};
use crate::host::Opened;
use crate::layout::Tick;
use crate::sequencer::Stall;

/// What one caller has waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How often.
    pub count: u64,
    /// How long in all.
    pub time: Duration,
    /// What stood in the way the last time.
    pub last: Option<Stall>,
}

impl Waits {
    fn note(&mut self, stall: Stall, time: Duration) {
        self.count += 1;
        self.time += time;
        self.last = Some(stall);
    }
}

/// IDs of a tick that may not have begun. They are handed out after it has, or lost.
#[derive(Clone, Copy, Debug)]
pub struct Booking {
    reserved: Reserved,
    /// The page that they are of.
    opened: *const Opened,
}

/// How things stand with a booking.
pub enum Redeemed {
    /// Its tick has begun: these are the caller's.
    Ids(Reserved),
    /// Its tick is to come.
    Early(Refusal),
    /// The clock has rolled back, or the page is gone.
    Lost,
}

impl Generator {
    /// As [`Generator::try_reserve`], but waits for the clock, the store or its turn where the policies
    /// allow it.
    pub fn reserve(
        &self,
        policies: &Policies,
        want: impl Fn(Tick) -> u64,
    ) -> Result<Reserved, Refusal> {
        let attempt = || self.try_reserve(policies, &want);
        let refusal = match attempt() {
            Err(refusal) => refusal,
            reserved => return reserved,
        };
        let most = want(self.tick_now());
        self.wait_for(policies, &mut Waits::default(), most, refusal, attempt, |reserved| reserved)
    }

    /// Attempts, and waits where the policies allow it. What is booked meanwhile, up to `want` IDs, is
    /// made an answer of.
    #[inline]
    pub fn waiting<T>(
        &self,
        policies: &Policies,
        waits: &mut Waits,
        want: u64,
        mut attempt: impl FnMut() -> Result<T, Refusal>,
        booked: impl FnOnce(Reserved) -> T,
    ) -> Result<T, Refusal> {
        match attempt() {
            Ok(answer) => Ok(answer),
            Err(refusal) => self.wait_for(policies, waits, want, refusal, attempt, booked),
        }
    }

    /// The rest of it. What counts towards `max_wait` is the time that it asked to wait, not the time for
    /// which the scheduler held the thread. So each wait is followed by an attempt.
    #[cold]
    fn wait_for<T>(
        &self,
        policies: &Policies,
        waits: &mut Waits,
        want: u64,
        mut refusal: Refusal,
        mut attempt: impl FnMut() -> Result<T, Refusal>,
        booked: impl FnOnce(Reserved) -> T,
    ) -> Result<T, Refusal> {
        let mut left = policies.max_wait;
        loop {
            if let Stall::SequenceUsedUp { .. } = refusal.stall
                && let Ok(booking) = self.book(policies, want, self.ticks_within(left))
                && let Some(reserved) = self.await_turn(&booking, &mut left, waits)
            {
                return Ok(booked(reserved));
            }
            self.wait(policies, refusal, &mut left, waits)?;
            match attempt() {
                Ok(answer) => return Ok(answer),
                Err(next) => refusal = next,
            }
        }
    }

    /// Books up to `want` IDs, within that many ticks from now.
    pub fn book(&self, policies: &Policies, want: u64, horizon: Tick) -> Result<Booking, Refusal> {
        let (reserved, opened) = self.attempt(policies, |sequence, rules, reading| {
            sequence.book(rules, reading, want, horizon)
        })?;
        Ok(Booking { reserved, opened })
    }

    /// How many ticks begin within this time.
    pub fn ticks_within(&self, time: Duration) -> Tick {
        let (now, layout) = (self.clock.now().ms, self.node.layout());
        let ms = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        layout.tick_at(now.saturating_add(ms)) - layout.tick_at(now)
    }

    /// The IDs of a booking, if its tick has begun. After that its page is checked, as before any draw: a
    /// later page of the node may have issued the same numbers of a tick that was to come.
    pub fn redeem(&self, booking: &Booking) -> Redeemed {
        let Booking { reserved, opened } = *booking;
        let current = self.sequence.current();
        let now = self.clock.now();
        let tick = reserved.block.tick;
        let begins = tick - self.max_ahead.load(Relaxed);
        if !ptr::eq(current, opened) {
            self.lose(&reserved);
            return Redeemed::Lost;
        }
        if self.node.layout().tick_at(now.ms) < begins {
            let stall = Stall::SequenceUsedUp { until: begins };
            let retry_after = until(self.node.layout(), &stall, now);
            return Redeemed::Early(Refusal { stall, now, retry_after });
        }
        if matches!(current.may_issue(now.ms), Ok(true)) {
            return Redeemed::Ids(reserved);
        }
        self.lose(&reserved);
        Redeemed::Lost
    }

    /// Forgets a booking.
    pub fn lose(&self, reserved: &Reserved) {
        self.issued.fetch_sub(reserved.block.len, Relaxed);
    }

    /// Sleeps until a booking's tick has begun. None if it is lost, or would take longer than is left: then
    /// the clock has rolled back since.
    pub fn await_turn(
        &self,
        booking: &Booking,
        left: &mut Duration,
        waits: &mut Waits,
    ) -> Option<Reserved> {
        loop {
            let refusal = match self.redeem(booking) {
                Redeemed::Ids(reserved) => return Some(reserved),
                Redeemed::Lost => return None,
                Redeemed::Early(refusal) => refusal,
            };
            match refusal.retry_after.filter(|wait| *wait <= *left) {
                Some(wait) => {
                    self.clock.wait(wait);
                    *left = left.saturating_sub(wait);
                    self.note_waits(1, wait);
                    waits.note(refusal.stall, wait);
                }
                None => {
                    self.lose(&booking.reserved);
                    return None;
                }
            }
        }
    }

    /// Waits until it can go on, if that is within what is left of `max_wait`.
    fn wait(
        &self,
        policies: &Policies,
        refusal: Refusal,
        left: &mut Duration,
        waits: &mut Waits,
    ) -> Result<(), Refusal> {
        let refused_by_policy = policies.clock_back == ClockBack::Throw
            && matches!(refusal.stall, Stall::ClockBehind { .. });
        let Some(wait) = refusal.retry_after.filter(|wait| !refused_by_policy && wait <= left)
        else {
            return Err(refusal);
        };
        let waited = if let Stall::AboveCeiling { ceiling } = refusal.stall {
            self.keeping.await_answer(*left, || self.window().ceiling == ceiling)
        } else {
            self.clock.wait(wait);
            wait
        };
        self.note_waits(1, waited);
        *left = left.saturating_sub(waited);
        waits.note(refusal.stall, waited);
        Ok(())
    }

    /// Counts waits of callers that wait by themselves.
    pub fn note_waits(&self, waits: u64, time: Duration) {
        self.waits.fetch_add(waits, Relaxed);
        self.waited_ns.fetch_add(time.as_nanos() as u64, Relaxed);
    }
}
