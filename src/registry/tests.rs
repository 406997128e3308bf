use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::entry::Entry;
use super::*;
use crate::core::fault::Failure;
use crate::core::layout::Layout;
use crate::core::sequencer::Window;
use crate::generator::{ClockBack, Policies, Reserved, Waits};
use crate::lease::{Host, Tenure, Token, Word};

const POLICIES: Policies = Policies {
    clock_back: ClockBack::Counter,
    max_wait: Duration::from_millis(10),
    random_start: false,
};

/// A request for a node of this test alone: the registry is the process's.
fn wanted(worker_id: u64) -> Request {
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

/// The share of a request in a place that there is.
fn open(request: &Request) -> Result<Share, Failure> {
    Ok(request.open()?.expect("there is a place for its page"))
}

/// Takes a slot for a lease of a new namespace, until its page is dropped.
fn take(request: Request) -> Result<HostPage, Failure> {
    let worker = request.worker_id.unwrap_or_default();
    let mut pages = HostPages::of(request, Arc::new(|_| true))?;
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
fn what_is_open_in_one_way_is_refused_in_another() {
    let search = || Request { by: By::Lease, ..wanted(10) };
    let kind = |failure: Failure| failure.fault.kind;
    let untaken = |request| take(request).err().map_or("", kind);
    let own = take(search()).unwrap();
    assert_eq!(open(&wanted(10)).err().map(kind), Some("open-leased"));
    assert_eq!(untaken(search()), "open-already");
    drop(own);
    let free = open(&wanted(10)).unwrap();
    assert_eq!(untaken(search()), "open-already");
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let shared = Some(memory.path().to_owned());
        let of_host = Request { scope: Scope::Host, shared, ..search() };
        assert_eq!(untaken(of_host), "open-in-scope");
    }
    drop(free);
    assert_eq!(untaken(search()), "", "the last one has given it up");
    let ahead = open(&Request { max_ahead_ms: 7, ..wanted(10) }).err();
    assert_eq!(ahead.map(kind), Some("ahead-unrecorded"));
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
