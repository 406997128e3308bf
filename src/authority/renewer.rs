//! A held slot, and the thread that renews it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Access;
use super::durable::Durable;
use super::file::FileStore;
use super::record::Holder;
use crate::core::fault::{Class, Failure, Fault};
use crate::core::layout::Tick;
use crate::core::listeners::Listeners;
use crate::generator::Generator;

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
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

/// What a lease and its thread share.
struct Shared {
    generator: Arc<Generator>,
    ttl: Duration,
    /// Without what the page tells: the ceiling and the renewer.
    report: Mutex<Report>,
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
        let (store, floor) = (store.name(), durable.floor());
        let failed = Failure::io("slot-io", "start a thread for", store.as_ref());
        let report = Report {
            store: store.clone(),
            holder,
            floor,
            ceiling: floor,
            ttl,
            renewals: 0,
            renewer: None,
            status: Status::Held,
            failure: None,
        };
        generator.renewals().set_attended(true);
        let shared = Arc::new(Shared {
            generator: generator.clone(),
            ttl,
            report: Mutex::new(report),
            giving_up: AtomicBool::new(false),
            renewed: Listeners::default(),
        });
        // Without a thread the slot's file is closed, as if the process had died.
        let (thread, renewing) = (thread::Builder::new(), shared.clone());
        let thread = thread.name("snowdrift-lease".to_owned());
        let thread = thread.spawn(move || renewing.run(durable)).map_err(failed)?;
        Ok(Lease { shared, thread })
    }

    /// Reports on the lease.
    pub fn report(&self) -> Report {
        let page = self.shared.generator.page();
        let report = self.shared.report.lock().clone();
        Report {
            ceiling: page.sequence().window().ceiling.max(report.floor),
            renewer: page.path().map(|_| page.notes().renewer()),
            ..report
        }
    }

    /// Listeners notified after each renewal, successful or not.
    pub fn renewed(&self) -> &Listeners {
        &self.shared.renewed
    }

    /// Releases the slot, and waits this long for the store to note it. If that takes longer, the store notes it
    /// later, or the end of the process frees the slot.
    pub fn release(self, at_most: Duration) {
        Lease::release_all(vec![self], Instant::now() + at_most);
    }

    /// Releases several at once. It needs nothing that the end of a process has destroyed already.
    pub fn release_all(leases: Vec<Lease>, deadline: Instant) {
        leases.iter().for_each(Lease::give_up);
        for Lease { thread, .. } in &leases {
            while !thread.is_finished() && Instant::now() < deadline {
                thread::sleep(GLANCE);
            }
        }
    }

    fn give_up(&self) {
        self.shared.giving_up.store(true, SeqCst);
        self.shared.generator.renewals().interrupt();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl Shared {
    fn run(&self, mut durable: Durable) {
        self.renew_until_end(&mut durable);
        self.generator.renewals().set_attended(false);
        // A failure leaves a higher ceiling behind, which is as safe.
        let _ = durable.close(&self.generator);
    }

    /// Keeps the ceiling ahead until the slot is released or lost.
    fn renew_until_end(&self, durable: &mut Durable) {
        let (generator, ttl) = (&self.generator, self.ttl);
        let mut due = Instant::now() + self.pause();
        while !self.giving_up.load(SeqCst) {
            let pause = LOOK.min(due.saturating_duration_since(Instant::now()));
            let is_wanted = generator.renewals().await_request(pause);
            if self.giving_up.load(SeqCst) {
                return;
            }
            let is_bound = durable.is_bound();
            if is_bound && !is_wanted && Instant::now() < due {
                continue;
            }
            if is_bound && !self.is_within(ttl - ttl / 3) {
                // Another process has raised it.
                due = Instant::now() + self.pause();
                generator.renewals().notify_raised();
                continue;
            }
            let (done, retry) = if is_bound {
                let is_urgent = is_wanted || self.is_within(ttl / 3);
                let retry = (ttl / 10).clamp(RETRY[0], RETRY[1]);
                (durable.raise(generator, ttl, is_urgent), retry)
            } else {
                (durable.bind(generator, ttl).map(|()| true), AGAIN)
            };
            if let Ok(false) = done {
                // Another process raises it in good time.
                due = Instant::now() + AGAIN;
                continue;
            }
            let status = self.note(done.err(), durable.floor(), is_bound);
            due = Instant::now() + if status == Status::Held { self.pause() } else { retry };
            if status == Status::Failing {
                generator.renewals().note_failure(retry);
            }
            self.renewed.notify();
            if status == Status::Lost {
                return;
            }
        }
    }

    /// Notes a renewal, or the beginning of a page's window.
    fn note(&self, failure: Option<Failure>, floor: Tick, is_renewal: bool) -> Status {
        let mut report = self.report.lock();
        report.status = match &failure {
            None => Status::Held,
            Some(failure) if failure.class == Class::Lost => Status::Lost,
            Some(_) => Status::Failing,
        };
        if failure.is_none() {
            report.floor = floor;
            report.renewals += u64::from(is_renewal);
            self.generator.renewals().notify_raised();
        }
        report.failure = failure.map(Fault::from);
        report.status
    }

    /// A third of the ttl, plus a random part: threads that wake later find the renewal done.
    fn pause(&self) -> Duration {
        let third = self.ttl / 3;
        third + third.mul_f64(fastrand::f64() / 4.0)
    }

    /// Whether the ceiling is less than this ahead.
    fn is_within(&self, reach: Duration) -> bool {
        self.generator.window().ceiling < self.generator.next_ceiling(reach)
    }
}
