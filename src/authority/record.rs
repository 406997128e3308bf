//! The record of a slot.

mod sector;

use std::path::Path;

use crate::core::clock::HOUR_MS;
use crate::core::fault::{Class, Failure, Fault, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::core::sequence::Ended;
use crate::core::sequencer::{HighMarks, NEVER};

pub use sector::{BYTES, Unsound, VERSION};

/// The record of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The slot's node.
    pub node: Node,
    /// The random ID of its file.
    pub file: u128,
    /// The ID of the current page, or of the process's memory; 0 for none.
    pub page: u128,
    /// Rises when a page is opened or closed. Of two records, the one of higher [`Record::rank`] is current.
    pub generation: u64,
    /// IDs issued at or below it are unknown. Above it, the high marks record them.
    pub floor: Tick,
    /// The highest tick that may have been issued.
    pub ceiling: Tick,
    /// High marks of the IDs issued above the floor before the page was opened.
    pub high: HighMarks,
    /// Used sequence numbers of the current counter's mark; 0 for all.
    pub used: u64,
    /// Whether the page was closed, and so nothing was issued since.
    pub is_closed: bool,
    /// The holder that wrote the record. None after the last user has closed the page.
    pub holder: Option<Holder>,
    /// The last rise of the ceiling by hours at once.
    pub jump: Jump,
    /// Ticks that a clock ahead of time issued. They are not issued again.
    pub skip: Skip,
}

/// A slot's holder, or a process that wants to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The random ID of one holding.
    pub token: u128,
    /// Its process.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// Start of the process, Unix ms.
    pub started_ms: i64,
}

/// A rise of the ceiling by hours at once: the slot was unused for so long, or the clock jumped. IDs issued before the
/// jump lie at or below `before`. IDs issued since lie at or above `since`, unless the clock rolled back. Both are
/// [`NEVER`] where unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The ceiling before it.
    pub before: Tick,
    /// Some hours below the ceiling after it.
    pub since: Tick,
}

impl Jump {
    /// No known jump.
    pub const NONE: Jump = Jump { before: NEVER, since: NEVER };
}

/// The ticks from `from` to `to`, both included. Empty if `to` is [`NEVER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skip {
    /// The first.
    pub from: Tick,
    /// The last.
    pub to: Tick,
}

impl Skip {
    /// No tick.
    pub const NONE: Skip = Skip { from: NEVER, to: NEVER };
}

/// A rise of the ceiling by more than this is a jump.
const JUMP_MS: i64 = 4 * HOUR_MS;

/// Maximum distance of a clock below the ceiling: at most an hour of ttl, an hour of maxAhead, and an hour for small
/// rollbacks.
const REACH_MS: i64 = 3 * HOUR_MS;

impl Record {
    /// A record without a holder, for a slot that issued nothing above this tick.
    pub fn starting_at(node: &Node, tick: Tick) -> Record {
        Record {
            node: *node,
            file: fastrand::u128(1..),
            page: 0,
            generation: 0,
            floor: tick,
            ceiling: tick,
            high: HighMarks::default(),
            used: 0,
            is_closed: true,
            holder: None,
            jump: Jump::NONE,
            skip: Skip::NONE,
        }
    }

    /// The order of a file's records: the highest is current.
    pub fn rank(&self) -> (u64, Tick) {
        (self.generation, self.ceiling)
    }

    /// The same record with a ceiling of at least this. Its floor is above the skipped ticks, if the clock behind the
    /// ceiling has certainly passed them. An error if the ceiling is less far.
    pub fn raised(&self, ceiling: Tick, path: &Path) -> Result<Record, Failure> {
        let Skip { from, to } = self.skip;
        if self.skip == Skip::NONE || ceiling < from {
            let ceiling = ceiling.max(self.ceiling);
            let is_jump = ceiling.saturating_sub(self.ceiling) > self.ticks(JUMP_MS);
            let jump = Jump { before: self.ceiling, since: ceiling - self.ticks(REACH_MS) };
            let jump = if is_jump { jump } else { self.jump };
            return Ok(Record { ceiling, jump, ..self.clone() });
        }
        if ceiling.saturating_sub(to) <= self.ticks(REACH_MS) {
            let start_of = |tick| self.node.layout().tick_start_ms(tick);
            let (from, to) = (start_of(from), start_of(to.saturating_add(1)));
            return Err(Failure::new(Class::Slot, fault!("slot-skips", place: path, from, to)));
        }
        // If that clock is wrong again, the next reset skips these ticks, too.
        let jump = Jump { before: self.ceiling, since: from };
        let floor = self.floor.max(to);
        Ok(Record { floor, ceiling, jump, skip: Skip::NONE, ..self.clone() })
    }

    /// The same record after its page was closed. Its ceiling is the last tick issued.
    pub fn closed(&self, ended: &Ended) -> Record {
        let mut high = ended.high;
        for mark in &mut high.marks {
            // A counter that was left before its first use has a mark one above.
            *mark = (*mark).min(self.ceiling);
        }
        let ceiling = high.highest().max(self.floor);
        let is_used_known = ended.run.next <= self.node.layout().last_sequence() + 1;
        Record {
            generation: self.generation + 1,
            ceiling,
            high,
            used: if is_used_known { ended.run.next } else { 0 },
            is_closed: true,
            holder: None,
            // A jump without issued IDs does not count. The end of the one before is unknown.
            jump: if ceiling < self.jump.since { Jump::NONE } else { self.jump },
            ..self.clone()
        }
    }

    /// Checks that it is of this layout.
    pub fn check_layout(&self, layout: &Layout, path: &Path) -> Result<(), Failure> {
        if self.node.layout() == layout {
            return Ok(());
        }
        let layouts: Vec<Fault> = [self.node.layout(), layout].map(Layout::described).into();
        Err(fault!("slot-layout", place: path, layouts).into())
    }

    /// Checks that it is of this node.
    pub fn check_node(&self, node: &Node, path: &Path) -> Result<(), Failure> {
        self.check_layout(node.layout(), path)?;
        if self.node == *node {
            return Ok(());
        }
        let (datacenter, worker) = (self.node.datacenter_id(), self.node.worker_id());
        let fault = fault!("slot-misnamed", place: path, datacenter, worker);
        Err(Failure::new(Class::Slot, fault))
    }

    /// The number of ticks that cover at least `ms`.
    pub fn ticks(&self, ms: i64) -> Tick {
        ms / self.node.layout().tick_ms + 1
    }
}

#[cfg(test)]
mod tests;
