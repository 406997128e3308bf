//! A node's ring, shared by its users in this process.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::buffer::{Padder, Ring, ring};
use super::{Caching, RingStats};
use crate::core::fault::{Fault, fault};
use crate::core::listeners::Listeners;
use crate::generator::{Generator, Policies, Reserved, Stalled, Waits};
use crate::pages::Page;
use crate::registry::{IsUsable, Share};

/// The pause of a taker before it looks at an empty ring again.
const EMPTY_PAUSE: Duration = Duration::from_micros(10);

/// The rings of this process.
static RINGS: LazyLock<Mutex<Vec<Weak<Cached>>>> = LazyLock::new(Mutex::default);

/// A node's ring. Its thread ends when the last user drops it.
pub struct Cached(pub(super) Arc<Inner>);

pub(super) struct Inner {
    /// The generator's page. A leased generator never changes its page.
    page: Arc<Page>,
    pub generator: Arc<Generator>,
    pub caching: Caching,
    policies: Policies,
    pub ring: Ring,
    pub padder: Mutex<Padder>,
    /// Padding starts when at most this many IDs are left.
    threshold: u64,
    /// Whether the thread has a padding request that it has not begun. Takers make no further requests meanwhile.
    pub is_asked: AtomicBool,
    pub ended: Mutex<bool>,
    /// Wakes the thread to pad or to end.
    pub wanted: Condvar,
    pub rejected_put: Listeners,
    taken: AtomicU64,
    pub dropped: AtomicU64,
    pub rejected_puts: AtomicU64,
    rejected_takes: AtomicU64,
}

/// Opens a generator's ring, or joins it if it is open with the same options. Fills a new ring before it returns, as
/// far as the clock allows.
pub fn open_ring(share: &Share, caching: Caching) -> Result<Arc<Cached>, Fault> {
    let mut rings = RINGS.lock();
    rings.retain(|ring| ring.strong_count() > 0);
    if let Some(cached) = find(&rings, share, &caching)? {
        return Ok(cached);
    }
    let cached = Cached::new(share.generator.clone(), share.policies, caching)?;
    let cached = Arc::new(cached);
    rings.push(Arc::downgrade(&cached));
    Ok(cached)
}

/// Whether a share's generator has no ring with other options than these.
pub fn usable(caching: Option<Caching>) -> IsUsable {
    Arc::new(move |share| caching.is_none_or(|one| find(&RINGS.lock(), share, &one).is_ok()))
}

fn find(
    rings: &[Weak<Cached>],
    share: &Share,
    caching: &Caching,
) -> Result<Option<Arc<Cached>>, Fault> {
    let is_of = |cached: &Arc<Cached>| Arc::ptr_eq(&cached.0.generator, &share.generator);
    let Some(cached) = rings.iter().filter_map(Weak::upgrade).find(is_of) else { return Ok(None) };
    let Inner { caching: in_force, policies, .. } = *cached.0;
    if (in_force, policies) == (*caching, share.policies) {
        Ok(Some(cached))
    } else {
        Err(other_options(&in_force, &policies))
    }
}

fn other_options(in_force: &Caching, policies: &Policies) -> Fault {
    fault!(
        "ring-options",
        boostPower: in_force.boost_power,
        paddingFactor: in_force.padding_factor,
        scheduleInterval: in_force.schedule.map_or(0, |every| every.as_millis()),
        maxAge: in_force.max_age,
        clockBack: format!("{:?}", policies.clock_back).to_lowercase(),
        maxWait: policies.max_wait.as_millis(),
        sequenceStart: if policies.random_start { "random" } else { "zero" },
    )
}

impl Cached {
    pub(super) fn new(
        generator: Arc<Generator>,
        policies: Policies,
        caching: Caching,
    ) -> Result<Cached, Fault> {
        let (padder, ring) = ring(caching.size(generator.node().layout())?);
        let inner = Arc::new(Inner {
            page: generator.page(),
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
            taken: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            rejected_puts: AtomicU64::new(0),
            rejected_takes: AtomicU64::new(0),
        });
        // A failure here will be reported when a caller takes an ID.
        let _ = inner.fill();
        let cached = Cached(inner.clone());
        thread::Builder::new()
            .name("snowdrift-ring".to_owned())
            .spawn(move || inner.run())
            .map_err(|_| fault!("no-thread", purpose: "fills the ring"))?;
        Ok(cached)
    }

    /// Takes consecutive IDs, at least one and at most as many as `ids` has room for. If there is none, waits for the
    /// clock or the store as the policies allow, but only if `waits` is given.
    pub fn take(&self, ids: &mut [u64], waits: Option<&mut Waits>) -> Result<usize, Stalled> {
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
                // Waits for a padding under way: its IDs come first, so that IDs rise.
                let Some(_padder) = inner.padder.try_lock_for(EMPTY_PAUSE) else { continue };
                if inner.ring.is_empty() {
                    return inner.bypass(ids);
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

    /// Counts IDs as not taken, since the caller keeps them for later.
    pub fn note_kept(&self, count: usize) {
        self.0.taken.fetch_sub(count as u64, Relaxed);
    }

    /// Counts kept IDs as taken, or as dropped.
    pub fn note_kept_no_more(&self, taken: usize, dropped: u64) {
        self.0.taken.fetch_add(taken as u64, Relaxed);
        self.0.dropped.fetch_add(dropped, Relaxed);
    }

    /// IDs below this are too old to hand out.
    pub fn oldest(&self) -> u64 {
        self.0.oldest()
    }

    /// Listeners notified when scheduled padding finds the ring full.
    pub fn rejected_put(&self) -> &Listeners {
        &self.0.rejected_put
    }

    /// The ring's counters.
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
    pub(super) fn oldest(&self) -> u64 {
        if self.page.is_disputed() {
            return u64::MAX;
        }
        let now = self.generator.tick_now();
        self.generator.node().below(now.saturating_sub(self.caching.max_age))
    }

    /// Takes IDs from the ring; none if it is empty.
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

    /// Reserves IDs without the ring, while it is empty: the thread has not padded it yet, or no IDs are available.
    fn bypass(&self, ids: &mut [u64]) -> Result<usize, Stalled> {
        Ok(self.hand_out(&self.reserve(ids.len() as u64)?, ids))
    }

    fn hand_out(&self, reserved: &Reserved, ids: &mut [u64]) -> usize {
        let count = reserved.block.len as usize;
        for (element, id) in ids[..count].iter_mut().zip(reserved.first_id..) {
            *element = id;
        }
        self.taken.fetch_add(reserved.block.len, Relaxed);
        count
    }

    pub(super) fn reserve(&self, want: u64) -> Result<Reserved, Stalled> {
        self.generator.try_count_on(&self.policies, want, self.caching.max_age)
    }
}
