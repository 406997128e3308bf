use std::path::Path;

use super::super::request::{By, Recording, Request, Scope};
use super::super::tests::{any, open};
use super::*;

/// A request for a node of this test alone, since the registry is the process's.
fn wanted(pages: &Path, slots: &Path, epoch_ms: i64) -> Request {
    let request = any(slots, Duration::ZERO);
    let By::Record(recording) = request.by else { panic!("it is for a slot") };
    Request {
        layout: Layout { epoch_ms, ..Layout::NODE },
        datacenter_id: 1,
        scope: Scope::Host,
        shared: Some(pages.to_owned()),
        by: By::Record(Recording { common: false, ..recording }),
        ..request
    }
}

/// How long leases in these datacenters take, while nobody gives back the lock of datacenter 1: as a stopped process
/// holds it. The first of them stays.
fn times_beside_a_lock(epoch_ms: i64, datacenter_ids: &[u64]) -> Vec<Duration> {
    let memory = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
    let slots = tempfile::tempdir().expect("a directory");
    let mut request = wanted(memory.path(), slots.path(), epoch_ms);
    let host = request.host().expect("it is found").expect("it was asked for");
    let By::Record(recording) = &request.by else { panic!("it is for a slot") };
    let key = Slots::open(&request, recording).expect("it is there").key();
    let lock = host.lock_leases(key).expect("it is there").expect("nobody has it");
    let mut first: Option<Share> = None;
    let time = |&datacenter_id: &u64| {
        request.datacenter_id = datacenter_id;
        let start = Instant::now();
        let share = open(&request).expect("a slot is free");
        let took = start.elapsed();
        let node = *share.node();
        assert!(datacenter_id != 1 || *first.get_or_insert(share).node() == node);
        took
    };
    let times = datacenter_ids.iter().map(time).collect();
    drop(lock);
    times
}

#[test]
fn a_lock_that_nobody_gives_back_is_waited_for_with_a_bound() {
    let times = times_beside_a_lock(1, &[1, 1, 2]);
    assert!(times[0] >= SEARCH, "{times:?}");
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn joiners_and_other_datacenters_do_not_wait_for_a_lock() {
    let times = times_beside_a_lock(3, &[1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7]);
    // The machine may be busy, and its disk slow.
    assert!(times[0] < 20 * SEARCH, "{times:?}");
    // Joining needs no lock, nor does another datacenter. What needs it takes that long each time.
    let [joins, others] = [&times[1..7], &times[7..]];
    assert!(joins.iter().any(|took| *took < SEARCH), "{times:?}");
    assert!(others.iter().any(|took| *took < SEARCH), "{times:?}");
}

/// Each release is waited for, but not for ever.
#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn a_slot_of_another_directory_with_the_same_worker_id_is_not_the_common_one() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let [slots, others] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let here = wanted(memory.path(), slots.path(), 2);
    let elsewhere = wanted(memory.path(), others.path(), 2);
    let first = open(&here).unwrap();
    assert_eq!(first.node().worker_id(), 0);
    drop(first);
    let second = open(&elsewhere).unwrap();
    let third = open(&here).unwrap();
    assert_eq!([second, third].map(|share| share.node().worker_id()), [0, 1]);
}

#[test]
fn each_slot_is_tried_and_its_holder_named() {
    let slots = tempfile::tempdir().unwrap();
    let mut request = any(slots.path(), Duration::ZERO);
    request.layout = Layout { worker_bits: 1, ..Layout::NODE };
    let By::Record(recording) = &mut request.by else { panic!("it is for a slot") };
    recording.common = false;
    let shares = [(); 2].map(|()| open(&request).unwrap());
    assert_eq!(shares.each_ref().map(|share| share.node().worker_id()), [0, 1]);
    let refused = open(&request).err().unwrap();
    let holders = refused.fault.parts("holders").iter().map(|holder| holder.detail("worker"));
    assert_eq!(holders.collect::<Vec<_>>(), [Some(&0u64.into()), Some(&1u64.into())]);
}
