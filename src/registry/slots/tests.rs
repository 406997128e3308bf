use super::super::tests::recording;
use super::*;
use crate::generator::Policies;
use crate::host::BootId;

/// A request for a node of this test alone, since the registry is the process's.
fn wanted(pages: &Path, slots: &Path, epoch_ms: i64) -> (Layout, Opening, Recording) {
    let opening = Opening {
        policies: Policies::default(),
        max_ahead_ms: 0,
        host: Some(Directory::with(pages, BootId::now()).expect("it is in memory")),
    };
    let recording = Recording { common: false, ..recording(slots, Duration::ZERO) };
    (Layout { epoch_ms, ..Layout::NODE }, opening, recording)
}

/// As a stopped process holds it.
#[test]
fn a_lock_that_nobody_gives_back_is_waited_for_with_a_bound() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let slots = tempfile::tempdir().unwrap();
    let (layout, opening, recording) = wanted(memory.path(), slots.path(), 1);
    let host = opening.host.as_ref().unwrap();
    let key = {
        let slots = Slots::open(&opening, &recording).unwrap();
        Search { slots, layout, datacenter_id: 1 }.key()
    };
    let lock = host.lock_leases(key).unwrap().expect("nobody has it");
    let start = Instant::now();
    let first = lease(layout, 1, &opening, &recording).unwrap();
    // The machine may be busy, and its disk slow.
    assert!(start.elapsed() >= SEARCH && start.elapsed() < 20 * SEARCH);
    // Joining needs no lock, nor does another datacenter. What needs it takes that long each time.
    let is_quick = |datacenter_id| {
        let start = Instant::now();
        let share = lease(layout, datacenter_id, &opening, &recording).unwrap();
        assert!(datacenter_id != 1 || first.node() == share.node());
        start.elapsed() < SEARCH
    };
    assert!((0..6).any(|_| is_quick(1)));
    assert!((2..8).any(is_quick));
    drop(lock);
}

#[test]
fn a_slot_of_another_directory_with_the_same_worker_id_is_not_the_common_one() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let [slots, others] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (layout, opening, recording) = wanted(memory.path(), slots.path(), 2);
    let (_, _, elsewhere) = wanted(memory.path(), others.path(), 2);
    let first = lease(layout, 1, &opening, &recording).unwrap();
    assert_eq!(first.node().worker_id(), 0);
    drop(first);
    let second = lease(layout, 1, &opening, &elsewhere).unwrap();
    let third = lease(layout, 1, &opening, &recording).unwrap();
    assert_eq!([second, third].map(|share| share.node().worker_id()), [0, 1]);
}
