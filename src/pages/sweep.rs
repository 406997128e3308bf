//! Removes pages that nobody uses, where there are many: an application that opens thousands of nodes would leave as many
//! files.
//!
//! A removed page remembers nothing. So the time of the last ID of all removed pages is kept, as the modification time
//! of one file, and new pages issue nothing up to it. A clock that rolls back behind it is waited for.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use parking_lot::Mutex;

use super::directory::Directory;
use super::own;
use super::page::Page;
use crate::core::clock::{Clock, SystemClock};
use crate::core::layout::{Layout, Tick};
use crate::files::lock::{self, LockMode, USERS};

/// The file whose modification time is kept.
const SWEPT_FILE: &str = "swept";

/// The pages that stay in any case, and the pages that a process creates between two sweeps.
const MOST: usize = 256;

/// Time from the last ID of a page to its removal: the longest clock rollback that new pages do not notice.
const PASSED: Duration = Duration::from_millis(100);

/// The pages that this process has created, by directory.
static CREATED: LazyLock<Mutex<HashMap<PathBuf, usize>>> = LazyLock::new(Mutex::default);

impl Directory {
    fn swept(&self) -> PathBuf {
        self.path().join(SWEPT_FILE)
    }

    /// The highest tick of this layout that a removed page may have issued. The last tick of each was over.
    pub(super) fn swept_tick(&self, layout: &Layout) -> Option<Tick> {
        Some(layout.tick_at(self.swept_ms()?.saturating_add(1)) - 1)
    }

    /// The last time of an ID of a removed page, Unix ms; none where there is none.
    fn swept_ms(&self) -> Option<i64> {
        let modified = fs::symlink_metadata(self.swept()).ok()?.modified().ok()?;
        Some(modified.duration_since(UNIX_EPOCH).ok()?.as_millis() as i64)
    }

    /// Called for each page that this process creates: now and then removes others.
    pub(super) fn note_created(&self) {
        let created = {
            let mut all = CREATED.lock();
            let created = all.entry(self.path().to_owned()).or_default();
            *created += 1;
            *created
        };
        if created.is_multiple_of(MOST) {
            // Pages that could not be removed are in the way of nobody.
            self.sweep();
        }
    }

    /// Removes unused pages whose last ID has passed, until few are left. Looks at a few, anywhere among them, since the
    /// caller waits meanwhile and thousands may be in use: at more than this process creates until the next sweep.
    fn sweep(&self) -> Option<()> {
        let mut paths = self.paths("").ok()?;
        let surplus = paths.len().checked_sub(MOST).filter(|&surplus| surplus > 0)?;
        let kept = own::open_empty(&self.swept(), self.uid).ok()?;
        // Otherwise, another process sweeps.
        lock::try_take(&kept, USERS, LockMode::Exclusive).ok()?.then_some(())?;
        let latest = SystemClock.now().ms - PASSED.as_millis() as i64;
        let is_past = |page: &Page| page.last_ms() <= latest;
        let first = fastrand::usize(..paths.len());
        paths.rotate_left(first);
        let pages =
            paths.iter().take(2 * MOST).filter_map(|path| Page::map(path, self.uid).ok()?);
        for page in pages.filter(is_past).take(surplus) {
            // Others may have issued before the lock.
            if !page.try_alone().ok()? || !is_past(&page) {
                continue;
            }
            // First, so that the node's next page begins above it.
            let last_ms = page.last_ms().max(self.swept_ms().unwrap_or(0));
            let last = UNIX_EPOCH + Duration::from_millis(last_ms.max(0) as u64);
            kept.set_modified(last).ok()?;
            page.end();
            let _ = page.remove_with_marker();
        }
        Some(())
    }
}

impl Page {
    /// The end of the last tick that may have been issued, Unix ms.
    fn last_ms(&self) -> i64 {
        let next = self.sequence().highest().saturating_add(1);
        self.header().node.layout().tick_start_ms(next) - 1
    }
}
