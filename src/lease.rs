//! A slot that is held for as long as its generator issues IDs. One native thread a slot keeps the
//! recorded ceiling ahead of the clock, so that no caller ever waits for a disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::generator::{Generator, WindowId};
use crate::layout::Tick;
use crate::listeners::Listeners;
use crate::store::{Held, Holder, Store, StoreError};

/// The shortest and the longest pause after a renewal that failed.
const RETRY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

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
    floor: Tick,
    ttl: Duration,
    renewals: AtomicU64,
    is_lost: AtomicBool,
    failure: Mutex<Option<String>>,
    giving_up: AtomicBool,
    renewed: Listeners,
}

impl Lease {
    /// Takes the slot of the generator's node, if it is free, and has the generator issue within
    /// its window. The ceiling is recorded `ttl` ahead of the clock, and renewed each third of that.
    pub fn take(
        store: &dyn Store,
        generator: &Arc<Generator>,
        holder: Holder,
        ttl: Duration,
    ) -> Result<Lease, StoreError> {
        let mut held = store.acquire(generator.node(), &holder, generator.next_ceiling(ttl))?;
        let terms = held.terms();
        let status = Arc::new(Status {
            store: store.name(),
            holder,
            floor: terms.floor,
            ttl,
            renewals: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
            failure: Mutex::new(None),
            giving_up: AtomicBool::new(false),
            renewed: Listeners::default(),
        });
        let (ending, ended) = channel();
        let window = generator.begin_window(&terms, held.marks());
        let mut keeper =
            Keeper { held, generator: generator.clone(), window, status: status.clone() };
        thread::Builder::new()
            .name("snowdrift-lease".to_owned())
            .spawn(move || {
                keeper.keep();
                keeper.give_up();
                drop(ending);
            })
            .map_err(|cause| {
                generator.end_window(window);
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
            floor: self.status.floor,
            ceiling: self.generator.window().ceiling.max(self.status.floor),
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
    held: Box<dyn Held>,
    generator: Arc<Generator>,
    window: WindowId,
    status: Arc<Status>,
}

impl Keeper {
    /// Keeps the ceiling ahead until the slot is given up or lost.
    fn keep(&mut self) {
        let mut pause = self.status.ttl / 3;
        while !self.status.giving_up.load(SeqCst) {
            self.generator.await_demand(pause);
            if self.status.giving_up.load(SeqCst) {
                return;
            }
            let failure = self.renew().err();
            let is_lost = matches!(failure, Some(StoreError::Lost(_)));
            pause = match failure {
                None => self.status.ttl / 3,
                Some(_) => (self.status.ttl / 10).clamp(RETRY[0], RETRY[1]),
            };
            *self.status.failure.lock() = failure.as_ref().map(StoreError::to_string);
            if is_lost {
                self.status.is_lost.store(true, SeqCst);
                self.generator.end_window(self.window);
            } else if failure.is_some() {
                self.generator.ceiling_not_raised(self.window, pause);
            }
            self.status.renewed.tell();
            if is_lost {
                return;
            }
        }
    }

    fn renew(&mut self) -> Result<(), StoreError> {
        let ceiling = self.generator.next_ceiling(self.status.ttl);
        self.held.renew(ceiling)?;
        // Only now: what is not recorded must not be issued.
        self.generator.raise_ceiling(self.window, ceiling);
        self.status.renewals.fetch_add(1, Relaxed);
        Ok(())
    }

    fn give_up(self) {
        if self.status.is_lost.load(SeqCst) {
            return;
        }
        if let Some(last) = self.generator.end_window(self.window) {
            // What fails here leaves a higher ceiling behind, which is as safe.
            let _ = self.held.release(last);
        }
    }
}
