//! The calls of the hot path. Each is a bare Node-API callback, the cheapest call there is: no conversion, an integer
//! out. The memory of the block carries everything else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::slice;

use napi::sys;

use super::channel::Channel;
use super::class::{Channels, arguments, channel_in};

/// Takes a channel's number: without a `this` to look into, the call takes half the time.
pub unsafe extern "C" fn refill(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    let (mut argc, mut argument, mut number) = (1, ptr::null_mut(), 0);
    let (this, mut data) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: one argument is requested and there is room for one. `data` are the channels that `Methods::add_bare`
    // made the function with.
    unsafe {
        sys::napi_get_cb_info(env, info, &mut argc, &mut argument, this, &mut data);
        sys::napi_get_value_uint32(env, argument, &mut number);
        let channels = data.cast::<Channels>().as_ref();
        integer(env, guarded(|| channels?.with(number, |channel| draw(channel, true))?))
    }
}

pub unsafe extern "C" fn try_refill(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    // SAFETY: Node-API calls this with both.
    unsafe {
        let (this, []) = arguments(env, info);
        integer(env, guarded(|| draw(channel_in(env, this)?, false)))
    }
}

#[inline(always)]
fn draw(channel: &Channel, may_wait: bool) -> Option<i32> {
    channel.with(|source| channel.draws.refill(source, may_wait))
}

/// Fills a BigUint64Array; the second argument is whether it may wait. If refused, the array holds zeros, since the IDs
/// written to it will be issued again.
pub unsafe extern "C" fn fill(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    let (mut kind, mut len, mut start, mut may_wait) = (0, 0, ptr::null_mut(), false);
    let (no_buffer, no_offset) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: Node-API calls this with both. JavaScript has checked that the first argument is a typed array without a
    // SharedArrayBuffer. So its `len` elements are this thread's alone until this returns, and JavaScript is not called
    // back meanwhile.
    unsafe {
        let (this, [array, wait]) = arguments(env, info);
        let look = sys::napi_get_typedarray_info;
        look(env, array, &mut kind, &mut len, &mut start, no_buffer, no_offset);
        sys::napi_get_value_bool(env, wait, &mut may_wait);
        let ids: &mut [u64] = match NonNull::new(start.cast()) {
            Some(start) if kind == sys::TypedarrayType::biguint64_array => {
                slice::from_raw_parts_mut(start.as_ptr(), len)
            }
            _ => &mut [],
        };
        let filled = guarded(|| {
            let channel = channel_in(env, this)?;
            channel.with(|source| channel.draws.fill(source, ids, may_wait))
        });
        if filled == 0 {
            ids.fill(0);
        }
        integer(env, filled)
    }
}

/// Ends the block; the argument is the number of its IDs that JavaScript has not drawn.
pub unsafe extern "C" fn give_back(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    let mut count = 0.0;
    // SAFETY: Node-API calls this with both.
    unsafe {
        let (this, [unused]) = arguments(env, info);
        sys::napi_get_value_double(env, unused, &mut count);
        // Not even a negative count passes for a possible one.
        let unused = if count >= 0.0 { count as u64 } else { u64::MAX };
        guarded(|| {
            let channel = channel_in(env, this)?;
            channel.with(|source| channel.draws.block.end_unused(source, unused))?;
            None
        });
    }
    ptr::null_mut()
}

/// The answer of a call, 0 for none: `js/` reports a 0 without a refusal as a closed channel. None is expected to panic,
/// and a panic must not cross into Node.
#[inline]
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
