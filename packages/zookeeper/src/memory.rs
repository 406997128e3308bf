//! The addon's memory. The client trusts the length of a list in a reply, and allocates all of it at once: up to 49 GB for the
//! names of a node's children. If that fails, the process aborts, and no Rust code can keep it from that. So a large
//! allocation reserves addresses only, and takes memory as it is written: what the reply has.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{copy_nonoverlapping, null_mut};

#[global_allocator]
static MEMORY: Memory = Memory;

struct Memory;

/// From here on an allocation is large, in bytes.
const LARGE: usize = 1 << 26;

/// The smallest page of any system: `mmap` aligns to it.
const PAGE: usize = 4096;

fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

// SAFETY: each method leaves what is not large to `System`. What is large depends on the layout alone, so memory goes back to
// where it came from.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_large(layout) {
            // SAFETY: as the caller promises.
            return unsafe { System.alloc(layout) };
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let how = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the system chooses.
        let mapped = unsafe { libc::mmap(null_mut(), layout.size(), access, how, -1, 0) };
        if mapped == libc::MAP_FAILED { null_mut() } else { mapped.cast() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            // SAFETY: as the caller promises. A new mapping is zero.
            return unsafe { self.alloc(layout) };
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: `alloc` has mapped it with this size.
            unsafe { libc::munmap(memory.cast(), layout.size()) };
        } else {
            // SAFETY: as the caller promises.
            unsafe { System.dealloc(memory, layout) };
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size is one of a layout with this alignment.
        let next = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if !is_large(layout) && !is_large(next) {
            // SAFETY: as the caller promises.
            return unsafe { System.realloc(memory, layout, size) };
        }
        // SAFETY: both blocks have at least as many bytes, and do not overlap.
        unsafe {
            let moved = self.alloc(next);
            if !moved.is_null() {
                copy_nonoverlapping(memory, moved, layout.size().min(size));
                self.dealloc(memory, layout);
            }
            moved
        }
    }
}
