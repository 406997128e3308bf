//! Opens generators: from a request to a channel, synchronously or in a thread.

#[cfg(unix)]
use std::panic::catch_unwind;
use std::time::Duration;

use napi::Env;
use napi::bindgen_prelude::{Either, Either3, Object};
use napi_derive::napi;

use super::channel::Channel;
use super::disk::later;
use super::leases::{LeaseDriver, LeaseSettings};
use super::request::{Requested, Wanted};
use super::source::Source;
use super::values::answer;
use crate::core::fault::Fault;

/// The longest wait for releases at the end of the process.
#[cfg(unix)]
const AT_EXIT: Duration = Duration::from_millis(500);

/// The longest wait of a constructor until the clock has passed a slot's floor: the layout's tick may be long, and the clock may be
/// behind what was issued.
const FLOOR: Duration = Duration::from_secs(1);
/// The same without blocking the thread.
const LATER_FLOOR: Duration = Duration::from_secs(60);

/// A channel, or a fault; undefined if the host has no directory for pages.
type Opened<'call> = Either3<Object<'call>, Fault, ()>;

/// Opens a channel. For a slot of a directory, blocks the thread for the disk, and until the slot is free if the request
/// allows a wait.
#[napi(catch_unwind, ts_return_type = "Opened")]
pub fn open(env: &Env, request: Requested) -> napi::Result<Opened<'_>> {
    opened_as(open_source(request, FLOOR), |source| Channel::build(env, source))
}

/// Like `open`, but without blocking the thread.
#[napi(catch_unwind, ts_return_type = "Promise<Opened>")]
pub fn open_later(env: &Env, request: Requested) -> napi::Result<Object<'_>> {
    later(env, move || {
        let source = open_source(request, LATER_FLOOR);
        move |env| -> napi::Result<Opened<'static>> {
            opened_as(source, |source| Channel::build(&env, source))
        }
    })
}

/// Applies `make` to the result; passes on a fault, or undefined.
fn opened_as<T, R>(
    found: Result<Option<T>, Fault>,
    make: impl FnOnce(T) -> napi::Result<R>,
) -> napi::Result<Either3<R, Fault, ()>> {
    Ok(match found {
        Ok(Some(found)) => Either3::A(make(found)?),
        Ok(None) => Either3::C(()),
        Err(fault) => Either3::B(fault),
    })
}

fn open_source(Requested(wanted): Requested, floor: Duration) -> Result<Option<Source>, Fault> {
    #[cfg(windows)]
    stay_loaded();
    let wanted = wanted?;
    let Some(leasing) = &wanted.leasing else { return Source::open(&wanted) };
    #[cfg(unix)]
    release_at_exit();
    Source::lease(&wanted, leasing, floor).map(Some)
}

/// A lease from a store, still without a slot. `mono`: ms of the host's monotonic clock; `wall`: Unix ms.
#[napi(catch_unwind)]
pub fn open_lease(
    request: Requested,
    settings: LeaseSettings,
    mono: f64,
    wall: f64,
) -> Either<LeaseDriver, Fault> {
    answer(|| {
        let Wanted { request, caching, .. } = request.0?;
        Ok(LeaseDriver::new(request, settings, caching, (mono, wall))?)
    })
}

/// Marks slots as released in their files when `process.exit()` ends the process: Node does not drop the instances'
/// shares then. No JavaScript runs any more at that time.
///
/// Not on Windows: all other threads have ended by then, including the threads that release slots.
#[cfg(unix)]
fn release_at_exit() {
    extern "C" fn release() {
        // A panic must not unwind into libc.
        let _ = catch_unwind(|| crate::registry::release_all(AT_EXIT));
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function unwinds nowhere, and stays loaded (docs/contributing/decisions.md: "The addon is never unloaded"). If
        // there is no room for it, slots look like those of a process that died.
        let _ = unsafe { libc::atexit(release) };
    });
}

/// Keeps the addon loaded until the process ends. Node unloads it with the last thread that loaded it, and the process
/// would lose the record of its issued IDs. (On Unix it stays loaded anyway: with glibc by `-z nodelete`, with musl
/// since `dlclose` unloads nothing, on macOS by its thread-local variables.)
#[cfg(windows)]
fn stay_loaded() {
    use std::ptr::{null_mut, without_provenance};
    use windows_sys::Win32::System::LibraryLoader::{
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN, GetModuleHandleExW,
    };
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN;
        let mut module = null_mut();
        let inside = without_provenance((&raw const ONCE).addr());
        // SAFETY: the address is one of the addon's own, and `module` has room for the answer.
        let _ = unsafe { GetModuleHandleExW(flags, inside, &mut module) };
    });
}
