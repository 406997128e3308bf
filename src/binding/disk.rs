//! Work that waits for a disk: in threads, since a file system may hang, and neither a JavaScript thread nor a promise may.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use napi::bindgen_prelude::{Object, ToNapiValue};
use napi::{Env, Error};

use crate::core::fault::{Fault, fault};

/// What `work` returns, or a fault if that takes too long. Its result is dropped then.
pub fn bounded<T: Send + 'static>(
    (place, at_most): (PathBuf, Duration),
    purpose: &'static str,
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let (send, receive) = sync_channel(1);
    in_thread(move || drop(send.send(work()))).map_err(|_| fault!("no-thread", purpose))?;
    match receive.recv_timeout(at_most) {
        Ok(done) => done,
        Err(RecvTimeoutError::Timeout) => {
            Err(fault!("disk-hangs", place, waited: at_most.as_secs()))
        }
        Err(RecvTimeoutError::Disconnected) => {
            resume_unwind(Box::new("the thread that waits for the disk"))
        }
    }
}

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
    in_thread(move || match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value_of) => deferred.resolve(value_of),
        // Otherwise the thread would end, and the promise would never settle.
        Err(_) => deferred.reject(Error::from_reason("Rust panicked as it waited for the disk")),
    })?;
    Ok(promise)
}

fn in_thread(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name("snowdrift-disk".to_owned()).spawn(work).map(drop)
}
