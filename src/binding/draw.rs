//! The hot path: IDs of a source for one JavaScript instance on one thread.
//!
//! JavaScript reads IDs out of a [`BlockMemory`] that [`SharedBlock::refill`] has filled, so that a burst costs one native
//! call for up to [`LARGEST_BLOCK`] IDs. `js/generator/draw.js` is the other half. There a block lasts until the end of the
//! turn of the event loop that reserved it or the end of the ms, whichever is later.

use std::cell::Cell;
use std::ptr;

use napi::bindgen_prelude::{FromNapiValue, Unknown};
use napi::{Env, check_status, sys};

use super::memory::memory_of;
use super::source::Source;
use crate::core::layout::Layout;
use crate::generator::pace::most_checked;
use crate::generator::{BlockMemory, Refusal};

/// The block of one instance, in memory shared with JavaScript. The memory is an argument of each native call that draws. It
/// must not outlive the env.
pub struct SharedBlock {
    env: sys::napi_env,
    /// The array buffer of the memory, which lives as long as this.
    buffer: sys::napi_ref,
    /// The reason why the last refused draw had no ID.
    pub refusal: Cell<Option<Refusal>>,
}

impl SharedBlock {
    /// Without IDs; and the array buffer of the memory.
    pub fn new<'env>(env: &Env, layout: &Layout) -> napi::Result<(SharedBlock, Unknown<'env>)> {
        let env = env.raw();
        let (mut start, mut value, mut buffer) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let bytes = size_of::<BlockMemory>();
        // SAFETY: calls on this thread's own env, and the out-pointers live. The reference is to the value just made.
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

    /// Changes the memory in a call that has not been passed it. Returns false if JavaScript has detached it. Then no call can
    /// draw.
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

    /// From now on JavaScript draws from the block within this turn only. The rest of the block is lost, and so is a
    /// booking.
    pub fn lose(&self, source: &Source) {
        source.lose();
        self.change(|memory| memory.reserved_ms = f64::NAN);
    }

    /// Gives back the IDs of the last block that JavaScript has not drawn. Then reserves the next block and writes
    /// its IDs to the memory. Returns how many, negative if there is news to report; 0 if refused.
    #[inline(always)]
    pub fn refill(&self, source: &Source, memory: &mut BlockMemory, may_wait: bool) -> i32 {
        self.end_unused(memory, source, memory.unused.into());
        let reserved = match source {
            Source { ring: Some(ring), .. } => {
                let waits = &mut *source.waits.borrow_mut();
                let take = |ids: &mut [u64]| ring.take(ids, may_wait.then_some(waits));
                source.refill_from_ring(memory, take)
            }
            // js/ reads such a clock for every ID, and waits for it.
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

    /// The number for JavaScript: negative if there is news to report; 0 if refused.
    fn answer(&self, source: &Source, reserved: Result<u64, Refusal>) -> i32 {
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

    /// Fills an array with IDs, across as many ticks as it takes: all of it or, if refused, nothing. Returns 1, or -1
    /// if there is news to report; 0 if refused.
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
