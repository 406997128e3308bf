//! Pages of slots that this host's processes have leased from directories of slots.
//!
//! A removed page loses its record of issued IDs. The slot's record has it, too. Others that issue IDs of the node on
//! this host (with another directory, or with a configured workerId) do not. So a page is removed only after the clock
//! has passed its last tick: the next page of the node starts above the clock. Not covered: a clock rollback in
//! between.

use std::path::Path;

use super::Directory;
use super::page::{Page, Snapshot};
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::Failure;
use crate::core::layout::Layout;
use crate::core::sequencer::NEVER;

impl Directory {
    /// The pages of slots that this host has leased from any directory, sorted by worker ID, with living processes
    /// first.
    pub fn leases_of(&self, layout: &Layout, datacenter_id: u64) -> Result<Vec<Snapshot>, Failure> {
        let paths = self.paths_of(layout, datacenter_id)?;
        let mut found: Vec<Snapshot> = paths
            .iter()
            .filter_map(|path| self.leased(path))
            .map(|page| page.snapshot())
            .filter(|snapshot| !snapshot.header.boot_id.is_other(&self.boot_id))
            .collect();
        found.sort_by_key(|snapshot| {
            let is_left = !snapshot.processes.iter().any(|process| process.is_alive());
            (is_left, snapshot.header.node.worker_id())
        });
        Ok(found)
    }

    /// Removes unused pages of released slots, and of slots that another holder has by now (`is_left`), as after a
    /// killed process. Removes a page only once the clock has passed its last tick.
    pub fn sweep_leases(&self, is_left: impl Fn(&Page) -> bool) {
        let paths = self.paths("").unwrap_or_default();
        for page in paths.iter().filter_map(|path| self.leased(path)) {
            // Skips pages that are in use.
            if !page.try_alone().unwrap_or(false) {
                continue;
            }
            let header = page.header();
            if header.boot_id.is_other(&self.boot_id) {
                continue;
            }
            let now = header.node.layout().tick_at(SystemClock.now().ms);
            let is_over = page.sequence().is_closed() || is_left(&page);
            if is_over && page.sequence().highest() < now.max(NEVER) {
                let _ = page.remove_with_marker();
            }
        }
    }

    /// The page at this path, if it is of a slot leased from a directory. An unreadable file is no page of a slot that
    /// processes share.
    fn leased(&self, path: &Path) -> Option<Page> {
        let page = Page::map(path, self.uid).ok()??;
        page.header().terms.authority.is_host_lease().then_some(page)
    }
}
