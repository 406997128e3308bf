//! Removes unused pages if there are many: an application that opens thousands of nodes would leave thousands of files.
//!
//! Removal loses the record of a page's IDs. So the modification time of one file is the time of the last ID of all
//! removed pages, and new pages issue nothing up to it. After a rollback below it, they wait for the clock.

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

/// The file whose modification time is the time of the last ID of all removed pages.
const SWEPT_FILE: &str = "swept";

/// The number of pages that a sweep keeps, and of pages that a process creates between two sweeps.
const MOST_PAGES: usize = 256;

/// Minimum time from the last ID of a page to its removal. New pages do not notice a clock rollback shorter than this.
const MIN_AGE: Duration = Duration::from_millis(100);

/// The number of pages that this process created in each directory.
static CREATED: LazyLock<Mutex<HashMap<PathBuf, usize>>> = LazyLock::new(Mutex::default);

impl Directory {
    fn swept(&self) -> PathBuf {
        self.path().join(SWEPT_FILE)
    }

    /// The highest tick of this layout that a removed page may have issued. Each removed page's last tick had ended.
    pub(super) fn swept_tick(&self, layout: &Layout) -> Option<Tick> {
        Some(layout.tick_at(self.swept_ms()?.saturating_add(1)) - 1)
    }

    /// The time of the last ID of all removed pages, Unix ms; `None` if no page was removed.
    fn swept_ms(&self) -> Option<i64> {
        let modified = fs::symlink_metadata(self.swept()).ok()?.modified().ok()?;
        Some(modified.duration_since(UNIX_EPOCH).ok()?.as_millis() as i64)
    }

    /// Called for each page that this process creates. Sweeps from time to time.
    pub(super) fn note_created(&self) {
        let created = {
            let mut all = CREATED.lock();
            let created = all.entry(self.path().to_owned()).or_default();
            *created += 1;
            *created
        };
        if created.is_multiple_of(MOST_PAGES) {
            // A failed sweep is harmless.
            self.sweep();
        }
    }

    /// Removes unused pages with an old last ID, until few pages are left. Looks at a random part of them, since the
    /// caller waits meanwhile and thousands may be in use. That part is larger than the number of pages that this
    /// process creates until the next sweep.
    fn sweep(&self) -> Option<()> {
        let mut paths = self.paths("").ok()?;
        let surplus = paths.len().checked_sub(MOST_PAGES).filter(|&surplus| surplus > 0)?;
        let kept = own::open_empty(&self.swept(), self.uid).ok()?;
        // Otherwise another process is sweeping.
        lock::try_take(&kept, USERS, LockMode::Exclusive).ok()?.then_some(())?;
        let latest = SystemClock.now().ms - MIN_AGE.as_millis() as i64;
        let is_past = |page: &Page| page.last_ms() <= latest;
        let first = fastrand::usize(..paths.len());
        paths.rotate_left(first);
        let pages =
            paths.iter().take(2 * MOST_PAGES).filter_map(|path| Page::map(path, self.uid).ok()?);
        for page in pages.filter(is_past).take(surplus) {
            // Other processes may have issued IDs before this one locked the page.
            if !page.try_lock_exclusive().ok()? || !is_past(&page) {
                continue;
            }
            // Before the removal, so that the node's next page begins above this time.
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
    /// The end of the last tick that the page may have issued, Unix ms.
    fn last_ms(&self) -> i64 {
        let next = self.sequence().highest().saturating_add(1);
        self.header().node.layout().tick_start_ms(next) - 1
    }
}
