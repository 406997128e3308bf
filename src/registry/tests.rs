use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use super::entry::{Entry, SETTLE};
use super::slots::POLL;
use super::*;
use crate::authority::file::FileStore;
use crate::authority::slot::SlotFile;
use crate::core::fault::{Failure, fault};
use crate::core::layout::Layout;
use crate::core::node::Node;
use crate::core::sequencer::Window;
use crate::files::lock::{LockMode, USERS};
use crate::generator::{ClockBack, Policies, Reserved, Waits};
use crate::lease::{Host, Tenure, Token, Word};

const POLICIES: Policies = Policies {
    clock_back: ClockBack::Counter,
    max_wait: Duration::from_millis(10),
    random_start: false,
};

/// A request for a node of this test alone: the registry is the process's.
pub(super) fn wanted(worker_id: u64) -> Request {
    Request {
        layout: Layout::NODE,
        datacenter_id: 7,
        worker_id: Some(worker_id),
        policies: POLICIES,
        max_ahead_ms: 0,
        scope: Scope::Process,
        shared: None,
        by: By::Free,
    }
}

/// A request for any slot of a directory.
pub(super) fn any(directory: &Path, wait: Duration) -> Request {
    let recording = Recording {
        directory: directory.to_owned(),
        ttl: Duration::from_secs(10),
        wait,
        host: String::new(),
        started_ms: 0,
        common: true,
    };
    Request { worker_id: None, by: By::Record(recording), ..wanted(0) }
}

/// The same request, of a record in a directory.
fn recorded(directory: &Path, request: Request) -> Request {
    Request { by: any(directory, Duration::ZERO).by, ..request }
}

/// The share of a request in a place that there is.
pub(super) fn open(request: &Request) -> Result<Share, Failure> {
    Ok(request.open()?.expect("there is a place for its page"))
}

/// Takes a slot for a lease of a new namespace, until its page is dropped.
fn take(request: Request) -> Result<HostPage, Failure> {
    let worker = request.worker_id.unwrap_or_default();
    let mut pages = HostPages::of(request, Box::new(|_| true))?;
    let namespace = Token(fastrand::u64(..));
    let tenure = Tenure { namespace, owner: Token(worker), worker };
    let Some(page) = pages.create(tenure, Word::default()) else {
        return Err(pages.take_failure().or(pages.take_conflict()).expect("there is a reason"));
    };
    pages.open(&page, Window { floor: 0, ceiling: Layout::NODE.last_tick() });
    Ok(page)
}

#[test]
fn all_who_name_a_node_share_its_generator() {
    let one = open(&wanted(1)).unwrap();
    let two = open(&wanted(1)).unwrap();
    assert!(Arc::ptr_eq(&one.generator, &two.generator));
    assert!(!Arc::ptr_eq(&one.generator, &open(&wanted(2)).unwrap().generator));
}

#[test]
fn another_max_ahead_is_refused_while_the_node_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let within =
        |max_ahead_ms| open(&recorded(directory.path(), Request { max_ahead_ms, ..wanted(3) }));
    let open_one = within(0).unwrap();
    let refused = within(7).err();
    assert!(format!("{refused:?}").contains("open-max-ahead"), "{refused:?}");
    drop(open_one);
    let _other = within(7).unwrap();
    assert_eq!(within(7).unwrap().max_ahead_ms(), 7);
    let unrecorded = open(&Request { max_ahead_ms: 7, ..wanted(3) }).err();
    assert!(format!("{unrecorded:?}").contains("ahead-unrecorded"), "{unrecorded:?}");
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn the_directory_of_an_open_node_is_found_only_by_the_same_name() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let named = |shared: Option<&Path>| {
        let shared = shared.map(Path::to_owned);
        Request { scope: Scope::Host, shared, ..wanted(9) }
    };
    let known =
        |request: &Request| Entry::of(request.node().unwrap()).tenancy.lock().directory(request);
    let same = named(Some(memory.path()));
    assert!(known(&same).is_none(), "nobody has it open");
    let first = open(&same).unwrap();
    let directory = known(&same).unwrap();
    let joined = open(&same).unwrap();
    assert!(Arc::ptr_eq(&first.generator, &joined.generator));
    drop(first);
    assert!(known(&same).is_some(), "it is still open");
    for other in [None, Some(Path::new("/dev/shm")), Some(Path::new("relative"))] {
        assert!(known(&named(other)).is_none(), "{other:?}");
    }
    assert!(open(&Request { max_ahead_ms: 1, ..named(Some(memory.path())) }).is_err());
    std::fs::rename(directory.path(), memory.path().join("moved")).unwrap();
    std::os::unix::fs::symlink("moved", directory.path()).unwrap();
    assert!(known(&same).is_none(), "a symbolic link is refused");
    drop(joined);
    assert!(known(&same).is_none(), "it is closed");
}

#[test]
#[cfg_attr(miri, ignore = "makes slot files, by a call that Miri does not know")]
fn what_is_open_in_one_way_is_refused_in_another() {
    let directory = tempfile::tempdir().unwrap();
    let record = || any(directory.path(), Duration::ZERO).by;
    let refused = |worker_id, by| {
        let refused = open(&Request { by, ..wanted(worker_id) }).err();
        refused.map_or("", |failure| failure.fault.kind)
    };
    let search = || Request { by: By::Lease, ..wanted(10) };
    let untaken = |request| take(request).err().map_or("", |failure| failure.fault.kind);
    let own = take(search()).unwrap();
    assert_eq!([By::Free, record()].map(|by| refused(10, by)), ["open-leased", "open-unrecorded"]);
    assert_eq!(untaken(search()), "open-already");
    drop(own);
    let free = open(&wanted(10)).unwrap();
    assert_eq!(refused(10, record()), "open-unrecorded");
    assert_eq!(untaken(search()), "open-already");
    #[cfg(target_os = "linux")]
    {
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let shared = Some(memory.path().to_owned());
        let of_host = Request { scope: Scope::Host, shared, ..search() };
        assert_eq!(untaken(of_host), "open-in-scope");
    }
    drop(free);
    let slot = open(&Request { by: record(), ..wanted(10) }).unwrap();
    assert_eq!(refused(10, By::Free), "open-recorded");
    assert_eq!(untaken(search()), "open-already");
    drop(slot);
    assert_eq!(refused(10, By::Free), "", "the last one has released it");
}

#[test]
fn each_user_has_policies_of_its_own() {
    let policies = Policies { clock_back: ClockBack::Throw, ..POLICIES };
    let [one, other] =
        [POLICIES, policies].map(|policies| open(&Request { policies, ..wanted(8) }));
    assert_eq!((one.unwrap().policies, other.unwrap().policies), (POLICIES, policies));
}

fn reserve(share: &Share, want: u64) -> Reserved {
    let attempt = || share.try_reserve_next(|_| want);
    share.waiting(&POLICIES, &mut Waits::default(), want, attempt, |reserved| reserved).unwrap()
}

#[test]
fn a_node_that_was_closed_remembers_what_it_issued() {
    let layout = Layout { tick_ms: 86_400_000, ..Layout::NODE };
    let request = Request { layout, ..wanted(4) };
    let first = reserve(&open(&request).unwrap(), 1);
    let again = reserve(&open(&request).unwrap(), 1);
    assert_ne!(first.first_id, again.first_id);
}

/// In ticks of a day, so that both draw in one tick. A page's first opener may continue in the tick at which it begins.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn what_the_process_issued_alone_is_not_issued_from_a_page() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let layout = Layout { tick_ms: 86_400_000, ..Layout::NODE };
    let alone = Request { layout, ..wanted(9) };
    let host = || Request {
        scope: Scope::Host,
        shared: Some(memory.path().to_owned()),
        layout,
        ..wanted(9)
    };
    let draw = |share: &Share| share.try_reserve_next(|_| 1).ok();
    let first = draw(&open(&alone).unwrap()).unwrap();
    let refused = |share: &Share| draw(share).is_none();
    assert!(refused(&open(&host()).unwrap()), "{first:?} may be one of them");
    // Nor alone what was issued from a page.
    let other = Request { worker_id: Some(10), ..host() };
    draw(&open(&other).unwrap()).unwrap();
    assert!(refused(&open(&Request { worker_id: Some(10), ..alone }).unwrap()));
}

#[test]
fn max_ahead_is_rounded_down_to_whole_ticks() {
    let layout = Layout { tick_ms: 1000, ..Layout::NODE };
    let directory = tempfile::tempdir().unwrap();
    let within = |max_ahead_ms| {
        open(&recorded(directory.path(), Request { layout, max_ahead_ms, ..wanted(11) }))
    };
    let first = within(3500).unwrap();
    assert_eq!(first.max_ahead_ms(), 3000);
    for (max_ahead_ms, is_agreed) in [(3000, true), (3999, true), (2999, false), (4000, false)] {
        assert_eq!(within(max_ahead_ms).is_ok(), is_agreed, "{max_ahead_ms}");
    }
}

#[test]
fn threads_of_one_node_never_share_an_id() {
    let ids = std::thread::scope(|scope| {
        let draw = || {
            let share = open(&wanted(5)).unwrap();
            let mut ids = Vec::new();
            while ids.len() < 20_000 {
                let reserved = reserve(&share, 7);
                ids.extend((0..reserved.block.len).map(|n| reserved.first_id + n));
            }
            ids
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(draw)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<u64>>()
    });
    let mut distinct = ids.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), ids.len());
    assert_eq!(open(&wanted(5)).unwrap().stats().issued, ids.len() as u64);
}

/// One worker ID.
const NARROW: Layout = Layout { worker_bits: 0, ..Layout::NODE };

/// Holds the only slot of a directory, as another process would.
fn held(directory: &Path) -> SlotFile {
    let node = Node::new(NARROW, 1, 0).unwrap();
    let slot = FileStore::open(directory).unwrap().slot(&node).unwrap();
    assert!(slot.try_take(USERS, LockMode::Exclusive).unwrap());
    slot
}

/// Again, while another thread is at the disk for longer than `SETTLE`, which is short in tests.
fn unless_busy(open: impl Fn() -> Result<Share, Failure>) -> Result<Share, Failure> {
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        match open() {
            Err(failure) if failure.fault.kind == "slot-busy" && Instant::now() < limit => {}
            answer => return answer,
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "makes slot files, by a call that Miri does not know")]
fn whoever_wants_a_common_slot_elsewhere_does_not_wait_for_another_directory() {
    fn common(datacenter_id: u64, directory: &Path, wait: Duration) -> Result<Share, Failure> {
        let request = Request { layout: NARROW, datacenter_id, ..any(directory, wait) };
        unless_busy(|| open(&request))
    }
    let [full, empty] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let held = held(full.path());
    let wait = Duration::from_secs(240);
    thread::scope(|scope| {
        let first = scope.spawn(|| common(1, full.path(), wait));
        // By then the first thread waits. If it does not yet, this shows less, and does not fail.
        thread::sleep(5 * POLL);
        let (answers, answer) = channel();
        let elsewhere = empty.path();
        scope.spawn(move || answers.send(common(2, elsewhere, Duration::ZERO).is_ok()));
        let answer = answer.recv_timeout(wait / 4);
        let refused = common(1, full.path(), Duration::ZERO).err();
        drop(held);
        assert_eq!(first.join().unwrap().unwrap().node().worker_id(), 0);
        assert_eq!(answer, Ok(true), "another directory is not waited for");
        assert!(
            refused.as_ref().is_some_and(|refused| refused.fault.kind == "no-slot"),
            "nor does who wants the same one wait longer than it may: {refused:?}"
        );
    });
}

#[test]
#[cfg_attr(miri, ignore = "makes slot files, by a call that Miri does not know")]
fn all_threads_that_want_a_common_slot_get_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let layout = Layout { epoch_ms: 1, ..Layout::NODE };
    let shares: Vec<Share> = thread::scope(|scope| {
        let open_any = || {
            let request = any(directory.path(), Duration::ZERO);
            let request = Request { layout, datacenter_id: 1, ..request };
            unless_busy(|| open(&request)).unwrap()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open_any)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(shares.iter().all(|share| share.node().worker_id() == shares[0].node().worker_id()));
}

#[test]
#[cfg_attr(miri, ignore = "makes slot files, by a call that Miri does not know")]
fn a_slot_whose_disk_hangs_is_waited_for_with_a_bound() {
    let directory = tempfile::tempdir().unwrap();
    let request = Request { worker_id: Some(6), ..any(directory.path(), Duration::ZERO) };
    Entry::of(request.node().unwrap()).tenancy.lock().is_changing = true;
    let refused = open(&request).err().unwrap();
    let waited = SETTLE.as_secs();
    assert_eq!(refused.fault, fault!("slot-busy", datacenter: 7u32, worker: 6u32, waited));
}
