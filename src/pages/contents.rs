//! The bytes of a page: 4096, in a file that every process that issues the node's IDs maps, or in this process's memory.
//!
//! | bytes | content | writer |
//! |---|---|---|
//! | 0..256 | the [`Header`] | the creator, before the page has its name |
//! | 256..640 | the [`Cells`] | every reservation |
//! | 640..1152 | the [words](Kept) of the authority and of the page's life | see there |
//! | 1152..2688 | the [table of processes](super::processes), for people | processes that open or close it |
//! | 2688..3200 | for each entry of that table, the token of a renewal that the process announces | that process |
//! | 3200..4096 | zeros | |
//!
//! Header and cells are format 2 for ever: versions of snowdrift share a page during an upgrade.

use std::cell::UnsafeCell;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

use super::header::{HEADER_BYTES, Header, MAGIC};
use super::kept::{Kept, unix_ms};
use super::processes::{ENTRIES, Entry};
use crate::core::sequence::Cells;

/// The length of a page.
pub const BYTES: usize = 4096;

/// The place of the words.
pub const KEPT_AT: usize = offset_of!(Contents, kept);

/// A page's bytes. Everything that changes after creation is atomic.
#[repr(C, align(128))]
pub struct Contents {
    header: [AtomicU64; HEADER_BYTES / 8],
    pub cells: Cells,
    pub kept: Kept,
    pub processes: [Entry; ENTRIES],
    _tokens: [AtomicU64; ENTRIES],
    _rest: [AtomicU64; 112],
}

const _: () = assert!(
    size_of::<Contents>() == BYTES
        && offset_of!(Contents, cells) == 256
        && offset_of!(Contents, kept) == 640
        && offset_of!(Contents, processes) == 1152
        && offset_of!(Contents, _tokens) == 2688
        && offset_of!(Contents, _rest) == 3200
);

impl Contents {
    /// Whether the page was neither overwritten nor cleared.
    pub fn is_intact(&self) -> bool {
        self.header[0].load(Acquire).to_ne_bytes() == MAGIC
    }
}

/// A page in the process's own memory. All zeros are a fresh sequencer.
#[repr(C, align(128))]
pub struct Bytes(UnsafeCell<[u8; BYTES]>);

// SAFETY: shared references are to `Contents` only, whose fields are atomics.
unsafe impl Sync for Bytes {}

impl Default for Bytes {
    fn default() -> Self {
        Bytes(UnsafeCell::new([0; BYTES]))
    }
}

impl Bytes {
    /// The contents.
    #[inline]
    pub fn contents(&self) -> &Contents {
        // SAFETY: the bytes have the length and the alignment of `Contents`, whose fields are atomics: any bits are a
        // valid value. They change through such references only, except in `as_bytes`, which has the only one.
        unsafe { &*self.0.get().cast::<Contents>() }
    }

    /// All bytes.
    pub fn as_bytes(&mut self) -> &[u8] {
        self.0.get_mut()
    }
}

/// A page that has no file yet.
pub struct NewPage {
    /// Its header.
    pub header: Header,
    bytes: Box<Bytes>,
}

impl NewPage {
    /// A page as wanted, with an ID of its own. It issues nothing until it is begun. The word is never 0, so a cleared
    /// page is noticed.
    pub fn new(wanted: &Header) -> NewPage {
        let header = Header { page_id: fastrand::u128(1..), created_ms: unix_ms(), ..*wanted };
        let page = NewPage { header, bytes: Box::default() };
        let contents = page.contents();
        for (word, bytes) in contents.header.iter().zip(header.to_bytes().as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Release);
        }
        contents.cells.prepare(header.node.layout());
        page
    }

    /// Its contents, to change them.
    pub fn contents(&self) -> &Contents {
        self.bytes.contents()
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &[u8] {
        self.bytes.as_bytes()
    }
}
