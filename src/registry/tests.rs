use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use super::entry::{Entry, RecordedIn, SETTLE};
use super::recorded::{POLL, open_recorded};
use super::*;
use crate::core::fault::{Failure, fault};
use crate::core::node::Node;
use crate::files::lock::{Hold, USERS};
use crate::generator::ClockBack;
use crate::store::file::FileStore;
use crate::store::slot::SlotFile;

const POLICIES: Policies = Policies {
    clock_back: ClockBack::Counter,
    max_wait: Duration::from_millis(10),
    random_start: false,
};
const ALONE: Opening = Opening { policies: POLICIES, max_ahead_ms: 0, host: None };

/// A node of this test alone: the registry is the process's.
fn node(worker_id: u64) -> Node {
    Node::new(Layout::NODE, 7, worker_id).unwrap()
}

#[test]
fn all_who_name_a_node_share_its_generator() {
    let one = open(node(1), &ALONE).unwrap();
    let two = open(node(1), &ALONE).unwrap();
    assert!(Arc::ptr_eq(one.generator(), two.generator()));
    assert!(!Arc::ptr_eq(one.generator(), open(node(2), &ALONE).unwrap().generator()));
}

#[test]
fn another_max_ahead_is_refused_while_the_node_is_open() {
    let further = Opening { max_ahead_ms: 7, ..ALONE };
    let open_one = open(node(3), &ALONE).unwrap();
    let refused = open(node(3), &further).err();
    assert!(format!("{refused:?}").contains("open-max-ahead"), "{refused:?}");
    drop(open_one);
    assert_eq!(open(node(3), &further).unwrap().max_ahead_ms(), 7);
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn who_has_a_node_open_joins_it_only_by_the_same_name_of_its_directory() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let named = Some(memory.path());
    let opening = Opening { host: Directory::find(named).unwrap(), ..ALONE };
    assert!(join(node(9), &ALONE, named).is_none(), "nobody has it open");
    let first = open(node(9), &opening).unwrap();
    let joined = join(node(9), &ALONE, named).unwrap();
    assert!(Arc::ptr_eq(first.generator(), joined.generator()));
    drop(first);
    assert!(join(node(9), &ALONE, named).is_some(), "it is still open");
    for other in [None, Some(Path::new("/dev/shm")), Some(Path::new("relative"))] {
        assert!(join(node(9), &ALONE, other).is_none(), "{other:?}");
    }
    assert!(join(node(9), &Opening { max_ahead_ms: 1, ..ALONE }, named).is_none());
    let directory = opening.host.as_ref().unwrap().path();
    std::fs::rename(directory, memory.path().join("moved")).unwrap();
    std::os::unix::fs::symlink("moved", directory).unwrap();
    assert!(join(node(9), &ALONE, named).is_none(), "a symbolic link is refused");
    drop(joined);
    assert!(join(node(9), &ALONE, named).is_none(), "it is closed");
}

#[test]
fn each_user_has_policies_of_its_own() {
    let policies = Policies { clock_back: ClockBack::Throw, ..POLICIES };
    let [one, other] =
        [POLICIES, policies].map(|policies| open(node(8), &Opening { policies, ..ALONE }));
    assert_eq!((*one.unwrap().policies(), *other.unwrap().policies()), (POLICIES, policies));
}

#[test]
fn a_node_that_was_closed_remembers_what_it_issued() {
    let layout = Layout { tick_ms: 86_400_000, ..Layout::NODE };
    let node = Node::new(layout, 7, 4).unwrap();
    let first = open(node, &ALONE).unwrap().reserve(&POLICIES, |_| 1).unwrap();
    let again = open(node, &ALONE).unwrap().reserve(&POLICIES, |_| 1).unwrap();
    assert_ne!(first.first_id, again.first_id);
}

#[test]
fn threads_of_one_node_never_share_an_id() {
    let ids = std::thread::scope(|scope| {
        let draw = || {
            let share = open(node(5), &ALONE).unwrap();
            let mut ids = Vec::new();
            while ids.len() < 20_000 {
                let reserved = share.reserve(&POLICIES, |_| 7).unwrap();
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
    assert_eq!(open(node(5), &ALONE).unwrap().stats().issued, ids.len() as u64);
}

/// One worker ID.
const NARROW: Layout = Layout { worker_bits: 0, ..Layout::NODE };

/// Holds the only slot of a directory, as another process would.
fn held(directory: &Path) -> SlotFile {
    let node = Node::new(NARROW, 1, 0).unwrap();
    let slot = FileStore::open(directory).unwrap().slot(&node).unwrap();
    assert!(slot.try_take(USERS, Hold::Exclusive).unwrap());
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

pub(super) fn recording(directory: &Path, wait: Duration) -> Recording {
    let directory = directory.to_owned();
    Recording {
        directory,
        ttl: Duration::from_secs(10),
        wait,
        host: String::new(),
        started_ms: 0,
        common: true,
    }
}

#[test]
#[cfg_attr(miri, ignore = "makes slot files, by a call that Miri does not know")]
fn whoever_wants_a_common_slot_elsewhere_does_not_wait_for_another_directory() {
    fn common(datacenter_id: u64, directory: &Path, wait: Duration) -> Result<Share, Failure> {
        unless_busy(|| lease(NARROW, datacenter_id, &ALONE, &recording(directory, wait)))
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
        let open = || {
            let recording = recording(directory.path(), Duration::ZERO);
            unless_busy(|| lease(layout, 1, &ALONE, &recording)).unwrap()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(shares.iter().all(|share| share.node().worker_id() == shares[0].node().worker_id()));
}

#[test]
#[cfg_attr(miri, ignore = "makes slot files, by a call that Miri does not know")]
fn a_slot_whose_disk_hangs_is_waited_for_with_a_bound() {
    let directory = tempfile::tempdir().unwrap();
    let node = node(6);
    Entry::of(node).tenancy.lock().recorded = RecordedIn::Changing;
    let recording = recording(directory.path(), Duration::ZERO);
    let refused = open_recorded(node, &ALONE, &recording).err().unwrap();
    let waited = SETTLE.as_secs();
    assert_eq!(refused.fault, fault!("slot-busy", datacenter: 7u32, worker: 6u32, waited));
}
