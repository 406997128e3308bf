//! The two kinds of record, as values and as texts: a namespace, and a bucket with a line for each worker ID.
//!
//! ```text
//! snowdrift2 namespace 3f0c5a7d11e2b694      snowdrift2 bucket 3f0c5a7d11e2b694 -1
//! layout 41.3.5.2.12 1 1580486400000         0 held 55d0c2f1a7b3e498 0000a1f3 -1 205113630000 1785600030000 4711 1785590000000 10.0.0.7:8080 web-1
//! limits 30000 10000 0                       7 free 0bb1e0d9c2f4a356 77ab01c2 204513600000 204513612345 1785000030000 512 1784990000000 - web-2
//! floor -1
//! size 32
//! buckets 0-3 7
//! ```
//!
//! JavaScript carries the texts and reads none. A text has one spelling: what differs from it was not written by a holder.

mod bucket;
mod namespace;

use std::fmt::{self, Display};

use crate::core::clock::HOUR_MS;
use crate::core::layout::{Layout, Tick};

pub use bucket::{Bucket, Holder, Line};
pub use namespace::{Namespace, Ranges, SIZES};

/// A random number, drawn once: the token of a write or of a line, or the ID of a namespace or page. 0 is none.
///
/// The token of a record is the condition of the next write. It is never a version that the store counts: such a counter
/// comes back when the store goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(test), derive(Hash))]
pub struct Token(pub u64);

impl Token {
    /// The token that is spelled so; none for any other text, and for zeros.
    pub fn of_text(digits: &str) -> Option<Token> {
        u64::from_str_radix(digits, 16).ok().filter(|number| *number != 0).map(Token)
    }
}

impl Display for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

/// The name of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// The namespace itself.
    Namespace,
    /// A datacenter's bucket.
    Bucket(u64, u64),
}

impl Key {
    /// The key that is spelled so; none for any other text.
    pub fn of_text(text: &str) -> Option<Key> {
        let key = match text.split_once('/') {
            None => Key::Namespace,
            Some((datacenter, bucket)) => {
                Key::Bucket(datacenter.parse().ok()?, bucket.parse().ok()?)
            }
        };
        (key.to_string() == text).then_some(key)
    }
}

impl Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Namespace => out.write_str("namespace"),
            Key::Bucket(datacenter, bucket) => write!(out, "{datacenter}/{bucket}"),
        }
    }
}

/// How long holders hold a line, and how far they are ahead of the store's clock at most, ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The time for which a renewal holds.
    pub ttl: i64,
    /// The difference of a holder's clock from the store's.
    pub max_clock_skew: i64,
    /// How far ahead of its clock a holder issues.
    pub max_ahead: i64,
}

impl Limits {
    /// The highest ceiling that a holder may ask for at this time of the store's clock.
    pub fn cap(&self, layout: Layout, now: i64) -> Tick {
        let Limits { ttl, max_clock_skew, max_ahead } = *self;
        layout.tick_at(
            now.saturating_add(ttl).saturating_add(max_clock_skew).saturating_add(max_ahead),
        )
    }

    /// A tick above each ceiling that was confirmed before data were lost. It has the skew once more than [`Limits::cap`]:
    /// the failover that lost the data may have set the store's clock back.
    pub fn horizon(&self, layout: Layout, now: i64) -> Tick {
        layout.tick_at(now.saturating_add(self.reach()))
    }

    /// How far the horizon is ahead, ms.
    pub fn reach(&self) -> i64 {
        let Limits { ttl, max_clock_skew, max_ahead } = *self;
        ttl.saturating_add(2 * max_clock_skew).saturating_add(max_ahead)
    }

    /// Whether no holder can have written this tick: it is an hour beyond the horizon, so it is damage.
    pub fn is_damage(&self, layout: Layout, tick: Tick, now: i64) -> bool {
        tick > self.horizon(layout, now.saturating_add(HOUR_MS))
    }

    /// The higher of each.
    pub fn max(self, other: Limits) -> Limits {
        Limits {
            ttl: self.ttl.max(other.ttl),
            max_clock_skew: self.max_clock_skew.max(other.max_clock_skew),
            max_ahead: self.max_ahead.max(other.max_ahead),
        }
    }
}

/// The longest text of a record, in bytes.
pub const MOST_BYTES: usize = 16 << 10;
/// The first word. Another one is of another version.
const FORMAT: &str = "snowdrift2";

/// Why a text is no record of this version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Unreadable {
    /// It has so many bytes.
    Long(usize),
    /// It begins with another word.
    Format,
    /// This line, counted from 1, is none that a holder writes there.
    Line(usize),
}

/// The lines of a text, as words.
fn lines_of(text: &str) -> Result<Vec<Vec<&str>>, Unreadable> {
    if text.len() > MOST_BYTES {
        return Err(Unreadable::Long(text.len()));
    }
    Ok(text.split('\n').map(|line| line.split(' ').collect()).collect())
}

/// The ID in the first line, which names format and kind.
fn id_of(lines: &[Vec<&str>], kind: &str) -> Result<Token, Unreadable> {
    let head = &lines[0];
    if head[0] != FORMAT {
        return Err(Unreadable::Format);
    }
    let id = head.get(1).filter(|word| **word == kind).and(head.get(2));
    id.and_then(|word| Token::of_text(word)).ok_or(Unreadable::Line(1))
}

fn numbers<const N: usize>(words: &[&str]) -> Option<[i64; N]> {
    let numbers: Option<Vec<i64>> = words.iter().map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// A text has one spelling. The error names the first line that differs from it.
fn same(text: &str, spelled: &str) -> Result<(), Unreadable> {
    let differs = |(one, other): (&str, &str)| one != other;
    match text == spelled {
        true => Ok(()),
        false => {
            let at = text.split('\n').zip(spelled.split('\n')).position(differs);
            let least = || text.split('\n').count().min(spelled.split('\n').count());
            Err(Unreadable::Line(at.unwrap_or_else(least) + 1))
        }
    }
}

#[cfg(test)]
mod tests;
