//! The block of IDs that JavaScript draws from, in memory shared with it. `js/generator/draw.js` is the other half.
//! There a block lasts until the end of the turn of the event loop that reserved it or the end of the ms, whichever is
//! later.

use std::cell::Cell;
use std::ptr::{self, NonNull};

use napi::bindgen_prelude::{FromNapiValue, Unknown};
use napi::{Env, check_status, sys};

use super::source::Source;
use crate::core::layout::Layout;
use crate::core::pace::{LARGEST_BLOCK, Pace, Told};
use crate::core::sequencer::Block;
use crate::generator::Reserved;

/// The part of a tick's IDs that one instance may have reserved for later turns is 1 in 32, and 64 at most. So idle
/// instances do not exhaust a tick.
const CHECKED_PART: u64 = 32;
const MOST_CHECKED: u64 = 64;

/// Memory shared with JavaScript: `js/generator/draw.js` has the same offsets. It is an array buffer's, and JavaScript can
/// detach that at any time: between two native calls Rust has no pointer to it.
#[repr(C)]
pub struct Memory {
    /// The block.
    ids: [u64; LARGEST_BLOCK as usize],
    /// The clock's Unix ms when the block was reserved. JavaScript may draw from the block in later turns while its
    /// own clock shows that ms. NaN where it may not.
    reserved_ms: f64,
    /// By JavaScript: the number of IDs of the block that it gives back with the next call.
    unused: u32,
    /// By JavaScript: whether it will notice the end of this turn.
    is_watched: u32,
    /// The most IDs of a block that JavaScript checks by its clock: 1 if it cannot.
    most_checked: u32,
    /// An [`Advice`](crate::core::pace::Advice), as a number.
    advice: u32,
    /// The number of the instance's channel.
    number: u32,
}

impl Memory {
    /// The memory in an array buffer. None for any other value, and where the buffer is detached or too short.
    ///
    /// # Safety
    /// `buffer` is a value of a call under way. JavaScript does not run while the reference is in use, and no other
    /// one to this buffer is.
    #[inline(always)]
    pub unsafe fn of_buffer<'call>(
        env: sys::napi_env,
        buffer: sys::napi_value,
    ) -> Option<&'call mut Memory> {
        let (mut start, mut len, mut is_own) = (ptr::null_mut(), 0, false);
        // SAFETY: a value of this call, and the out-pointers live. A value that is no array buffer leaves them. The
        // second call lets a SharedArrayBuffer pass (since Node 24.9).
        unsafe {
            sys::napi_is_arraybuffer(env, buffer, &mut is_own);
            sys::napi_get_arraybuffer_info(env, buffer, &mut start, &mut len);
        }
        let memory = NonNull::new(start.cast::<Memory>()).filter(|_| is_own)?;
        // SAFETY: the buffer has room for a `Memory` at an address that fits, and any bits are a value of each field.
        // Only this thread uses it: it is no SharedArrayBuffer. The caller makes this its one reference.
        (len >= size_of::<Memory>() && memory.is_aligned())
            .then(|| unsafe { &mut *memory.as_ptr() })
    }

    /// The number of the instance's channel, as far as JavaScript left it.
    pub fn number(&self) -> u32 {
        self.number
    }
}

/// The block of one instance. Its memory is an argument of each native call that draws from it.
pub struct SharedBlock {
    env: sys::napi_env,
    /// The array buffer of the memory, which lives as long as this.
    buffer: sys::napi_ref,
    /// None for IDs of a ring.
    reserved: Cell<Option<Block>>,
    pace: Cell<Pace>,
}

impl SharedBlock {
    /// A block without IDs, and the array buffer of its memory. It must not outlive the env.
    pub fn new<'env>(env: &Env, layout: &Layout) -> napi::Result<(SharedBlock, Unknown<'env>)> {
        let (mut start, mut buffer) = (ptr::null_mut(), ptr::null_mut());
        let no_memory = "no memory for a block of IDs";
        check_status!(
            // SAFETY: a call on this thread's own env; both out-pointers live.
            unsafe {
                let bytes = size_of::<Memory>();
                sys::napi_create_arraybuffer(env.raw(), bytes, &mut start, &mut buffer)
            },
            "{no_memory}"
        )?;
        let mut reference = ptr::null_mut();
        // SAFETY: as above, with the value that it has just made.
        check_status!(unsafe { sys::napi_create_reference(env.raw(), buffer, 1, &mut reference) })?;
        let (reserved, pace) = Default::default();
        let block = SharedBlock { env: env.raw(), buffer: reference, reserved, pace };
        let most_checked = ((layout.last_sequence() + 1) / CHECKED_PART).clamp(1, MOST_CHECKED);
        block.change(|memory| memory.most_checked = most_checked as u32);
        // SAFETY: `buffer` is the value that the call above has just made.
        Ok((block, unsafe { Unknown::from_napi_value(env.raw(), buffer)? }))
    }

    /// Notes the number of the channel for the calls that draw from it.
    pub fn set_number(&self, number: u32) {
        self.change(|memory| memory.number = number);
    }

    /// Whether JavaScript has detached the memory. Then no call can draw.
    pub fn is_detached(&self) -> bool {
        !self.change(|_| ())
    }

    /// Changes the memory in a call that has not been passed it. Returns false if it is detached.
    fn change(&self, change: impl FnOnce(&mut Memory)) -> bool {
        let mut buffer = ptr::null_mut();
        // SAFETY: the env and the reference live as long as this. A channel is used in calls of its own env only, and
        // none that has a reference to its memory calls this.
        let memory = unsafe {
            sys::napi_get_reference_value(self.env, self.buffer, &mut buffer);
            Memory::of_buffer(self.env, buffer)
        };
        memory.map(change).is_some()
    }

    pub fn pace(&self) -> Pace {
        self.pace.get()
    }

    /// Begins a block of consecutive IDs.
    pub fn write(&self, memory: &mut Memory, reserved: &Reserved, layout: &Layout) {
        let Reserved { first_id, block, ms } = *reserved;
        self.begin(memory, ms, block.len);
        self.reserved.set(Some(block));
        for (id, slot) in (first_id..first_id + block.len).zip(&mut memory.ids) {
            *slot = id;
        }
        // No later turn draws from a booked tick that has passed while this thread slept.
        if block.tick < layout.tick_at(ms) {
            memory.reserved_ms = f64::NAN;
        }
    }

    /// Begins a block of IDs of a ring: writes them by `take`, which returns how many.
    pub fn fill<E>(
        &self,
        memory: &mut Memory,
        ms: i64,
        take: impl FnOnce(&mut [u64]) -> Result<usize, E>,
    ) -> Result<u64, E> {
        let want = self.pace.get().at(ms).size() as usize;
        let len = take(&mut memory.ids[..want])? as u64;
        self.begin(memory, ms, len);
        Ok(len)
    }

    fn begin(&self, memory: &mut Memory, ms: i64, len: u64) {
        let mut pace = self.pace.get().at(ms);
        memory.reserved_ms = ms as f64;
        memory.advice = pace.advice() as u32;
        pace.begin_block(len);
        self.pace.set(pace);
    }

    /// Ends the block, and gives back the IDs that JavaScript has not drawn.
    pub fn end(&self, memory: &mut Memory, source: &Source) {
        self.end_unused(memory, source, memory.unused.into());
    }

    /// Ends the block, and gives back its last `unused` IDs. A number above its length is an error: then no ID is
    /// issued again.
    #[inline(always)]
    pub fn end_unused(&self, memory: &mut Memory, source: &Source, unused: u64) {
        memory.unused = 0;
        let mut pace = self.pace.get();
        let len = pace.block_len();
        pace.note(Told {
            unused,
            is_watched: memory.is_watched != 0,
            most_checked: u64::from(memory.most_checked),
        });
        self.pace.set(pace);
        let reserved = self.reserved.take();
        if !(1..=len).contains(&unused) {
            return;
        }
        match (&source.ring, reserved) {
            (Some(ring), _) => ring.keep(&memory.ids[(len - unused) as usize..len as usize]),
            (None, Some(block)) => source.give_back(&block, unused),
            _ => {}
        }
    }

    /// From now on JavaScript draws from the block within this turn only. The rest of the block is lost.
    pub fn lose(&self) {
        self.reserved.set(None);
        let mut pace = self.pace.get();
        pace.forget_block();
        self.pace.set(pace);
        self.change(|memory| memory.reserved_ms = f64::NAN);
    }
}

impl Drop for SharedBlock {
    fn drop(&mut self) {
        // SAFETY: a channel is dropped by the call that made it or by the finalizer of its object: the env lives.
        unsafe { sys::napi_delete_reference(self.env, self.buffer) };
    }
}
