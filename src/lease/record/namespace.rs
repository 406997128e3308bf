//! The record of a namespace.

use std::fmt::{self, Display};

use super::{FORMAT, Limits, MOST_BYTES, Token, Unreadable, id_of, lines_of, numbers, same};
use crate::core::layout::{Layout, Tick};

/// What all holders of a namespace agree on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Namespace {
    /// Another one after `recover`, and where the namespace was deleted.
    pub id: Token,
    /// The layout of its IDs.
    pub layout: Layout,
    /// The highest limits that any holder has.
    pub limits: Limits,
    /// No page that opens from now on issues at or below it.
    pub floor: Tick,
    /// The worker IDs of a bucket.
    pub size: u64,
    /// The buckets that were created.
    pub created: Ranges,
}

impl Namespace {
    /// The number of a bucket among those of all datacenters, for `created`.
    pub fn number(&self, datacenter: u64, bucket: u64) -> u64 {
        datacenter * self.buckets() + bucket
    }

    /// The number of buckets of a datacenter.
    pub fn buckets(&self) -> u64 {
        self.layout.last_worker() / self.size + 1
    }

    /// Counts a bucket as created. Where the text becomes too long, the closest ranges are joined: a bucket that is counted and
    /// was never created looks lost, which costs a wait, and no ID.
    pub fn count(&mut self, number: u64) {
        self.created.insert(number);
        while self.text().len() > MOST_BYTES && self.created.join() {}
    }

    /// The text.
    pub fn text(&self) -> String {
        let Namespace { id, layout, limits, floor, size, created } = self;
        let Limits { ttl, max_clock_skew, max_ahead } = limits;
        let widths = layout.widths().map(|bits| bits.to_string()).join(".");
        let (tick, epoch) = (layout.tick_ms, layout.epoch_ms);
        format!(
            "{FORMAT} namespace {id}\nlayout {widths} {tick} {epoch}\nlimits {ttl} {max_clock_skew} {max_ahead}\nfloor {floor}\nsize {size}\nbuckets{created}"
        )
    }

    /// The namespace of a text.
    pub fn of_text(text: &str) -> Result<Namespace, Unreadable> {
        let lines = lines_of(text)?;
        let words = |at: usize, name: &str| -> Result<&[&str], Unreadable> {
            let words = lines.get(at - 1).and_then(|line| line.split_first());
            words
                .filter(|(first, _)| **first == name)
                .map(|(_, rest)| rest)
                .ok_or(Unreadable::Line(at))
        };
        let id = id_of(&lines, "namespace")?;
        let layout = read_layout(words(2, "layout")?).ok_or(Unreadable::Line(2))?;
        let limits = numbers(words(3, "limits")?).ok_or(Unreadable::Line(3))?;
        let [ttl, max_clock_skew, max_ahead] = limits;
        let limits = Limits { ttl, max_clock_skew, max_ahead };
        let [floor] = numbers(words(4, "floor")?).ok_or(Unreadable::Line(4))?;
        let [size] = numbers(words(5, "size")?).ok_or(Unreadable::Line(5))?;
        let size = SIZES.into_iter().find(|one| *one == size as u64).ok_or(Unreadable::Line(5))?;
        let created = Ranges::of_words(words(6, "buckets")?).ok_or(Unreadable::Line(6))?;
        let found = Namespace { id, layout, limits, floor, size, created };
        same(text, &found.text()).map(|()| found)
    }
}

/// The worker IDs of a bucket: 8 in a store that is slow or keeps every version, 1 in a directory.
pub const SIZES: [u64; 3] = [1, 8, 32];

/// Numbers of buckets, as ranges that neither touch nor overlap, the lowest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Whether it contains a number.
    pub fn contains(&self, number: u64) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < number);
        self.0.get(at).is_some_and(|(first, _)| *first <= number)
    }

    /// Adds a number.
    pub fn insert(&mut self, number: u64) {
        if self.contains(number) {
            return;
        }
        let at = self.0.partition_point(|(_, last)| *last < number);
        self.0.insert(at, (number, number));
        for at in [at, at.wrapping_sub(1)] {
            let touches = |pair: &[(u64, u64)]| pair[0].1 + 1 == pair[1].0;
            if self.0.get(at..at.wrapping_add(2)).is_some_and(touches) {
                self.join_at(at);
            }
        }
    }

    /// Joins the two ranges that are closest. Returns whether there were two.
    fn join(&mut self) -> bool {
        let gap = |at: &usize| self.0[at + 1].0 - self.0[*at].1;
        let closest = (0..self.0.len().saturating_sub(1)).min_by_key(gap);
        closest.map(|at| self.join_at(at)).is_some()
    }

    fn join_at(&mut self, at: usize) {
        let (_, last) = self.0.remove(at + 1);
        self.0[at].1 = last;
    }

    /// The numbers from one to below another, the lowest first.
    pub fn within(&self, from: u64, below: u64) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(move |(first, last)| from.max(*first)..below.min(*last + 1))
    }

    fn of_words(words: &[&str]) -> Option<Ranges> {
        let mut ranges = Vec::<(u64, u64)>::new();
        for word in words {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            let is_next =
                ranges.last().is_none_or(|(_, before)| before.checked_add(1) < Some(first));
            (first <= last && last < u64::MAX && is_next).then(|| ranges.push((first, last)))?;
        }
        Some(Ranges(ranges))
    }
}

impl Display for Ranges {
    /// Each range after a space.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(first, last)| match first == last {
            true => write!(out, " {first}"),
            false => write!(out, " {first}-{last}"),
        })
    }
}

fn read_layout(words: &[&str]) -> Option<Layout> {
    let (widths, rest) = words.split_first()?;
    let widths: Option<Vec<u8>> = widths.split('.').map(|width| width.parse().ok()).collect();
    let [tick_ms, epoch_ms] = numbers(rest)?;
    Layout::new(widths?.try_into().ok()?, tick_ms, epoch_ms).checked().ok()
}
