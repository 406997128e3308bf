//! What an operator sees of a line, and what `recover` writes, after a store lost data: another ID and the horizon into the namespace, then into each
//! of its buckets, so that the holders of its lines lose them (rule 7).
//!
//! Each write replaces the record that was read, so nothing is lost that a holder writes in between. It may end half done:
//! who takes a line after the first write issues above the namespace's floor, whatever its bucket says.
//!
//! Lines keep their ceilings, also those that no holder can have: under a wrong clock they may have been issued up to there.

use std::collections::BTreeMap;

use super::record::{Bucket, Key, Limits, Line, Namespace, Token};
use crate::core::layout::Tick;
use crate::core::sequencer::NEVER;

/// The floor of a namespace of which an operator has confirmed that it is new. No other way leads to it: a namespace is
/// created at [`NEVER`] or above this, and rises to a horizon.
pub const CONFIRMED: Tick = NEVER + 1;

/// What a line says to people, at a time of the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its holder may issue IDs.
    Held,
    /// It was released, or its hold has expired.
    Free,
    /// It has times that no holder can have. Nobody takes it.
    Impossible,
}

impl Line {
    /// Its state. Where the namespace is not known, any limits may be its.
    pub fn state(&self, now: i64, namespace: Option<&Namespace>) -> State {
        let is_damage = |namespace: &Namespace| {
            let highest = self.ceiling.max(self.floor);
            namespace.limits.is_damage(namespace.layout, highest, now)
        };
        let skew = namespace.map_or(0, |namespace| namespace.limits.max_clock_skew);
        match self.is_held && self.expires.saturating_add(skew) >= now {
            _ if namespace.is_some_and(is_damage) => State::Impossible,
            true => State::Held,
            false => State::Free,
        }
    }
}

impl Namespace {
    /// This namespace after a loss, under another ID, at this time of the store's clock. Its floor falls only where no holder
    /// can have written it.
    pub fn recovered(&self, id: Token, limits: Limits, now: i64) -> Namespace {
        let limits = self.limits.max(limits);
        let horizon = limits.horizon(self.layout, now);
        let is_damage = limits.is_damage(self.layout, self.floor, now);
        let floor = if is_damage { horizon } else { self.floor.max(horizon) };
        Namespace { id, limits, floor, ..self.clone() }
    }

    /// This namespace once an operator has confirmed that it is new; none where it has a floor. It replaces the record that was
    /// created: a write that creates one may come late.
    pub fn confirmed(&self) -> Option<Namespace> {
        (self.floor == NEVER).then(|| Namespace { floor: CONFIRMED, ..self.clone() })
    }

    /// Whether an operator has confirmed that it is new, and no data were lost since.
    pub fn is_confirmed(&self) -> bool {
        self.floor == CONFIRMED
    }

    /// The keys of the buckets that it counts and its layout has, of one datacenter or of all.
    pub fn counted(&self, datacenter: Option<u64>) -> impl Iterator<Item = Key> + '_ {
        let (each, all) = (self.buckets(), self.all_buckets());
        let (from, below) = match datacenter {
            Some(one) if one > self.layout.last_datacenter() => (0, 0),
            Some(one) => (one * each, (one + 1) * each),
            None => (0, all),
        };
        let numbers = self.created.within(from, below);
        numbers.map(move |number| Key::Bucket(number / each, number % each))
    }

    /// The number of buckets of all datacenters.
    pub fn all_buckets(&self) -> u64 {
        (self.layout.last_datacenter() + 1) * self.buckets()
    }
}

impl Bucket {
    /// This bucket after a loss, at this time of the store's clock: of the recovered namespace, with all its lines free, and
    /// without its damaged ones, which no holder of this version writes. None where nothing is to be written.
    pub fn recovered(&self, namespace: &Namespace, now: i64) -> Option<Bucket> {
        let Namespace { id, layout, limits, .. } = *namespace;
        let is_damage = limits.is_damage(layout, self.floor, now);
        let is_touched = self.id == id;
        if is_touched && self.damaged.is_empty() && !is_damage {
            return None;
        }
        let floor = if is_damage { NEVER } else { self.floor };
        let floor = floor.max(limits.horizon(layout, now));
        let mut lines = self.lines.clone();
        for line in lines.values_mut() {
            // Those of the recovered namespace are held above its floor.
            line.is_held &= is_touched;
        }
        Some(Bucket { id, floor, lines, damaged: BTreeMap::new() })
    }

    /// A bucket in the place of one that cannot be read. Nobody below the horizon holds a line of it any more.
    pub fn replaced(namespace: &Namespace, now: i64) -> Bucket {
        let floor = namespace.limits.horizon(namespace.layout, now);
        Bucket { floor, ..Bucket::new(namespace.id) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Holder, Ranges};
    use super::*;
    use crate::core::clock::HOUR_MS;
    use crate::core::layout::Layout;

    const LIMITS: Limits = Limits { ttl: 30_000, max_clock_skew: 10_000, max_ahead: 0 };
    const ID: Token = Token(2);

    fn namespace(floor: i64) -> Namespace {
        let layout = Layout::new([41, 1, 6, 0, 1], 1, 0);
        let (id, limits, created) = (Token(1), LIMITS, Ranges::default());
        Namespace { id, layout, limits, floor, size: 32, created }
    }

    fn line(ceiling: i64) -> Line {
        Line {
            owner: Token(3),
            token: Token(4),
            is_held: true,
            floor: NEVER,
            ceiling,
            expires: 40_000,
            holder: Holder::default(),
        }
    }

    #[test]
    fn a_recovered_namespace_begins_at_the_horizon_of_the_highest_limits() {
        let higher = Limits { ttl: 60_000, max_clock_skew: 1, max_ahead: 5 };
        let Namespace { id, limits, floor, .. } = namespace(NEVER).recovered(ID, higher, 1000);
        assert_eq!(limits, Limits { ttl: 60_000, max_clock_skew: 10_000, max_ahead: 5 });
        assert_eq!((id, floor), (ID, 81_005));
        assert_eq!(namespace(NEVER).recovered(ID, LIMITS, 1000).floor, 51_000);
    }

    #[test]
    fn a_floor_falls_only_where_it_is_damage() {
        let last = 51_000 + HOUR_MS;
        for (floor, after) in [(50_999, 51_000), (51_001, 51_001), (last, last), (last + 1, 51_000)]
        {
            assert_eq!(namespace(floor).recovered(ID, LIMITS, 1000).floor, after, "{floor}");
            let bucket = Bucket { floor, ..Bucket::new(Token(1)) };
            let namespace = namespace(NEVER).recovered(ID, LIMITS, 1000);
            assert_eq!(bucket.recovered(&namespace, 1000).map(|one| one.floor), Some(after));
        }
    }

    #[test]
    fn a_recovered_bucket_frees_its_lines_and_drops_damaged_ones() {
        let namespace = namespace(NEVER).recovered(ID, LIMITS, 1000);
        let impossible = line(1 << 40);
        let old = Bucket::new(Token(1)).with(0, line(9)).with(1, impossible.clone());
        let damaged = Bucket { damaged: BTreeMap::from([(7, "7 gone".into())]), ..old.clone() };
        for bucket in [old, damaged.clone()] {
            let after = bucket.recovered(&namespace, 1000).unwrap();
            let free = |line: Line| Line { is_held: false, ..line };
            let lines = BTreeMap::from([(0, free(line(9))), (1, free(impossible.clone()))]);
            assert_eq!(after, Bucket { id: ID, floor: 51_000, lines, damaged: BTreeMap::new() });
            // A second recover has nothing to write.
            assert_eq!(after.recovered(&namespace, 2000), None);
        }
        // A holder has taken a line of it already, and kept what nobody can read.
        let taken = Bucket { id: ID, ..damaged };
        let after = taken.recovered(&namespace, 1000).unwrap();
        assert_eq!((after.lines[&0].is_held, after.damaged.len()), (true, 0));
        let fresh = Bucket::replaced(&namespace, 1000);
        assert_eq!(fresh, Bucket { floor: 51_000, ..Bucket::new(ID) });
    }

    #[test]
    fn a_line_is_held_until_it_expired_more_than_the_skew_ago() {
        let namespace = namespace(NEVER);
        let state = |line: Line, now| line.state(now, Some(&namespace));
        assert_eq!([50_000, 50_001].map(|now| state(line(9), now)), [State::Held, State::Free]);
        assert_eq!(state(Line { is_held: false, ..line(9) }, 0), State::Free);
        assert_eq!(state(line(1 << 40), 0), State::Impossible);
        assert_eq!(state(Line { floor: 1 << 40, ..line(9) }, 0), State::Impossible);
        assert_eq!(line(1 << 40).state(0, None), State::Held);
    }

    #[test]
    fn a_namespace_is_confirmed_before_it_has_a_floor_or_never() {
        let new = namespace(NEVER);
        assert!(!new.is_confirmed());
        let confirmed = new.confirmed().unwrap();
        assert_eq!(confirmed, Namespace { floor: 0, ..new });
        assert!(confirmed.is_confirmed() && confirmed.confirmed().is_none());
        let lost = confirmed.recovered(ID, LIMITS, 1000);
        assert!(!lost.is_confirmed() && lost.confirmed().is_none());
    }

    #[test]
    fn only_buckets_of_the_layout_are_named() {
        let mut one = namespace(NEVER);
        assert_eq!(one.all_buckets(), 4);
        for number in [0, 3, 4, 9] {
            one.count(number);
        }
        let keys = |datacenter| one.counted(datacenter).collect::<Vec<_>>();
        assert_eq!(keys(None), [Key::Bucket(0, 0), Key::Bucket(1, 1)]);
        assert_eq!(keys(Some(1)), [Key::Bucket(1, 1)]);
        assert_eq!([keys(Some(2)), keys(Some(u64::MAX))], [vec![], vec![]]);
        let text = one.text().replace("buckets 0 3-4 9", "buckets 2-18446744073709551614");
        let hostile = Namespace::of_text(&text).unwrap();
        assert_eq!(hostile.counted(None).count(), 2);
        // Each bucket has its own number.
        let mut all = namespace(NEVER);
        let each = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(datacenter, bucket)| {
            all.count(all.number(datacenter, bucket));
            Key::Bucket(datacenter, bucket)
        });
        let keys = |datacenter| all.counted(datacenter).collect::<Vec<_>>();
        assert_eq!((keys(Some(0)), keys(Some(1))), (each[..2].to_vec(), each[2..].to_vec()));
        assert_eq!(keys(None), each);
        // As many as a layout can have.
        let layout = Layout::new([1, 30, 31, 0, 1], 1, 0);
        assert_eq!(Namespace { layout, size: 1, ..one }.all_buckets(), 1 << 61);
    }
}
