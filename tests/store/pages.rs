//! A node's page beside its record: who draws, and from which tick on.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use snowdrift::authority::Access;
use snowdrift::authority::durable::Durable;
use snowdrift::authority::file::FileStore;
use snowdrift::authority::reset::reset_page;
use snowdrift::authority::{Lease, Status};
use snowdrift::core::clock::{Clock, ManualClock, SystemClock};
use snowdrift::core::fault::{Class, Failure};
use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::node::Node;
use snowdrift::core::sequencer::{NEVER, Stall};
use snowdrift::generator::{Generator, Policies, Refusal};
use snowdrift::pages::{BootId, Directory};

use super::machine::Machine;
use super::slots::{holder, slot};
use crate::steering::{memory, reserve};

pub const TTL: Duration = Duration::from_millis(1000);

/// A process that draws. Dropped, it is as if it had been killed.
pub struct Process {
    pub generator: Generator,
    pub durable: Durable,
}

impl Process {
    pub fn start(machine: &Machine, node: Node, clock: &Arc<ManualClock>) -> Result<Self, Failure> {
        Process::start_as(machine, node, clock, Access::Shared)
    }

    fn start_as(
        machine: &Machine,
        node: Node,
        clock: &Arc<ManualClock>,
        access: Access,
    ) -> Result<Self, Failure> {
        let generator = Generator::recorded(Some(machine.host()), node, 0, Box::new(clock.clone()));
        let durable = Durable::open(&machine.store(), &generator, holder(), TTL, access)?;
        Ok(Process { generator, durable })
    }

    /// Draws some IDs of the clock's tick: (tick, counter, first number).
    pub fn draw(&self) -> Result<(Tick, usize, u64), Refusal> {
        let block = self
            .generator
            .try_reserve(&self.generator.user_page(), &Policies::default(), |_| 3)?
            .block;
        Ok((block.tick, block.counter, block.first))
    }

    pub fn close(self) {
        self.durable.close(&self.generator).unwrap();
    }

    fn renew(&mut self) {
        self.durable.renew(self.generator.next_ceiling(TTL)).unwrap();
    }

    fn ceiling(&self) -> Tick {
        self.generator.window().ceiling
    }
}

fn at(ms: i64) -> Arc<ManualClock> {
    Arc::new(ManualClock::at(ms))
}

fn floor(process: &Process) -> Tick {
    process.durable.floor()
}

#[test]
fn processes_draw_from_one_page_and_one_record() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let one = Process::start(&machine, slot(3), &clock).unwrap();
    clock.set(5001);
    let two = Process::start(&machine, slot(3), &clock).unwrap();
    let drawn = [one.draw().unwrap(), two.draw().unwrap(), one.draw().unwrap()];
    assert_eq!(drawn, [(5001, 0, 0), (5001, 0, 3), (5001, 0, 6)]);
    one.close();
    assert_eq!(two.draw().unwrap(), (5001, 0, 9), "it was not the last user");
}

#[test]
fn after_a_kill_the_page_goes_on_at_the_next_number() {
    let (machine, clock) = (Machine::new(None), at(5000));
    drop(Process::start(&machine, slot(3), &clock).unwrap());
    clock.set(5001);
    let process = Process::start(&machine, slot(3), &clock).unwrap();
    assert_eq!(process.draw().unwrap(), (5001, 0, 0));
    drop(process);
    let next = Process::start(&machine, slot(3), &clock).unwrap();
    assert_eq!(next.draw().unwrap(), (5001, 0, 3));
}

#[test]
fn a_ceiling_that_one_process_raised_holds_for_all() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let mut one = Process::start(&machine, slot(3), &clock).unwrap();
    let two = Process::start(&machine, slot(3), &clock).unwrap();
    clock.set(5900);
    one.renew();
    assert_eq!(two.ceiling(), 6900);
    clock.set(6800);
    two.draw().unwrap();
    clock.set(6901);
    assert!(matches!(two.draw().unwrap_err().stall, Stall::AboveCeiling { ceiling: 6900 }));
}

#[test]
fn after_a_reboot_the_recorded_ceiling_is_the_floor_whatever_the_clock_says() {
    let (mut machine, clock) = (Machine::new(None), at(5000));
    let mut process = Process::start(&machine, slot(3), &clock).unwrap();
    process.renew();
    clock.set(5900);
    process.draw().unwrap();
    drop(process);
    machine.cut_power(&mut fastrand::Rng::with_seed(1));
    clock.set(1000);
    let process = Process::start(&machine, slot(3), &clock).unwrap();
    assert_eq!(floor(&process), 6000);
    assert!(matches!(process.draw().unwrap_err().stall, Stall::AtFloor { until: 6001 }));
    // Killed at once, and the page is lost again: it stays the floor.
    drop(process);
    machine.cut_power(&mut fastrand::Rng::with_seed(2));
    assert_eq!(floor(&Process::start(&machine, slot(3), &clock).unwrap()), 6000);
}

/// Ticks of a second, and no other page of the node before.
fn seconds() -> Node {
    let layout = Layout { tick_ms: 1000, epoch_ms: 0, ..Layout::NODE };
    Node::new(layout, 1, 3).unwrap()
}

#[test]
fn a_restart_within_a_long_tick_goes_on_at_the_next_number() {
    for reboots in [false, true] {
        let (mut machine, clock) = (Machine::new(None), at(5000));
        let process = Process::start(&machine, seconds(), &clock).unwrap();
        assert_eq!(process.draw().unwrap(), (5, 0, 0), "the first page starts at once");
        process.close();
        if reboots {
            machine.cut_power(&mut fastrand::Rng::with_seed(3));
        }
        clock.set(5900);
        let process = Process::start(&machine, seconds(), &clock).unwrap();
        let next = if reboots { process.draw().ok() } else { Some(process.draw().unwrap()) };
        // What was not flushed may be lost with the power.
        assert!(next.is_none() || next == Some((5, 0, 3)), "{next:?}");
        drop(process);
        clock.set(5950);
        if !reboots {
            let process = Process::start(&machine, seconds(), &clock).unwrap();
            assert_eq!(process.draw().unwrap(), (5, 0, 6), "and after a kill");
        }
    }
}

#[test]
fn openings_without_an_id_take_no_ticks() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let mut process = Process::start(&machine, seconds(), &clock).unwrap();
    assert_eq!(process.draw().unwrap(), (5, 0, 0));
    // The next page begins above this one, so at a tick of which nothing is issued yet.
    machine.remove_pages();
    process.durable.bind(&process.generator, TTL).unwrap();
    process.close();
    for _ in 0..9 {
        Process::start(&machine, seconds(), &clock).unwrap().close();
    }
    clock.set(6000);
    let process = Process::start(&machine, seconds(), &clock).unwrap();
    assert_eq!(process.draw().unwrap(), (6, 0, 0));
    process.close();
    let process = Process::start(&machine, seconds(), &clock).unwrap();
    assert_eq!(process.draw().unwrap(), (6, 0, 3));
}

#[test]
fn a_record_that_was_put_back_tells_less_than_its_page() {
    let closes_page =
        |process: Process| assert!(process.generator.page().end_with_state().is_some());
    let ends: [fn(Process); 3] = [Process::close, drop, closes_page];
    for end in ends {
        let (machine, clock) = (Machine::new(None), at(5000));
        let start = || Process::start(&machine, seconds(), &clock).unwrap();
        let record = machine.store().path_of(&seconds());
        // With some numbers of the tick used when the record is copied, and with none.
        for (draws_before, tick) in [(true, 5), (false, 8)] {
            clock.set(tick * 1000);
            let process = start();
            let before = draws_before.then(|| process.draw().unwrap());
            process.close();
            let copy = fs::read(&record).unwrap();
            let process = start();
            let drawn = process.draw().unwrap();
            end(process);
            fs::write(&record, copy).unwrap();
            let process = start();
            let next = process.draw().ok();
            assert!(next.is_none() || ![before, Some(drawn)].contains(&next), "{next:?}");
            clock.set((tick + 1) * 1000);
            assert_eq!(process.draw().unwrap(), (tick + 1, 0, 0));
            process.close();
        }
    }
}

#[test]
fn a_copy_behind_the_marker_tells_nothing_of_what_the_page_has_issued() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let process = Process::start(&machine, slot(3), &clock).unwrap();
    clock.set(5001);
    process.draw().unwrap();
    let page = machine.host().page_of(&slot(3));
    let marker = page.with_extension("born");
    fs::copy(&page, machine.path().join("copy")).unwrap();
    clock.set(5900);
    process.draw().unwrap();
    drop(process);
    fs::remove_file(&page).unwrap();
    fs::remove_file(&marker).unwrap();
    fs::copy(machine.path().join("copy"), &marker).unwrap();
    let process = Process::start(&machine, slot(3), &clock).unwrap();
    assert_eq!(floor(&process), 6000, "the recorded ceiling");
}

#[test]
fn a_closed_page_remembers_every_counter() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let mut process = Process::start(&machine, seconds(), &clock).unwrap();
    clock.set(9000);
    process.renew();
    assert_eq!(process.draw().unwrap(), (9, 0, 0));
    clock.set(7000);
    assert_eq!(process.draw().unwrap(), (7, 1, 0));
    process.close();
    clock.set(6000);
    let process = Process::start(&machine, seconds(), &clock).unwrap();
    assert_eq!(process.draw().unwrap(), (6, 2, 0), "neither 0 nor 1 may be used");
    process.close();
    // Another page is for the same record, and starts above the clock.
    machine.remove_pages();
    clock.set(7900);
    let process = Process::start(&machine, seconds(), &clock).unwrap();
    clock.set(8000);
    assert_eq!(process.draw().unwrap(), (8, 1, 0));
}

#[test]
fn who_kills_a_page_leaves_its_users_what_they_know() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let mut one = Process::start(&machine, slot(3), &clock).unwrap();
    let mut two = Process::start(&machine, slot(3), &clock).unwrap();
    clock.set(5001);
    one.draw().unwrap();
    machine.remove_pages();
    clock.set(5002);
    // However often that is tried, the page's tick does not run away.
    for _ in 0..9 {
        assert!(matches!(one.draw().unwrap_err().stall, Stall::AboveCeiling { .. }));
    }
    assert!(matches!(two.draw().unwrap_err().stall, Stall::AboveCeiling { .. }));
    assert!(!one.durable.is_bound() && !two.durable.is_bound());
    let refused = one.durable.bind(&one.generator, TTL).unwrap_err();
    assert!(is_in_use(&refused), "the other one has not given the page up: {refused:?}");
    // Both have given it up then, and one after the other opens the next one.
    two.durable.bind(&two.generator, TTL).unwrap();
    one.durable.bind(&one.generator, TTL).unwrap();
    assert_eq!(floor(&one), NEVER, "what was issued is known");
    clock.set(5003);
    assert_eq!([one.draw().unwrap(), two.draw().unwrap()], [(5003, 0, 0), (5003, 0, 3)]);
}

#[test]
fn what_a_process_knows_of_its_last_page_ends_when_another_opens_that_page() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let mut one = Process::start(&machine, slot(3), &clock).unwrap();
    let mut two = Process::start(&machine, slot(3), &clock).unwrap();
    clock.set(5001);
    one.draw().unwrap();
    let page = machine.host().page_of(&slot(3));
    let away = page.with_extension("away");
    fs::rename(&page, &away).unwrap();
    assert!(is_in_use(&one.durable.bind(&one.generator, TTL).unwrap_err()), "it is another's, too");
    fs::rename(&away, &page).unwrap();
    two.durable.bind(&two.generator, TTL).unwrap();
    clock.set(5900);
    two.draw().unwrap();
    drop(two);
    fs::remove_file(&page).unwrap();
    one.durable.bind(&one.generator, TTL).unwrap();
    assert!(matches!(one.draw().unwrap_err().stall, Stall::AtFloor { until: 5901 }));
}

fn is_in_use(refused: &Failure) -> bool {
    refused.class == Class::InUse && !refused.fault.parts("holders").is_empty()
}

#[test]
fn who_is_alone_with_a_slot_refuses_others_and_is_refused_beside_them() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let alone = Process::start_as(&machine, slot(3), &clock, Access::Alone).unwrap();
    let refused = Process::start(&machine, slot(3), &clock).err().unwrap();
    assert!(is_in_use(&refused), "{refused:?}");
    alone.close();
    let shared = Process::start(&machine, slot(3), &clock).unwrap();
    assert!(is_in_use(&Process::start_as(&machine, slot(3), &clock, Access::Alone).err().unwrap()));
    drop(shared);
    assert!(Process::start_as(&machine, slot(3), &clock, Access::Alone).is_ok());
}

/// Locks the byte of a slot's file whose holder opens a page for it, as a process that is stopped there does.
fn stopped_opener(machine: &Machine) -> File {
    use std::os::fd::AsRawFd;
    let path = machine.store().path_of(&slot(3));
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut lock = libc::flock64 {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: (1 << 40) + 1,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the call reads and writes `lock` only.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &mut lock) }, 0);
    file
}

#[test]
fn a_process_that_is_stopped_while_it_opens_a_node_keeps_no_other_from_the_open_page() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let first = Process::start(&machine, slot(3), &clock).unwrap();
    let _stopped = stopped_opener(&machine);
    let next = Process::start(&machine, slot(3), &clock).unwrap();
    clock.set(5001);
    assert_eq!([first.draw().unwrap(), next.draw().unwrap()], [(5001, 0, 0), (5001, 0, 3)]);
}

#[test]
fn who_waits_in_vain_for_a_stopped_opener_is_told_so() {
    let (machine, clock) = (Machine::new(None), at(5000));
    Process::start(&machine, slot(3), &clock).unwrap().close();
    let stopped = stopped_opener(&machine);
    let refused = Process::start(&machine, slot(3), &clock).err().unwrap();
    assert_eq!((refused.class, refused.fault.kind), (Class::InUse, "slot-opening"), "{refused:?}");
    drop(stopped);
    Process::start(&machine, slot(3), &clock).unwrap();
}

/// More than a slot's file has blocks for writers. Their page was left long ago.
#[test]
fn many_that_join_at_once_raise_a_low_ceiling_once() {
    let (shared, state, clock) = (memory(), memory(), at(5000));
    let flush = |_: &Path, _: &File| {
        thread::sleep(Duration::from_millis(50));
        Ok(())
    };
    let start = || {
        let host = Directory::with(shared.path(), BootId::now()).unwrap();
        let generator = Generator::recorded(Some(host), slot(3), 0, Box::new(clock.clone()));
        let store = FileStore::with(state.path(), Arc::new(flush))?;
        let durable = Durable::open(&store, &generator, holder(), TTL, Access::Shared)?;
        Ok::<_, Failure>(Process { generator, durable })
    };
    drop(start().unwrap());
    clock.set(50_000);
    let all = thread::scope(|scope| {
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|one| one.join().unwrap().unwrap()).collect::<Vec<_>>()
    });
    clock.set(50_001);
    assert!(all.iter().all(|one| one.draw().is_ok()));
}

/// A directory of slots that was copied, beside its original on one host.
#[test]
fn a_copied_directory_is_another_record() {
    let (machine, copy, clock) = (Machine::new(None), tempfile::tempdir().unwrap(), at(5000));
    let mut original = Process::start(&machine, slot(3), &clock).unwrap();
    for entry in fs::read_dir(machine.path()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    let flush = Arc::new(|_: &Path, _: &File| Ok(()));
    let open = || {
        let generator =
            Generator::recorded(Some(machine.host()), slot(3), 0, Box::new(clock.clone()));
        let store = FileStore::with(copy.path(), flush.clone()).unwrap();
        Durable::open(&store, &generator, holder(), TTL, Access::Shared)
            .map(|durable| Process { generator, durable })
    };
    let refused = open().err().unwrap();
    assert_eq!(refused.fault.kind, "page-record", "{refused:?}");
    clock.set(5900);
    original.renew();
    clock.set(6800);
    original.draw().unwrap();
    drop(original);
    // Nobody uses the original: the copy begins above all that the page has issued, which the copy does not know.
    clock.set(6000);
    let copied = open().unwrap();
    assert!(matches!(copied.draw().unwrap_err().stall, Stall::AtFloor { until: 6801 }));
}

/// Another host that sees the same directory, or another container.
#[test]
fn a_slot_whose_page_is_out_of_reach_is_refused() {
    let (machine, elsewhere, clock) = (Machine::new(None), Machine::new(None), at(5000));
    let here = Process::start(&machine, slot(3), &clock).unwrap();
    let open = || {
        let clock = Box::new(clock.clone());
        let generator = Generator::recorded(Some(elsewhere.host()), slot(3), 0, clock);
        Durable::open(&machine.store(), &generator, holder(), TTL, Access::Shared)
            .map(|durable| Process { generator, durable })
    };
    assert!(is_in_use(&open().err().unwrap()));
    clock.set(5500);
    drop(here);
    let there = open().unwrap();
    assert_eq!(floor(&there), 6000, "nothing is known of the page");
    // Back here the page is still open, but it is not the one that counts any more.
    drop(there);
    clock.set(5400);
    let here = Process::start(&machine, slot(3), &clock).unwrap();
    assert_eq!(floor(&here), 6500);
    here.close();
}

#[test]
fn a_page_belongs_to_one_record() {
    let (machine, other, clock) = (Machine::new(None), Machine::new(None), at(5000));
    let first = Process::start(&machine, slot(3), &clock).unwrap();
    let open = || {
        let clock = Box::new(clock.clone());
        let generator = Generator::recorded(Some(machine.host()), slot(3), 0, clock);
        Durable::open(&other.store(), &generator, holder(), TTL, Access::Shared)
            .map(|durable| Process { generator, durable })
    };
    let refused = open().err().unwrap();
    let text = format!("{refused:?}");
    assert!(text.contains("page-record") && text.contains("(\"pid\", Number("), "{text}");
    clock.set(5001);
    assert_eq!(first.draw().unwrap(), (5001, 0, 0));
    first.close();
    // Nobody uses it: it is replaced, and what was issued stays the floor.
    clock.set(4000);
    let second = open().unwrap();
    assert!(matches!(second.draw().unwrap_err().stall, Stall::AtFloor { until: 5002 }));
}

#[test]
fn a_page_that_a_record_names_but_never_opened_is_not_another_ones() {
    let (machine, other, clock) = (Machine::new(None), Machine::new(None), at(5000));
    Process::start(&machine, slot(3), &clock).unwrap().close();
    machine.remove_pages();
    machine.set_disk_fails(true);
    // It ends between the write of its record and the opening of the page.
    assert!(Process::start(&machine, slot(3), &clock).is_err());
    machine.set_disk_fails(false);
    let generator = Generator::recorded(Some(machine.host()), slot(3), 0, Box::new(clock.clone()));
    let theirs = Durable::open(&other.store(), &generator, holder(), TTL, Access::Shared).unwrap();
    let refused = Process::start(&machine, slot(3), &clock).err().unwrap();
    assert!(format!("{refused:?}").contains("page-record"), "{refused:?}");
    drop(theirs);
}

#[test]
fn a_node_is_used_with_a_record_or_without_never_both() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let plain = || Generator::on_host(machine.host(), slot(3), Box::new(clock.clone()));
    let is_used = |Failure { class, fault }: &Failure, theirs: &str| {
        *class == Class::Conflict && fault.detail("theirs") == Some(&theirs.into())
    };
    let durable = Process::start(&machine, slot(3), &clock).unwrap();
    let refused = plain().err().unwrap();
    assert!(is_used(&refused, "state"), "{refused:?}");
    clock.set(5700);
    durable.draw().unwrap();
    drop(durable);
    // Now it is free; what was issued stays issued, whatever the clock says.
    clock.set(5600);
    let own = plain().unwrap();
    let refused = own.try_reserve(&own.user_page(), &Policies::default(), |_| 1).unwrap_err();
    assert!(matches!(refused.stall, Stall::AtFloor { until: 5701 }), "{refused:?}");
    clock.set(5800);
    own.try_reserve(&own.user_page(), &Policies::default(), |_| 1).unwrap();
    let refused = Process::start(&machine, slot(3), &clock).err().unwrap();
    assert!(is_used(&refused, "plain"), "{refused:?}");
    drop(own);
    clock.set(5100);
    let durable = Process::start(&machine, slot(3), &clock).unwrap();
    // 6000 was recorded; and 5800 was issued without a record.
    assert_eq!(floor(&durable), 6000);
}

#[test]
fn a_plain_page_that_reached_further_than_the_record_is_not_repeated() {
    let (machine, clock) = (Machine::new(None), at(5000));
    Process::start(&machine, slot(3), &clock).unwrap().close();
    clock.set(9000);
    let plain = Generator::on_host(machine.host(), slot(3), Box::new(clock.clone())).unwrap();
    clock.set(9001);
    plain.try_reserve(&plain.user_page(), &Policies::default(), |_| 1).unwrap();
    drop(plain);
    clock.set(7000);
    let durable = Process::start(&machine, slot(3), &clock).unwrap();
    assert!(matches!(durable.draw().unwrap_err().stall, Stall::AtFloor { until: 9002 }));
}

#[test]
fn more_openings_follow_each_other_than_a_page_has_windows() {
    let (machine, clock) = (Machine::new(None), at(5000));
    for n in 0..1100 {
        clock.set(5001 + 2 * n);
        let process = Process::start(&machine, slot(3), &clock).unwrap();
        clock.set(5002 + 2 * n);
        assert_eq!(process.draw().unwrap(), (5002 + 2 * n, 0, 0));
        process.close();
    }
}

#[test]
fn a_reset_of_a_page_waits_for_its_users() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let process = Process::start(&machine, slot(3), &clock).unwrap();
    clock.set(5001);
    process.draw().unwrap();
    let reset = || reset_page(&machine.host(), &slot(3), 0, true).map(drop);
    let refused = reset().unwrap_err();
    assert!(format!("{refused:?}").contains("page-in-use"), "{refused:?}");
    drop(process);
    let refused = reset().unwrap_err();
    assert!(format!("{refused:?}").contains("page-recorded"), "{refused:?}");
    assert_eq!(
        machine.host().lock_unused(&slot(3)).unwrap().unwrap().sequence().highest(),
        5001,
        "as it was"
    );
}

/// A generator on the system's clock, and its keeper.
fn kept(
    shared: &Path,
    flush: impl Fn(&Path, &File) -> std::io::Result<()> + Send + Sync + 'static,
    directory: &Path,
    ttl: Duration,
) -> (Arc<Generator>, Lease) {
    let host = Directory::with(shared, BootId::now()).unwrap();
    let node = Node::new(Layout::NODE, 1, 3).unwrap();
    let generator = Arc::new(Generator::recorded(Some(host), node, 0, Box::new(SystemClock)));
    let store = FileStore::with(directory, Arc::new(flush)).unwrap();
    let lease = Lease::take(&store, &generator, holder(), ttl, Access::Shared).unwrap();
    (generator, lease)
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn a_disk_that_hangs_holds_no_draw_longer_than_max_wait() {
    let (shared, directory) = (memory(), tempfile::tempdir().unwrap());
    let (freeze, frozen) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(false)));
    let (hook, is_frozen) = (freeze.clone(), frozen.clone());
    let flush = move |_: &Path, file: &File| {
        if *is_frozen.lock() {
            drop(hook.lock());
        }
        file.sync_data()
    };
    let ttl = Duration::from_millis(200);
    let (generator, lease) = kept(shared.path(), flush, directory.path(), ttl);
    let held = freeze.lock();
    *frozen.lock() = true;
    let policies = Policies { max_wait: Duration::from_millis(30), ..Policies::default() };
    let limit = Instant::now() + Duration::from_secs(60);
    // The machine may hold this thread up. A draw that is held by the disk, or by what waits for it, always is.
    let (mut refused, mut held_up) = (0, Vec::new());
    while refused < 20 {
        assert!(Instant::now() < limit, "{refused} are refused in time, and not {held_up:?}");
        let start = Instant::now();
        let drawn = reserve(&generator, &generator.user_page(), &policies, 1);
        let took = start.elapsed();
        // Far above maxWait, and far below what the disk takes.
        if took >= Duration::from_millis(400) {
            held_up.push(took);
        } else {
            refused += u32::from(drawn.is_err());
        }
        thread::sleep(Duration::from_millis(5));
    }
    assert!(held_up.len() < 10, "{held_up:?}");
    *frozen.lock() = false;
    drop(held);
    let policies = Policies { max_wait: Duration::from_secs(60), ..Policies::default() };
    reserve(&generator, &generator.user_page(), &policies, 1).unwrap();
    assert_eq!(lease.report().status, Status::Held);
}

#[test]
fn a_stopped_keeper_is_replaced_by_the_next_one() {
    let (shared, directory) = (memory(), tempfile::tempdir().unwrap());
    let ttl = Duration::from_millis(200);
    let (freeze, is_frozen) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(false)));
    let (hook, frozen) = (freeze.clone(), is_frozen.clone());
    let stops = move |_: &Path, file: &File| {
        if *frozen.lock() {
            drop(hook.lock());
        }
        file.sync_data()
    };
    let (_stopped, _lease) = kept(shared.path(), stops, directory.path(), ttl);
    let (generator, _other) =
        kept(shared.path(), |_, file| file.sync_data(), directory.path(), ttl);
    let held = freeze.lock();
    *is_frozen.lock() = true;
    // As long as the disk of a busy machine may take. Without the next one, each draw from then on takes longer.
    let policies = Policies { max_wait: Duration::from_secs(120), ..Policies::default() };
    let end = Instant::now() + 4 * ttl;
    while Instant::now() < end {
        reserve(&generator, &generator.user_page(), &policies, 1).unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    drop(held);
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn many_processes_flush_as_often_as_one() {
    let flushes = |processes: usize| {
        let (shared, directory) = (memory(), tempfile::tempdir().unwrap());
        let (send, flushed) = channel();
        let ttl = Duration::from_millis(300);
        let all: Vec<_> = (0..processes)
            .map(|_| {
                let send = Mutex::new(send.clone());
                let count = move |_: &Path, file: &File| {
                    let _ = send.lock().send(());
                    file.sync_data()
                };
                kept(shared.path(), count, directory.path(), ttl)
            })
            .collect();
        while flushed.try_recv().is_ok() {}
        thread::sleep(10 * ttl);
        drop(all);
        flushed.try_iter().count()
    };
    // Where the machine holds threads up, each finds the ceiling near, and renews: then they are counted again.
    let counts: Vec<_> = (0..5)
        .map(|_| (flushes(1), flushes(16)))
        .inspect(|counts| {
            println!("flushes in 30 thirds of the ttl by one process, by 16: {counts:?}")
        })
        .take_while(|(one, sixteen)| *sixteen > 2 * one + 10)
        .collect();
    assert!(counts.len() < 5, "{counts:?}");
}

#[test]
fn a_record_that_was_replaced_ends_the_lease() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let mut process = Process::start(&machine, slot(3), &clock).unwrap();
    let path = machine.store().path_of(&slot(3));
    fs::remove_file(&path).unwrap();
    let lost = process.durable.renew(7000).unwrap_err();
    let Failure { class: Class::Lost, fault } = lost else { panic!("{lost:?}") };
    assert_eq!(fault.details, [("place", path.as_path().into())]);
    assert_eq!(process.ceiling(), 6000);
}

#[test]
fn the_record_that_counts_is_not_overwritten_by_the_next_one() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let mut process = Process::start(&machine, slot(3), &clock).unwrap();
    let path = machine.store().path_of(&slot(3));
    let mut last = None;
    for n in 1..30 {
        let before = fs::read(&path).unwrap();
        clock.set(5000 + 100 * n);
        process.renew();
        let after = fs::read(&path).unwrap();
        let written: Vec<_> =
            (0..8).filter(|n| before[n * 4096..][..512] != after[n * 4096..][..512]).collect();
        assert!(written.len() == 1 && Some(written[0]) != last, "{written:?} after {last:?}");
        last = Some(written[0]);
    }
}

#[test]
fn a_writer_that_was_stopped_shares_no_block_with_those_who_take_over() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let mut process = Process::start(&machine, slot(3), &clock).unwrap();
    let path = machine.store().path_of(&slot(3));
    // A writer that was stopped inside its write holds its block. There are 8 of them.
    let open = || File::options().read(true).write(true).open(&path).unwrap();
    let blocks = |before: &[u8]| -> Vec<usize> {
        let after = fs::read(&path).unwrap();
        (0..8).filter(|n| before[n * 4096..][..512] != after[n * 4096..][..512]).collect()
    };
    let mut stopped = Vec::new();
    let mut taken = Vec::new();
    for n in 0..8 {
        let before = fs::read(&path).unwrap();
        clock.set(5100 + 100 * n);
        process.renew();
        let written = blocks(&before);
        assert_eq!(written.len(), 1, "a block a write");
        assert!(!taken.contains(&written[0]), "block {} of a stopped writer", written[0]);
        taken.push(written[0]);
        let file = open();
        lock_block(&file, written[0]);
        stopped.push(file);
    }
    let refused = process.durable.renew(9000).unwrap_err();
    assert!(format!("{refused:?}").contains("ResourceBusy"), "{refused:?}");
    assert!(process.ceiling() < 9000);
    drop(stopped.swap_remove(2));
    process.durable.renew(9000).unwrap();
    assert_eq!(process.ceiling(), 9000);
}

/// As a writer of `src/authority/slot.rs` locks its block.
fn lock_block(file: &File, block: usize) {
    use std::os::fd::AsRawFd;
    let lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: (1 << 40) + 16 + block as i64,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and `lock` is what the command reads.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) }, 0);
}

#[test]
fn a_fresh_page_begins_above_the_clock() {
    let (machine, clock) = (Machine::new(None), at(5000));
    let process = Process::start(&machine, slot(3), &clock).unwrap();
    let stall = process.draw().unwrap_err().stall;
    assert!(matches!(stall, Stall::SequenceExhausted { until: 5001 }), "{stall:?}");
    clock.wait(Duration::from_millis(1));
    process.draw().unwrap();
}
