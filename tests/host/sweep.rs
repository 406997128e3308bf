//! Unused pages of many nodes.

use std::fs;

use snowdrift::core::clock::{Clock, SystemClock};
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::core::sequencer::Stall;
use snowdrift::pages::Directory;

use super::{TestClock, directory, draw, duplicates, ids, memory, open};

const START: i64 = 1_700_000_000_000;

#[test]
fn unused_pages_of_many_nodes_are_removed_and_repeat_nothing() {
    let shared = memory();
    let directory = directory(shared.path());
    let node = |n| Node::new(Layout { epoch_ms: n, ..Layout::NODE }, 1, 3).unwrap();
    let clock = TestClock::at(START);
    let used = open(&directory, node(0), clock.clone()).unwrap();
    let mut drawn = vec![Vec::new(); 2000];
    for n in 1..2000 {
        clock.set(START + n);
        let generator = open(&directory, node(n), clock.clone()).unwrap();
        clock.set(START + n + 1);
        drawn[n as usize].push(ids(&node(n), &draw(&generator, 7).unwrap()));
    }
    let files = fs::read_dir(directory.path()).unwrap().count();
    assert!(files < 2 * (256 + 256) + 10, "{files} files");
    assert!(used.page().is_named().unwrap(), "it is in use");
    draw(&used, 1).unwrap();
    // A clock that rolls back behind the last ID of removed pages is waited for.
    let mut floors = 0;
    for n in 1..2000 {
        clock.set(START + n);
        let generator = open(&directory, node(n), clock.clone()).unwrap();
        for ms in [n, n + 1, n + 2, 10_000 + n] {
            clock.set(START + ms);
            match draw(&generator, 7) {
                Ok(block) => drawn[n as usize].push(ids(&node(n), &block)),
                Err(Stall::AtFloor { .. }) => floors += 1,
                Err(_) => {}
            }
        }
        assert_eq!(duplicates(drawn[n as usize].clone()), 0);
        assert!(drawn[n as usize].len() > 1, "node {n} goes on");
    }
    assert!(floors > 1000, "{floors}");
}

/// Opens nodes with IDs of some seconds ago until some of their pages are removed.
fn open_many(directory: &Directory) {
    let clock = TestClock::at(SystemClock.now().ms - 10_000);
    for n in 1.. {
        if directory.path().join("swept").exists() {
            return;
        }
        let node = Node::new(Layout { epoch_ms: n, ..Layout::NODE }, 1, 3).unwrap();
        let generator = open(directory, node, clock.clone()).unwrap();
        clock.set(clock.now().ms + 1);
        draw(&generator, 1).unwrap();
    }
}

/// The last tick of each removed page was over, so no other node waits for the end of a tick.
#[test]
fn a_node_with_long_ticks_issues_at_once_where_pages_were_removed() {
    const AGO: i64 = 365 * 86_400_000 + 43_200_000;
    for tick_ms in [1, 1000, 3000, 86_400_000] {
        let shared = memory();
        let directory = directory(shared.path());
        open_many(&directory);
        let layout = Layout::new([36, 3, 5, 2, 17], tick_ms, SystemClock.now().ms - AGO);
        let clock = TestClock::at(SystemClock.now().ms);
        let generator = open(&directory, Node::new(layout, 1, 3).unwrap(), clock.clone()).unwrap();
        clock.set(clock.now().ms + 1);
        draw(&generator, 1).unwrap();
    }
}
