//! The records of a directory, for the commands `slots` and `recover`. A thread makes each call, so a disk that hangs holds
//! neither the event loop nor Node's pool of threads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use napi::bindgen_prelude::{Either, Object};
use napi::{Env, Error};
use napi_derive::napi;

use super::disk::{DISK_THREAD, later};
use super::values::{Value, list, report};
use crate::core::fault::{Fault, fault};
use crate::files::bounded::bounded;
use crate::lease::{Key, Record, Token};
use crate::register::Register;

/// How long a call waits for a process that changes the record.
const CHANGE: Duration = Duration::from_secs(2);
/// How long it waits for the disk: less than `CALL_MS` in js/cli/records.js.
const DISK_OF_CALL: Duration = Duration::from_secs(9);

/// A record of a directory: `{ token, text }`; `{ unusable }`, with the reason, of a file that nobody can use; null where there is
/// none. Changes nothing.
#[napi(catch_unwind, ts_return_type = "Promise<FoundRecord | Fault>")]
pub fn look_at_record(env: &Env, directory: String, key: String) -> napi::Result<Object<'_>> {
    let key = key_of(&key)?;
    used(env, directory, move |directory| {
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
#[napi(catch_unwind, ts_return_type = "Promise<boolean | Fault>")]
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
    used(env, directory, move |directory| {
        let mut register = Register::existing(directory)?;
        Ok(register.replace(key, (token, &record), before, CHANGE)?.into())
    })
}

/// The keys of the buckets that a directory has files of.
#[napi(catch_unwind, ts_return_type = "Promise<string[] | Fault>")]
pub fn bucket_files(env: &Env, directory: String) -> napi::Result<Object<'_>> {
    used(env, directory, move |directory| {
        let keys = Register::existing(directory)?.buckets()?;
        Ok(list(keys.iter().map(Key::to_string)))
    })
}

fn key_of(key: &str) -> napi::Result<Key> {
    Key::of_text(key).ok_or_else(|| Error::from_reason("this is no key"))
}

/// A promise of what `work` returns, or of a fault if that takes too long.
fn used<'call>(
    env: &'call Env,
    directory: String,
    work: impl FnOnce(&Path) -> Result<Value, Fault> + Send + 'static,
) -> napi::Result<Object<'call>> {
    later(env, move || {
        let directory = PathBuf::from(directory);
        let failed = |_| fault!("no-thread", purpose: "reads the directory");
        let place = directory.clone();
        let used = bounded((&place, DISK_OF_CALL), (DISK_THREAD, failed), move |answer| {
            drop(answer.send(work(&directory)));
        });
        move |_| Ok(used.map_or_else(Either::B, Either::A))
    })
}
