//! Pages of slots that a host leases: one slot for all who lease from one namespace, for as long as it is
//! held.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use snowdrift::core::clock::Clock;
use snowdrift::core::fault::{Class, Failure};
use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::loss::Loss;
use snowdrift::core::node::Node;
use snowdrift::core::sequencer::{NEVER, Stall, Window};
use snowdrift::generator::Generator;
use snowdrift::pages::{BootId, Directory, Page};

use super::{TestClock, directory, draw, duplicates, ids, memory, node, open};
use crate::amount::storm;

const START: i64 = 1_700_000_000_000;
const A: u64 = 0xa;
const B: u64 = 0xb;

fn now() -> Tick {
    Layout::NODE.tick_at(START)
}

/// What a store has confirmed of a slot.
struct Grant {
    namespace: u64,
    owner: u64,
    bounds: Window,
}

fn grant(namespace: u64, floor: Tick, ceiling: Tick) -> Grant {
    Grant { namespace, owner: fastrand::u64(1..), bounds: Window { floor, ceiling } }
}

/// The page of a slot that this host has just taken.
fn lease(
    directory: &Directory,
    node: &Node,
    max_ahead: Tick,
    grant: &Grant,
) -> Result<Page, Failure> {
    let page = directory.pending(node, max_ahead, grant.namespace, grant.owner, None)?;
    page.notes().set_renewed(7, Some(START + 1000), 30);
    page.open_lease(grant.bounds, now() - 1);
    Ok(page)
}

fn wide(namespace: u64) -> Grant {
    grant(namespace, NEVER, now() + 1000)
}

/// Joins the namespace's page, as another process does.
fn join_within(
    directory: &Directory,
    (layout, datacenter): (&Layout, u64),
    namespace: u64,
    max_ahead: Tick,
) -> Result<Option<Page>, Failure> {
    let pages = directory.leased(layout, datacenter, None, &mut Vec::new())?;
    let found = pages.iter().find(|page| page.lease_status().unwrap().namespace == namespace);
    found.map_or(Ok(None), |page| directory.join_leased(page, max_ahead))
}

fn join(directory: &Directory, namespace: u64) -> Option<Page> {
    join_within(directory, (&Layout::NODE, 1), namespace, 0).unwrap()
}

fn leased(page: Page) -> Generator {
    Generator::leased(page, Box::new(TestClock::at(START)))
}

/// How many IDs of the clock's tick can be drawn.
fn drawn(page: Page) -> Result<u64, Stall> {
    draw(&leased(page), 10).map(|block| block.len)
}

#[test]
fn a_page_is_found_by_its_namespace_layout_and_datacenter() {
    let shared = memory();
    let directory = directory(shared.path());
    let page = lease(&directory, &node(3), 0, &wide(A)).unwrap();
    let leasing = page.lease_status().unwrap();
    assert_eq!((leasing.namespace, leasing.loss, leasing.renewals), (A, None, 0));
    assert_eq!((leasing.expires_ms, leasing.renewed_ms), (Some(START + 1000), 7));
    assert_eq!(leasing.renewer, std::process::id());
    let joined = join(&directory, A).unwrap();
    assert_eq!((joined.id(), joined.lease_status()), (page.id(), page.lease_status()));
    assert_eq!(joined.header().node, node(3));
    assert!(join(&directory, B).is_none());
    let other = Layout { epoch_ms: 1, ..Layout::NODE };
    for place in [(&Layout::NODE, 2), (&other, 1)] {
        assert!(join_within(&directory, place, A, 0).unwrap().is_none());
    }
    joined.notes().note_renewal(9, None, 40);
    let leasing = page.lease_status().unwrap();
    assert_eq!((leasing.expires_ms, leasing.renewed_ms, leasing.renewals), (None, 9, 1));
    assert_eq!(leasing.ttl_ms, 40);
}

#[test]
fn processes_with_another_max_ahead_are_refused_while_it_is_used() {
    let shared = memory();
    let directory = directory(shared.path());
    let page = lease(&directory, &node(3), 0, &wide(A)).unwrap();
    let refused = join_within(&directory, (&Layout::NODE, 1), A, 500).err().unwrap();
    let Failure { class: Class::Conflict, fault } = refused else { panic!("{refused:?}") };
    assert_eq!(fault.details[2..], [("theirs", 0i64.into()), ("ours", 500i64.into())]);
    drop(page);
    assert!(join_within(&directory, (&Layout::NODE, 1), A, 500).unwrap().is_none());
}

#[test]
fn ids_lie_within_what_the_store_has_confirmed() {
    let shared = memory();
    let directory = directory(shared.path());
    let lease = |id, floor, ceiling| {
        let page = lease(&directory, &node(id), 0, &grant(A, floor, ceiling)).unwrap();
        drawn(page)
    };
    assert_eq!(lease(1, now() - 1, now()), Ok(10));
    assert_eq!(lease(2, now() - 1, now() - 1), Err(Stall::AboveCeiling { ceiling: now() - 1 }));
    assert_eq!(lease(3, now(), now() + 5), Err(Stall::AtFloor { until: now() + 1 }));
}

#[test]
fn the_last_to_leave_ends_and_removes_it() {
    let shared = memory();
    let directory = directory(shared.path());
    let path = directory.page_of(&node(3));
    let first = lease(&directory, &node(3), 0, &wide(A)).unwrap();
    let second = join(&directory, A).unwrap();
    let third = join(&directory, A).unwrap();
    drop(third);
    assert_eq!(first.leave(), None);
    assert!(path.exists());
    let generator = leased(second);
    let block = draw(&generator, 1).unwrap();
    let second = generator.page();
    assert_eq!(second.leave(), Some(block.tick));
    assert!(!path.exists());
    assert_eq!(second.lease_status().unwrap().loss, Some(Loss::Released));
    assert_eq!(draw(&generator, 1), Err(Stall::AboveCeiling { ceiling: NEVER }));
    assert!(join(&directory, A).is_none());
    let unused = lease(&directory, &node(3), 0, &grant(A, 77, now())).unwrap();
    assert_eq!(unused.leave(), Some(now() - 1), "pages before it may have issued that tick");
    let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["README"]);
}

#[test]
fn one_that_was_lost_is_not_joined_and_makes_way_though_it_is_used() {
    let shared = memory();
    let directory = directory(shared.path());
    let lost = lease(&directory, &node(3), 0, &wide(A)).unwrap();
    let user = join(&directory, A).unwrap();
    lost.end_lease(Loss::Taken);
    assert_eq!(user.lease_status().unwrap().loss, Some(Loss::Taken));
    lost.end_lease(Loss::Released);
    assert_eq!(user.lease_status().unwrap().loss, Some(Loss::Taken), "the first reason stays");
    lost.end_lease(Loss::Reverted);
    assert_eq!(user.lease_status().unwrap().loss, Some(Loss::Reverted), "it was found to be more");
    lost.end_lease(Loss::Restored);
    assert_eq!(user.lease_status().unwrap().loss, Some(Loss::Reverted), "the floor has to rise");
    assert!(join(&directory, A).is_none());
    let next = lease(&directory, &node(3), 0, &grant(A, now() - 5, now() + 5)).unwrap();
    assert_eq!(join(&directory, A).unwrap().id(), next.id());
    // The former ones leave the page of the next alone.
    user.leave();
    lost.leave();
    assert_eq!(join(&directory, A).unwrap().id(), next.id());
    assert!(drawn(user).is_err() && drawn(next).is_ok());
}

/// The processes of the next page were killed.
#[test]
fn who_leaves_a_lost_page_leaves_the_next_one_alone() {
    let shared = memory();
    let directory = directory(shared.path());
    let lost = lease(&directory, &node(3), 0, &wide(A)).unwrap();
    let user = join(&directory, A).unwrap();
    lost.end_lease(Loss::Taken);
    let next = lease(&directory, &node(3), 0, &grant(A, now() - 5, now() + 5)).unwrap().id();
    assert_eq!((user.leave(), lost.leave()), (None, None));
    assert_eq!(join(&directory, A).unwrap().id(), next);
}

#[test]
fn a_page_that_is_lost_while_it_is_looked_up_is_not_joined() {
    for loses_name in [false, true] {
        let shared = memory();
        let directory = directory(shared.path());
        let page = lease(&directory, &node(3), 0, &wide(A)).unwrap();
        let found = directory.leased(&Layout::NODE, 1, None, &mut Vec::new()).unwrap();
        assert_eq!(found.len(), 1);
        match loses_name {
            true => fs::remove_file(directory.page_of(&node(3))).unwrap(),
            false => drop(page.end_lease(Loss::Taken)),
        };
        assert!(directory.join_leased(&found[0], 0).unwrap().is_none());
    }
}

/// Draws all that the clock's tick permits.
fn draw_all(generator: &Generator, drawn: &mut Vec<(u64, u64)>) {
    while let Ok(block) = draw(generator, u64::MAX) {
        drawn.push(ids(generator.node(), &block));
    }
}

/// One namespace draws ahead of the clock, within the tick in which it loses the names of its page, and another one leases
/// the node then: how many IDs are equal.
fn repeated(tick_ms: i64, max_ahead: [Tick; 2], with_directory: bool) -> u64 {
    let layout = Layout { tick_ms, epoch_ms: 0, ..Layout::NODE };
    let node = Node::new(layout, 1, 3).unwrap();
    let (shared, clock) = (memory(), TestClock::at(START));
    let directory = directory(shared.path());
    let tick = || layout.tick_at(clock.now().ms);
    let lease = |namespace, max_ahead| {
        let page =
            directory.pending(&node, max_ahead, namespace, fastrand::u64(1..), None).unwrap();
        page.open_lease(Window { floor: NEVER, ceiling: tick() + 1000 }, tick());
        Generator::leased(page, Box::new(clock.clone()))
    };
    let mut drawn = Vec::new();
    let pass = || clock.0.fetch_add(tick_ms, SeqCst);
    let one = lease(A, max_ahead[0]);
    for _ in 0..3 {
        pass();
        draw_all(&one, &mut drawn);
    }
    if with_directory {
        fs::remove_dir_all(directory.path()).unwrap();
    } else {
        let page = directory.page_of(&node);
        fs::remove_file(page.with_extension("born")).unwrap();
        fs::remove_file(page).unwrap();
    }
    let other = lease(B, max_ahead[1]);
    draw_all(&other, &mut drawn);
    for _ in 0..100 {
        let before = drawn.len();
        pass();
        [&one, &other].into_iter().for_each(|generator| draw_all(generator, &mut drawn));
        assert!(drawn.len() > before, "it goes on in the next tick");
    }
    duplicates(drawn)
}

#[test]
fn a_lease_begins_above_ids_taken_ahead_by_another_namespace_before_the_loss_of_the_directory() {
    for (tick_ms, max_ahead) in [(1, 0), (1, 1), (1, 50), (3000, 1), (3000, 50)] {
        for with_directory in [true, false] {
            let count = repeated(tick_ms, [max_ahead, max_ahead], with_directory);
            assert_eq!(count, 0, "{tick_ms} ms, {max_ahead} ahead, directory: {with_directory}");
        }
    }
}

/// A process that has used the node before knows what it has issued itself, and not what the next one took ahead.
#[test]
fn a_process_that_used_a_node_begins_above_ids_that_another_namespace_took_ahead_later() {
    for (is_opened, is_given_up) in [(false, false), (true, false), (false, true)] {
        let (shared, clock) = (memory(), TestClock::at(START));
        let directory = directory(shared.path());
        let tick = || Layout::NODE.tick_at(clock.now().ms);
        let window = || Window { floor: NEVER, ceiling: tick() + 1000 };
        let lease = |namespace, used| {
            let page =
                directory.pending(&node(3), 50, namespace, fastrand::u64(1..), None).unwrap();
            let generator = Generator::leased(page, Box::new(clock.clone()));
            // As the process's entry for the node does.
            generator.start_above(used);
            generator
        };
        let open = |generator: &Generator| generator.page().open_lease(window(), tick());
        let mut drawn = Vec::new();
        let used = tick();
        clock.0.fetch_add(1, SeqCst);
        let one = lease(A, NEVER);
        open(&one);
        clock.0.fetch_add(3, SeqCst);
        draw_all(&one, &mut drawn);
        fs::remove_dir_all(directory.path()).unwrap();
        let other = lease(B, used);
        if is_opened {
            open(&other);
        }
        if is_given_up {
            other.page().end_lease(Loss::Released);
        }
        // Its page is lost before it issues, and only its marker stays.
        fs::remove_file(directory.page_of(&node(3))).unwrap();
        let next = lease(B, used);
        open(&next);
        for _ in 0..100 {
            draw_all(&next, &mut drawn);
            clock.0.fetch_add(1, SeqCst);
        }
        assert_eq!(duplicates(drawn), 0, "opened: {is_opened}, given up: {is_given_up}");
    }
}

/// Its process is killed and the page deleted. The next process has no lease.
#[test]
fn what_a_lease_took_ahead_is_not_repeated_without_one() {
    let (shared, clock) = (memory(), TestClock::at(START));
    let directory = directory(shared.path());
    let page = lease(&directory, &node(3), 50, &wide(A)).unwrap();
    let user = Generator::leased(page, Box::new(clock.clone()));
    let mut drawn = Vec::new();
    clock.set(START + 1);
    draw_all(&user, &mut drawn);
    let last = drawn.len();
    assert!(last > 1, "ticks ahead of the clock");
    drop(user);
    fs::remove_file(directory.page_of(&node(3))).unwrap();
    let next = open(&directory, node(3), clock.clone()).unwrap();
    for ms in 2..120 {
        clock.set(START + ms);
        draw_all(&next, &mut drawn);
    }
    assert!(drawn.len() > last);
    assert_eq!(duplicates(drawn), 0);
}

/// No page records it. A lease that never runs ahead does not wait out a long tick that no page records, either.
#[test]
fn ids_taken_ahead_by_a_larger_max_ahead_are_repeated_after_the_loss_of_the_directory() {
    assert_eq!(repeated(1, [20, 50], true), 0);
    assert!(repeated(1, [50, 20], true) > 0);
    assert!(repeated(3000, [0, 0], true) > 0);
}

/// The node's next page would begin within a long tick.
#[test]
fn an_unused_page_stays_until_its_last_tick_has_passed() {
    let layout = Layout { tick_ms: 3000, ..Layout::NODE };
    let long = Node::new(layout, 1, 3).unwrap();
    let shared = memory();
    let directory = directory(shared.path());
    let page = lease(&directory, &long, 0, &wide(A)).unwrap();
    let generator = leased(page);
    let last = draw(&generator, 1).unwrap().tick;
    for (now, stays) in [(last - 1, true), (last, true), (last + 1, false)] {
        generator.page().remove_passed(|| now);
        assert_eq!(directory.page_of(&long).exists(), stays, "{now} after {last}");
    }
}

fn is(refused: &Failure, kind: &str) -> bool {
    matches!(refused, Failure { class: Class::Conflict, fault } if fault.kind == kind)
}

#[test]
fn one_of_another_namespace_or_kind_keeps_its_node_while_it_is_used() {
    let shared = memory();
    let directory = directory(shared.path());
    let of_other = lease(&directory, &node(3), 0, &wide(B)).unwrap();
    let refused = lease(&directory, &node(3), 0, &wide(A)).err().unwrap();
    assert!(is(&refused, "page-lease"), "{refused:?}");
    let clock = TestClock::at(START);
    let refused = open(&directory, node(3), clock.clone()).err().unwrap();
    assert!(is(&refused, "page-kind"), "{refused:?}");
    drop(of_other);
    // Nobody uses it: what it has issued stays issued.
    let plain = open(&directory, node(3), clock.clone()).unwrap();
    let refused = lease(&directory, &node(3), 0, &wide(A)).err().unwrap();
    assert!(is(&refused, "page-kind"), "{refused:?}");
    clock.set(START + 1);
    let block = draw(&plain, 1).unwrap();
    drop(plain);
    let page = lease(&directory, &node(3), 0, &wide(A)).unwrap();
    assert_eq!(leased(page).window().floor, block.tick);
}

/// A store that went back, or whose clock is wrong, may confirm a floor of any height.
#[test]
fn the_floor_of_one_namespace_delays_no_other_user_of_the_node() {
    let shared = memory();
    let directory = directory(shared.path());
    let clock = TestClock::at(START);
    let far = now() + 1_000_000_000;
    let forbids = |id| drop(lease(&directory, &node(id), 0, &grant(A, far, far + 5)).unwrap());
    forbids(3);
    let of_other = lease(&directory, &node(3), 0, &wide(B)).unwrap();
    assert_eq!(drawn(of_other), Ok(10));
    forbids(4);
    let plain = open(&directory, node(4), clock.clone()).unwrap();
    clock.set(START + 1);
    assert!(draw(&plain, 1).is_ok());
}

#[test]
fn one_that_was_left_by_killed_processes_is_joined_where_it_stopped() {
    let shared = memory();
    let directory = directory(shared.path());
    let page = lease(&directory, &node(3), 0, &wide(A)).unwrap();
    let one = draw(&leased(page), 10).unwrap();
    let page = join(&directory, A).unwrap();
    let next = draw(&leased(page), 10).unwrap();
    assert_eq!((next.tick, next.first), (one.tick, one.first + 10));
    // A used one comes first, wherever its worker ID stands.
    let used = lease(&directory, &node(5), 0, &wide(A)).unwrap();
    assert_eq!(join(&directory, A).unwrap().id(), used.id());
}

#[test]
fn one_of_another_boot_or_an_unknown_one_is_not_trusted() {
    let shared = memory();
    let with = |boot| Directory::with(shared.path(), BootId(boot)).unwrap();
    drop(lease(&with([1; 16]), &node(3), 0, &wide(A)).unwrap());
    assert!(join(&with([2; 16]), A).is_none());
    assert!(join(&with([0; 16]), A).is_none(), "whether it is of this boot is not known");
    assert!(join(&with([1; 16]), A).is_some());
    let used = lease(&with([0; 16]), &node(4), 0, &wide(B)).unwrap();
    assert!(join(&with([0; 16]), B).is_some(), "a process of this boot uses it");
    drop(used);
    assert!(join(&with([0; 16]), B).is_none());
    let page = lease(&with([2; 16]), &node(3), 0, &wide(A)).unwrap();
    assert_eq!(page.header().boot_id, BootId([2; 16]));
}

/// A damaged namespace has a floor ten years ahead.
#[test]
fn a_floor_of_one_namespace_is_not_taken_for_issued_by_another() {
    for is_released in [false, true] {
        let shared = memory();
        let directory = directory(shared.path());
        let future = now() + 10 * 365 * 86_400_000;
        let page = lease(&directory, &node(3), 0, &grant(A, future, future + 1000)).unwrap();
        let told = is_released.then(|| page.leave()).flatten();
        assert_eq!(told, is_released.then_some(future), "its own namespace keeps the floor");
        drop(page);
        let other = lease(&directory, &node(3), 0, &wide(B)).unwrap();
        let last = lease(&directory, &node(4), 0, &wide(B)).unwrap().leave().unwrap();
        assert!(last <= now(), "{last}");
        assert_eq!(drawn(other), Ok(10));
        drop(lease(&directory, &node(3), 0, &wide(B)).unwrap());
        let clock = TestClock::at(START + 1);
        let plain = open(&directory, node(3), clock.clone()).unwrap();
        clock.set(START + 2);
        draw(&plain, 1).unwrap();
    }
}

#[test]
fn nothing_is_issued_from_one_that_has_lost_its_name() {
    let shared = memory();
    let directory = directory(shared.path());
    let page = lease(&directory, &node(3), 0, &wide(A)).unwrap();
    let user = join(&directory, A).unwrap();
    let path = page.path().unwrap().to_owned();
    assert_eq!(drawn(page), Ok(10));
    fs::remove_file(path).unwrap();
    assert!(join(&directory, A).is_none());
    let tick = user.end_lease(Loss::Released);
    assert_eq!(tick, Some(now()), "the one that ends it learns what to release");
    assert_eq!(user.end_lease(Loss::Released), None);
    let other = lease(&directory, &node(4), 0, &wide(A)).unwrap();
    fs::remove_file(other.path().unwrap()).unwrap();
    assert_eq!(drawn(other), Err(Stall::AboveCeiling { ceiling: NEVER }));
}

/// A store's slots: by worker ID the ceiling, and whether it is held.
#[derive(Default)]
struct Slots(Mutex<[(Tick, bool); 4]>);

impl Slots {
    fn acquire(&self, ceiling: Tick) -> Option<(u64, Tick)> {
        let mut slots = self.0.lock().unwrap();
        let free = (0..4).filter(|&id| !slots[id].1).min_by_key(|&id| slots[id].0)?;
        let floor = slots[free].0;
        slots[free] = (floor.max(ceiling), true);
        Some((free as u64, floor))
    }

    fn release(&self, worker_id: u64, last: Tick) {
        self.0.lock().unwrap()[worker_id as usize] = (last, false);
    }
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn all_that_come_and_go_at_one_time_issue_no_id_twice() {
    let shared = memory();
    let directory = directory(shared.path());
    let slots = Slots::default();
    let clock = TestClock::at(START);
    let lives = AtomicUsize::new(0);
    let end = Instant::now() + storm();
    let limit = end + Duration::from_secs(60);
    let is_enough = || lives.load(SeqCst) > 100 || Instant::now() >= limit;
    let live = || {
        let mut issued = Vec::new();
        while Instant::now() < end || !is_enough() {
            let page = match join(&directory, A) {
                Some(page) => page,
                None => {
                    let Some(lock) = directory.lock_leases(A.into()).unwrap() else { continue };
                    match join(&directory, A) {
                        Some(page) => page,
                        None => {
                            let ceiling = Layout::NODE.tick_at(clock.0.load(SeqCst)) + 20;
                            let Some((id, floor)) = slots.acquire(ceiling) else { continue };
                            let floor = floor.max(NEVER);
                            let page = lease(&directory, &node(id), 0, &grant(A, floor, ceiling));
                            drop(lock);
                            page.unwrap()
                        }
                    }
                }
            };
            let node = page.header().node;
            let generator = Generator::leased(page, Box::new(clock.clone()));
            for _ in 0..fastrand::usize(0..20) {
                if let Ok(block) = draw(&generator, fastrand::u64(1..30)) {
                    issued.push(ids(&node, &block));
                }
                clock.0.fetch_add(fastrand::i64(-1..=2), SeqCst);
            }
            let page = generator.page();
            lives.fetch_add(1, SeqCst);
            // One in eight is killed.
            if fastrand::u8(0..8) > 0
                && let Some(last) = page.leave()
            {
                slots.release(node.worker_id(), last);
            }
        }
        issued
    };
    let issued: Vec<_> = thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(live)).collect();
        all.into_iter().flat_map(|one| one.join().unwrap()).collect()
    });
    println!("{} lives, {} blocks", lives.load(SeqCst), issued.len());
    assert!(lives.load(SeqCst) > 100 && issued.len() > 100);
    assert_eq!(duplicates(issued), 0);
}
