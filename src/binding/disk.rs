//! Promises of work that waits for a disk: in threads, since a file system may hang, and no JavaScript thread may.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use napi::bindgen_prelude::{Object, ToNapiValue};
use napi::{Env, Error};

/// The name of threads that wait for a disk.
pub const DISK_THREAD: &str = "snowdrift-disk";

/// A promise of what `work` returns in a thread, once it is made a value for JavaScript.
pub fn later<'call, T, R>(
    env: &'call Env,
    work: impl FnOnce() -> R + Send + 'static,
) -> napi::Result<Object<'call>>
where
    T: ToNapiValue + 'static,
    R: FnOnce(Env) -> napi::Result<T> + Send + 'static,
{
    let (deferred, promise) = env.create_deferred::<T, R>()?;
    thread::Builder::new().name(DISK_THREAD.to_owned()).spawn(move || {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(value_of) => deferred.resolve(value_of),
            // Otherwise the thread would end, and the promise would never settle.
            Err(_) => {
                deferred.reject(Error::from_reason("Rust panicked as it waited for the disk"))
            }
        }
    })?;
    Ok(promise)
}
