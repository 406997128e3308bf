//! Pages deleted while they are in use: no ID is issued twice, and without the checks many are.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use std::{fs, thread};

use snowdrift::core::clock::{Clock, SystemClock};
use snowdrift::core::layout::Tick;
use snowdrift::core::sequence::{Rules, Sequence};
use snowdrift::core::sequencer::Block;
use snowdrift::generator::Generator;

use super::{directory, draw, duplicates, generator, ids, memory, node};
use crate::amount;

type Draw = fn(&Generator) -> Option<Block>;

fn with_checks(generator: &Generator) -> Option<Block> {
    draw(generator, 3).ok()
}

/// The fault: the clock is read, and the page's name is not looked at.
fn without_checks(generator: &Generator) -> Option<Block> {
    let layout = generator.node().layout();
    let page = generator.page();
    let sequence = Sequence::new(page.cells(), layout);
    let mut time = || layout.tick_at(SystemClock.now().ms);
    let rules = Rules { may_raise: true, ..Rules::default() };
    sequence.reserve(&rules, &mut time, |_: Tick| 3).ok()
}

/// Four users of one page, as of four processes, of which each opens it anew now and then. Meanwhile
/// `harm` is done to the page every 30 ms.
fn storm(draw: Draw, harm: fn(&std::path::Path)) -> (usize, u64) {
    let shared = memory();
    let page = directory(shared.path()).page_of(&node(0));
    let ended = AtomicBool::new(false);
    let mut issued = Vec::new();
    let mut harms = 0;
    thread::scope(|scope| {
        let users: Vec<_> = (0..4)
            .map(|index| {
                let (ended, shared) = (&ended, shared.path());
                scope.spawn(move || {
                    let mut issued = Vec::new();
                    while !ended.load(SeqCst) {
                        let generator = generator(shared, node(0));
                        let until = Instant::now() + Duration::from_millis(40 + 37 * index);
                        while Instant::now() < until && !ended.load(SeqCst) {
                            match draw(&generator) {
                                Some(block) => issued.push(ids(&node(0), &block)),
                                None => thread::yield_now(),
                            }
                        }
                    }
                    issued
                })
            })
            .collect();
        let end = Instant::now() + amount::storm();
        while Instant::now() < end {
            thread::sleep(Duration::from_millis(30));
            harm(&page);
            harms += 1;
        }
        ended.store(true, SeqCst);
        issued.extend(users.into_iter().flat_map(|user| user.join().unwrap()));
    });
    let all = issued.len();
    let twice = duplicates(issued);
    println!("{all} blocks, {harms} times, {twice} duplicates");
    (all, twice)
}

fn unlink(page: &std::path::Path) {
    let _ = fs::remove_file(page);
}

fn rename(page: &std::path::Path) {
    let _ = fs::rename(page, page.with_extension("away"));
}

/// As `rm -r` does it; whoever creates a page meanwhile creates the directory, too.
fn remove_directory(page: &std::path::Path) {
    let _ = fs::remove_dir_all(page.parent().unwrap());
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn a_page_that_is_unlinked_issues_nothing_twice() {
    let (all, twice) = storm(with_checks, unlink);
    assert!(all > 1000, "{all}");
    assert_eq!(twice, 0);
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn a_page_that_is_renamed_issues_nothing_twice() {
    assert_eq!(storm(with_checks, rename).1, 0);
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn a_directory_that_is_removed_issues_nothing_twice() {
    assert_eq!(storm(with_checks, remove_directory).1, 0);
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn without_the_check_the_storm_finds_duplicates() {
    // One storm is enough, unless the machine is busy.
    // The directory goes, not the page alone: a page with a marker is ended by the process that opens the next one.
    assert!((0..10).any(|_| storm(without_checks, remove_directory).1 > 0));
}

#[test]
fn all_who_create_a_page_at_once_have_the_same() {
    for _ in 0..30 {
        let shared = memory();
        let barrier = Barrier::new(8);
        let opened: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        let generator = generator(shared.path(), node(0));
                        let page = generator.page().id();
                        (generator, page)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let first = opened[0].1;
        assert!(opened.iter().all(|(_, page)| *page == first));
        // The page, its marker and the README. No temporary name is left.
        let names: Vec<_> = fs::read_dir(directory(shared.path()).path()).unwrap().collect();
        assert_eq!(names.len(), 3, "{names:?}");
    }
}
