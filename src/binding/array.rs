//! The elements of a BigUint64Array of the application's. Another addon may have made its buffer, at any address.

use std::ptr;
use std::slice;

use napi::bindgen_prelude::FromNapiValue;
use napi::sys;

/// The elements of a BigUint64Array for one call.
pub struct Elements {
    start: *mut u64,
    len: usize,
}

impl Elements {
    /// None for any other value, and on a SharedArrayBuffer. A detached array has none.
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

    /// Whether any of them lie in these bytes.
    pub fn overlap<T>(&self, other: &T) -> bool {
        let (start, at) = (self.start.addr(), ptr::from_ref(other).addr());
        start < at + size_of::<T>() && at < start + size_of::<u64>() * self.len
    }

    /// Applies a function that writes all elements. Unaligned ones are written by a copy.
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

    /// A copy of them.
    pub fn read(&self) -> Vec<u64> {
        // SAFETY: there are `len` of them, at any address, and JavaScript has not run since.
        (0..self.len).map(|at| unsafe { self.start.add(at).read_unaligned() }).collect()
    }
}

/// IDs as an argument.
pub struct Ids(pub Vec<u64>);

impl FromNapiValue for Ids {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        // SAFETY: the caller's promise. They are copied at once.
        let elements = unsafe { Elements::of(env, value) };
        let no_array = || napi::Error::from_reason("no BigUint64Array");
        Ok(Ids(elements.ok_or_else(no_array)?.read()))
    }
}
