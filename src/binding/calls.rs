//! The calls of the hot path. Each is a plain Node-API callback that returns an integer, the fastest kind of call. Its
//! first argument is the memory of the block, which has the number of the channel, too.
//!
//! Callers may pass anything. Then IDs may be lost or overwritten, but no other memory is accessed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use napi::bindgen_prelude::{Function, JsObjectValue, Object};
use napi::{Env, Property, sys};
use napi_derive::napi;

use super::channel::{CHANNELS, Channels};
use super::memory::{Elements, memory_of};
use crate::generator::BlockMemory;

/// Adds these calls to the class of channels. The addon must have exported it before.
#[napi(module_exports)]
pub fn add_calls(exports: Object, _env: Env) -> napi::Result<()> {
    let class: Function<(), ()> = exports.get_named_property("Channel")?;
    let mut prototype: Object = class.get_named_property("prototype")?;
    let calls = [
        ("refill", refill as napi::Callback),
        ("tryRefill", try_refill),
        ("giveBack", give_back),
        ("fill", fill),
    ];
    for (name, call) in calls {
        let channels = CHANNELS.with(ptr::from_ref).cast_mut().cast();
        let method = Property::new().with_utf8_name(name)?.with_method(call);
        prototype.define_properties(&[method.with_data(channels)])?;
    }
    Ok(())
}

/// Reserves a block. Returns its length, negative if there are events to report; 0 if refused.
unsafe extern "C" fn refill(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    // SAFETY: Node-API calls this with both.
    unsafe {
        let drawn = called(env, info, |channels, memory, [_]| {
            channels.with(memory.number, |block, source| block.refill(source, memory, true))
        });
        integer(env, drawn)
    }
}

/// Like `refill`, but without waiting.
unsafe extern "C" fn try_refill(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    // SAFETY: as above.
    unsafe {
        let drawn = called(env, info, |channels, memory, [_]| {
            channels.with(memory.number, |block, source| block.refill(source, memory, false))
        });
        integer(env, drawn)
    }
}

/// Fills a BigUint64Array; the third argument is whether it may wait. After a refusal the array has zeros, since the
/// IDs written to it will be issued again.
unsafe extern "C" fn fill(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    // SAFETY: as above. The elements are not on a SharedArrayBuffer, so they are this thread's alone until this returns,
    // and JavaScript is not called back meanwhile. No other reference to the memory or the elements is in use: they do
    // not overlap.
    unsafe {
        let filled = called(env, info, |channels, memory, [_, array, wait]| {
            let mut may_wait = false;
            sys::napi_get_value_bool(env, wait, &mut may_wait);
            let elements = Elements::of(env, array).filter(|elements| !elements.overlap(memory))?;
            Some(elements.write(|ids| {
                let filled = guarded(|| {
                    let number = memory.number;
                    channels.with(number, |block, source| block.fill(source, memory, ids, may_wait))
                });
                if filled == 0 {
                    ids.fill(0);
                }
                filled
            }))
        });
        integer(env, filled)
    }
}

/// Ends the block; the second argument is the number of its IDs that JavaScript has not drawn.
unsafe extern "C" fn give_back(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    // SAFETY: as above.
    unsafe {
        called(env, info, |channels, memory, [_, unused]| {
            let mut count = 0.0;
            sys::napi_get_value_double(env, unused, &mut count);
            // A negative count must not become a valid one.
            let unused = if count >= 0.0 { count as u64 } else { u64::MAX };
            channels.with(memory.number, |block, source| block.end_unused(memory, source, unused));
            None
        });
    }
    ptr::null_mut()
}

/// Calls a function with this thread's channels, the memory of the first argument, and all arguments, undefined if
/// missing.
///
/// # Safety
/// Both belong to one call of a function that `add_calls` made. The function uses no other reference to the memory.
#[inline(always)]
unsafe fn called<'call, const N: usize>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
    does: impl FnOnce(&'call Channels, &'call mut BlockMemory, [sys::napi_value; N]) -> Option<i32>,
) -> i32 {
    let (mut count, mut arguments) = (N, [ptr::null_mut(); N]);
    let (no_this, mut channels) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: as many arguments are requested as there is room for. The data are the channels of this thread, and no
    // function is called after its end. The caller has promised the rest.
    unsafe {
        let first = arguments.as_mut_ptr();
        sys::napi_get_cb_info(env, info, &mut count, first, no_this, &mut channels);
        let channels = channels.cast::<Channels>();
        guarded(|| does(channels.as_ref()?, memory_of(env, arguments[0])?, arguments))
    }
}

/// The result of a call, 0 for none: `js/` reports a 0 without a refusal as a closed channel. Catches panics, of which
/// none is expected, since a panic must not cross into Node.
// Inlined into each call: a shared function takes 18 ns more.
#[inline(always)]
fn guarded(call: impl FnOnce() -> Option<i32>) -> i32 {
    catch_unwind(AssertUnwindSafe(call)).ok().flatten().unwrap_or(0)
}

/// # Safety
/// The env is this call's.
#[inline]
unsafe fn integer(env: sys::napi_env, value: i32) -> sys::napi_value {
    let mut result = ptr::null_mut();
    // SAFETY: the out-pointer lives.
    unsafe { sys::napi_create_int32(env, value, &mut result) };
    result
}
