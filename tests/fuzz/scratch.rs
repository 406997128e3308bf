//! A directory with one slot's file, for a store whose disk costs nothing.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use snowdrift::authority::Access;
use snowdrift::authority::Holder;
use snowdrift::authority::durable::Durable;
use snowdrift::authority::file::FileStore;
use snowdrift::core::clock::ManualClock;
use snowdrift::core::fault::Failure;
use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::node::Node;
use snowdrift::generator::Generator;
use tempfile::TempDir;

/// Where a slot's file has its records: see src/authority/slot.rs.
pub const BLOCKS: usize = 8;
pub const BLOCK_BYTES: usize = 4096;

pub struct Scratch(TempDir);

impl Scratch {
    /// Runs `check` with the directory of this thread, emptied. Making one takes longer than most else.
    pub fn with(check: impl FnOnce(&Scratch)) {
        thread_local! {
            static HERE: Scratch =
                Scratch(tempfile::tempdir().expect("a directory for temporary files"));
        }
        HERE.with(|scratch| {
            for entry in fs::read_dir(scratch.path()).expect("the directory is there") {
                fs::remove_file(entry.expect("an entry").path()).expect("it is removed");
            }
            check(scratch);
        });
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn store(&self) -> FileStore {
        let flush = Arc::new(|_: &Path, _: &File| Ok(()));
        FileStore::with(self.path(), flush).expect("the directory is there")
    }
}

/// A process that has no page: when it dies, nothing is known but its record.
pub struct Process {
    pub generator: Generator,
    pub durable: Durable,
    clock: Arc<ManualClock>,
}

impl Process {
    /// Opens a slot with a ceiling of one tick ahead of the clock's.
    pub fn start(scratch: &Scratch, slot: &Node, tick: Tick) -> Result<Process, Failure> {
        let layout = slot.layout();
        let clock = Arc::new(ManualClock::at(layout.tick_start_ms(tick)));
        let generator = Generator::recorded(None, *slot, 0, Box::new(clock.clone()));
        let ttl = Duration::from_millis(layout.tick_ms as u64);
        let durable = Durable::open(&scratch.store(), &generator, holder(), ttl, Access::Alone)?;
        Ok(Process { generator, durable, clock })
    }

    /// What an ID has that is drawn when the clock shows a tick: counter and tick.
    pub fn draw_at(&self, tick: Tick) -> Option<(usize, Tick)> {
        self.clock.set(self.generator.node().layout().tick_start_ms(tick));
        let reserved = self
            .generator
            .try_reserve(&self.generator.user_page(), &Default::default(), |_| u64::MAX)
            .ok()?;
        Some((reserved.block.counter, reserved.block.tick))
    }
}

/// A slot of the default layout.
pub fn slot() -> Node {
    Node::new(Layout::NODE, 1, 3).expect("it fits")
}

pub fn holder() -> Holder {
    Holder { token: 1, pid: 1, host: "here".to_owned(), started_ms: 0 }
}
