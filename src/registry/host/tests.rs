//! What the protocol relies on, with several processes of one host: each has entries and open files of its own.

mod directory;
mod driven;
mod threads;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;

use tempfile::TempDir;

use super::super::entry::played::Process;
use super::super::request::{By, Request, Scope};
use super::*;
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::Failure;
use crate::core::layout::Layout;
use crate::core::node::Node;
use crate::core::sequencer::NEVER;
use crate::generator::Policies;

const DATACENTER: u64 = 3;
const NAMESPACE: Token = Token(0x1234_5678_9abc_def0);
/// The longest that a page is open in these tests, in ticks.
const LONG: Tick = 600_000;

/// A request for any slot of a host.
fn request_in(layout: Layout, memory: &Path) -> Request {
    Request {
        layout,
        datacenter_id: DATACENTER,
        worker_id: None,
        policies: Policies::default(),
        max_ahead_ms: 0,
        scope: Scope::Host,
        shared: Some(memory.to_owned()),
        by: By::Lease,
    }
}

fn request(memory: &Path) -> Request {
    request_in(Layout::NODE, memory)
}

/// A lease of a process of its own.
struct One {
    process: Process,
    host: HostPages,
}

impl One {
    fn with(request: Request) -> One {
        let host = HostPages::of(request, Arc::new(|_| true)).unwrap();
        One { process: Process::default(), host }
    }

    fn of(memory: &TempDir) -> One {
        One::with(request(memory.path()))
    }

    fn create(&mut self, worker: u64, owner: u64) -> Option<HostPage> {
        let tenure = Tenure { namespace: NAMESPACE, owner: Token(owner), worker };
        let word = Word { known: Token(0), pending: Token(owner + 1) };
        self.process.run(|| self.host.create(tenure, word))
    }

    /// Makes a page, and opens it.
    fn take(&mut self, worker: u64, owner: u64) -> HostPage {
        let page = self.create(worker, owner).unwrap();
        self.host.open(&page, window());
        assert_eq!(self.host.phase(&page), Phase::Open);
        page
    }

    fn join(&mut self, page: &HostPage) -> bool {
        self.process.run(|| self.host.join(page))
    }

    /// Joins the only page of the host.
    fn joined(&mut self) -> Option<HostPage> {
        let [page] = self.host.pages().try_into().ok()?;
        self.join(&page).then_some(page)
    }

    fn leave(&mut self, page: &HostPage) -> bool {
        self.process.run(|| self.host.leave(page))
    }

    /// The ticks of so many IDs from a page.
    fn draw(&self, page: &HostPage) -> Option<Tick> {
        let share = page.share(&self.host.request)?;
        let mut refused = 0;
        loop {
            match share.try_reserve_next(|_| 1) {
                Ok(reserved) => return Some(reserved.block.tick),
                // It may have been opened within this tick.
                Err(refusal) if refusal.retry_after.is_some() && refused < 100 => refused += 1,
                Err(_) => return None,
            }
            thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

fn memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

fn now() -> Tick {
    Layout::NODE.tick_at(SystemClock.now().ms)
}

fn window() -> Window {
    Window { floor: 5, ceiling: now() + LONG }
}

fn directory_of(memory: &TempDir) -> std::path::PathBuf {
    fs::read_dir(memory.path()).unwrap().next().unwrap().unwrap().path()
}

fn files(memory: &TempDir, extension: &str) -> Vec<std::path::PathBuf> {
    let found = fs::read_dir(directory_of(memory)).unwrap().map(|entry| entry.unwrap().path());
    found.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

#[test]
fn another_thread_can_have_the_pages_of_a_lease() {
    fn is_send<T: Send>() {}
    is_send::<(HostPages, HostPage)>();
}

#[test]
fn random_numbers_differ_and_choices_are_in_range() {
    let memory = memory();
    let mut host = One::of(&memory).host;
    let mut drawn: Vec<u64> = (0..1000).map(|_| host.random()).collect();
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!((drawn.len(), drawn[0] > 0), (1000, true));
    let chosen: Vec<usize> = (0..1000).map(|_| host.choose(3)).collect();
    assert!((0..3).all(|one| chosen.contains(&one)) && chosen.iter().all(|one| *one < 3));
    assert_eq!((host.choose(1), host.choose(0)), (0, 0));
}

#[test]
fn a_page_is_pending_then_open_and_all_processes_see_the_same() {
    let memory = memory();
    let [mut one, mut other] = [One::of(&memory), One::of(&memory)];
    assert_eq!(one.host.pages(), []);
    let page = one.create(7, 70).unwrap();
    let seen = other.host.pages().pop().unwrap();
    assert!(seen == page && one.host.pages() == [seen.clone()]);
    let tenure = Tenure { namespace: NAMESPACE, owner: Token(70), worker: 7 };
    let word = Word { known: Token(0), pending: Token(71) };
    let look = |expected: Phase, window: Window, renewal: Renewal| {
        for (host, page) in [(&one.host, &page), (&other.host, &seen)] {
            assert_eq!((host.tenure(page), host.phase(page)), (tenure, expected));
            assert_eq!((host.window(page), host.renewal(page)), (window, renewal));
        }
    };
    look(Phase::Pending, Window::CLOSED, Renewal::default());
    assert_eq!([one.host.word(&page), other.host.word(&seen)], [word; 2]);
    assert_eq!(one.draw(&page), None, "it issues nothing");

    // The word is one atomic, which all share.
    let known = Word { known: Token(71), pending: Token(0) };
    assert!(one.host.swap(&page, word, known));
    assert!(!other.host.swap(&seen, word, Word::default()));
    assert_eq!([one.host.word(&page), other.host.word(&seen)], [known; 2]);

    let renewal = Renewal { at: 12, expires: 34_000_000_000_000, ttl: 56 };
    one.host.renew(&page, renewal);
    let window = window();
    one.host.open(&page, window);
    let [one_host, other_host] = [&one.host, &other.host];
    assert_eq!(one_host.renewal(&page), renewal);
    assert_eq!([one_host.phase(&page), other_host.phase(&seen)], [Phase::Open; 2]);
    assert_eq!([one_host.window(&page), other_host.window(&seen)], [window; 2]);

    assert!(other.join(&seen));
    assert!([one.draw(&page), other.draw(&seen)].iter().all(Option::is_some));
    let higher = window.ceiling + 100;
    other.host.raise(&seen, higher);
    one.host.raise(&page, window.ceiling + 50);
    let raised = Window { ceiling: higher, ..window };
    assert_eq!([one.host.window(&page), other.host.window(&seen)], [raised; 2]);
    let later = Renewal { at: 13, expires: 35_000_000_000_000, ttl: 57 };
    other.host.renew(&seen, later);
    assert_eq!(one.host.renewal(&page), later);
    let counted = page.page().lease_status().map(|leasing| leasing.renewals);
    assert_eq!(counted, Some(1), "a take is no renewal");
}

#[test]
fn pages_are_those_of_the_layout_and_datacenter_in_order() {
    let memory = memory();
    let mut one = One::of(&memory);
    let workers = [9, 2, 31, 0];
    let pages: Vec<HostPage> =
        workers.iter().map(|worker| one.take(*worker, 100 + worker)).collect();
    let mut elsewhere = One::with(Request { datacenter_id: 4, ..request(memory.path()) });
    let other = elsewhere.take(1, 1);
    let found = |host: &mut HostPages| -> Vec<u64> {
        host.pages().iter().map(|page| page.page().header().node.worker_id()).collect()
    };
    assert_eq!(found(&mut One::of(&memory).host), [0, 2, 9, 31]);
    assert_eq!(found(&mut elsewhere.host), [1]);
    one.host.end(&pages[0], Loss::Taken);
    fs::write(pages[1].page().path().unwrap(), "no page").unwrap();
    assert_eq!(found(&mut one.host), [0, 31]);
    assert_eq!(elsewhere.host.phase(&other), Phase::Open);
}

#[test]
fn the_next_page_of_a_worker_id_is_seen_by_one_that_saw_the_last() {
    let memory = memory();
    let [mut one, mut other] = [One::of(&memory), One::of(&memory)];
    let last = one.take(1, 10);
    assert_eq!(other.host.pages(), std::slice::from_ref(&last));
    one.host.end(&last, Loss::Released);
    one.leave(&last);
    let next = one.take(1, 11);
    assert_eq!(other.host.pages(), [next]);
}

#[test]
fn of_two_that_end_a_page_the_first_has_its_last_tick() {
    let memory = memory();
    let [mut one, mut other] = [One::of(&memory), One::of(&memory)];
    let page = one.take(1, 10);
    let seen = other.joined().unwrap();
    let issued = one.draw(&page).unwrap().max(other.draw(&seen).unwrap());
    let last = other.host.end(&seen, Loss::Taken).unwrap();
    assert!((issued..=now()).contains(&last), "{last} after {issued}");
    assert_eq!(one.host.end(&page, Loss::Released), None);
    assert_eq!([one.host.loss(&page), other.host.loss(&seen)], [Loss::Taken; 2]);
    assert_eq!(one.host.end(&page, Loss::Reverted), None);
    assert_eq!(other.host.loss(&seen), Loss::Reverted, "the floor has to rise");
    assert_eq!([one.host.phase(&page), other.host.phase(&seen)], [Phase::Ended; 2]);
    assert_eq!([one.draw(&page), other.draw(&seen)], [None; 2]);
    assert_eq!(one.host.pages(), []);
    one.host.open(&page, window());
    one.host.raise(&page, now() + 2 * LONG);
    assert_eq!((one.host.phase(&page), one.draw(&page)), (Phase::Ended, None));

    // At least its floor, and above what was issued before, also where it has issued nothing.
    let page = one.create(2, 20).unwrap();
    one.host.open(&page, Window { floor: now() + 50, ceiling: now() + LONG });
    assert!(one.host.end(&page, Loss::Reverted) >= Some(now()));
    assert_eq!(one.host.loss(&page), Loss::Reverted);
    let page = one.create(3, 30).unwrap();
    assert!(one.host.end(&page, Loss::Released).is_some(), "a pending one, too");
    assert_eq!(one.host.phase(&page), Phase::Ended);
}

#[test]
fn of_many_that_end_a_page_at_once_one_has_its_last_tick() {
    let memory = memory();
    let mut one = One::of(&memory);
    for round in 0..20 {
        let page = one.take(round, 100 + round);
        let barrier = Barrier::new(3);
        let ends = thread::scope(|scope| {
            let end = || {
                let mut other = One::of(&memory);
                let seen = other.joined().unwrap();
                barrier.wait();
                other.host.end(&seen, Loss::Taken)
            };
            let ends = [(); 3].map(|()| scope.spawn(end));
            ends.map(|end| end.join().unwrap())
        });
        assert_eq!(ends.iter().flatten().count(), 1, "{ends:?}");
        assert_eq!(one.host.end(&page, Loss::Released), None);
        one.leave(&page);
    }
}

#[test]
fn the_last_one_to_leave_keeps_others_away_until_it_leaves_again() {
    let memory = memory();
    let [mut one, mut other, mut third] = [(); 3].map(|()| One::of(&memory));
    let page = one.take(1, 10);
    let seen = other.joined().unwrap();
    assert!(!one.leave(&page), "the other one uses it");
    assert!(!one.leave(&page), "left twice");
    assert!(page.share(&one.host.request).is_none() && other.draw(&seen).is_some());
    let again = one.joined().unwrap();
    assert!(!one.leave(&again) && other.leave(&seen));
    let found = third.host.pages().pop().unwrap();
    assert_eq!(third.host.phase(&found), Phase::Open);
    assert!(!third.join(&found) && !third.host.lock(), "its line is being freed");
    let issued = other.host.end(&seen, Loss::Released).unwrap();
    assert!(!other.leave(&seen));
    other.host.unlock();
    assert!(third.host.lock());
    assert_eq!(third.host.pages(), []);
    let next = third.create(1, 11).unwrap();
    third.host.open(&next, Window { floor: 0, ceiling: now() + LONG });
    assert!(third.draw(&next) > Some(issued));
}

#[test]
fn a_page_that_was_left_and_has_not_ended_is_joined_again() {
    let memory = memory();
    let [mut one, mut other] = [One::of(&memory), One::of(&memory)];
    let page = one.take(1, 10);
    assert!(one.leave(&page) && other.joined().is_none());
    assert!(!one.leave(&page));
    let seen = other.joined().unwrap();
    assert!(other.draw(&seen).is_some());
    // Where nobody leaves it a second time, its handle is dropped.
    assert!(other.leave(&seen) && one.joined().is_none());
    drop(seen);
    let page = one.joined().unwrap();
    // A process that dies leaves it open.
    drop((one, page));
    assert!(other.joined().is_some());
}

#[test]
fn two_leases_of_one_process_share_its_generator() {
    let memory = memory();
    let mut one = One::of(&memory);
    let page = one.take(1, 10);
    let mut two = One { process: one.process, host: One::of(&memory).host };
    let seen = two.joined().unwrap();
    let generators = [page.generator(), seen.generator()].map(Option::unwrap);
    assert!(Arc::ptr_eq(&generators[0], &generators[1]));
    assert!(two.draw(&seen).is_some());
    assert!(!two.process.run(|| one.host.leave(&page)));
    assert!(two.draw(&seen).is_some());
    assert!(two.leave(&seen));
}

#[test]
fn whoever_joins_while_another_leaves_keeps_it_from_being_the_last() {
    let memory = memory();
    let mut lasts = 0;
    for round in 0..40 {
        let mut one = One::of(&memory);
        let page = one.take(round % 32, 100 + round);
        let barrier = Barrier::new(2);
        let (is_last, is_joined) = thread::scope(|scope| {
            let joiner = scope.spawn(|| {
                let mut other = One::of(&memory);
                let found = other.host.pages().pop().unwrap();
                barrier.wait();
                let is_joined = other.join(&found);
                let can_draw = is_joined && other.draw(&found).is_some();
                barrier.wait();
                assert_eq!(is_joined, can_draw);
                is_joined
            });
            barrier.wait();
            let is_last = one.leave(&page);
            barrier.wait();
            (is_last, joiner.join().unwrap())
        });
        assert!(is_last != is_joined, "either the page has a user, or its line is freed");
        lasts += u32::from(is_last);
        one.host.end(&page, Loss::Released);
        one.leave(&page);
    }
    println!("the last one left first {lasts} times of 40");
}

#[test]
fn of_two_that_leave_at_once_one_is_the_last() {
    let memory = memory();
    for round in 0..40 {
        let mut one = One::of(&memory);
        let page = one.take(round % 32, 100 + round);
        let barrier = Barrier::new(2);
        let (first, second) = thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut other = One::of(&memory);
                let seen = other.joined().unwrap();
                barrier.wait();
                let is_last = other.leave(&seen);
                barrier.wait();
                is_last
            });
            barrier.wait();
            let is_last = one.leave(&page);
            barrier.wait();
            (is_last, other.join().unwrap())
        });
        assert!(first != second);
        one.host.end(&page, Loss::Released);
        one.leave(&page);
    }
}

#[test]
fn a_pending_page_of_a_stopped_process_ends_and_never_begins() {
    let memory = memory();
    let [mut stopped, mut one] = [One::of(&memory), One::of(&memory)];
    let pending = stopped.create(1, 10).unwrap();
    let next = one.create(1, 20).unwrap();
    assert_eq!(stopped.host.phase(&pending), Phase::Ended);
    stopped.host.open(&pending, window());
    assert_eq!((stopped.host.phase(&pending), stopped.draw(&pending)), (Phase::Ended, None));
    assert_eq!(stopped.host.window(&pending), Window::CLOSED);
    one.host.open(&next, window());
    assert_eq!(one.host.phase(&next), Phase::Open);
    assert!(stopped.host.pages().iter().eq([&next]));
    // It leaves, and the next page stays as it is.
    assert_eq!(stopped.host.end(&pending, Loss::Released), None);
    stopped.leave(&pending);
    assert!(one.draw(&next).is_some() && one.host.phase(&next) == Phase::Open);
}

#[test]
fn a_page_of_the_same_worker_id_ends_and_the_next_one_begins_above_it() {
    let memory = memory();
    let [mut one, mut other] = [One::of(&memory), One::of(&memory)];
    let page = one.take(1, 10);
    let issued = one.draw(&page).unwrap();
    let next = other.create(1, 20).unwrap();
    assert_eq!((one.host.phase(&page), one.draw(&page)), (Phase::Ended, None));
    assert_eq!(one.host.loss(&page), Loss::Released);
    assert_eq!(one.host.end(&page, Loss::Released), None, "the next page takes its line");
    other.host.open(&next, Window { floor: NEVER, ceiling: now() + LONG });
    assert!(other.host.window(&next).floor >= issued);
    assert!(other.draw(&next) > Some(issued));
    // As far as an earlier page of the node has come that this one has not seen.
    let far = now() + 5_000;
    let rules = crate::core::sequence::Rules::default();
    next.page().sequence().reserve(&rules, &mut || far, |_| 1).unwrap();
    for owner in [30, 40] {
        let page = one.create(1, owner).unwrap();
        if owner == 40 {
            one.host.open(&page, Window { floor: NEVER, ceiling: now() + LONG });
            assert!(one.host.window(&page).floor >= far);
        }
        one.host.end(&page, Loss::Released);
        one.leave(&page);
    }
}

#[test]
fn a_worker_id_that_another_lease_of_the_process_takes_is_of_no_use() {
    let memory = memory();
    let mut one = One::of(&memory);
    let page = one.create(1, 10).unwrap();
    let mut two = One { process: one.process, host: One::of(&memory).host };
    assert!(two.create(1, 20).is_none());
    assert!(two.host.take_failure().is_none() && two.host.take_conflict().is_none());
    assert_eq!(one.host.phase(&page), Phase::Pending, "it goes on");
    assert!(two.create(2, 20).is_some());
    one.host.end(&page, Loss::Released);
    assert!(two.create(1, 30).is_some());
}

#[test]
fn a_worker_id_that_the_process_has_open_in_another_way_is_a_conflict() {
    let memory = memory();
    let mut one = One::of(&memory);
    let alone = Request {
        worker_id: Some(1),
        scope: Scope::Process,
        by: By::Free,
        ..request(memory.path())
    };
    let _open = one.process.run(|| alone.open()).unwrap().unwrap();
    assert!(one.create(1, 10).is_none());
    let kind = |failure: Option<Failure>| failure.map(|failure| failure.fault.kind);
    assert_eq!(kind(one.host.take_conflict()), Some("open-in-scope"));
    assert_eq!((kind(one.host.take_failure()), kind(one.host.take_conflict())), (None, None));
    // Another process's plain page, which is in use.
    let mut other = One::of(&memory);
    let plain = Request { worker_id: Some(2), by: By::Free, ..request(memory.path()) };
    let _plain = other.process.run(|| plain.open()).unwrap().unwrap();
    assert!(one.create(2, 10).is_none());
    assert_eq!(kind(one.host.take_conflict()), Some("page-kind"));
    // What was in the way of one is no reason of anything once another one is open.
    assert!(one.create(2, 10).is_none());
    one.take(3, 10);
    assert_eq!(kind(one.host.take_conflict()), None);
    // A page that this process cannot use, since it has the node open alone.
    let mut third = One::of(&memory);
    let page = third.take(1, 30);
    let found = one.host.pages().into_iter().find(|found| *found == page).unwrap();
    assert!(!one.join(&found) && third.draw(&page).is_some());
}

#[test]
fn the_lock_is_one_process_s_until_it_leaves_it() {
    let memory = memory();
    let [mut one, mut other] = [One::of(&memory), One::of(&memory)];
    let mut elsewhere = One::with(Request { datacenter_id: 4, ..request(memory.path()) });
    assert!(one.host.lock() && one.host.lock());
    assert!(!other.host.lock() && elsewhere.host.lock());
    // It cannot be taken away. So another one goes on without it, until it has done.
    other.host.break_lock();
    assert!(other.host.lock() && other.host.lock());
    other.host.unlock();
    assert!(!other.host.lock());
    one.host.unlock();
    assert!(other.host.lock() && !one.host.lock());
    drop(other);
    assert!(one.host.lock(), "a process that dies leaves it");
}

#[test]
fn a_host_that_fails_makes_no_page_until_it_works_again() {
    let memory = memory();
    let mut one = One::of(&memory);
    let kind = |host: &mut HostPages| host.take_failure().map(|failure| failure.fault.kind);
    let directory = directory_of(&memory);
    let set_mode =
        |mode| fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o777);
    assert!(one.host.lock(), "it does not wait for what never comes");
    assert!(one.create(1, 10).is_none());
    assert_eq!((kind(&mut one.host), kind(&mut one.host)), (Some("directory-writable"), None));
    assert!(one.create(1, 10).is_none(), "it fails by itself, too");
    assert_eq!(kind(&mut one.host), Some("directory-writable"));
    one.host.unlock();
    assert!(one.host.lock());
    set_mode(0o711);
    // The next search begins with the lock.
    one.host.unlock();
    assert!(one.host.lock());
    assert!(one.create(1, 10).is_some() && kind(&mut one.host).is_none());

    // A page that cannot be read may be one to join. (A damaged one is not.)
    let node = Node::new(Layout::NODE, DATACENTER, 9).unwrap();
    let unreadable = one.host.directory.as_ref().unwrap().page_of(&node);
    let socket = UnixListener::bind(&unreadable).unwrap();
    assert_eq!(one.host.pages(), []);
    assert!(one.create(2, 20).is_none(), "it would be a second slot of this host");
    assert_eq!(kind(&mut one.host), Some("page-io"));
    drop(socket);
    fs::remove_file(&unreadable).unwrap();
    assert_eq!(one.host.pages().len(), 1);
    assert!(one.create(2, 20).is_some());
}

#[test]
fn a_damaged_page_keeps_its_worker_id_from_leases_and_no_other() {
    let memory = memory();
    let mut one = One::of(&memory);
    let node = Node::new(Layout::NODE, DATACENTER, 1).unwrap();
    let damaged = one.host.directory.as_ref().unwrap().page_of(&node);
    for (n, bytes) in [vec![0; 4096], b"short".to_vec()].into_iter().enumerate() {
        fs::write(&damaged, &bytes).unwrap();
        assert_eq!((one.host.lock(), one.host.pages().len()), (true, n));
        assert!(one.create(1, 10).is_none());
        assert!(one.host.take_conflict().is_some() && one.host.take_failure().is_none());
        assert!(one.create(2 + n as u64, 20).is_some());
        assert_eq!(fs::read(&damaged).unwrap(), bytes, "it stays as it is");
    }
}

#[test]
fn a_page_that_has_lost_its_name_has_ended() {
    for lost in ["page", "born", "renamed", "directory"] {
        let memory = memory();
        let [mut one, mut other] = [One::of(&memory), One::of(&memory)];
        let page = one.take(1, 10);
        let seen = other.joined().unwrap();
        let issued = one.draw(&page).unwrap();
        match lost {
            "directory" => fs::rename(directory_of(&memory), memory.path().join("moved")).unwrap(),
            "renamed" => {
                let path = &files(&memory, "page")[0];
                fs::rename(path, path.with_extension("away")).unwrap();
            }
            _ => fs::remove_file(&files(&memory, lost)[0]).unwrap(),
        }
        assert_eq!([one.host.phase(&page), other.host.phase(&seen)], [Phase::Ended; 2], "{lost}");
        assert_eq!(one.host.loss(&page), Loss::Released);
        assert_eq!(other.host.pages(), [], "{lost}");
        // The first one frees its line, above what was issued.
        assert!(one.host.end(&page, one.host.loss(&page)) >= Some(issued));
        assert_eq!(other.host.end(&seen, Loss::Released), None);
        let next = other.create(1, 20).unwrap();
        other.host.open(&next, Window { floor: NEVER, ceiling: now() + LONG });
        assert_eq!((one.draw(&page), other.draw(&seen)), (None, None));
        assert!(other.draw(&next) > Some(issued), "{lost}");
        one.leave(&page);
        other.leave(&seen);
        assert_eq!(other.host.phase(&next), Phase::Open, "{lost}");
    }
}

#[test]
fn a_page_that_loses_its_name_before_it_opens_is_freed_by_its_own_process() {
    let memory = memory();
    let mut one = One::of(&memory);
    let page = one.create(1, 10).unwrap();
    fs::remove_file(&files(&memory, "page")[0]).unwrap();
    one.host.open(&page, window());
    assert_eq!((one.host.phase(&page), one.draw(&page)), (Phase::Ended, None));
    assert!(one.host.end(&page, Loss::Released).is_some());
}

#[test]
fn what_a_process_cannot_use_it_does_not_join() {
    let memory = memory();
    let mut one = One::of(&memory);
    let page = one.take(1, 10);
    let join = |mut other: One| {
        let found = other.host.pages().pop().unwrap();
        let is_joined = other.join(&found);
        let failure = other.host.take_failure().map(|failure| failure.fault.kind);
        (is_joined, failure, found.share(&other.host.request).is_some())
    };
    let unusable = HostPages::of(request(memory.path()), Arc::new(|_| false)).unwrap();
    let unusable = One { process: Process::default(), host: unusable };
    assert_eq!(join(unusable), (false, None, false));
    // It would need another slot for the same host.
    let ahead = One::with(Request { max_ahead_ms: 5, ..request(memory.path()) });
    assert_eq!(join(ahead), (false, Some("page-max-ahead"), false));
    let found = One::of(&memory).host.pages().pop().unwrap();
    one.host.end(&page, Loss::Taken);
    let mut other = One::of(&memory);
    assert!(!other.join(&found), "it has ended");
    one.leave(&page);
    assert!(!other.join(&found), "it is gone");
}

#[test]
fn a_slot_of_the_process_alone_is_seen_by_nobody() {
    let memory = memory();
    let alone = || Request { scope: Scope::Process, ..request(memory.path()) };
    let mut one = One::with(alone());
    assert!(one.host.directory().is_none() && one.host.lock());
    let page = one.create(1, 10).unwrap();
    assert_eq!((one.host.phase(&page), one.host.window(&page)), (Phase::Pending, Window::CLOSED));
    let window = window();
    one.host.open(&page, window);
    assert_eq!((one.host.phase(&page), one.host.window(&page)), (Phase::Open, window));
    assert_eq!((one.host.pages(), fs::read_dir(memory.path()).unwrap().count()), (vec![], 0));
    let mut two = One { process: one.process, host: One::with(alone()).host };
    assert!(two.host.lock() && two.create(1, 20).is_none());
    assert!(two.host.take_conflict().is_none(), "the other lease has just taken it");
    let tenure = Tenure { namespace: Token(1), owner: Token(20), worker: 1 };
    assert!(two.process.run(|| two.host.create(tenure, Word::default())).is_none());
    let conflict = two.host.take_conflict().map(|failure| failure.fault.kind);
    assert_eq!(conflict, Some("open-already"), "by another namespace");
    let second = two.create(2, 20).unwrap();
    two.host.open(&second, window);
    let issued = two.draw(&second).unwrap();
    // The application's own share counts.
    let share = second.share(&two.host.request);
    assert!(!two.leave(&second));
    drop((share, second));
    let second = two.create(2, 30).unwrap();
    two.host.open(&second, Window { floor: NEVER, ..window });
    assert!(two.draw(&second) > Some(issued), "above what the process issued before");
    assert!(two.leave(&second));
    assert!(two.host.end(&second, Loss::Released) >= Some(issued));
    assert_eq!(two.host.end(&second, Loss::Released), None);
    assert!(!two.leave(&second));
}
