//! The bytes of a page: 4096, in a file that every process that issues the node's IDs maps.
//!
//! | bytes | content | writer |
//! |---|---|---|
//! | 0..128 | the [`Header`] | the creator, before the page has its name |
//! | 128..512 | the [`Cells`] | every reservation |
//! | 512..1024 | the [words](Kept) of records, jumps and leases | see there |
//! | 1024..2560 | the [table of processes](super::processes), for people | processes that open or close it |
//! | 2560..4096 | zeros | |
//!
//! Header and cells are format 1 for ever: versions of snowdrift share a page during an upgrade.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

use super::header::{HEADER_BYTES, Header, MAGIC};
use super::kept::{Kept, unix_ms};
use super::processes::{ENTRIES, Entry};
use crate::core::layout::Tick;
use crate::core::sequence::{Cells, Sequence};

/// The length of a page.
pub const BYTES: usize = 4096;

/// A page's bytes. Everything that changes after creation is atomic.
#[repr(C, align(4096))]
pub struct Contents {
    header: [AtomicU64; HEADER_BYTES / 8],
    pub cells: Cells,
    pub kept: Kept,
    pub processes: [Entry; ENTRIES],
    rest: [AtomicU64; 192],
}

const _: () = assert!(
    size_of::<Contents>() == BYTES
        && offset_of!(Contents, cells) == 128
        && offset_of!(Contents, kept) == 512
        && offset_of!(Contents, processes) == 1024
        && offset_of!(Contents, rest) == 2560
);

/// A page that has no file yet.
pub struct NewPage {
    /// Its header.
    pub header: Header,
    bytes: Box<Bytes>,
}

#[repr(C, align(4096))]
struct Bytes([u8; BYTES]);

impl NewPage {
    /// A page as wanted, with an ID of its own. It issues nothing until begun, nothing up to `highest` (the tick that
    /// earlier pages are known to have reached), and nothing above `ceiling`. The word is never 0, so a cleared page is
    /// noticed.
    pub fn new(wanted: &Header, highest: Tick, ceiling: Tick) -> NewPage {
        let header = Header { page_id: fastrand::u128(1..), created_ms: unix_ms(), ..*wanted };
        let mut page = NewPage { header, bytes: Box::new(Bytes([0; BYTES])) };
        let contents = page.contents();
        for (word, bytes) in contents.header.iter().zip(header.to_bytes().as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Release);
        }
        contents.cells.prepare(header.node.layout(), ceiling);
        Sequence::new(&contents.cells, header.node.layout()).raise_floor(highest);
        page
    }

    /// Its contents, to change them.
    pub fn contents(&mut self) -> &Contents {
        // SAFETY: the bytes have the length and the alignment of `Contents`, whose fields are atomics: any bits are a
        // valid value. Only the borrower has access.
        unsafe { &*(&raw mut *self.bytes).cast::<Contents>() }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes.0
    }
}

impl Contents {
    /// Whether the page was neither overwritten nor cleared.
    pub fn is_intact(&self) -> bool {
        self.header[0].load(Acquire).to_ne_bytes() == MAGIC
    }
}
