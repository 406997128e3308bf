//! Reservations that may wait for the clock, the store, or the caller's turn.
//!
//! Callers are served in turn. If the tick is exhausted, a caller books numbers of a coming tick, sleeps until that
//! begins, and hands the numbers out. Without bookings, a caller could lose any number of races for a new tick: with 16
//! threads on 2 cores, 10 in a row.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::reserving::until;
use super::{ClockBack, Generator, Policies, Reserved, Stalled};
use crate::core::layout::Tick;
use crate::core::sequencer::Stall;

/// The waits of one caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// The number of waits.
    pub count: u64,
    /// Their total time.
    pub time: Duration,
    /// The cause of the last wait.
    pub last: Option<Stall>,
}

/// IDs of a tick that may not have begun. The caller hands them out after it has begun. If the booking is lost, no
/// caller gets them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Booking {
    reserved: Reserved,
    /// The ID of the page of the booking.
    page: u128,
}

impl Generator {
    /// Retries `attempt`, with waits in between as the policies allow. If it books IDs meanwhile, up to `want`,
    /// `booked` turns them into the result.
    #[inline]
    pub fn waiting<T>(
        &self,
        policies: &Policies,
        waits: &mut Waits,
        want: u64,
        mut attempt: impl FnMut() -> Result<T, Stalled>,
        booked: impl FnOnce(Reserved) -> T,
    ) -> Result<T, Stalled> {
        match attempt() {
            Ok(answer) => Ok(answer),
            Err(refusal) => self.wait_for(policies, waits, want, refusal, attempt, booked),
        }
    }

    /// The slow path of [`Generator::waiting`]. Of a wait for the clock, only the requested time counts towards
    /// `max_wait`, not a delay by the scheduler. So an attempt follows each wait.
    #[cold]
    fn wait_for<T>(
        &self,
        policies: &Policies,
        waits: &mut Waits,
        want: u64,
        mut refusal: Stalled,
        mut attempt: impl FnMut() -> Result<T, Stalled>,
        booked: impl FnOnce(Reserved) -> T,
    ) -> Result<T, Stalled> {
        let mut left = policies.max_wait;
        loop {
            if let Stall::SequenceExhausted { .. } = refusal.stall
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

    /// Books up to `want` IDs, at most `horizon` ticks from now.
    pub(super) fn book(
        &self,
        policies: &Policies,
        want: u64,
        horizon: Tick,
    ) -> Result<Booking, Stalled> {
        let mut page = self.page();
        let reserved = self.attempt(&mut page, policies, |sequence, rules, reading| {
            sequence.book(rules, reading, want, horizon)
        })?;
        // Booked IDs count as issued when they are handed out.
        self.issued.fetch_sub(reserved.block.len, Relaxed);
        Ok(Booking { reserved, page: page.id() })
    }

    /// The number of ticks that begin within a time from now.
    pub(super) fn ticks_within(&self, time: Duration) -> Tick {
        let (now, layout) = (self.clock.now().ms, self.node.layout());
        let ms = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        layout.tick_at(now.saturating_add(ms)) - layout.tick_at(now)
    }

    /// Returns the IDs of a booking if its tick has begun; before that, a refusal. `None` if the booking is lost: the
    /// page was replaced, or its IDs are disputed, or the clock rolled back. Checks the page after the clock, as every reservation
    /// does: a later page of the node may have issued the same numbers of a tick that had not begun.
    ///
    /// If the clock is below its reading at the booking, it has rolled back, and may take any time to reach the tick.
    /// So the booking is lost, and the policies decide about a new reservation, as for other callers.
    pub(super) fn redeem(&self, booking: &Booking) -> Result<Option<Reserved>, Stalled> {
        let Booking { reserved, page } = *booking;
        let current = self.page();
        let (now, layout) = (self.clock.now(), self.node.layout());
        let begins = reserved.block.tick - self.max_ahead;
        let is_early = layout.tick_at(now.ms) < begins;
        let has_rolled_back = layout.tick_at(now.ms) < layout.tick_at(reserved.ms);
        if current.id() != page || current.is_disputed() || is_early && has_rolled_back {
            return Ok(None);
        }
        if is_early {
            let stall = Stall::SequenceExhausted { until: begins };
            let retry_after = until(layout, &stall, now);
            return Err(Stalled { stall, now, retry_after });
        }
        if !matches!(current.may_issue(now.ms), Ok(true)) {
            return Ok(None);
        }
        self.issued.fetch_add(reserved.block.len, Relaxed);
        Ok(Some(Reserved { ms: now.ms, ..reserved }))
    }

    /// Sleeps until the tick of a booking has begun. `None` if the booking is lost, or if the tick is further away than
    /// `left`, since the clock stopped or rolled back meanwhile.
    pub(super) fn await_turn(
        &self,
        booking: &Booking,
        left: &mut Duration,
        waits: &mut Waits,
    ) -> Option<Reserved> {
        loop {
            let refusal = match self.redeem(booking) {
                Ok(redeemed) => return redeemed,
                Err(refusal) => refusal,
            };
            let wait = refusal.retry_after.filter(|wait| *wait <= *left)?;
            self.clock.wait(wait);
            self.note_wait(refusal.stall, wait, left, waits);
        }
    }

    /// Waits until a retry can succeed, if that is within `left`, the rest of `max_wait`.
    fn wait(
        &self,
        policies: &Policies,
        refusal: Stalled,
        left: &mut Duration,
        waits: &mut Waits,
    ) -> Result<(), Stalled> {
        let refused_by_policy = policies.clock_back == ClockBack::Throw
            && matches!(refusal.stall, Stall::ClockBehind { .. });
        let Some(wait) = refusal.retry_after.filter(|wait| !refused_by_policy && wait <= left)
        else {
            return Err(refusal);
        };
        let waited = if let Stall::AboveCeiling { ceiling } = refusal.stall {
            // Another process may raise a page's ceiling without waking this thread.
            let at_most = if self.page().path().is_some() { wait } else { *left };
            self.renewals.await_result(at_most, || self.window().ceiling == ceiling)
        } else {
            self.clock.wait(wait);
            wait
        };
        self.note_wait(refusal.stall, waited, left, waits);
        Ok(())
    }

    fn note_wait(&self, stall: Stall, time: Duration, left: &mut Duration, waits: &mut Waits) {
        *left = left.saturating_sub(time);
        self.note_waits(1, time);
        *waits = Waits { count: waits.count + 1, time: waits.time + time, last: Some(stall) };
    }

    /// Counts waits of callers that sleep outside the generator.
    pub fn note_waits(&self, waits: u64, time: Duration) {
        self.waits.fetch_add(waits, Relaxed);
        self.waited_ns.fetch_add(time.as_nanos() as u64, Relaxed);
    }
}
