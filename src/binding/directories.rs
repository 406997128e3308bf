//! The records of a directory, for the commands `slots` and `recover`. A thread makes each call, so a disk that hangs holds
//! neither the event loop nor Node's pool of threads.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use napi::bindgen_prelude::{Either, Object};
use napi::{Env, Error};
use napi_derive::napi;

use super::values::{Value, list, report};
use crate::core::fault::{Fault, fault};
use crate::lease::{Key, Record, Token};
use crate::register::Register;

/// How long a call waits for a process that changes the record.
const CHANGE: Duration = Duration::from_secs(2);
/// How long it waits for the disk: less than `CALL_MS` in js/cli/records.js.
const DISK_OF_CALL: Duration = Duration::from_secs(9);

/// A record of a directory: `{ token, text }`; `{ unusable }`, with the reason, of a file that nobody can use; null where there is
/// none. Changes nothing.
#[napi(catch_unwind)]
pub fn look_at_record(env: &Env, directory: String, key: String) -> napi::Result<Object<'_>> {
    let key = key_of(&key)?;
    later(env, directory, move |directory| {
        let register = Register::existing(directory)?;
        match register.look(key, CHANGE) {
            Ok(None) => Ok(Value::Null),
            Ok(Some((token, text))) => Ok(report!(token: token.to_string(), text)),
            Err(failure) if register.is_unusable(key, &failure) => {
                Ok(report!(unusable: Value::from(failure.fault)))
            }
            Err(failure) => Err(failure.fault),
        }
    })
}

/// Writes a record in the place of the one with the token `before`; without it, where there must be none. Returns whether it did.
#[napi(catch_unwind)]
pub fn replace_record(
    env: &Env,
    directory: String,
    key: String,
    token: String,
    text: String,
    before: Option<String>,
) -> napi::Result<Object<'_>> {
    let key = key_of(&key)?;
    let tokens =
        [Some(token), before].map(|token| token.and_then(|digits| Token::of_text(&digits)));
    let ([Some(token), before], Ok(record)) = (tokens, Record::of_text(key, &text)) else {
        return Err(Error::from_reason("this is no record"));
    };
    later(env, directory, move |directory| {
        let mut register = Register::existing(directory)?;
        Ok(register.replace(key, (token, &record), before, CHANGE)?.into())
    })
}

/// The keys of the buckets that a directory has files of.
#[napi(catch_unwind)]
pub fn bucket_files(env: &Env, directory: String) -> napi::Result<Object<'_>> {
    later(env, directory, move |directory| {
        let keys = Register::existing(directory)?.buckets()?;
        Ok(list(keys.iter().map(Key::to_string)))
    })
}

fn key_of(key: &str) -> napi::Result<Key> {
    Key::of_text(key).ok_or_else(|| Error::from_reason("this is no key"))
}

/// A promise of what `work` returns in a thread of its own, or of a fault if that takes too long.
fn later<'call>(
    env: &'call Env,
    directory: String,
    work: impl FnOnce(&Path) -> Result<Value, Fault> + Send + 'static,
) -> napi::Result<Object<'call>> {
    let (deferred, promise) = env.create_deferred()?;
    let thread = |name: &str| thread::Builder::new().name(name.to_owned());
    thread("snowdrift-wait").spawn(move || {
        let (send, receive) = sync_channel(1);
        let place = directory.clone();
        let working =
            thread("snowdrift-disk").spawn(move || drop(send.send(work(Path::new(&directory)))));
        let answer = match receive.recv_timeout(DISK_OF_CALL) {
            _ if working.is_err() => Err(fault!("no-thread", purpose: "reads the directory")),
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => {
                Err(fault!("disk-hangs", place, waited: DISK_OF_CALL.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                return deferred.reject(Error::from_reason("Rust panicked as it used a record"));
            }
        };
        deferred.resolve(move |_| Ok(answer.map_or_else(Either::B, Either::A)));
    })?;
    Ok(promise)
}
