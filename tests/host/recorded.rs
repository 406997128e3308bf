//! A generator on a page with a record.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use snowdrift::authority::Holder;
use snowdrift::authority::durable::Durable;
use snowdrift::authority::file::FileStore;
use snowdrift::authority::{Access, Lease};
use snowdrift::core::clock::Clock;
use snowdrift::core::fault::Failure;
use snowdrift::core::node::Node;
use snowdrift::generator::Generator;
use snowdrift::pages::Directory;

/// How far ahead of the clock the recorded ceiling is.
pub const TTL: Duration = Duration::from_millis(1000);

fn generator(
    directory: &Directory,
    node: Node,
    max_ahead_ms: i64,
    clock: impl Clock + 'static,
) -> Generator {
    Generator::recorded(Some(directory.clone()), node, max_ahead_ms, Box::new(clock))
}

/// In memory, whatever the disk: no test here cuts the power.
fn store(state: &Path) -> Result<FileStore, Failure> {
    FileStore::with(state, Arc::new(|_: &Path, _: &std::fs::File| Ok(())))
}

fn holder() -> Holder {
    let pid = std::process::id();
    Holder { token: fastrand::u128(1..), pid, host: "here".to_owned(), started_ms: 0 }
}

/// A process whose record the test keeps. Dropped, it is as if it had been killed.
pub struct Recorded {
    pub generator: Generator,
    durable: Durable,
}

impl Recorded {
    pub fn open(
        directory: &Directory,
        state: &Path,
        node: Node,
        max_ahead_ms: i64,
        clock: impl Clock + 'static,
    ) -> Result<Recorded, Failure> {
        let generator = generator(directory, node, max_ahead_ms, clock);
        let durable = Durable::open(&store(state)?, &generator, holder(), TTL, Access::Shared)?;
        Ok(Recorded { generator, durable })
    }

    /// What its thread does: opens the next page, or raises the ceiling.
    pub fn keep(&mut self) -> Result<(), Failure> {
        if self.durable.is_bound() {
            self.durable.renew(self.generator.next_ceiling(TTL))
        } else {
            self.durable.bind(&self.generator, TTL)
        }
    }

    pub fn close(self) {
        self.durable.close(&self.generator).unwrap();
    }
}

/// A process whose record a thread keeps.
pub fn kept(
    directory: &Directory,
    state: &Path,
    node: Node,
    max_ahead_ms: i64,
    clock: impl Clock + 'static,
) -> Result<(Arc<Generator>, Lease), Failure> {
    let generator = Arc::new(generator(directory, node, max_ahead_ms, clock));
    let lease = Lease::take(&store(state)?, &generator, holder(), TTL, Access::Shared)?;
    Ok((generator, lease))
}
