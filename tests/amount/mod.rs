//! How much of something a test does. `TESTS=all` does all of it, as `.ci/run` does; `TESTS_TIMES=100` a
//! hundred times as much of what has no end: seeds, kills, seconds.

#![allow(dead_code, reason = "not every test has seeds, or storms")]

use std::env;
use std::time::Duration;

/// Whether all is tested, however long it takes.
pub fn is_all() -> bool {
    match env::var("TESTS").as_deref() {
        Ok("all") => true,
        Ok(other) => panic!("TESTS is '{other}', and may be 'all'"),
        Err(_) => false,
    }
}

pub fn amount(usual: u64, all: u64) -> u64 {
    (if is_all() { all } else { usual }) * number("TESTS_TIMES").unwrap_or(1)
}

/// How long each storm lasts.
pub fn storm() -> Duration {
    Duration::from_secs(amount(1, 3))
}

/// The seed that is to run alone.
pub fn seed() -> Option<u64> {
    number("TESTS_SEED")
}

/// The number in an environment variable, if it is set.
fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number; it is '{text}'")))
}
