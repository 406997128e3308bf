//! A held slot, and the thread that renews it.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Access;
use super::durable::Durable;
use crate::authority::Holder;
use crate::authority::file::FileStore;
use crate::core::fault::{Class, Failure, Fault};
use crate::core::layout::Tick;
use crate::core::listeners::Listeners;
use crate::generator::{Generator, WindowId};

/// The shortest and the longest pause after a renewal that failed.
const RETRY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// The interval of checks that the page still has its name.
const LOOK: Duration = Duration::from_millis(200);

/// The pause before reopening a page while others have not yet given up theirs.
const AGAIN: Duration = Duration::from_millis(20);

/// The interval of checks that a slot has been released. Most releases take this long.
const GLANCE: Duration = Duration::from_micros(100);

/// The state of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The slot is held, and the last renewal succeeded.
    Held,
    /// The slot is held, and the last renewal failed: IDs stop at the ceiling unless one succeeds.
    Failing,
    /// The slot is no longer held, though nobody released it. IDs have stopped.
    Lost,
}

/// A report on a lease.
#[derive(Clone, Debug)]
pub struct Report {
    /// The store's name.
    pub store: String,
    /// The holder of the slot: this process.
    pub holder: Holder,
    /// Nothing at or below this tick is issued.
    pub floor: Tick,
    /// Nothing above this tick is issued.
    pub ceiling: Tick,
    /// The distance of the recorded ceiling ahead of the clock.
    pub ttl: Duration,
    /// The number of times this process raised the ceiling.
    pub renewals: u64,
    /// The host's process that raised it last, and the start of its renewals (Unix ms). None where this process has
    /// the slot alone.
    pub renewer: Option<(u32, i64)>,
    /// The state.
    pub status: Status,
    /// The reason of the last renewal's failure, if it failed.
    pub failure: Option<Fault>,
}

/// A held slot. Dropping it releases the slot.
pub struct Lease {
    generator: Arc<Generator>,
    shared: Arc<Shared>,
    /// Closed when the renewer has ended.
    ended: Receiver<()>,
}

struct Shared {
    store: String,
    holder: Holder,
    floor: AtomicI64,
    ttl: Duration,
    renewals: AtomicU64,
    is_lost: AtomicBool,
    failure: Mutex<Option<Fault>>,
    giving_up: AtomicBool,
    renewed: Listeners,
}

impl Lease {
    /// Opens the slot of the generator's node. The generator then issues within its window. The ceiling is recorded
    /// `ttl` ahead of the clock, and renewed after a little more than a third of that.
    pub fn take(
        store: &FileStore,
        generator: &Arc<Generator>,
        holder: Holder,
        ttl: Duration,
        access: Access,
    ) -> Result<Lease, Failure> {
        let durable = Durable::open(store, generator, holder.clone(), ttl, access)?;
        let shared = Arc::new(Shared {
            store: store.name(),
            holder,
            floor: AtomicI64::new(durable.floor()),
            ttl,
            renewals: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
            failure: Mutex::new(None),
            giving_up: AtomicBool::new(false),
            renewed: Listeners::default(),
        });
        let (ending, ended) = channel();
        let window = generator.renewals().begin(true, || ());
        let renewer =
            Renewer { durable, generator: generator.clone(), window, shared: shared.clone() };
        // Without a thread the renewer is dropped, as if the process had died.
        thread::Builder::new()
            .name("snowdrift-lease".to_owned())
            .spawn(move || {
                renewer.run();
                drop(ending);
            })
            .map_err(Failure::io("slot-io", "start a thread for", shared.store.as_ref()))?;
        Ok(Lease { generator: generator.clone(), shared, ended })
    }

    /// Reports on the lease.
    pub fn report(&self) -> Report {
        let failure = self.shared.failure.lock().clone();
        let status = match &failure {
            _ if self.shared.is_lost.load(SeqCst) => Status::Lost,
            Some(_) => Status::Failing,
            None => Status::Held,
        };
        Report {
            store: self.shared.store.clone(),
            holder: self.shared.holder.clone(),
            floor: self.shared.floor.load(Relaxed),
            ceiling: self.generator.window().ceiling.max(self.shared.floor.load(Relaxed)),
            ttl: self.shared.ttl,
            renewals: self.shared.renewals.load(Relaxed),
            renewer: {
                let page = self.generator.page();
                page.path().map(|_| page.kept().renewer())
            },
            status,
            failure,
        }
    }

    /// Listeners notified after each renewal, successful or not.
    pub fn renewed(&self) -> &Listeners {
        &self.shared.renewed
    }

    /// Releases the slot, and waits this long for the store to note it. If that takes longer, the store notes it
    /// later, or the end of the process frees the slot.
    pub fn release(self, at_most: Duration) {
        self.give_up();
        // The renewer never sends anything: its end or the timeout ends this wait.
        let _ = self.ended.recv_timeout(at_most);
    }

    /// Releases several at once. It needs nothing that the end of a process has destroyed already.
    pub fn release_all(leases: Vec<Lease>, deadline: Instant) {
        leases.iter().for_each(Lease::give_up);
        for Lease { ended, .. } in &leases {
            while matches!(ended.try_recv(), Err(TryRecvError::Empty)) && Instant::now() < deadline
            {
                thread::sleep(GLANCE);
            }
        }
    }

    fn give_up(&self) {
        self.shared.giving_up.store(true, SeqCst);
        self.generator.renewals().interrupt();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_up();
    }
}

struct Renewer {
    durable: Durable,
    generator: Arc<Generator>,
    window: WindowId,
    shared: Arc<Shared>,
}

impl Renewer {
    fn run(mut self) {
        self.renew_until_end();
        self.generator.renewals().end(self.window, || ());
        // A failure leaves a higher ceiling behind, which is as safe.
        let _ = self.durable.close(&self.generator);
    }

    /// Keeps the ceiling ahead until the slot is released or lost.
    fn renew_until_end(&mut self) {
        let mut due = Instant::now() + self.pause();
        while !self.shared.giving_up.load(SeqCst) {
            let pause = LOOK.min(due.saturating_duration_since(Instant::now()));
            let is_wanted = self.generator.renewals().await_demand(pause);
            if self.shared.giving_up.load(SeqCst) {
                return;
            }
            let is_bound = self.durable.is_bound();
            if is_bound && !is_wanted && Instant::now() < due {
                continue;
            }
            if is_bound && !self.is_low() {
                // Another process has raised it.
                due = Instant::now() + self.pause();
                self.generator.renewals().note(self.window, || ());
                continue;
            }
            let done = if is_bound { self.renew(is_wanted) } else { self.bind() };
            if let Ok(false) = done {
                due = Instant::now() + AGAIN;
                continue;
            }
            let failure = done.err();
            let is_lost = failure.as_ref().is_some_and(|failure| failure.class == Class::Lost);
            let retry = match failure {
                _ if !is_bound => AGAIN,
                _ => (self.shared.ttl / 10).clamp(RETRY[0], RETRY[1]),
            };
            due = Instant::now() + if failure.is_none() { self.pause() } else { retry };
            let is_failing = failure.is_some();
            *self.shared.failure.lock() = failure.map(Fault::from);
            if is_lost {
                self.shared.is_lost.store(true, SeqCst);
            } else if is_failing {
                self.generator.renewals().note_failure(self.window, retry);
            }
            self.shared.renewed.notify();
            if is_lost {
                return;
            }
        }
    }

    /// A third of the ttl, plus a random part: threads that wake later find the renewal done.
    fn pause(&self) -> Duration {
        let third = self.shared.ttl / 3;
        third + third.mul_f64(fastrand::f64() / 4.0)
    }

    /// Whether the ceiling is less than two thirds of the ttl away.
    fn is_low(&self) -> bool {
        self.is_within(self.shared.ttl - self.shared.ttl / 3)
    }

    fn is_within(&self, reach: Duration) -> bool {
        self.generator.window().ceiling < self.generator.next_ceiling(reach)
    }

    /// Returns false while another process renews in good time.
    fn renew(&mut self, is_wanted: bool) -> Result<bool, Failure> {
        let ceiling = self.generator.next_ceiling(self.shared.ttl);
        if is_wanted || self.is_within(self.shared.ttl / 3) {
            self.durable.renew(ceiling)?;
        } else if !self.durable.renew_in_turn(ceiling)? {
            return Ok(false);
        }
        self.shared.renewals.fetch_add(1, Relaxed);
        self.generator.renewals().note(self.window, || ());
        Ok(true)
    }

    fn bind(&mut self) -> Result<bool, Failure> {
        self.durable.bind(&self.generator, self.shared.ttl)?;
        self.shared.floor.store(self.durable.floor(), Relaxed);
        self.generator.renewals().note(self.window, || ());
        Ok(true)
    }
}
