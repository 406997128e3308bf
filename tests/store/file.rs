//! What the file store must do besides the contract: with files that are not as it left them.

use std::fs;

use snowdrift::layout::Layout;
use snowdrift::node::Node;
use snowdrift::sequencer::NEVER;
use snowdrift::store::file::FileStore;
use snowdrift::store::{Held, Store, StoreError};

use crate::contract::{LAYOUT, holder, slot};
use crate::machine::Machine;

fn acquire(store: &FileStore) -> Result<Box<dyn Held>, StoreError> {
    store.acquire(&slot(3), &holder(), 1000)
}

/// A machine on which slot 3 was held up to tick 1000, and died after issuing two ticks.
fn machine_with_a_past() -> Machine {
    let machine = Machine::new(None);
    let mut held = acquire(&machine.store()).unwrap();
    let marks = held.marks().unwrap();
    marks.note(0, 900);
    marks.note(1, 700);
    machine
}

fn refusal(machine: &Machine) -> String {
    let path = machine.store().path_of(&slot(3));
    let before = fs::read(&path).unwrap();
    let refused = acquire(&machine.store()).err().expect("it is refused");
    assert_eq!(fs::read(&path).unwrap(), before, "it is left as it was");
    let message = refused.to_string();
    assert!(message.contains(path.to_str().unwrap()), "{message}");
    message
}

#[test]
fn within_a_boot_the_marks_are_exact_and_the_floor_stays() {
    let machine = machine_with_a_past();
    let terms = acquire(&machine.store()).unwrap().terms();
    assert_eq!((terms.floor, terms.high.marks[0], terms.high.marks[1]), (NEVER, 900, 700));
    assert_eq!(terms.high.current, 1);
}

#[test]
fn after_a_power_cut_the_ceiling_is_the_floor() {
    let mut machine = machine_with_a_past();
    machine.cut_power(&mut fastrand::Rng::with_seed(1));
    let terms = acquire(&machine.store()).unwrap().terms();
    assert_eq!((terms.floor, terms.high.marks[0]), (1000, NEVER));
    let again = acquire(&machine.store()).unwrap().terms();
    assert_eq!(again.floor, 1000, "and stays it in the new boot");
}

#[test]
fn without_a_boot_id_the_ceiling_is_the_floor_always() {
    let directory = tempfile::tempdir().unwrap();
    let store = || {
        let flush = std::sync::Arc::new(|_: &std::path::Path, file: &fs::File| file.sync_data());
        FileStore::with(directory.path(), None, flush).unwrap()
    };
    drop(acquire(&store()).unwrap());
    assert_eq!(acquire(&store()).unwrap().terms().floor, 1000);
}

#[test]
fn every_damaged_byte_is_refused_or_makes_a_mark_higher() {
    let machine = machine_with_a_past();
    let path = machine.store().path_of(&slot(3));
    let whole = fs::read(&path).unwrap();
    let mut refused = 0;
    for at in 0..whole.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] ^= mask;
            fs::write(&path, &damaged).unwrap();
            match acquire(&machine.store()) {
                Err(StoreError::Unusable { .. } | StoreError::OtherLayout { .. }) => refused += 1,
                Err(other) => panic!("byte {at}: {other}"),
                Ok(held) => {
                    let high = held.terms().high;
                    assert!(high.marks[0] >= 900 && high.marks[1] >= 700, "byte {at}");
                }
            }
        }
    }
    assert!(refused > 3 * 4000, "{refused} refused");
}

#[test]
fn every_truncation_is_refused() {
    let machine = machine_with_a_past();
    let path = machine.store().path_of(&slot(3));
    let whole = fs::read(&path).unwrap();
    for len in [0, 1, 8, 511, 512, 1024, 4095] {
        fs::write(&path, &whole[..len]).unwrap();
        let message = refusal(&machine);
        assert!(message.contains(&format!("is {len} bytes long")), "{message}");
    }
    fs::write(&path, [whole.as_slice(), b"x"].concat()).unwrap();
    refusal(&machine);
}

#[test]
fn what_is_foreign_or_newer_is_refused_by_its_name() {
    let machine = machine_with_a_past();
    let path = machine.store().path_of(&slot(3));
    let mut newer = fs::read(&path).unwrap();
    fs::write(&path, [0x7f; 4096]).unwrap();
    assert!(refusal(&machine).contains("is no file of a snowdrift slot"));
    newer[8] = 3;
    fs::write(&path, &newer).unwrap();
    assert!(refusal(&machine).contains("format 3; this one reads 2). Update snowdrift"));
    newer[8] = 1;
    fs::write(&path, newer).unwrap();
    let older = refusal(&machine);
    assert!(
        older.contains("format 1; this one reads 2). End the processes that use it"),
        "{older}"
    );
    assert!(older.contains("snowdrift reset --help"), "{older}");
}

#[test]
fn a_file_under_another_slots_name_is_refused() {
    let machine = machine_with_a_past();
    let store = machine.store();
    fs::copy(store.path_of(&slot(3)), store.path_of(&slot(4))).unwrap();
    let refused = store.acquire(&slot(4), &holder(), 1).err().unwrap().to_string();
    assert!(refused.contains("the file of datacenterId 1 and workerId 3"), "{refused}");
}

#[test]
fn another_layout_or_epoch_is_refused() {
    let machine = machine_with_a_past();
    let store = machine.store();
    for layout in [
        Layout { epoch_ms: 1, ..LAYOUT },
        Layout { sequence_bits: 11, timestamp_bits: 42, ..LAYOUT },
    ] {
        let other = Node::new(layout, 1, 3).unwrap();
        let refused = store.acquire(&other, &holder(), 1).err().unwrap();
        assert!(matches!(refused, StoreError::OtherLayout { .. }), "{refused}");
        assert!(store.recorded(&layout, 1).is_err(), "and whoever wants any slot is told, too");
    }
}

#[test]
fn a_full_disk_at_the_start_leaves_nothing_behind() {
    let machine = Machine::new(None);
    machine.set_disk_fails(true);
    let refused = acquire(&machine.store()).err().unwrap().to_string();
    assert!(refused.contains("Make room on that disk"), "{refused}");
    assert_eq!(fs::read_dir(machine.path()).unwrap().count(), 0);
    machine.set_disk_fails(false);
    acquire(&machine.store()).unwrap();
}

#[test]
fn other_files_in_the_directory_are_no_slots() {
    let machine = machine_with_a_past();
    for name in ["datacenter-1-worker-x.slot", "datacenter-1-worker-05.slot", "notes", ".new-a"] {
        fs::write(machine.path().join(name), "x").unwrap();
    }
    let recorded = machine.store().recorded(&LAYOUT, 1).unwrap();
    assert_eq!(recorded.len(), 1);
    assert!(machine.store().recorded(&LAYOUT, 2).unwrap().is_empty());
}
