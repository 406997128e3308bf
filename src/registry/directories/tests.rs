//! Leases from a directory, by threads of their own, by the clock.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};

use tempfile::TempDir;

use super::*;
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::Detail;
use crate::core::loss::Loss;
use crate::files::lock::{self, LockMode, USERS};
use crate::files::path::paths_in;
use crate::generator::Policies;
use crate::lease::{Holder, Input, Next};
use crate::registry::Share;
use crate::registry::keeper::directory_settings;
use crate::registry::request::{By, Scope};

const TTL_MS: i64 = 600;
/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);
const LAYOUT: Layout = Layout::new([41, 3, 5, 2, 12], 1, 1_580_486_400_001);

/// What the disk does.
const WORKS: u8 = 0;
const IS_FULL: u8 = 1;
const HANGS: u8 = 2;

/// A directory, a disk, and a place for pages.
struct Place {
    directory: TempDir,
    memory: TempDir,
    disk: Arc<AtomicU8>,
    flushes: Arc<AtomicUsize>,
    datacenter: u64,
    claim: Option<u64>,
}

impl Place {
    /// Of a node of this test alone: the registry is the process's.
    fn new(worker: u64) -> Place {
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let (disk, flushes) = (Arc::default(), Arc::default());
        let (directory, claim) = (TempDir::new().unwrap(), Some(worker));
        Place { directory, memory, disk, flushes, datacenter: 7, claim }
    }

    fn request(&self, scope: Scope) -> Request {
        Request {
            layout: LAYOUT,
            datacenter_id: self.datacenter,
            worker_id: None,
            policies: Policies { max_wait: LONG, ..Policies::default() },
            max_ahead_ms: 0,
            scope,
            shared: Some(self.memory.path().to_owned()),
            by: By::Lease,
        }
    }

    fn register(&self) -> Register {
        let (disk, flushes) = (self.disk.clone(), self.flushes.clone());
        let flush = move |_: &Path, file: &File| {
            flushes.fetch_add(1, SeqCst);
            while disk.load(SeqCst) == HANGS {
                thread::sleep(Duration::from_millis(1));
            }
            match disk.load(SeqCst) {
                IS_FULL => Err(io::ErrorKind::StorageFull.into()),
                _ => file.sync_data(),
            }
        };
        Register::with(self.directory.path(), Arc::new(flush)).unwrap()
    }

    fn take(&self) -> Result<DirectoryLease, Failure> {
        self.take_in(Scope::Host, TTL_MS, (Duration::ZERO, LONG))
    }

    fn take_in(
        &self,
        scope: Scope,
        ttl: i64,
        (wait, disk): (Duration, Duration),
    ) -> Result<DirectoryLease, Failure> {
        let (register, pages, settings) = self.parts(scope, ttl);
        let (lease, keeper) = DirectoryLease::start(register, pages, settings, wait);
        let executor = lease.executor.clone();
        thread::spawn(move || executor.execute(keeper));
        lease.executor.first((wait, disk), true).map(|()| lease)
    }

    /// As an instance opens it.
    fn open(
        &self,
        change: impl FnOnce(&mut Request, &mut DirectoryLeasing),
    ) -> Result<Arc<DirectoryLease>, Failure> {
        let mut request = Request { worker_id: self.claim, ..self.request(Scope::Host) };
        let mut leasing = DirectoryLeasing {
            directory: self.directory.path().to_owned(),
            ttl: LONG,
            wait: Duration::ZERO,
            host: String::new(),
            started_ms: 0,
            is_common: false,
        };
        change(&mut request, &mut leasing);
        DirectoryLease::open(&request, &leasing, Arc::new(|_| true))
    }

    fn parts(&self, scope: Scope, ttl: i64) -> (Register, HostPages, Settings) {
        let pages = HostPages::of(self.request(scope), Arc::new(|_| true)).unwrap();
        let holder = Holder::new(std::process::id(), 1, "", "host");
        let settings = directory_settings(LAYOUT, self.datacenter, self.claim, (ttl, 0), holder);
        (self.register(), pages, settings)
    }

    fn share(&self, lease: &DirectoryLease) -> Share {
        lease.state().slot.unwrap().share(&self.request(Scope::Host)).unwrap()
    }
}

/// Waits until it has ended. Dropping it waits shorter.
fn release(lease: &DirectoryLease) {
    lease.executor.close(false);
    until(|| lease.state().has_ended);
}

/// Waits until something is so.
fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "it never is");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The tick of an ID that a thread gets which may wait for it.
fn tick(share: &Share) -> Option<i64> {
    let mut ids = [0; 1];
    share.fill(&mut ids).ok()?;
    Some((ids[0] >> 22) as i64)
}

fn now_tick() -> i64 {
    LAYOUT.tick_at(SystemClock.now().ms)
}

#[test]
fn a_lease_takes_its_slot_renews_it_and_frees_it() {
    let place = Place::new(0);
    let lease = place.take().unwrap();
    let share = place.share(&lease);
    let first = tick(&share).unwrap();
    // It is issued from for longer than the ceiling of the take.
    until(|| tick(&share).unwrap() > first + 3 * TTL_MS);
    let Leased { slot, lost, failure, skipped, has_ended } = lease.state();
    assert!(slot.is_some() && lost.is_none() && failure.is_none() && !has_ended);
    assert!(skipped.is_empty());
    let flushes = place.flushes.load(SeqCst) as u64;
    let renewals = slot.unwrap().page().lease_status().unwrap().renewals;
    // Of two files, the directory, and two changes, before the first one; and of one under way.
    assert!(renewals >= 3 && flushes <= 5 + renewals + 1, "{flushes} for {renewals} renewals");
    let last = tick(&share).unwrap();
    drop(share);
    release(&lease);
    let next = place.take().unwrap();
    let share = place.share(&next);
    let floor = next.state().slot.unwrap().page().sequence().floor();
    assert!((last..=now_tick()).contains(&floor), "what was issued, and not the ceiling");
    assert!(tick(&share).unwrap() > last);
}

#[test]
fn a_held_slot_is_refused_with_its_holder_or_waited_for() {
    let place = Place::new(1);
    let take = |scope, wait| place.take_in(scope, 60_000, (wait, LONG));
    // Of this process alone: others cannot share it.
    let lease = take(Scope::Process, Duration::ZERO).unwrap();
    let failure = take(Scope::Host, Duration::ZERO).err().unwrap();
    assert_eq!(failure.fault.kind, "claim-held");
    let Some(Detail::Faults(holders)) = failure.fault.detail("holders") else {
        panic!("{failure:?}")
    };
    assert_eq!(holders.len(), 1, "{failure:?}");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| take(Scope::Host, LONG));
        thread::sleep(Duration::from_millis(20));
        release(&lease);
        assert!(waiting.join().unwrap().is_ok());
    });
}

#[test]
fn those_who_want_any_slot_leave_as_few_files_as_lived_at_once() {
    let place = Place { datacenter: 6, claim: None, ..Place::new(0) };
    let take = || place.take_in(Scope::Process, 60_000, (Duration::ZERO, LONG)).unwrap();
    let files = || paths_in(place.directory.path(), "slot").unwrap().len();
    for _ in 0..10 {
        release(&take());
        assert_eq!(files(), 2, "the namespace, and a slot");
    }
    let living: Vec<_> = (0..5).map(|_| take()).collect();
    assert_eq!(files(), 6);
    living.iter().for_each(release);
    // At once.
    let living: Vec<_> = thread::scope(|scope| {
        let takers: Vec<_> = (0..12).map(|_| scope.spawn(take)).collect();
        takers.into_iter().map(|taker| taker.join().unwrap()).collect()
    });
    assert_eq!(files(), 13);
    living.iter().for_each(release);
}

#[test]
fn a_disk_that_fails_stops_nobody_before_the_ceiling() {
    for (worker, fault) in [(2, IS_FULL), (3, HANGS)] {
        let place = Place::new(worker);
        let lease = place.take().unwrap();
        let share = place.share(&lease);
        let page = lease.state().slot.unwrap();
        let ceiling = || page.page().cells().ceiling();
        place.disk.store(fault, SeqCst);
        let flushes = place.flushes.load(SeqCst);
        until(|| place.flushes.load(SeqCst) > flushes);
        // The renewal under way fails, or hangs. The ceiling stays.
        let reached = ceiling();
        until(|| match share.try_reserve_next(|_| 1) {
            Ok(reserved) => {
                assert!(reserved.block.tick <= reached);
                false
            }
            Err(_) => true,
        });
        assert!(now_tick() > reached && ceiling() == reached);
        // Who waits for the store waits as long as it said, and no longer.
        let policies = Policies { max_wait: Duration::from_millis(30), ..Policies::default() };
        let impatient = Request { policies, ..place.request(Scope::Host) };
        assert!(page.share(&impatient).unwrap().fill(&mut [0; 1]).is_err());
        if fault == IS_FULL {
            until(|| lease.state().failure.is_some());
            let failure = lease.state().failure.unwrap();
            assert_eq!(failure.detail("reason"), Some(&"StorageFull".into()));
        }
        // Once it works again, IDs go on.
        place.disk.store(WORKS, SeqCst);
        assert!(tick(&share).unwrap() > reached);
        until(|| lease.state().failure.is_none());
        drop((share, page));
        release(&lease);
    }
}

#[test]
fn a_disk_that_hangs_holds_no_opening_and_no_release_for_long() {
    let place = Place::new(4);
    let lease = place.take().unwrap();
    place.disk.store(HANGS, SeqCst);
    let flushes = place.flushes.load(SeqCst);
    until(|| place.flushes.load(SeqCst) > flushes);
    let begun = Instant::now();
    drop(lease);
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
    let other = Place { claim: Some(5), ..place };
    let waits = (Duration::ZERO, Duration::from_millis(50));
    let failure = other.take_in(Scope::Host, TTL_MS, waits).err().unwrap();
    assert_eq!(failure.fault.kind, "disk-hangs");
    other.disk.store(WORKS, SeqCst);
    // The abandoned lease has ended by itself: its slot is free.
    until(|| other.take().is_ok());
}

#[test]
fn who_has_lost_its_page_hears_of_it_and_goes_on_with_the_next_one() {
    let place = Place::new(6);
    let lease = place.take().unwrap();
    let before = lease.state().slot.unwrap();
    let last = tick(&place.share(&lease)).unwrap();
    let heard = Arc::new(AtomicUsize::new(0));
    let listener: Arc<crate::core::listeners::Listener> = {
        let heard = heard.clone();
        Arc::new(move || {
            heard.fetch_add(1, SeqCst);
        })
    };
    lease.listeners().add(&listener);
    before.page().end_lease(Loss::Released);
    until(|| lease.state().slot.is_some_and(|slot| slot != before));
    assert!(heard.load(SeqCst) >= 2, "of the loss, and of the next page");
    assert!(tick(&place.share(&lease)).unwrap() > last);
}

#[test]
fn all_of_a_process_that_want_the_same_share_a_lease_until_all_have_given_it_up() {
    let place = Place::new(7);
    let leases: Vec<_> = thread::scope(|scope| {
        let open = || place.open(|_, _| {}).unwrap();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(leases.iter().all(|one| Arc::ptr_eq(one, &leases[0])));
    let refused = |change: fn(&mut Request, &mut DirectoryLeasing)| {
        place.open(change).err().map(|failure| failure.fault.kind)
    };
    assert_eq!(refused(|_, leasing| leasing.ttl *= 2), Some("open-ttl"));
    assert_eq!(refused(|request, _| request.max_ahead_ms = 7), Some("open-max-ahead"));
    let page = leases[0].state().slot.unwrap();
    let mut leases = leases;
    let last = leases.pop().unwrap();
    drop(leases);
    assert!(!page.page().has_ended());
    release(&last);
    assert!(page.page().has_ended());
    drop(last);
    assert!(place.open(|request, _| request.max_ahead_ms = 7).is_ok(), "all may differ now");
}

#[test]
fn an_opening_waits_for_a_slow_release_of_its_own_process() {
    let place = Place::new(15);
    let (register, pages, settings) = place.parts(Scope::Process, LONG.as_millis() as i64);
    let limits = settings.limits;
    let wanted = Common {
        directory: register.directory().to_owned(),
        pages: None,
        layout: LAYOUT,
        datacenter: place.datacenter,
        claim: place.claim,
    };
    let start = || {
        let (lease, keeper) = DirectoryLease::start(register, pages, settings, Duration::ZERO);
        (Arc::new(lease), Some(keeper))
    };
    let (lease, keeper) = DirectoryLease::common(&wanted, limits, start).unwrap();
    let executor = lease.executor.clone();
    thread::spawn(move || executor.execute(keeper.unwrap()));
    lease.executor.first((Duration::ZERO, LONG), true).unwrap();
    place.disk.store(HANGS, SeqCst);
    drop(lease);
    thread::scope(|scope| {
        let opening = scope.spawn(|| place.open(|request, _| request.scope = Scope::Process));
        thread::sleep(4 * RELEASE);
        place.disk.store(WORKS, SeqCst);
        assert!(opening.join().unwrap().is_ok());
    });
}

#[test]
fn who_waits_for_a_slot_keeps_nobody_else_waiting() {
    let place = Place::new(9);
    let other = Place::new(10);
    let held = place.take_in(Scope::Process, 60_000, (Duration::ZERO, LONG)).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| place.open(|_, leasing| leasing.wait = LONG));
        until(|| COMMON.lock().keys().any(|one| one.directory == place.directory.path()));
        assert!(other.open(|_, _| {}).is_ok(), "another directory is not waited for");
        let begun = Instant::now();
        let refused = place.open(|_, _| {}).err().unwrap();
        assert_eq!(refused.fault.kind, "claim-held");
        assert!(begun.elapsed() < DISK_OF_LEASE, "nor does who waits shorter wait for a slot, too");
        release(&held);
        drop(held);
        assert!(waiting.join().unwrap().is_ok());
    });
}

#[test]
fn a_slot_that_others_may_be_releasing_is_waited_for_in_any_case() {
    let place = Place::new(13);
    let _held = place.take_in(Scope::Process, 60_000, (Duration::ZERO, LONG)).unwrap();
    let begun = Instant::now();
    let refused = place.open(|_, leasing| leasing.wait = Duration::ZERO).err().unwrap();
    assert_eq!(refused.fault.kind, "claim-held");
    // The lease counts whole ms.
    assert!(begun.elapsed() >= GRACE - Duration::from_millis(2));
}

#[test]
fn who_waits_longer_than_the_one_who_has_begun_goes_on_alone() {
    let place = Place::new(11);
    let held = place.take_in(Scope::Process, 60_000, (Duration::ZERO, LONG)).unwrap();
    thread::scope(|scope| {
        const SHORT: Duration = Duration::from_millis(100);
        let first = scope.spawn(|| place.open(|_, leasing| leasing.wait = SHORT));
        until(|| COMMON.lock().keys().any(|one| one.directory == place.directory.path()));
        let second = scope.spawn(|| place.open(|_, leasing| leasing.wait = LONG));
        assert_eq!(first.join().unwrap().err().unwrap().fault.kind, "claim-held");
        release(&held);
        drop(held);
        assert!(second.join().unwrap().is_ok());
    });
}

#[test]
fn threads_that_open_and_close_at_once_all_have_a_slot_and_draw_no_id_twice() {
    let place = Place::new(12);
    let ids: Vec<u64> = thread::scope(|scope| {
        let draw = || {
            let mut all = Vec::new();
            for _ in 0..20 {
                let lease = place.open(|_, leasing| leasing.wait = LONG).unwrap();
                let mut ids = [0; 10];
                place.share(&lease).fill(&mut ids).unwrap();
                all.extend(ids);
            }
            all
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(draw)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), ids.len());
}

#[test]
fn who_restarts_long_after_a_kill_begins_with_a_ceiling_ahead() {
    let place = Place::new(8);
    let (register, pages, settings) = place.parts(Scope::Host, TTL_MS);
    let patience = Patience { wait: 60_000, call: CALL_MS };
    let mut keeper = Keeper::new(register, pages, settings, patience, now());
    let mut input = Input::Time;
    while keeper.page().is_none() {
        input = match keeper.step(input, now()).1 {
            Next::Call(call, within) => {
                let reply = keeper.answer(&call, within).unwrap();
                Input::Reply(reply, Some(SystemClock.now().ms))
            }
            _ => Input::Time,
        };
    }
    let killed = keeper.page().unwrap().page().id();
    until(|| keeper.is_low());
    drop(keeper);
    let lease = place.take().unwrap();
    let slot = lease.state().slot.unwrap();
    assert_eq!(slot.page().id(), killed, "it goes on in the page");
    let now = slot.page().header().node.layout().tick_at(SystemClock.now().ms);
    assert!(slot.page().cells().ceiling() > now);
}

#[test]
fn who_is_stopped_as_it_changes_a_slot_keeps_nobody_from_another_one() {
    let mut place = Place::new(0);
    place.claim = None;
    release(&place.take().unwrap());
    let file =
        place.directory.path().join(format!("datacenter-{}-worker-0.slot", place.datacenter));
    let file = File::options().read(true).write(true).open(file).unwrap();
    assert!(lock::try_take(&file, USERS + 1, LockMode::Exclusive).unwrap());
    let lease = place.take_in(Scope::Host, TTL_MS, (LONG, LONG)).unwrap();
    assert_eq!(lease.state().slot.unwrap().page().header().node.worker_id(), 1);
    release(&lease);
    lock::release(&file, USERS + 1).unwrap();
    let lease = place.take_in(Scope::Host, TTL_MS, (LONG, LONG)).unwrap();
    assert_eq!(lease.state().slot.unwrap().page().header().node.worker_id(), 0);
}
