//! Memory that JavaScript passes: the memory of a block, and the elements of an array.

use std::ptr::{self, NonNull};
use std::slice;

use napi::bindgen_prelude::FromNapiValue;
use napi::sys;

use crate::generator::BlockMemory;

/// The memory of a block in an array buffer. `None` for any other value, and if the buffer is detached or too short.
/// JavaScript can detach the buffer at any time, so Rust keeps no pointer to it between two calls.
///
/// # Safety
/// `buffer` is a value of a call under way. JavaScript does not run while the reference is in use, and no other
/// one to this buffer is.
#[inline(always)]
pub unsafe fn memory_of<'call>(
    env: sys::napi_env,
    buffer: sys::napi_value,
) -> Option<&'call mut BlockMemory> {
    let (mut start, mut len, mut is_own) = (ptr::null_mut(), 0, false);
    // SAFETY: a value of this call, and the out-pointers live. A value that is no array buffer leaves them. The
    // second call lets a SharedArrayBuffer pass (since Node 24.9).
    unsafe {
        sys::napi_is_arraybuffer(env, buffer, &mut is_own);
        sys::napi_get_arraybuffer_info(env, buffer, &mut start, &mut len);
    }
    let memory = NonNull::new(start.cast::<BlockMemory>()).filter(|_| is_own)?;
    // SAFETY: the buffer has room for a `BlockMemory` at an address that fits, and any bits are a value of each field.
    // Only this thread uses it: it is no SharedArrayBuffer. The caller makes this its one reference.
    (len >= size_of::<BlockMemory>() && memory.is_aligned())
        .then(|| unsafe { &mut *memory.as_ptr() })
}

/// The elements of an application's BigUint64Array, for one call. Another addon may have created its buffer, at any
/// address.
pub struct Elements {
    start: *mut u64,
    len: usize,
}

impl Elements {
    /// `None` for any other value, and for an array on a SharedArrayBuffer. A detached array has no elements.
    ///
    /// # Safety
    /// `value` is one of a call under way, and JavaScript does not run until the elements were used.
    pub unsafe fn of(env: sys::napi_env, value: sys::napi_value) -> Option<Elements> {
        let (mut kind, mut len, mut start) = (sys::TypedarrayType::int8_array, 0, ptr::null_mut());
        let (mut buffer, no_offset, mut is_own) = (ptr::null_mut(), ptr::null_mut(), false);
        // SAFETY: a value of this call, and the out-pointers live. A value that is no typed array leaves all of them.
        unsafe {
            let look = sys::napi_get_typedarray_info;
            look(env, value, &mut kind, &mut len, &mut start, &mut buffer, no_offset);
            sys::napi_is_arraybuffer(env, buffer, &mut is_own);
        }
        let len = if start.is_null() { 0 } else { len };
        let start = start.cast();
        let is_known = is_own && kind == sys::TypedarrayType::biguint64_array;
        is_known.then_some(Elements { start, len })
    }

    /// Whether any element is in these bytes.
    pub fn overlap<T>(&self, other: &T) -> bool {
        let (start, at) = (self.start.addr(), ptr::from_ref(other).addr());
        start < at + size_of::<T>() && at < start + size_of::<u64>() * self.len
    }

    /// Calls a function that writes all elements. Writes unaligned elements by a copy.
    ///
    /// # Safety
    /// Only this thread uses the elements, and no reference to them is in use.
    #[inline]
    pub unsafe fn write<R>(&self, does: impl FnOnce(&mut [u64]) -> R) -> R {
        if self.len > 0 && self.start.is_aligned() {
            // SAFETY: they are `len` aligned numbers, which live as long as JavaScript does not run, and the caller
            // has promised the rest.
            return does(unsafe { slice::from_raw_parts_mut(self.start, self.len) });
        }
        let mut copy = vec![0; self.len];
        let result = does(&mut copy);
        // SAFETY: they have room for as many bytes, at any address.
        unsafe {
            ptr::copy_nonoverlapping(copy.as_ptr().cast::<u8>(), self.start.cast(), 8 * self.len)
        };
        result
    }
}

/// IDs as an argument.
pub struct Ids(pub Vec<u64>);

impl FromNapiValue for Ids {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        let no_array = || napi::Error::from_reason("no BigUint64Array");
        // SAFETY: the caller's promise. There are `len` of them, at any address, and they are copied at once.
        unsafe {
            let Elements { start, len } = Elements::of(env, value).ok_or_else(no_array)?;
            Ok(Ids((0..len).map(|at| start.add(at).read_unaligned()).collect()))
        }
    }
}
