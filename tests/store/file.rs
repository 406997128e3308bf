//! Slots' files that are not as the file store left them.

use std::fs;
use std::sync::Arc;

use snowdrift::core::clock::ManualClock;
use snowdrift::core::fault::{Class, Failure};
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;

use super::machine::Machine;
use super::pages::Process;
use super::slots::{LAYOUT, slot};

fn acquire(machine: &Machine, node: Node) -> Result<Process, Failure> {
    let clock = Arc::new(ManualClock::at(1000));
    Process::start(machine, node, &clock)
}

/// A machine on which slot 3 was held, and its holder was killed.
fn machine_with_a_past() -> Machine {
    let machine = Machine::new(None);
    drop(acquire(&machine, slot(3)).unwrap());
    machine
}

fn refusal(machine: &Machine) -> String {
    let path = machine.store().path_of(&slot(3));
    let before = fs::read(&path).unwrap();
    let refused = acquire(machine, slot(3)).err().expect("it is refused");
    assert_eq!(fs::read(&path).unwrap(), before, "it is left as it was");
    let message = format!("{refused:?}");
    assert!(message.contains(path.to_str().unwrap()), "{message}");
    message
}

#[test]
fn every_damaged_byte_is_refused() {
    let machine = machine_with_a_past();
    let path = machine.store().path_of(&slot(3));
    let whole = fs::read(&path).unwrap();
    // Each takes a few readings, since a record may be read while it is written.
    for at in (0..whole.len()).filter(|at| at % 4096 < 600 || at % 97 == 0).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= [0x01, 0x80, 0xff][at % 3];
        fs::write(&path, &damaged).unwrap();
        match machine.store().slot(&slot(3)).unwrap().read() {
            Err(Failure { class: Class::Slot, .. }) => {}
            other => panic!("byte {at}: {other:?}"),
        }
    }
    fs::write(&path, &whole).unwrap();
    acquire(&machine, slot(3)).unwrap();
}

#[test]
fn every_truncation_is_refused() {
    let machine = machine_with_a_past();
    let path = machine.store().path_of(&slot(3));
    let whole = fs::read(&path).unwrap();
    for len in [0, 1, 8, 511, 512, 1024, 4095, 4096, 8 * 4096 - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        let message = refusal(&machine);
        assert!(message.contains(&format!("(\"length\", Number({len}.0))")), "{message}");
    }
    fs::write(&path, [whole.as_slice(), b"x"].concat()).unwrap();
    refusal(&machine);
}

#[test]
fn a_file_that_is_cut_off_while_it_is_used_ends_nothing_but_renewals() {
    let machine = Machine::new(None);
    let clock = Arc::new(ManualClock::at(1000));
    let mut process = Process::start(&machine, slot(3), &clock).unwrap();
    let path = machine.store().path_of(&slot(3));
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
    clock.set(1500);
    process.draw().unwrap();
    let refused = format!("{:?}", process.durable.renew(9000).unwrap_err());
    assert!(refused.contains("(\"length\", Number(100.0))"), "{refused}");
    assert_eq!(process.generator.window().ceiling, 2000);
    assert!(process.durable.close(&process.generator).is_err());
}

#[test]
fn a_full_disk_ends_nothing_but_renewals() {
    let machine = Machine::new(None);
    let clock = Arc::new(ManualClock::at(1000));
    let mut process = Process::start(&machine, slot(3), &clock).unwrap();
    machine.set_disk_fails(true);
    assert!(process.durable.renew(9000).is_err());
    assert_eq!(process.generator.window().ceiling, 2000, "it was not flushed");
    machine.set_disk_fails(false);
    process.durable.renew(9000).unwrap();
    assert_eq!(process.generator.window().ceiling, 9000);
}

#[test]
fn what_is_foreign_or_newer_is_refused_by_its_name() {
    let machine = machine_with_a_past();
    let path = machine.store().path_of(&slot(3));
    let mut newer = fs::read(&path).unwrap();
    fs::write(&path, [0x7f; 8 * 4096]).unwrap();
    assert!(refusal(&machine).contains("slot-foreign"));
    newer[8] = 4;
    fs::write(&path, &newer).unwrap();
    assert!(refusal(&machine).contains("(\"format\", Number(4.0)), (\"known\", Number(3.0))"));
    newer[8] = 2;
    // What format 2 was long.
    fs::write(&path, &newer[..4096]).unwrap();
    let older = refusal(&machine);
    assert!(older.contains("slot-older") && older.contains("(\"format\", Number(2.0))"), "{older}");
}

#[test]
fn a_directory_in_a_slots_place_is_refused_by_its_name() {
    let machine = Machine::new(None);
    let path = machine.store().path_of(&slot(3));
    fs::create_dir(&path).unwrap();
    let Failure { class, fault } = acquire(&machine, slot(3)).err().unwrap();
    assert_eq!((class, fault.kind), (Class::Slot, "slot-not-a-file"));
    assert_eq!(fault.details, [("place", path.as_path().into())]);
}

#[test]
fn a_file_under_another_slots_name_is_refused() {
    let machine = machine_with_a_past();
    let store = machine.store();
    fs::copy(store.path_of(&slot(3)), store.path_of(&slot(4))).unwrap();
    let refused = format!("{:?}", acquire(&machine, slot(4)).err().unwrap());
    let node = "(\"datacenter\", Number(1.0)), (\"worker\", Number(3.0))";
    assert!(refused.contains("slot-misnamed") && refused.contains(node), "{refused}");
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
        let refused = acquire(&machine, other).err().unwrap();
        assert_eq!(refused.fault.kind, "slot-layout");
        assert!(store.recorded(&layout, 1).is_err(), "and whoever wants any slot is told, too");
    }
}

#[test]
fn a_full_disk_at_the_start_leaves_nothing_behind() {
    let machine = Machine::new(None);
    machine.set_disk_fails(true);
    let refused = format!("{:?}", acquire(&machine, slot(3)).err().unwrap());
    assert!(refused.contains("StorageFull"), "{refused}");
    assert_eq!(fs::read_dir(machine.path()).unwrap().count(), 0);
    machine.set_disk_fails(false);
    acquire(&machine, slot(3)).unwrap();
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
