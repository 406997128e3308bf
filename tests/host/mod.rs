//! The page that a host's processes share: what stands in its place, its lives in the test's time, the storms that
//! delete it, and real processes that draw from it and are killed.

mod chaos;
mod child;
mod directory;
mod figures;
mod lease;
mod leases_lock;
mod life;
mod page;
mod processes;
mod random;
mod storms;
mod sweep;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

use crate::steering::{duplicates, memory};
use snowdrift::core::clock::{Clock, SystemClock, UnixTime};
use snowdrift::core::fault::Failure;
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::core::sequencer::{Block, Stall};
use snowdrift::generator::{ClockBack, Generator, Policies};
use snowdrift::pages::{BootId, Directory};

fn directory(shared: &Path) -> Directory {
    Directory::with(shared, BootId::now()).unwrap()
}

fn node(worker_id: u64) -> Node {
    Node::new(Layout::NODE, 1, worker_id).unwrap()
}

/// Draws from the node's page, as a process does that opens it.
fn open(
    directory: &Directory,
    node: Node,
    clock: impl Clock + 'static,
) -> Result<Generator, Failure> {
    Generator::on_host(directory.clone(), node, Box::new(clock))
}

/// The same, on the system's clock.
fn generator(shared: &Path, node: Node) -> Generator {
    open(&directory(shared), node, SystemClock).unwrap()
}

const POLICIES: Policies =
    Policies { clock_back: ClockBack::Counter, max_wait: Duration::ZERO, random_start: false };

/// Draws up to `want` IDs of the clock's tick.
fn draw(generator: &Generator, want: u64) -> Result<Block, Stall> {
    let drawn = generator.try_reserve(&generator.user_page(), &POLICIES, |_| want);
    drawn.map(|reserved| reserved.block).map_err(|refusal| refusal.stall)
}

/// A clock that only the test moves: a wait passes no time.
struct TestClock(AtomicI64);

impl TestClock {
    fn at(unix_ms: i64) -> Arc<TestClock> {
        Arc::new(TestClock(AtomicI64::new(unix_ms)))
    }

    fn set(&self, unix_ms: i64) {
        self.0.store(unix_ms, SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> UnixTime {
        UnixTime::from_ms(self.0.load(SeqCst))
    }

    fn wait(&self, _: Duration) {}
}

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
