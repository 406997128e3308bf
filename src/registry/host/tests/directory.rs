//! The driver that ships, over a directory as register and over the pages of hosts, in virtual time.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tempfile::TempDir;

use super::super::super::request::By;
use super::driven::{CALM_MS, LIMITS, World, register};
use super::{DATACENTER, request_in};
use crate::core::clock::{Clock, SystemClock};
use crate::core::layout::Layout;
use crate::files::path::paths_in;
use crate::lease::Key;
use crate::registry::{Request, Share};

const CLAIM: Option<u64> = Some(2);

fn copy(from: &Path, to: &Path) {
    for path in paths_in(from, "slot").unwrap() {
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Puts a copy of each file in its place, as `cp` does: the files stay the same ones.
fn put_back(from: &Path, to: &Path) {
    for path in paths_in(from, "slot").unwrap() {
        fs::write(to.join(path.file_name().unwrap()), fs::read(&path).unwrap()).unwrap();
    }
}

#[test]
fn three_processes_take_renew_are_killed_and_restart() {
    for claim in [CLAIM, None] {
        let mut world = World::in_directory(1);
        let processes = [(); 3].map(|()| world.process(0));
        let mut leases = processes.map(|process| world.start(process, claim));
        let worker = world.tenure(leases[0]).unwrap().worker;
        assert!(claim.is_none_or(|claim| claim == worker));
        for round in 0..12 {
            world.pass(LIMITS.ttl / 2 + 1_000);
            let one = round % 3;
            // Now one, now all of them, and now and then for long.
            let killed = if round % 4 == 3 { 0..3 } else { one..one + 1 };
            let last = world.draw(leases[one]).unwrap();
            killed.clone().for_each(|at| world.kill(processes[at]));
            if round % 6 == 5 {
                world.pass(3 * LIMITS.ttl);
            }
            for at in killed {
                leases[at] = world.start(processes[at], claim);
                assert_eq!(world.tenure(leases[at]).map(|one| one.worker), Some(worker));
            }
            if round % 6 != 5 {
                let next = world.draw(leases[one]);
                assert_eq!(next, Some(last), "the page lives: it goes on at the next number");
            }
        }
        world.pass(LIMITS.ttl);
        assert!(leases.iter().all(|at| world.draw(*at).is_some()));
        assert!(world.drawn.len() > 500);
        leases.iter().for_each(|at| world.close(*at));
        assert!(matches!(world.lines()[..], [(of, false, _)] if of == worker));
    }
}

#[test]
fn another_host_is_refused_while_a_holder_lives_and_takes_the_slot_once_it_was_killed() {
    let mut world = World::in_directory(2);
    let [one, two] = [0, 1].map(|host| world.process(host));
    let first = world.start(one, CLAIM);
    world.pass(LIMITS.ttl);
    let second = world.start(two, CLAIM);
    assert_eq!(world.lease(second).log, ["refused"]);
    assert_eq!(world.tenure(second), None);
    let any = world.process(1);
    let any = world.start(any, None);
    assert!(world.tenure(any).is_some_and(|tenure| Some(tenure.worker) != CLAIM));
    let ceiling = world.window(first).ceiling;
    world.kill(one);
    world.pass(5_000);
    assert!(world.tenure(second).is_some(), "no expiry is waited for");
    assert!(world.window(second).floor >= ceiling);
    world.pass(2 * LIMITS.ttl);
    assert!(world.draw(second) > Some(ceiling));
}

#[test]
fn who_waits_has_a_slot_50_ms_after_one_is_free() {
    for (claim, is_killed) in [(CLAIM, true), (CLAIM, false), (None, true), (None, false)] {
        let mut world = World::in_directory(2);
        let processes = [(); 4].map(|()| world.process(0));
        let holders = [0, 1, 2, 3].map(|at| world.start(processes[at], Some(at as u64)));
        let waiting = world.process(1);
        let waiting = world.start(waiting, claim);
        world.pass(7_000);
        assert_eq!(world.tenure(waiting), None);
        match is_killed {
            true => world.kill(processes[2]),
            false => world.close(holders[2]),
        }
        world.pass(50);
        assert_eq!(world.tenure(waiting).map(|tenure| tenure.worker), CLAIM);
    }
}

#[test]
fn restarts_leave_one_slot_and_who_lives_together_one_each() {
    let mut world = World::in_directory(4);
    let files =
        |world: &World| paths_in(world.shared.as_ref().unwrap().path(), "slot").unwrap().len();
    for round in 0..10 {
        let process = world.process(0);
        let one = world.start(process, None);
        world.pass(2_000);
        assert!(world.draw(one).is_some());
        match round % 3 {
            0 => world.kill(process),
            _ => world.close(one),
        }
        world.pass(20);
        assert_eq!(files(&world), 2, "the namespace, and a slot");
    }
    for host in 0..4 {
        let process = world.process(host);
        world.start(process, None);
        assert_eq!(files(&world), 2 + host);
    }
}

#[test]
fn a_slot_that_issues_at_once_comes_before_those_of_the_dead() {
    let mut world = World::in_directory(3);
    let mut ceilings = Vec::new();
    for worker in [2, 0, 1] {
        let process = world.process(0);
        let one = world.start(process, Some(worker));
        world.pass(1_000);
        ceilings.push(world.window(one).ceiling);
        world.kill(process);
    }
    let processes = [1, 2].map(|host| world.process(host));
    let [one, two] = processes.map(|process| world.start(process, None));
    world.pass(1_000);
    let workers = [one, two].map(|at| world.tenure(at).unwrap().worker);
    assert_eq!(workers, [3, 2]);
    assert!(world.draw(one).is_some());
    assert_eq!(world.window(two).floor, ceilings[0], "of the dead, the soonest");
}

#[test]
fn a_stopped_holder_keeps_its_slot_until_it_has_expired_for_half_a_ttl() {
    let mut world = World::in_directory(2);
    let [one, two] = [0, 1].map(|host| world.process(host));
    let first = world.start(one, CLAIM);
    world.pass(1_000);
    // In the middle of a renewal, which comes to the directory much later.
    let ceiling = world.window(first).ceiling;
    world.stop(first);
    let second = world.start(two, CLAIM);
    world.pass(LIMITS.ttl - 5_000);
    assert_eq!(world.tenure(second), None);
    world.pass(LIMITS.ttl);
    assert!(world.tenure(second).is_some());
    assert!(world.window(second).floor >= ceiling);
    world.go_on(first, true, true);
    assert_eq!(world.draw(first), None);
    world.pass(CALM_MS / 4);
    assert!(world.draw(second).is_some());
}

#[test]
fn a_stopped_renewer_is_replaced_by_another_process_of_its_host() {
    let mut world = World::in_directory(1);
    let processes = [(); 2].map(|()| world.process(0));
    let leases = processes.map(|process| world.start(process, CLAIM));
    world.pass(LIMITS.ttl);
    world.stop(leases[0]);
    for _ in 0..50 {
        world.pass(LIMITS.ttl / 10);
        assert!(world.draw(leases[1]).is_some(), "{:?}", world.logs());
    }
    world.go_on(leases[0], true, true);
    world.pass(LIMITS.ttl);
    assert!(leases.iter().all(|at| world.draw(*at).is_some() && world.lease(*at).log == ["open"]));
}

#[test]
fn many_processes_flush_as_often_as_one_also_where_they_join_a_low_ceiling_at_once() {
    let flushes = |count: usize| {
        let mut world = World::in_directory(1);
        let processes: Vec<_> = (0..count).map(|_| world.process(0)).collect();
        for process in &processes {
            world.start(*process, CLAIM);
        }
        world.pass(10 * LIMITS.ttl);
        processes.iter().for_each(|process| world.kill(*process));
        world.pass(2 * LIMITS.ttl);
        let leases: Vec<_> = processes.iter().map(|process| world.start(*process, CLAIM)).collect();
        world.pass(CALM_MS);
        assert!(leases.iter().all(|at| world.tenure(*at).is_some()), "{:?}", world.logs());
        assert!(world.draw(leases[0]).is_some());
        world.disk.flushes.load(SeqCst)
    };
    let [one, sixteen] = [1, 16].map(flushes);
    assert!(sixteen <= one + one / 10, "{sixteen} by 16, {one} by one");
}

#[test]
fn openings_without_an_id_take_no_ticks() {
    let mut world = World::in_directory(1);
    let process = world.process(0);
    let first = world.start(process, CLAIM);
    world.pass(1_000);
    let last = world.draw(first).unwrap();
    world.close(first);
    for _ in 0..9 {
        let next = world.start(process, CLAIM);
        assert_eq!(world.window(next).floor, last);
        world.close(next);
    }
    assert!(world.lines().iter().all(|(_, is_held, window)| !is_held && window.ceiling == last));
}

#[test]
fn a_file_that_is_cut_off_while_it_is_used_ends_renewals_until_it_is_deleted() {
    let mut world = World::in_directory(1);
    let process = world.process(0);
    let one = world.start(process, CLAIM);
    world.pass(LIMITS.ttl);
    let ceiling = world.window(one).ceiling;
    let path = world.register().unwrap().path_of(Key::Bucket(DATACENTER, 2));
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
    world.pass(5 * LIMITS.ttl);
    assert!(world.lease(one).log.ends_with(&["failed"]) && world.window(one).ceiling == ceiling);
    assert_eq!(world.draw(one), None);
    fs::remove_file(path).unwrap();
    world.pass(CALM_MS);
    assert!(world.draw(one) > Some(ceiling), "{:?}", world.logs());
}

#[test]
fn what_was_issued_without_a_lease_is_not_issued_under_one_nor_the_other_way() {
    let mut world = World::in_directory(1);
    let [plain, leased] = [(); 2].map(|()| world.process(0));
    // The page of a node without a lease is used by the system's clock.
    let free = Request {
        worker_id: CLAIM,
        by: By::Free,
        ..request_in(world.layout, world.directories[0].path())
    };
    let draw = |share: &Share| share.try_reserve_next(|_| 1).ok().map(|drawn| drawn.block.tick);
    let share = world.run(plain, || free.open()).unwrap().unwrap();
    std::thread::sleep(Duration::from_millis(2));
    let last = draw(&share).unwrap();
    world.time = SystemClock.now().ms - 30_000;
    let one = world.start(leased, CLAIM);
    world.pass(1_000);
    assert_eq!(world.tenure(one), None, "it is in use");
    world.run(plain, || drop(share));
    world.pass(5_000);
    assert!(world.tenure(one).is_some(), "{:?}", world.logs());
    assert!(world.window(one).floor >= last || world.draw(one).is_none());
    world.pass(60_000);
    let last = world.draw(one).unwrap();
    let kind = |world: &mut World| {
        world.run(plain, || free.open()).err().map(|failure| failure.fault.kind)
    };
    assert_eq!(kind(&mut world), Some("page-kind"));
    world.close(one);
    let share = world.run(plain, || free.open()).unwrap().unwrap();
    assert!(last > world.layout.tick_at(SystemClock.now().ms) && draw(&share).is_none());
    world.run(plain, || drop(share));
}

#[test]
fn another_layout_or_epoch_is_refused() {
    let mut world = World::in_directory(2);
    let processes = [0, 1].map(|host| world.process(host));
    let one = world.start(processes[0], CLAIM);
    for layout in [
        Layout { epoch_ms: world.layout.epoch_ms - 1, ..world.layout },
        Layout { sequence_bits: 5, timestamp_bits: 42, ..world.layout },
    ] {
        let ours = std::mem::replace(&mut world.layout, layout);
        let other = world.start(processes[1], None);
        assert_eq!(world.tenure(other), None);
        assert_eq!(world.lease(other).log, ["refused"]);
        world.layout = ours;
    }
    world.pass(LIMITS.ttl);
    assert!(world.draw(one).is_some());
}

#[test]
fn after_a_reboot_nothing_repeats_whatever_the_clock_shows() {
    for (by, is_clean) in
        [(0, true), (0, false), (-20_000, true), (-20_000, false), (60_000, false)]
    {
        let mut world = World::in_directory(1);
        let process = world.process(0);
        let first = world.start(process, CLAIM);
        world.pass(2 * LIMITS.ttl);
        let (last, ceiling) = (world.draw(first).unwrap(), world.window(first).ceiling);
        if is_clean {
            world.close(first);
        }
        world.reboot(0);
        world.time += by;
        let next = world.start(process, CLAIM);
        assert_eq!(world.lease(next).log, ["open"], "at once");
        let floor = world.window(next).floor;
        // A clean close records what was issued. Its directory remembers it as long as the boot.
        assert_eq!(floor, if is_clean { last } else { ceiling });
        world.pass(3 * LIMITS.ttl);
        assert!(world.draw(next) > Some(floor));
    }
}

#[test]
fn after_a_clean_close_ids_go_on_at_the_next_tick_and_an_old_copy_changes_nothing() {
    for is_old in [false, true] {
        let mut world = World::in_directory(1);
        let process = world.process(0);
        let first = world.start(process, CLAIM);
        let backup = TempDir::new().unwrap();
        world.pass(1);
        copy(world.shared.as_ref().unwrap().path(), backup.path());
        world.pass(2 * LIMITS.ttl);
        let last = world.draw(first).unwrap();
        world.close(first);
        if is_old {
            put_back(backup.path(), world.shared.as_ref().unwrap().path());
        }
        // The clock is back where the copy was made.
        world.time -= 2 * LIMITS.ttl;
        let next = world.start(process, CLAIM);
        assert!(world.window(next).floor >= last, "{:?}", world.lease(next).log);
        world.pass(3 * LIMITS.ttl);
        assert!(world.draw(next) > Some(last));
    }
}

#[test]
fn an_old_copy_under_living_holders_is_noticed_by_their_page() {
    let mut world = World::in_directory(1);
    let processes = [(); 2].map(|()| world.process(0));
    let leases = processes.map(|process| world.start(process, CLAIM));
    let backup = TempDir::new().unwrap();
    copy(world.shared.as_ref().unwrap().path(), backup.path());
    world.pass(2 * LIMITS.ttl);
    let confirmed = world.window(leases[0]).ceiling;
    put_back(backup.path(), world.shared.as_ref().unwrap().path());
    world.pass(LIMITS.ttl);
    for at in leases {
        let log = world.lease(at).log.clone();
        assert!(log.iter().any(|report| ["reverted", "released"].contains(report)), "{log:?}");
        assert!(world.tenure(at).is_some() && world.window(at).floor >= confirmed);
    }
    world.pass(2 * LIMITS.ttl);
    assert!(leases.iter().all(|at| world.draw(*at) > Some(confirmed)));
}

#[test]
fn a_deleted_file_costs_a_wait_and_no_id() {
    for name in ["namespace.slot", "datacenter-3-worker-2.slot", "all"] {
        let mut world = World::in_directory(1);
        let process = world.process(0);
        let one = world.start(process, CLAIM);
        world.pass(2 * LIMITS.ttl);
        for path in paths_in(world.shared.as_ref().unwrap().path(), "slot").unwrap() {
            if name == "all" || path.ends_with(name) {
                fs::remove_file(path).unwrap();
            }
        }
        world.pass(CALM_MS);
        assert!(world.draw(one).is_some(), "{name}: {:?}", world.lease(one).log);
    }
}

#[test]
fn another_directory_for_a_node_of_this_host_is_refused_be_it_a_copy_or_not() {
    for is_copy in [true, false] {
        let mut world = World::in_directory(1);
        let processes = [(); 2].map(|()| world.process(0));
        let one = world.start(processes[0], CLAIM);
        world.pass(LIMITS.ttl);
        let other = TempDir::new().unwrap();
        if is_copy {
            copy(world.shared.as_ref().unwrap().path(), other.path());
        }
        let two = world.start_at(processes[1], CLAIM, (0, Some(register(other.path()))), |_| false);
        world.pass(2 * LIMITS.ttl);
        assert_eq!(world.tenure(two), None);
        assert!(world.lease(two).log.iter().all(|report| *report == "refused"));
        assert!(world.draw(one).is_some() && world.lease(one).log == ["open"]);
        // Once it is released, the other directory has it, above what was issued.
        let last = world.draw(one).unwrap();
        world.close(one);
        world.pass(10_000);
        assert!(world.tenure(two).is_some() && world.window(two).floor >= last);
    }
}

#[test]
fn a_renamed_directory_is_the_same_one() {
    let mut world = World::in_directory(1);
    let processes = [(); 2].map(|()| world.process(0));
    let parent = TempDir::new().unwrap();
    let [path, moved] = ["one", "moved"].map(|name| parent.path().join(name));
    let open = |path: &Path| (0, Some(register(path)));
    let one = world.start_at(processes[0], CLAIM, open(&path), |_| false);
    world.pass(1_000);
    let tenure = world.tenure(one);
    world.kill(processes[0]);
    fs::rename(&path, &moved).unwrap();
    let two = world.start_at(processes[1], CLAIM, open(&moved), |_| false);
    assert!(tenure.is_some() && world.tenure(two) == tenure, "its page is joined");
    world.pass(2 * LIMITS.ttl);
    assert!(world.draw(two).is_some());
}

#[test]
fn a_taker_that_dies_at_any_call_leaves_a_slot_that_can_be_taken_at_once() {
    for calls in 1..12 {
        let mut world = World::in_directory(2);
        let [dying, other] = [0, 1].map(|host| world.process(host));
        for is_applied in [true, false] {
            let made = std::cell::Cell::new(0);
            let one = world.start_at(dying, CLAIM, (0, world.register()), |_| {
                made.set(made.get() + 1);
                made.get() == calls
            });
            if is_applied {
                world.apply(one);
            }
            world.kill(dying);
        }
        let next = world.start(other, CLAIM);
        assert!(world.tenure(next).is_some(), "{calls}: {:?}", world.lease(next).log);
        world.pass(2 * LIMITS.ttl);
        assert!(world.draw(next).is_some());
    }
}
