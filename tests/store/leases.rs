//! A slot that the host's processes lease from a directory: who takes it, who joins, and what the last one
//! leaves.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use snowdrift::authority::Access;
use snowdrift::authority::durable::Durable;
use snowdrift::core::clock::{ManualClock, SystemClock};
use snowdrift::core::fault::{Class, Failure};
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::core::sequencer::Stall;
use snowdrift::generator::{Generator, Policies};

use super::child::{host_of_leases, start_leasing};
use super::machine::Machine;
use super::pages::{Process, TTL};
use super::slots::{holder, slot};
use crate::amount;
use crate::steering::{Drawers, Steering, count, duplicates, memory, reserve};

fn at(ms: i64) -> Arc<ManualClock> {
    Arc::new(ManualClock::at(ms))
}

/// A process that leases slot 3 of a store, on the host of a machine.
fn open(
    store: &Machine,
    host: &Machine,
    clock: &Arc<ManualClock>,
    access: Access,
) -> Result<Process, Failure> {
    let generator = Generator::recorded(Some(host.host()), slot(3), 0, Box::new(clock.clone()));
    let durable = Durable::open(&store.store(), &generator, holder(), TTL, access)?;
    Ok(Process { generator, durable })
}

fn take(machine: &Machine, clock: &Arc<ManualClock>) -> Process {
    open(machine, machine, clock, Access::Taken).unwrap()
}

fn join(machine: &Machine, clock: &Arc<ManualClock>) -> Process {
    open(machine, machine, clock, Access::Joined).unwrap()
}

fn is_in_use(opened: Result<Process, Failure>) -> bool {
    matches!(opened.err(), Some(Failure { class: Class::InUse, .. }))
}

/// The pages in a host's directory, and their markers.
fn files(machine: &Machine) -> Vec<PathBuf> {
    let entries = fs::read_dir(machine.host().path()).unwrap().map(|entry| entry.unwrap().path());
    let is_of_page = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "page" || extension == "born")
    };
    entries.filter(is_of_page).collect()
}

fn sweep(machine: &Machine) {
    machine.host().sweep_leases(|_| false);
}

#[test]
fn one_takes_it_others_join_and_the_last_one_removes_the_page() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let one = take(&machine, &clock);
    assert!(is_in_use(open(&machine, &machine, &clock, Access::Taken)), "it is taken");
    let two = join(&machine, &clock);
    clock.set(5001);
    let drawn = [one.draw().unwrap(), two.draw().unwrap(), one.draw().unwrap()];
    assert_eq!(drawn, [(5001, 0, 0), (5001, 0, 3), (5001, 0, 6)]);
    one.close();
    assert_eq!(files(&machine).len(), 2);
    assert_eq!(two.draw().unwrap(), (5001, 0, 9), "it was not the last one");
    clock.set(5002);
    two.close();
    assert!(files(&machine).is_empty());
    assert!(is_in_use(open(&machine, &machine, &clock, Access::Joined)), "nobody has it");
    assert!(files(&machine).is_empty());
    // The next one knows all from the record, whatever the clock says.
    clock.set(4000);
    let next = take(&machine, &clock);
    assert_eq!(next.draw().unwrap(), (4000, 1, 0));
}

#[test]
fn after_a_kill_of_all_it_is_joined_again_at_the_next_number() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let (one, two) = (take(&machine, &clock), join(&machine, &clock));
    clock.set(5001);
    one.draw().unwrap();
    drop((one, two));
    let next = join(&machine, &clock);
    assert_eq!(next.draw().unwrap(), (5001, 0, 3));
    machine.host().sweep_leases(|_| true);
    assert_eq!(files(&machine).len(), 2, "it is in use");
    drop(next);
    sweep(&machine);
    assert_eq!(files(&machine).len(), 2, "it can be joined again");
    // Another host takes the slot. Then this host's page is nobody's.
    let elsewhere = Machine::new(None);
    let there = open(&machine, &elsewhere, &clock, Access::Taken).unwrap();
    assert!(is_in_use(open(&machine, &machine, &clock, Access::Joined)));
    machine.host().sweep_leases(|page| page.id() != 0);
    assert!(files(&machine).is_empty());
    assert!(is_in_use(open(&machine, &machine, &clock, Access::Joined)));
    drop(there);
}

#[test]
fn a_slot_that_a_process_names_is_not_leased_nor_the_other_way() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let named = Process::start(&machine, slot(3), &clock).unwrap();
    assert!(is_in_use(open(&machine, &machine, &clock, Access::Taken)));
    let joined = open(&machine, &machine, &clock, Access::Joined).err().unwrap();
    let is_other_kind = |refused: &Failure, theirs: &str| match refused {
        Failure { class: Class::Conflict, fault } => {
            fault.details.contains(&("theirs", theirs.into()))
        }
        _ => false,
    };
    assert!(is_other_kind(&joined, "state"), "{joined:?}");
    clock.set(5001);
    named.draw().unwrap();
    named.close();
    let leased = take(&machine, &clock);
    let refused = Process::start(&machine, slot(3), &clock).err().unwrap();
    assert!(is_other_kind(&refused, "file-lease"), "{refused:?}");
    let plain = Generator::on_host(machine.host(), slot(3), Box::new(clock.clone()));
    assert!(is_other_kind(&plain.err().unwrap(), "file-lease"));
    assert_eq!(leased.draw().unwrap(), (5001, 0, 3), "the record knows what was issued");
}

/// With the same worker ID of another directory, the same node.
#[test]
fn a_node_that_the_host_leases_elsewhere_is_refused_and_later_starts_above_the_clock() {
    let (machine, other, clock) = (Machine::new(None), Machine::new(None), at(5000));
    let one = take(&machine, &clock);
    clock.set(5001);
    one.draw().unwrap();
    let refused = open(&other, &machine, &clock, Access::Taken).err().unwrap();
    assert!(format!("{refused:?}").contains("page-record"), "{refused:?}");
    // The clock has not passed what was issued: the page stays, closed.
    one.close();
    assert_eq!(files(&machine).len(), 2);
    assert!(is_in_use(open(&machine, &machine, &clock, Access::Joined)));
    let two = open(&other, &machine, &clock, Access::Taken).unwrap();
    assert!(matches!(two.draw().unwrap_err().stall, Stall::AtFloor { until: 5002 }));
    clock.set(5002);
    two.draw().unwrap();
    clock.set(5003);
    two.close();
    assert!(files(&machine).is_empty());
    let three = take(&machine, &clock);
    assert!(matches!(three.draw().unwrap_err().stall, Stall::SequenceExhausted { until: 5004 }));
}

#[test]
fn a_page_whose_last_tick_lies_ahead_stays_until_it_has_passed() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let one = take(&machine, &clock);
    clock.set(5500);
    one.draw().unwrap();
    clock.set(5400);
    one.close();
    assert_eq!(files(&machine).len(), 2);
    let two = take(&machine, &clock);
    assert_eq!(two.draw().unwrap(), (5400, 1, 0), "5500 is known");
    clock.set(5400);
    two.close();
    assert_eq!(files(&machine).len(), 2);
    // By the system's clock it has passed.
    sweep(&machine);
    assert!(files(&machine).is_empty());
}

#[test]
fn a_sweep_leaves_the_pages_of_others() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let node = |worker_id| Node::new(*slot(3).layout(), 1, worker_id).unwrap();
    Process::start(&machine, node(7), &clock).unwrap().close();
    drop(Generator::on_host(machine.host(), node(8), Box::new(clock.clone())).unwrap());
    let named = Process::start(&machine, slot(3), &clock).unwrap();
    let before = files(&machine);
    machine.host().sweep_leases(|_| true);
    assert_eq!(files(&machine), before);
    drop(named);
}

/// The moment in which the last process gives the slot up and another one joins.
#[test]
fn a_joiner_at_the_moment_of_the_last_close_has_the_page_or_is_refused() {
    let layout = Layout { epoch_ms: 0, ..Layout::NODE };
    let node = Node::new(layout, 1, 3).unwrap();
    let machine = Machine::new(None);
    let (mut joins, mut refusals) = (0, 0);
    let mut ids = Vec::new();
    let open = |access| {
        let generator = Generator::recorded(Some(machine.host()), node, 0, Box::new(SystemClock));
        // So long that no window passes, though nobody renews.
        Durable::open(&machine.store(), &generator, holder(), Duration::from_secs(600), access)
            .map(|durable| Process { generator, durable })
    };
    let draw = |process: &Process| {
        let policies = Policies { max_wait: Duration::from_millis(20), ..Policies::default() };
        let reserved =
            reserve(&process.generator, &process.generator.user_page(), &policies, 3).unwrap();
        (reserved.first_id, reserved.block.len)
    };
    for round in 0..300 {
        let last = open(Access::Taken).unwrap();
        ids.push(draw(&last));
        let (ready, go) = channel();
        let (closed, close) = channel();
        thread::scope(|scope| {
            let joiner = scope.spawn(move || {
                // However busy the machine is, some come before the close, and some after it.
                if round % 10 == 0 {
                    let joined = open(Access::Joined);
                    ready.send(()).unwrap();
                    return joined;
                }
                ready.send(()).unwrap();
                if round % 10 == 1 {
                    close.recv().unwrap();
                    return open(Access::Joined);
                }
                thread::sleep(Duration::from_micros(fastrand::u64(0..400)));
                open(Access::Joined)
            });
            go.recv().unwrap();
            last.close();
            closed.send(()).unwrap_or_default();
            match joiner.join().unwrap() {
                Ok(process) => {
                    joins += 1;
                    let page = process.generator.page();
                    assert!(page.is_named().unwrap(), "it draws from a page that was removed");
                    ids.push(draw(&process));
                    process.close();
                }
                Err(refused) => {
                    assert!(matches!(refused, Failure { class: Class::InUse, .. }), "{refused:?}");
                    refusals += 1;
                }
            }
        });
        sweep(&machine);
        assert!(files(&machine).is_empty());
    }
    println!("{joins} joins, {refusals} refusals");
    assert!(joins > 0 && refusals > 0, "{joins} joins, {refusals} refusals");
    assert_eq!(duplicates(ids), 0);
}

/// Six processes on three hosts, which lease two slots: killed, stopped, and their pages deleted.
fn storm(unlinks: bool) {
    let memory = memory();
    let here = memory.path();
    let steering = Steering::new(&here.join("steer"));
    let hosts: Vec<_> = (0..3).map(|host| host_of_leases(here, host)).collect();
    let mut drawers = Drawers::new(6, |index, log| start_leasing(here, log, index % 3));
    let end = Instant::now() + amount::storm();
    let (mut stops, mut unlinked) = (0, 0);
    while Instant::now() < end || drawers.kills <= 5 {
        thread::sleep(Duration::from_millis(fastrand::u64(1..12)));
        let index = fastrand::usize(..6);
        match fastrand::u32(..100) {
            0..12 => drawers.kill(index),
            12..30 => {
                drawers.signal(index, libc::SIGSTOP);
                stops += 1;
            }
            30..80 => drawers.signal(index, libc::SIGCONT),
            80..90 if unlinks => {
                for entry in fs::read_dir(hosts[index % 3].path()).unwrap().flatten() {
                    unlinked += u32::from(fs::remove_file(entry.path()).is_ok());
                }
            }
            _ => {}
        }
    }
    drawers.await_drawn(1001, 0);
    steering.phase().store(1, SeqCst);
    let kills = drawers.kills;
    let drawn = drawers.end().concat();
    let all = count(&drawn);
    println!("{all} IDs, {kills} kills, {stops} stops, {unlinked} files removed");
    assert!(all > 1000, "{all} IDs");
    assert_eq!(duplicates(drawn), 0);
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn hosts_whose_processes_are_killed_and_stopped_issue_no_id_twice() {
    storm(false);
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn nor_do_those_whose_pages_are_deleted() {
    storm(true);
}
