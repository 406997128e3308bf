//! The thread that fills a ring.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use super::cached::Inner;
use crate::generator::Stalled;

/// The number of IDs padded at once. A batch takes 1 or 2 us, and a taker of an empty ring waits for it.
const BATCH: u64 = 1024;

/// The longest pause while no IDs are available. A clock that rolled back by hours may be corrected at any time.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Inner {
    /// Pads a batch, if there is room. It puts in all IDs that it reserves, so it loses no part of a tick.
    fn pad(&self) -> Result<(), Stalled> {
        let mut padder = self.padder.lock();
        let room = padder.room();
        if room > 0 {
            let reserved = self.reserve(room.min(BATCH))?;
            let dropped = padder.put(reserved.first_id, reserved.block.len);
            self.dropped.fetch_add(dropped, Relaxed);
        }
        Ok(())
    }

    /// Pads until the ring is full or no IDs are available.
    pub(super) fn fill(&self) -> Result<(), Stalled> {
        while self.ring.len() < self.ring.size() {
            self.pad()?;
            if *self.ended.lock() {
                break;
            }
        }
        Ok(())
    }

    /// The thread's loop.
    pub(super) fn run(&self) {
        let mut scheduled = self.caching.schedule.map(|every| Instant::now() + every);
        loop {
            self.is_asked.store(false, SeqCst);
            let pause = match self.fill() {
                Ok(()) => None,
                Err(refusal) => refusal.retry_after.map(|after| after.min(LONGEST_PAUSE)),
            };
            let mut ended = self.ended.lock();
            if let Some(pause) = pause {
                // If the clock runs evenly, no IDs are available before the pause ends. So takers make no requests.
                self.is_asked.store(true, SeqCst);
                if !*ended {
                    self.wanted.wait_for(&mut ended, pause);
                }
            } else {
                self.await_demand(&mut ended, scheduled);
            }
            if *ended {
                return;
            }
            drop(ended);
            if scheduled.is_some_and(|at| at <= Instant::now()) {
                scheduled = self.caching.schedule.map(|every| Instant::now() + every);
                self.refresh();
            }
        }
    }

    fn await_demand(&self, ended: &mut parking_lot::MutexGuard<bool>, until: Option<Instant>) {
        while !**ended && !self.is_asked.load(SeqCst) {
            match until {
                None => self.wanted.wait(ended),
                Some(until) => {
                    if self.wanted.wait_until(ended, until).timed_out() {
                        return;
                    }
                }
            }
        }
    }

    /// Drops IDs that are too old, to make room. Runs on schedule.
    pub(super) fn refresh(&self) {
        let dropped = self.ring.take(&mut [], self.oldest()).dropped;
        self.dropped.fetch_add(dropped, Relaxed);
        if self.ring.len() == self.ring.size() {
            self.rejected_puts.fetch_add(1, Relaxed);
            self.rejected_put.notify();
        }
    }
}
