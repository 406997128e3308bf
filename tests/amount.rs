//! How much of something a test does: as much as storms take with `TESTS=storms`, and a hundred times as much of what
//! has no end (seeds, kills, seconds) with `TESTS_TIMES=100`.
//!
//! A storm is a test whose result may depend on when the scheduler runs a process, or that takes long. Storms are
//! ignored here. `npm run storms -- rust` runs them beside all others:
//! `TESTS=storms cargo test -- --include-ignored --skip figures::`.

#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "tests of Linux alone use the rest")
)]

use std::env;
use std::time::Duration;

/// Whether storms run.
pub fn is_storms() -> bool {
    match env::var("TESTS").as_deref() {
        Ok("storms") => true,
        Ok("quick" | "gate" | "platform") | Err(_) => false,
        Ok(other) => {
            panic!("TESTS is '{other}', and may be 'quick', 'gate', 'storms' or 'platform'")
        }
    }
}

/// So much, or `storms` where storms run.
pub fn amount(usual: u64, storms: u64) -> u64 {
    (if is_storms() { storms } else { usual }) * number("TESTS_TIMES").unwrap_or(1)
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
