//! The hot path: IDs of a source for one JavaScript instance on one thread.
//!
//! [`SharedBlock::refill`] fills a [`BlockMemory`], and JavaScript reads the IDs from it, so that up to
//! [`LARGEST_BLOCK`](crate::generator::pace::LARGEST_BLOCK) IDs take one native call. `js/generator/draw.js` is the
//! other half: it says how long a block is valid.

use std::cell::Cell;
use std::ptr;

use napi::bindgen_prelude::{FromNapiValue, Unknown};
use napi::{Env, check_status, sys};

use super::memory::memory_of;
use super::source::Source;
use crate::core::layout::Layout;
use crate::generator::pace::most_checked;
use crate::generator::{BlockMemory, Stalled};

/// The block of one instance, in memory shared with JavaScript. JavaScript passes the memory to each call that reserves
/// IDs. This must not outlive the env.
pub struct SharedBlock {
    env: sys::napi_env,
    /// A reference to the array buffer of the memory, which keeps it alive.
    buffer: sys::napi_ref,
    /// The last refusal.
    pub refusal: Cell<Option<Stalled>>,
}

impl SharedBlock {
    /// An empty block, and the array buffer of its memory.
    pub fn new<'env>(env: &Env, layout: &Layout) -> napi::Result<(SharedBlock, Unknown<'env>)> {
        let env = env.raw();
        let (mut start, mut value, mut buffer) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let bytes = size_of::<BlockMemory>();
        // SAFETY: the env is this thread's, the out-pointers live, and the reference is to the value just created.
        unsafe {
            let made = sys::napi_create_arraybuffer(env, bytes, &mut start, &mut value);
            check_status!(made, "no memory for a block of IDs")?;
            check_status!(sys::napi_create_reference(env, value, 1, &mut buffer))?;
        }
        let block = SharedBlock { env, buffer, refusal: Cell::default() };
        block.change(|memory| memory.most_checked = most_checked(layout) as u32);
        // SAFETY: `value` is the one that the call above has just made.
        Ok((block, unsafe { Unknown::from_napi_value(env, value)? }))
    }

    /// Changes the memory in a call that did not receive it. Returns false if JavaScript has detached it: then no call
    /// can reserve IDs.
    pub fn change(&self, change: impl FnOnce(&mut BlockMemory)) -> bool {
        let mut buffer = ptr::null_mut();
        // SAFETY: the env and the reference live as long as this. A channel is used in calls of its own env only, and
        // none that has a reference to its memory calls this.
        let memory = unsafe {
            sys::napi_get_reference_value(self.env, self.buffer, &mut buffer);
            memory_of(self.env, buffer)
        };
        memory.map(change).is_some()
    }

    /// Gives back the unused IDs of the last block. Then reserves the next block and writes its IDs to the memory.
    /// Returns their number, negative if there are events to report; 0 if refused.
    #[inline(always)]
    pub fn refill(&self, source: &Source, memory: &mut BlockMemory, may_wait: bool) -> i32 {
        self.end_unused(memory, source, memory.unused.into());
        let reserved = match source {
            Source { ring: Some(ring), .. } => {
                let waits = &mut *source.waits.borrow_mut();
                let take = |ids: &mut [u64]| ring.take(ids, may_wait.then_some(waits));
                source.refill_from_ring(memory, take)
            }
            // JavaScript reads the application's clock for every ID, and does the waiting.
            Source { clock: Some(clock), .. } => {
                clock.set(memory.reserved_ms as i64);
                source.refill_one(memory)
            }
            _ => source.refill(memory, may_wait),
        };
        self.answer(source, reserved)
    }

    /// Ends the block, and gives back its last `unused` IDs.
    #[inline(always)]
    pub fn end_unused(&self, memory: &mut BlockMemory, source: &Source, unused: u64) {
        let unused = source.end(memory, unused);
        if let Some(ring) = &source.ring
            && !unused.is_empty()
        {
            ring.keep(&memory.ids[unused]);
        }
    }

    /// The result for JavaScript: the number, negative if there are events to report; 0 if refused.
    fn answer(&self, source: &Source, reserved: Result<u64, Stalled>) -> i32 {
        match reserved {
            Ok(len) => {
                let has_news = source.has_rollback_to_report() || source.waits.borrow().count > 0;
                if has_news { -(len as i32) } else { len as i32 }
            }
            Err(refusal) => {
                self.refusal.set(Some(refusal));
                0
            }
        }
    }

    /// Fills an array with IDs of as many ticks as it takes. Returns 1, or -1 if there are events to report; 0 if
    /// refused: then all IDs are given back.
    pub fn fill(
        &self,
        source: &Source,
        memory: &mut BlockMemory,
        ids: &mut [u64],
        may_wait: bool,
    ) -> i32 {
        self.end_unused(memory, source, memory.unused.into());
        let filled = match &source.ring {
            Some(ring) => {
                let waits = &mut *source.waits.borrow_mut();
                ring.fill(ids, may_wait.then_some(waits))
            }
            None => source.fill(ids),
        };
        self.answer(source, filled.map(|()| 1))
    }
}

impl Drop for SharedBlock {
    fn drop(&mut self) {
        // SAFETY: a channel is dropped by the call that made it or by the finalizer of its object: the env lives.
        unsafe { sys::napi_delete_reference(self.env, self.buffer) };
    }
}
