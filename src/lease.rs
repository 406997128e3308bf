//! A slot that is held for as long as its generator issues IDs. One native thread a slot keeps the
//! recorded ceiling ahead of the clock, so that no caller ever waits for a disk.
//!
//! Each process that shares a page has such a thread. The first one to wake raises the ceiling, and the
//! others find it raised. So one that is stopped or killed is replaced by the next.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::durable::{Durable, Refused};
use crate::generator::{Generator, WindowId};
use crate::layout::Tick;
use crate::listeners::Listeners;
use crate::store::file::FileStore;
use crate::store::{Holder, StoreError};

/// The shortest and the longest pause after a renewal that failed.
const RETRY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// How often it is looked whether the page still has its name.
const LOOK: Duration = Duration::from_millis(200);

/// The pause before a page is opened again for which others have not yet given up theirs.
const AGAIN: Duration = Duration::from_millis(20);

/// How often it is looked whether a slot was given up. Most take this long.
const GLANCE: Duration = Duration::from_micros(100);

/// How things stand with a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The slot is held, and the last renewal went well.
    Held,
    /// The slot is held, and the last renewal failed: IDs stop at the ceiling unless one succeeds.
    Failing,
    /// The slot is held no more, though nobody gave it up. IDs have stopped.
    Lost,
}

/// What can be told of a lease.
#[derive(Clone, Debug)]
pub struct Report {
    /// The store's name.
    pub store: String,
    /// Who holds the slot: this process.
    pub holder: Holder,
    /// Nothing at or below this tick is issued.
    pub floor: Tick,
    /// Nothing above this tick is issued.
    pub ceiling: Tick,
    /// How far ahead of the clock the ceiling is recorded.
    pub ttl: Duration,
    /// How often the ceiling was raised.
    pub renewals: u64,
    /// How things stand.
    pub standing: Standing,
    /// Why the last renewal failed, if it did.
    pub failure: Option<String>,
}

/// A slot that is held. Dropped, it is given up.
pub struct Lease {
    generator: Arc<Generator>,
    status: Arc<Status>,
    /// Closed when the keeper has ended.
    ended: Receiver<()>,
}

struct Status {
    store: String,
    holder: Holder,
    floor: AtomicI64,
    ttl: Duration,
    renewals: AtomicU64,
    is_lost: AtomicBool,
    failure: Mutex<Option<String>>,
    giving_up: AtomicBool,
    renewed: Listeners,
}

impl Lease {
    /// Opens the slot of the generator's node, and has the generator issue within its window. The ceiling is
    /// recorded `ttl` ahead of the clock, and renewed each third of that. `is_alone`: for this process only.
    pub fn take(
        store: &FileStore,
        generator: &Arc<Generator>,
        holder: Holder,
        ttl: Duration,
        is_alone: bool,
    ) -> Result<Lease, Refused> {
        let durable = Durable::open(store, generator, holder.clone(), ttl, is_alone)?;
        let status = Arc::new(Status {
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
        let window = generator.begin_keeping();
        let keeper =
            Keeper { durable, generator: generator.clone(), window, status: status.clone() };
        // Where there is no thread, the keeper is dropped, as if the process had died.
        thread::Builder::new()
            .name("snowdrift-lease".to_owned())
            .spawn(move || {
                keeper.run();
                drop(ending);
            })
            .map_err(|cause| {
                let place = status.store.clone().into();
                StoreError::Io { doing: "start a thread for", place, cause }
            })?;
        Ok(Lease { generator: generator.clone(), status, ended })
    }

    /// What can be told of it now.
    pub fn report(&self) -> Report {
        let failure = self.status.failure.lock().clone();
        let standing = match &failure {
            _ if self.status.is_lost.load(SeqCst) => Standing::Lost,
            Some(_) => Standing::Failing,
            None => Standing::Held,
        };
        Report {
            store: self.status.store.clone(),
            holder: self.status.holder.clone(),
            floor: self.status.floor.load(Relaxed),
            ceiling: self.generator.window().ceiling.max(self.status.floor.load(Relaxed)),
            ttl: self.status.ttl,
            renewals: self.status.renewals.load(Relaxed),
            standing,
            failure,
        }
    }

    /// Who is to hear after each renewal, whether it went well or not.
    pub fn renewed(&self) -> &Listeners {
        &self.status.renewed
    }

    /// Gives the slot up, and waits this long for the store to note it. If that takes longer, it is
    /// noted later, or the process's end frees the slot.
    pub fn release(self, at_most: Duration) {
        self.give_up();
        // The keeper never sends anything: what ends this is its end, or the time.
        let _ = self.ended.recv_timeout(at_most);
    }

    /// Gives several up at once. It needs nothing that the end of a process has destroyed already.
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
        self.status.giving_up.store(true, SeqCst);
        self.generator.interrupt();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_up();
    }
}

struct Keeper {
    durable: Durable,
    generator: Arc<Generator>,
    window: WindowId,
    status: Arc<Status>,
}

impl Keeper {
    fn run(mut self) {
        self.keep();
        self.generator.end_keeping(self.window);
        // What fails here leaves a higher ceiling behind, which is as safe.
        let _ = self.durable.close();
    }

    /// Keeps the ceiling ahead until the slot is given up or lost.
    fn keep(&mut self) {
        let mut due = Instant::now() + self.pause();
        while !self.status.giving_up.load(SeqCst) {
            let pause = LOOK.min(due.saturating_duration_since(Instant::now()));
            let is_wanted = self.generator.await_demand(pause);
            if self.status.giving_up.load(SeqCst) {
                return;
            }
            let is_bound = self.durable.is_bound();
            if is_bound && !is_wanted && Instant::now() < due {
                continue;
            }
            if is_bound && !self.is_low() {
                // Another process has raised it.
                due = Instant::now() + self.pause();
                self.generator.ceiling_raised(self.window);
                continue;
            }
            let done = if is_bound { self.renew(is_wanted) } else { self.bind() };
            if let Ok(false) = done {
                due = Instant::now() + AGAIN;
                continue;
            }
            let failure = done.err();
            let is_lost = matches!(failure, Some(Refused::Store(StoreError::Lost(_))));
            let retry = match failure {
                _ if !is_bound => AGAIN,
                _ => (self.status.ttl / 10).clamp(RETRY[0], RETRY[1]),
            };
            due = Instant::now() + if failure.is_none() { self.pause() } else { retry };
            *self.status.failure.lock() = failure.as_ref().map(Refused::to_string);
            if is_lost {
                self.status.is_lost.store(true, SeqCst);
            } else if failure.is_some() {
                self.generator.ceiling_not_raised(self.window, retry);
            }
            self.status.renewed.tell();
            if is_lost {
                return;
            }
        }
    }

    /// A third of the ttl, and some more: who wakes later finds it done.
    fn pause(&self) -> Duration {
        let third = self.status.ttl / 3;
        third + third.mul_f64(fastrand::f64() / 4.0)
    }

    /// Whether the ceiling is less than two thirds of the ttl away.
    fn is_low(&self) -> bool {
        self.is_within(self.status.ttl - self.status.ttl / 3)
    }

    fn is_within(&self, reach: Duration) -> bool {
        self.generator.window().ceiling < self.generator.next_ceiling(reach)
    }

    /// False where another process does so at this moment, and is in good time.
    fn renew(&mut self, is_wanted: bool) -> Result<bool, Refused> {
        let ceiling = self.generator.next_ceiling(self.status.ttl);
        if is_wanted || self.is_within(self.status.ttl / 3) {
            self.durable.renew(ceiling)?;
        } else if !self.durable.renew_in_turn(ceiling)? {
            return Ok(false);
        }
        self.status.renewals.fetch_add(1, Relaxed);
        self.generator.ceiling_raised(self.window);
        Ok(true)
    }

    fn bind(&mut self) -> Result<bool, Refused> {
        self.durable.bind(&self.generator, self.status.ttl)?;
        self.status.floor.store(self.durable.floor(), Relaxed);
        self.generator.ceiling_raised(self.window);
        Ok(true)
    }
}
