//! The records of a store, as typed values and as texts. JavaScript carries the texts and looks into none.

use std::num::NonZeroU64;

use crate::core::clock::HOUR_MS;
use crate::core::layout::{Layout, Tick};

/// The random number of one write of a record. A write replaces only the record that has a certain token, so a token
/// belongs to one predecessor, and comes back in no other way than with the data.
pub type Token = NonZeroU64;

/// The worker IDs of a bucket. A search lists one bucket, however many worker IDs the layout has.
pub const BUCKET: u64 = 64;

/// The name of a record below its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// The namespace's own record.
    Namespace,
    /// A bucket of a datacenter's slots.
    Bucket(u64, u64),
    /// A slot, by datacenter and worker.
    Slot(u64, u64),
}

impl Key {
    /// The name in the store.
    pub fn text(self) -> String {
        match self {
            Key::Namespace => "namespace".to_owned(),
            Key::Bucket(datacenter, bucket) => format!("{}made", Key::prefix(datacenter, bucket)),
            Key::Slot(datacenter, worker) => {
                format!("{}{worker}", Key::prefix(datacenter, worker / BUCKET))
            }
        }
    }

    /// What the names of a bucket's records begin with.
    pub fn prefix(datacenter: u64, bucket: u64) -> String {
        format!("slots/{datacenter}/{bucket}/")
    }

    /// The key of a name; none of another one's.
    pub fn of_text(text: &str) -> Option<Key> {
        let key = match text.split('/').collect::<Vec<_>>()[..] {
            ["namespace"] => Key::Namespace,
            ["slots", datacenter, bucket, "made"] => {
                Key::Bucket(datacenter.parse().ok()?, bucket.parse().ok()?)
            }
            ["slots", datacenter, _, worker] => {
                Key::Slot(datacenter.parse().ok()?, worker.parse().ok()?)
            }
            _ => return None,
        };
        (key.text() == text).then_some(key)
    }
}

/// How long holders of a namespace may hold a slot, and how far they may be ahead of the store's clock, in ms.
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
    /// The furthest that a ceiling can be ahead of the store's clock.
    pub fn reach(&self) -> i64 {
        self.ttl.saturating_add(self.max_clock_skew).saturating_add(self.max_ahead)
    }

    /// A tick above every ceiling that a holder can have had confirmed until this time of the store's clock.
    pub fn horizon(&self, layout: Layout, latest: i64) -> Tick {
        layout.tick_at(latest.saturating_add(self.reach()))
    }

    /// Whether nobody can have had this tick confirmed, by the store's clock and an hour: it is damage.
    pub fn is_impossible(&self, layout: Layout, tick: Tick, latest: i64) -> bool {
        let hour = (HOUR_MS / layout.tick_ms).max(1);
        tick > self.horizon(layout, latest).saturating_add(hour)
    }

    /// The latest expiry that a holder can have recorded.
    pub fn longest_hold(&self, latest: i64) -> i64 {
        latest.saturating_add(self.ttl).saturating_add(self.max_clock_skew)
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

/// A namespace: what all its holders agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Namespace {
    /// A random ID. It changes where the namespace was lost and created anew.
    pub id: u128,
    /// The layout of its IDs.
    pub layout: Layout,
    /// What its holders may use.
    pub limits: Limits,
    /// No holder that comes from now on issues at or below it.
    pub floor: Floor,
}

/// What a slot's record says to those who look for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its holder has it.
    Held,
    /// Others may take it, and issue above this tick.
    Free(Tick),
    /// It has a ceiling that no holder can have.
    Impossible,
}

impl Namespace {
    /// Judges a slot's record. `now` is the earliest time that the store's clock can show, and the latest.
    pub fn standing(&self, slot: &Slot, now: (i64, i64)) -> Standing {
        let (earliest, latest) = now;
        let highest = slot.ceiling.max(slot.floor);
        let is_living = slot.expires > earliest && slot.expires <= self.limits.longest_hold(latest);
        if self.limits.is_impossible(self.layout, highest, latest) {
            Standing::Impossible
        } else if slot.is_held && is_living && slot.namespace == self.id {
            Standing::Held
        } else {
            Standing::Free(highest)
        }
    }
}

/// The floor of a namespace. The condition that there is no record may come true again, when data are lost: a write that
/// creates one may be late. So it leaves the floor open, and the next reader writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Floor {
    /// Open, for a namespace that is new.
    New,
    /// Open, for one that may have been lost.
    Lost,
    /// This tick.
    At(Tick),
}

impl Floor {
    /// As a word of a namespace's text.
    pub fn text(self) -> String {
        match self {
            Floor::New => "new".to_owned(),
            Floor::Lost => "lost".to_owned(),
            Floor::At(tick) => tick.to_string(),
        }
    }

    /// The floor of a word; none of another one's.
    pub fn of_text(text: &str) -> Option<Floor> {
        match text {
            "new" => Some(Floor::New),
            "lost" => Some(Floor::Lost),
            tick => tick.parse().ok().map(Floor::At),
        }
    }
}

/// A bucket: what became of its slots. A bit for each worker ID, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// The namespace's ID.
    pub namespace: u128,
    /// Somebody creates it, or has. One that is absent is lost, then, and not new.
    pub made: u64,
    /// Somebody else than its first creator has found it absent or unused, and takes it as a lost one.
    pub lost: u64,
}

/// A slot, and who holds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The namespace's ID.
    pub namespace: u128,
    /// The holder's page. It stays after the holder has released the slot, for people.
    pub owner: u128,
    /// Whether the owner holds it until `expires`, or has released it.
    pub is_held: bool,
    /// The owner issues nothing at or below it.
    pub floor: Tick,
    /// Nobody before the owner, and not the owner, issues above it.
    pub ceiling: Tick,
    /// When others may take it, Unix ms by the store's clock.
    pub expires: i64,
    /// Of whom it is, for people.
    pub holder: Holder,
}

impl Slot {
    /// This slot, which an operator frees for a namespace with such a floor. No ceiling falls: its holder may renew it until then.
    pub fn freed(self, namespace: u128, floor: Tick) -> Slot {
        let ceiling = self.ceiling.max(self.floor).max(floor);
        Slot { namespace, is_held: false, ceiling, ..self }
    }
}

/// The holder of a slot, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// When that began, Unix ms.
    pub started: i64,
    /// Whether it has claimed this slot, and wants no other.
    pub is_claim: bool,
    /// The host and port at which it serves; empty where it does not. It has no space.
    pub address: String,
    /// Its host.
    pub host: String,
}

/// Any record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// Under [`Key::Namespace`].
    Namespace(Namespace),
    /// Under [`Key::Bucket`].
    Bucket(Bucket),
    /// Under [`Key::Slot`]: of this namespace's ID, and held by nobody yet. The condition that there is no record may come true
    /// again, so a write that creates a record may be late, and must not allow anything.
    Made(u128),
    /// Under [`Key::Slot`].
    Slot(Slot),
    /// What no holder of this version writes: it is left as it is.
    Damaged,
}

/// The first word of a text. Another one is of another version.
const FORMAT: &str = "snowdrift1";

impl Record {
    /// The text: words, and last the host, which may be any text.
    pub fn text(&self) -> String {
        match self {
            Record::Namespace(Namespace { id, layout, limits, floor }) => {
                let widths = layout.widths().map(|bits| bits.to_string()).join(".");
                let Limits { ttl, max_clock_skew, max_ahead } = limits;
                let (tick, epoch, floor) = (layout.tick_ms, layout.epoch_ms, floor.text());
                format!(
                    "{FORMAT} namespace {id:032x} {widths} {tick} {epoch} {ttl} {max_clock_skew} {max_ahead} {floor}"
                )
            }
            Record::Bucket(Bucket { namespace, made, lost }) => {
                format!("{FORMAT} bucket {namespace:032x} {made:016x} {lost:016x}")
            }
            Record::Made(namespace) => format!("{FORMAT} made {namespace:032x}"),
            Record::Damaged => String::new(),
            Record::Slot(Slot { namespace, owner, is_held, floor, ceiling, expires, holder }) => {
                let state = if *is_held { "held" } else { "free" };
                let Holder { pid, started, is_claim, address, host } = holder;
                let wish = if *is_claim { "this" } else { "any" };
                format!(
                    "{FORMAT} {state} {namespace:032x} {owner:032x} {floor} {ceiling} {expires} {wish} {pid} {started} {address} {host}"
                )
            }
        }
    }

    /// The record of a text; none of a text that no holder of this version writes.
    pub fn of_text(text: &str) -> Option<Record> {
        let mut words = text.split(' ');
        let format = words.next()?;
        let kind = words.next()?;
        let hex = |word: Option<&str>| u128::from_str_radix(word?, 16).ok();
        let number = |word: Option<&str>| word?.parse::<i64>().ok();
        let record = match kind {
            "namespace" => {
                let id = hex(words.next())?;
                let widths: Vec<u8> =
                    words.next()?.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
                let widths = widths.try_into().ok()?;
                let (tick_ms, epoch_ms) = (number(words.next())?, number(words.next())?);
                let layout = Layout::new(widths, tick_ms, epoch_ms).checked().ok()?;
                let limits = Limits {
                    ttl: number(words.next())?,
                    max_clock_skew: number(words.next())?,
                    max_ahead: number(words.next())?,
                };
                let floor = Floor::of_text(words.next()?)?;
                Record::Namespace(Namespace { id, layout, limits, floor })
            }
            "bucket" => {
                let namespace = hex(words.next())?;
                let mut bits = || u64::from_str_radix(words.next()?, 16).ok();
                Record::Bucket(Bucket { namespace, made: bits()?, lost: bits()? })
            }
            "made" => Record::Made(hex(words.next())?),
            "held" | "free" => Record::Slot(Slot {
                is_held: kind == "held",
                namespace: hex(words.next())?,
                owner: hex(words.next())?,
                floor: number(words.next())?,
                ceiling: number(words.next())?,
                expires: number(words.next())?,
                holder: Holder {
                    is_claim: words.next()? == "this",
                    pid: words.next()?.parse().ok()?,
                    started: number(words.next())?,
                    address: words.next()?.to_owned(),
                    host: words.by_ref().collect::<Vec<_>>().join(" "),
                },
            }),
            _ => return None,
        };
        // One text for one record: what differs was not written by a holder.
        (format == FORMAT && record.text() == text).then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> [Record; 5] {
        let limits = Limits { ttl: 30_000, max_clock_skew: 10_000, max_ahead: 0 };
        let slot = Slot {
            namespace: u128::MAX / 3,
            owner: 7,
            is_held: true,
            floor: -1,
            ceiling: 1 << 40,
            expires: 1_795_000_000_000,
            holder: Holder {
                pid: 4711,
                started: 1_794_000_000_000,
                is_claim: true,
                address: "10.0.0.7:8080".to_owned(),
                host: "a host  é ".to_owned(),
            },
        };
        [
            Record::Namespace(Namespace {
                id: 1,
                layout: Layout::NODE,
                limits,
                floor: Floor::At(-1),
            }),
            Record::Bucket(Bucket { namespace: 1, made: 5, lost: 4 }),
            Record::Made(1),
            Record::Slot(slot.clone()),
            Record::Slot(Slot { is_held: false, holder: Holder::default(), ..slot }),
        ]
    }

    /// Versions of snowdrift share stores.
    #[test]
    fn records_have_the_same_texts_in_all_versions() {
        let texts: Vec<_> = records().iter().map(Record::text).collect();
        assert_eq!(
            texts,
            [
                "snowdrift1 namespace 00000000000000000000000000000001 41.3.5.2.12 1 1580486400000 30000 10000 0 -1",
                "snowdrift1 bucket 00000000000000000000000000000001 0000000000000005 0000000000000004",
                "snowdrift1 made 00000000000000000000000000000001",
                "snowdrift1 held 55555555555555555555555555555555 00000000000000000000000000000007 -1 1099511627776 1795000000000 this 4711 1794000000000 10.0.0.7:8080 a host  é ",
                "snowdrift1 free 55555555555555555555555555555555 00000000000000000000000000000007 -1 1099511627776 1795000000000 any 0 0  ",
            ]
        );
        for record in records() {
            assert_eq!(Record::of_text(&record.text()), Some(record));
        }
    }

    #[test]
    fn a_text_that_no_holder_writes_is_no_record() {
        for record in records() {
            let text = record.text();
            for at in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
                let shorter = &text[..at];
                assert!(Record::of_text(shorter).is_none_or(|other| other.text() == shorter));
                let other = format!("{}\0{}", &text[..at], &text[at..]);
                assert!(Record::of_text(&other).is_none_or(|found| found.text() == other));
            }
        }
        assert_eq!(Record::of_text(""), None);
        assert_eq!(Record::of_text(&"x ".repeat(1 << 20)), None);
        assert_eq!(Record::of_text("snowdrift2 bucket 0 0"), None);
    }

    #[test]
    fn a_name_has_one_key() {
        for key in [Key::Namespace, Key::Bucket(7, 1), Key::Slot(7, 64), Key::Slot(0, 0)] {
            assert_eq!(Key::of_text(&key.text()), Some(key));
        }
        assert_eq!(Key::Slot(7, 64).text(), "slots/7/1/64");
        for text in ["", "slots", "slots/1/1/1", "slots/01/0/1", "slots/0/0/+1", "slots/0/0/1/"] {
            assert_eq!(Key::of_text(text), None, "{text}");
        }
    }
}
