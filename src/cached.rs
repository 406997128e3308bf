//! A ring of IDs in front of a generator, as UidGenerator's CachedUidGenerator has one: a thread pads
//! it ahead, and all threads of the process that name the node drain it.
//!
//! What is in the ring was issued by the generator, under its policies, window and marks: other
//! callers of the generator, and processes that restart from its store, meet none of it again. The ring only
//! hands out later what was issued before. Three bounds keep that honest: ticks count on from the
//! last one, but no further behind the clock than `max_age` and no further before it than the
//! generator's `max_ahead`; and what has grown older than `max_age` in the ring is dropped.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::generator::{Generator, Policies, Refusal, Reserved, Waits};
use crate::layout::Tick;
use crate::listeners::Listeners;
use crate::node::Node;
use crate::registry::Share;
use crate::ring::{Padder, Ring, ring};

/// The most slots of a ring: 128 MiB.
pub const MOST_SLOTS: u64 = 1 << 24;

/// How many IDs are padded in one go: one us or two, for which a taker of an empty ring may have to wait.
const BATCH: u64 = 1024;

/// How long a taker of an empty ring waits for that before it looks again.
const GLANCE: Duration = Duration::from_micros(10);

/// The rings of this process.
static RINGS: LazyLock<Mutex<HashMap<Node, Weak<Cached>>>> = LazyLock::new(Mutex::default);

/// How a ring is filled and drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// The ring has room for the IDs of 2^this ticks.
    pub boost_power: u32,
    /// Padding starts when no more than this is left in the ring, percent.
    pub padding_factor: u64,
    /// It is padded this often besides.
    pub schedule: Option<Duration>,
    /// IDs whose tick lies more than this many behind the clock's are dropped.
    pub max_age: Tick,
}

/// What a ring has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingStats {
    /// Its slots.
    pub size: u64,
    /// IDs in it.
    pub left: u64,
    /// IDs that were taken.
    pub taken: u64,
    /// IDs that had grown too old.
    pub dropped: u64,
    /// How often it was to be padded, by `schedule`, and was full.
    pub rejected_puts: u64,
    /// How often an ID was wanted, and there was none.
    pub rejected_takes: u64,
}

/// Why a ring could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingError {
    /// It would have this many slots, more than [`MOST_SLOTS`].
    TooLarge(u128),
    /// The process has it open otherwise.
    Otherwise(Caching, Policies),
    /// Its thread could not be started.
    NoThread,
}

/// A node's ring. Dropped by the last who has it, its thread ends.
pub struct Cached(Arc<Inner>);

struct Inner {
    generator: Arc<Generator>,
    caching: Caching,
    policies: Policies,
    ring: Ring,
    padder: Mutex<Padder>,
    /// Padding starts when no more than this is left.
    threshold: u64,
    /// The thread was asked to pad and has not come to it yet. It is not asked again meanwhile.
    is_asked: AtomicBool,
    ended: Mutex<bool>,
    /// What the thread waits for: that it is asked, or that it is to end.
    wanted: Condvar,
    rejected_put: Listeners,
    step_to_report: AtomicBool,
    taken: AtomicU64,
    dropped: AtomicU64,
    rejected_puts: AtomicU64,
    rejected_takes: AtomicU64,
}

/// Opens the ring of a node, for the first time or along with others, who must agree on it. It is full
/// when this returns, as far as the clock allows that.
pub fn open(share: &Share, caching: Caching) -> Result<Arc<Cached>, RingError> {
    let mut rings = RINGS.lock();
    if let Some(cached) = rings.get(share.node()).and_then(Weak::upgrade) {
        let Inner { caching: in_force, policies, .. } = *cached.0;
        return if (in_force, policies) == (caching, *share.policies()) {
            Ok(cached)
        } else {
            Err(RingError::Otherwise(in_force, policies))
        };
    }
    let cached = Cached::new(share.generator().clone(), *share.policies(), caching)?;
    let cached = Arc::new(cached);
    rings.insert(*share.node(), Arc::downgrade(&cached));
    Ok(cached)
}

impl Cached {
    fn new(
        generator: Arc<Generator>,
        policies: Policies,
        caching: Caching,
    ) -> Result<Cached, RingError> {
        let per_tick = u128::from(generator.node().layout().last_sequence()) + 1;
        let size = per_tick << caching.boost_power.min(63);
        if size > u128::from(MOST_SLOTS) {
            return Err(RingError::TooLarge(size));
        }
        let (padder, ring) = ring(size as usize);
        let inner = Arc::new(Inner {
            generator,
            caching,
            policies,
            threshold: ring.size() * caching.padding_factor / 100,
            ring,
            padder: Mutex::new(padder),
            is_asked: AtomicBool::new(false),
            ended: Mutex::new(false),
            wanted: Condvar::new(),
            rejected_put: Listeners::default(),
            step_to_report: AtomicBool::new(false),
            taken: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            rejected_puts: AtomicU64::new(0),
            rejected_takes: AtomicU64::new(0),
        });
        // What stands in the way now is told when an ID is wanted.
        let _ = inner.fill();
        let cached = Cached(inner.clone());
        thread::Builder::new()
            .name("snowdrift-ring".to_owned())
            .spawn(move || inner.keep_full())
            .map_err(|_| RingError::NoThread)?;
        Ok(cached)
    }

    /// Takes up to as many consecutive IDs as `ids` has room for, at least one. If there is none, it
    /// waits for the clock or the store, where the policies allow it and there is a place to note it.
    pub fn take(&self, ids: &mut [u64], waits: Option<&mut Waits>) -> Result<usize, Refusal> {
        let inner = &*self.0;
        let want = ids.len() as u64;
        let ids = RefCell::new(ids);
        let attempt = || {
            let ids = &mut *ids.borrow_mut();
            loop {
                let count = inner.take(ids);
                if count > 0 {
                    return Ok(count);
                }
                // What is being put in comes first, so that IDs rise.
                let Some(_padder) = inner.padder.try_lock_for(GLANCE) else { continue };
                if inner.ring.is_empty() {
                    return inner.pass_by(ids);
                }
            }
        };
        let answer = match waits {
            Some(waits) => {
                let booked = |reserved| inner.hand_out(&reserved, &mut ids.borrow_mut());
                inner.generator.waiting(&inner.policies, waits, want, attempt, booked)
            }
            None => attempt(),
        };
        if answer.is_err() {
            inner.rejected_takes.fetch_add(1, Relaxed);
        }
        answer
    }

    /// Has IDs that were taken, and are kept for later, count as not taken.
    pub fn note_kept(&self, count: usize) {
        self.0.taken.fetch_sub(count as u64, Relaxed);
    }

    /// Has IDs that were kept count as taken again; or as dropped.
    pub fn note_kept_no_more(&self, taken: usize, dropped: u64) {
        self.0.taken.fetch_add(taken as u64, Relaxed);
        self.0.dropped.fetch_add(dropped, Relaxed);
    }

    /// IDs below this are too old to be handed out.
    pub fn oldest(&self) -> u64 {
        self.0.oldest()
    }

    /// Who is to hear when the ring is to be padded and is full.
    pub fn rejected_put(&self) -> &Listeners {
        &self.0.rejected_put
    }

    /// Whether a step of the clock waits to be reported, and nobody was told so yet.
    pub fn has_step_to_report(&self) -> bool {
        let step = &self.0.step_to_report;
        step.load(Relaxed) && step.swap(false, Relaxed)
    }

    /// What it has done so far.
    pub fn stats(&self) -> RingStats {
        let Inner { ring, taken, dropped, rejected_puts, rejected_takes, .. } = &*self.0;
        RingStats {
            size: ring.size(),
            left: ring.len(),
            taken: taken.load(Relaxed),
            dropped: dropped.load(Relaxed),
            rejected_puts: rejected_puts.load(Relaxed),
            rejected_takes: rejected_takes.load(Relaxed),
        }
    }
}

impl Drop for Cached {
    fn drop(&mut self) {
        *self.0.ended.lock() = true;
        self.0.wanted.notify_one();
    }
}

impl Inner {
    fn oldest(&self) -> u64 {
        let now = self.generator.tick_now();
        self.generator.node().below(now.saturating_sub(self.caching.max_age))
    }

    /// What the ring has; none if it is empty.
    fn take(&self, ids: &mut [u64]) -> usize {
        let taken = self.ring.take(ids, self.oldest());
        if taken.dropped > 0 {
            self.dropped.fetch_add(taken.dropped, Relaxed);
        }
        if taken.left <= self.threshold && !self.is_asked.swap(true, SeqCst) {
            // Under the lock, so that the thread is not just about to wait.
            let _ended = self.ended.lock();
            self.wanted.notify_one();
        }
        self.taken.fetch_add(taken.count as u64, Relaxed);
        taken.count
    }

    /// The ring has none, and the thread has not come to it or there is nothing to be had: past the ring.
    fn pass_by(&self, ids: &mut [u64]) -> Result<usize, Refusal> {
        Ok(self.hand_out(&self.reserve(ids.len() as u64)?, ids))
    }

    fn hand_out(&self, reserved: &Reserved, ids: &mut [u64]) -> usize {
        let count = reserved.block.len as usize;
        for (slot, id) in ids[..count].iter_mut().zip(reserved.first_id..) {
            *slot = id;
        }
        self.taken.fetch_add(reserved.block.len, Relaxed);
        count
    }

    fn reserve(&self, want: u64) -> Result<Reserved, Refusal> {
        let reserved = self.generator.try_count_on(&self.policies, want, self.caching.max_age)?;
        if self.generator.has_step_to_report() {
            self.step_to_report.store(true, Relaxed);
        }
        Ok(reserved)
    }

    /// Pads a batch, if there is room. What it reserves it puts in, so no tick is lost in part.
    fn pad(&self) -> Result<(), Refusal> {
        let mut padder = self.padder.lock();
        let room = padder.room();
        if room > 0 {
            let reserved = self.reserve(room.min(BATCH))?;
            let dropped = padder.put(reserved.first_id, reserved.block.len);
            self.dropped.fetch_add(dropped, Relaxed);
        }
        Ok(())
    }

    /// Pads until the ring is full, or nothing is to be had for a while.
    fn fill(&self) -> Result<(), Refusal> {
        while self.ring.len() < self.ring.size() {
            self.pad()?;
            if *self.ended.lock() {
                break;
            }
        }
        Ok(())
    }

    /// What the thread does until the end.
    fn keep_full(&self) {
        let mut scheduled = self.caching.schedule.map(|every| Instant::now() + every);
        loop {
            self.is_asked.store(false, SeqCst);
            let pause = match self.fill() {
                Ok(()) => None,
                Err(refusal) => refusal.retry_after,
            };
            let mut ended = self.ended.lock();
            if let Some(pause) = pause {
                // What is asked for cannot be had earlier.
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

    /// What the schedule is for: what has grown too old makes room.
    fn refresh(&self) {
        let dropped = self.ring.take(&mut [], self.oldest()).dropped;
        self.dropped.fetch_add(dropped, Relaxed);
        if self.ring.len() == self.ring.size() {
            self.rejected_puts.fetch_add(1, Relaxed);
            self.rejected_put.tell();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, ManualClock};
    use crate::generator::ClockBack;
    use crate::layout::Layout;
    use crate::listeners::Listener;

    const START: i64 = 1_700_000_000_000;
    const CACHING: Caching =
        Caching { boost_power: 1, padding_factor: 50, schedule: None, max_age: 1000 };

    fn generator(max_ahead_ms: i64) -> (Arc<Generator>, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(START));
        let node = Node::new(Layout { sequence_bits: 4, ..Layout::NODE }, 1, 2).unwrap();
        (Arc::new(Generator::new(node, max_ahead_ms, Box::new(clock.clone()))), clock)
    }

    fn cached(max_ahead_ms: i64, caching: Caching) -> (Cached, Arc<ManualClock>) {
        let (generator, clock) = generator(max_ahead_ms);
        (Cached::new(generator, PATIENT, caching).unwrap(), clock)
    }

    /// The ticks of IDs that are taken one by one, ms since the start.
    fn ticks(cached: &Cached, count: usize) -> Vec<i64> {
        let layout = *cached.0.generator.node().layout();
        let mut id = [0];
        (0..count)
            .map(|_| {
                assert_eq!(cached.take(&mut id, None), Ok(1));
                layout.tick_start_ms(layout.decode(id[0]).unwrap().tick) - START
            })
            .collect()
    }

    const PATIENT: Policies = Policies {
        clock_back: ClockBack::Throw,
        max_wait: Duration::from_millis(100),
        random_start: false,
    };

    #[test]
    fn ticks_are_counted_on_and_no_part_of_one_is_lost() {
        let (cached, clock) = cached(0, CACHING);
        clock.set(START + 500);
        // 16 a tick, from the first tick on, though the clock has left it behind.
        let expected: Vec<_> = (0..1000).map(|n| n / 16).collect();
        assert_eq!(ticks(&cached, 1000), expected);
    }

    #[test]
    fn a_step_of_the_clock_back_is_not_seen_while_ticks_lag() {
        let (cached, clock) = cached(0, CACHING);
        clock.set(START + 500);
        ticks(&cached, 16 * 100);
        clock.set(START + 300);
        assert_eq!(ticks(&cached, 16), [100; 16], "with clockBack 'throw'");
    }

    #[test]
    fn it_does_not_run_ahead_of_the_clock_further_than_it_may() {
        for (max_ahead_ms, count) in [(0, 16), (5, 6 * 16)] {
            let (cached, _) = cached(max_ahead_ms, CACHING);
            assert_eq!(ticks(&cached, count).last(), Some(&max_ahead_ms));
            let refusal = cached.take(&mut [0], None).unwrap_err();
            assert_eq!(refusal.retry_after, Some(Duration::from_millis(1)));
            assert_eq!(cached.stats().rejected_takes, 1);
        }
    }

    #[test]
    fn what_is_to_come_is_waited_for_within_max_wait() {
        let (cached, clock) = cached(0, CACHING);
        ticks(&cached, 16);
        let mut waits = Waits::default();
        assert_eq!(cached.take(&mut [0], Some(&mut waits)), Ok(1));
        assert_eq!((waits.count, waits.time), (1, Duration::from_millis(1)));
        assert_eq!(clock.now().ms, START + 1);
    }

    #[test]
    fn what_has_grown_too_old_is_dropped_not_handed_out() {
        let (cached, clock) = cached(0, CACHING);
        ticks(&cached, 4);
        clock.set(START + 1001);
        assert_eq!(ticks(&cached, 1), [1001], "not older ones that could still be counted");
        assert!(cached.stats().dropped >= 12);
    }

    #[test]
    fn a_full_ring_is_refreshed_on_schedule_and_else_rejects() {
        let (cached, clock) = cached(50, CACHING);
        assert_eq!(cached.stats().left, 32);
        let (send, told) = std::sync::mpsc::channel();
        let listener: Arc<Listener> = Arc::new(move || send.send(()).unwrap());
        cached.rejected_put().add(&listener);
        cached.0.refresh();
        assert_eq!((cached.stats().rejected_puts, told.try_recv()), (1, Ok(())));
        clock.set(START + 5000);
        cached.0.refresh();
        assert_eq!((cached.stats().rejected_puts, cached.stats().dropped), (1, 32));
    }

    #[test]
    fn another_drawer_of_the_generator_meets_none_of_what_is_in_the_ring() {
        let (generator, clock) = generator(0);
        let cached = Cached::new(generator.clone(), PATIENT, CACHING).unwrap();
        clock.set(START + 40);
        let mut ids = Vec::new();
        let mut block = [0; 7];
        for n in 0..200 {
            clock.set(START + 40 + n / 10);
            if let Ok(count) = cached.take(&mut block, None) {
                ids.extend_from_slice(&block[..count]);
            }
            if let Ok(reserved) = generator.try_reserve(&PATIENT, |_| 3) {
                ids.extend(reserved.first_id..reserved.first_id + reserved.block.len);
            }
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert!(count > 200, "{count}");
        assert_eq!(ids.len(), count);
    }

    #[test]
    fn a_ring_that_needs_too_much_memory_is_refused() {
        let (generator, _) = generator(0);
        let caching = Caching { boost_power: 21, ..CACHING };
        assert_eq!(
            Cached::new(generator, PATIENT, caching).err(),
            Some(RingError::TooLarge(1 << 25))
        );
    }
}
