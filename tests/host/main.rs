//! The page that a host's processes share: what stands in its place, the storms that delete it, and real
//! processes that draw from it and are killed.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../amount/mod.rs"]
mod amount;
mod child;
mod directory;
mod figures;
mod lease;
mod leases_lock;
mod page;
mod processes;
#[path = "../steering/mod.rs"]
mod steering;
mod storms;

use std::path::Path;

use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::core::sequence::Rules;
use snowdrift::core::sequencer::Block;
use snowdrift::host::{BootId, Directory, HostSequence};
use steering::{duplicates, memory};

fn directory(shared: &Path) -> Directory {
    Directory::with(shared, BootId::now()).unwrap()
}

fn node(worker_id: u64) -> Node {
    Node::new(Layout::NODE, 1, worker_id).unwrap()
}

fn sequence(shared: &Path, node: Node) -> HostSequence {
    HostSequence::open(directory(shared), node, 0, &snowdrift::core::clock::SystemClock).unwrap()
}

const RULES: Rules = Rules { may_raise: true, max_ahead: 0, random_start: false };

fn is_root() -> bool {
    // SAFETY: it takes nothing and changes nothing.
    unsafe { libc::geteuid() == 0 }
}

fn ids(node: &Node, block: &Block) -> (u64, u64) {
    (node.first_id(block), block.len)
}

#[test]
fn duplicates_are_counted() {
    assert_eq!(duplicates(vec![(10, 2), (5, 5), (12, 1)]), 0);
    assert_eq!(duplicates(vec![(10, 2), (5, 6), (11, 1)]), 2);
    assert_eq!(duplicates(vec![(1, 9), (2, 1), (3, 2), (9, 5)]), 4);
}
