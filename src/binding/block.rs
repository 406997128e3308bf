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

/// Memory shared with JavaScript: `js/generator/draw.js` has the same offsets.
#[repr(C)]
struct Memory {
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
}

/// The memory of one instance, and what is known of its block.
pub struct SharedBlock {
    memory: NonNull<Memory>,
    /// None for IDs of a ring.
    reserved: Cell<Option<Block>>,
    pace: Cell<Pace>,
}

impl SharedBlock {
    /// A block without IDs, and the array buffer that it lives in. It must not outlive the array buffer.
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
        let memory = NonNull::new(start.cast())
            .ok_or_else(|| napi::Error::from_reason(no_memory.to_owned()))?;
        let block = SharedBlock { memory, reserved: Cell::new(None), pace: Cell::default() };
        let most_checked = ((layout.last_sequence() + 1) / CHECKED_PART).clamp(1, MOST_CHECKED);
        block.memory().most_checked = most_checked as u32;
        // SAFETY: `buffer` is the value that the call above has just made.
        Ok((block, unsafe { Unknown::from_napi_value(env.raw(), buffer)? }))
    }

    /// At most one such reference may be in use.
    #[expect(clippy::mut_from_ref, reason = "it is JavaScript's, and this thread's alone")]
    fn memory(&self) -> &mut Memory {
        // SAFETY: the array buffer has room for a `Memory`, and any bits are a value of each field. It lives as long
        // as the object. A caller has the object as `this`, or has its number and keeps the object alive. Only this
        // thread uses the memory: while Rust does, JavaScript does not run.
        unsafe { &mut *self.memory.as_ptr() }
    }

    pub fn pace(&self) -> Pace {
        self.pace.get()
    }

    /// Begins a block of consecutive IDs.
    pub fn write(&self, reserved: &Reserved, layout: &Layout) {
        let Reserved { first_id, block, ms } = *reserved;
        self.begin(ms, block.len);
        self.reserved.set(Some(block));
        let memory = self.memory();
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
        ms: i64,
        take: impl FnOnce(&mut [u64]) -> Result<usize, E>,
    ) -> Result<u64, E> {
        let want = self.pace.get().at(ms).size() as usize;
        let len = take(&mut self.memory().ids[..want])? as u64;
        self.begin(ms, len);
        Ok(len)
    }

    fn begin(&self, ms: i64, len: u64) {
        let mut pace = self.pace.get().at(ms);
        let memory = self.memory();
        memory.reserved_ms = ms as f64;
        memory.advice = pace.advice() as u32;
        pace.begin_block(len);
        self.pace.set(pace);
    }

    /// Ends the block, and gives back the IDs that JavaScript has not drawn.
    pub fn end(&self, source: &Source) {
        self.end_unused(source, self.memory().unused.into());
    }

    /// Ends the block, and gives back its last `unused` IDs. A number above its length is an error: then no ID is
    /// issued again.
    #[inline(always)]
    pub fn end_unused(&self, source: &Source, unused: u64) {
        let memory = self.memory();
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
        match (source, reserved) {
            (Source::Ring(ring), _) => {
                ring.keep(&memory.ids[(len - unused) as usize..len as usize])
            }
            (source, Some(block)) => source.generator().give_back(&block, unused),
            _ => {}
        }
    }

    /// From now on JavaScript draws from the block within this turn only. The rest of the block is lost.
    pub fn lose(&self) {
        self.reserved.set(None);
        let mut pace = self.pace.get();
        pace.forget_block();
        self.pace.set(pace);
        self.memory().reserved_ms = f64::NAN;
    }
}
