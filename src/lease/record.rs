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

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use crate::core::clock::HOUR_MS;
use crate::core::layout::{Layout, Tick};
use crate::core::sequencer::NEVER;

/// A random number, drawn once: the token of a write or of a line, or the ID of a namespace or page. 0 is none.
///
/// The token of a record is the condition of the next write. It is never a version that the store counts: such a counter
/// comes back when the store goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(test), derive(Hash))]
pub struct Token(pub u64);

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
/// The longest host and address in a line, in bytes. So 32 lines fit into a text.
const MOST_NAME: usize = 64;
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
        let layout = layout_of(words(2, "layout")?).ok_or(Unreadable::Line(2))?;
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

/// A bucket: a line for each of its worker IDs that was ever held. One without a line never was.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// The namespace's ID.
    pub id: Token,
    /// Who takes one of its worker IDs issues nothing at or below it.
    pub floor: Tick,
    /// By worker ID.
    pub lines: BTreeMap<u64, Line>,
    /// Lines that no holder of this version writes. They stay as they are, and nobody takes their worker IDs.
    pub damaged: BTreeMap<u64, String>,
}

/// What a bucket says of a worker ID.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// The holder's page. It stays after a release.
    pub owner: Token,
    /// The token of the line, of 32 bits: new with each change by its owner.
    pub token: Token,
    /// Whether the owner holds it, or has released it.
    pub is_held: bool,
    /// The owner issues nothing at or below it.
    pub floor: Tick,
    /// Nobody before the owner, and not the owner, issues above it.
    pub ceiling: Tick,
    /// When others may take it, Unix ms.
    pub expires: i64,
    /// Who holds it, for people.
    pub holder: Holder,
}

/// A holder, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// When that began, Unix ms.
    pub started: i64,
    /// The host and port at which it serves, without a space; empty where it does not.
    pub address: String,
    /// Its host.
    pub host: String,
}

impl Holder {
    /// A holder as its line shows it: texts are cut, and on one line.
    pub fn new(pid: u32, started: i64, address: &str, host: &str) -> Holder {
        let cut = |text: &str, is_kept: fn(&char) -> bool| {
            let mut name = String::new();
            for letter in text.chars().filter(is_kept) {
                if name.len() + letter.len_utf8() > MOST_NAME {
                    break;
                }
                name.push(letter);
            }
            name
        };
        let address = cut(address, |letter| !letter.is_whitespace() && !letter.is_control());
        let host = cut(host, |letter| !letter.is_control());
        Holder { pid, started, address, host }
    }
}

impl Bucket {
    /// One in which nobody ever held a line.
    pub fn new(id: Token) -> Bucket {
        Bucket { id, floor: NEVER, lines: BTreeMap::new(), damaged: BTreeMap::new() }
    }

    /// Whether the lines of all its worker IDs fit beside the damaged ones: a text that is too long is lost to all holders.
    pub fn has_room(&self) -> bool {
        self.damaged.values().map(String::len).sum::<usize>() <= MOST_BYTES / 4
    }

    /// This bucket with another line.
    pub fn with(&self, worker: u64, line: Line) -> Bucket {
        let mut bucket = self.clone();
        bucket.lines.insert(worker, line);
        bucket
    }

    /// The text.
    pub fn text(&self) -> String {
        let Bucket { id, floor, lines, damaged } = self;
        let mut all: BTreeMap<u64, String> = damaged.clone();
        all.extend(lines.iter().map(|(worker, line)| (*worker, format!("{worker} {line}"))));
        all.values().fold(format!("{FORMAT} bucket {id} {floor}"), |text, line| text + "\n" + line)
    }

    /// The bucket of a text. Where a line is none that a holder writes, its worker ID alone is damaged.
    pub fn of_text(text: &str) -> Result<Bucket, Unreadable> {
        let lines = lines_of(text)?;
        let mut bucket = Bucket::new(id_of(&lines, "bucket")?);
        let floor = lines[0].get(3).and_then(|word| word.parse().ok());
        bucket.floor = floor.ok_or(Unreadable::Line(1))?;
        for (at, (words, line)) in lines.iter().zip(text.split('\n')).enumerate().skip(1) {
            let worker = words[0].parse().map_err(|_| Unreadable::Line(at + 1))?;
            match Line::of_words(&words[1..]).filter(|found| format!("{worker} {found}") == line) {
                Some(line) => drop(bucket.lines.insert(worker, line)),
                None => drop(bucket.damaged.insert(worker, line.to_owned())),
            }
        }
        same(text, &bucket.text()).map(|()| bucket)
    }
}

impl Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { owner, token, is_held, floor, ceiling, expires, holder } = self;
        let Holder { pid, started, address, host } = holder;
        let (state, token) = (if *is_held { "held" } else { "free" }, token.0);
        let address = if address.is_empty() { "-" } else { address };
        write!(
            out,
            "{state} {owner} {token:08x} {floor} {ceiling} {expires} {pid} {started} {address} {host}"
        )
    }
}

impl Line {
    fn of_words(words: &[&str]) -> Option<Line> {
        let [state, owner, token, floor, ceiling, expires, pid, started, address, host @ ..] =
            words
        else {
            return None;
        };
        Some(Line {
            is_held: *state == "held",
            owner: token_of(owner)?,
            token: token_of(token).filter(|token| token.0 <= u32::MAX.into())?,
            floor: floor.parse().ok()?,
            ceiling: ceiling.parse().ok()?,
            expires: expires.parse().ok()?,
            // Longer texts, or such with control characters, are none that a holder writes: they are spelled otherwise.
            holder: Holder::new(
                pid.parse().ok()?,
                started.parse().ok()?,
                if *address == "-" { "" } else { address },
                &host.join(" "),
            ),
        })
    }
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
    id.and_then(|word| token_of(word)).ok_or(Unreadable::Line(1))
}

fn token_of(word: &str) -> Option<Token> {
    u64::from_str_radix(word, 16).ok().filter(|number| *number != 0).map(Token)
}

fn numbers<const N: usize>(words: &[&str]) -> Option<[i64; N]> {
    let numbers: Option<Vec<i64>> = words.iter().map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

fn layout_of(words: &[&str]) -> Option<Layout> {
    let (widths, rest) = words.split_first()?;
    let widths: Option<Vec<u8>> = widths.split('.').map(|width| width.parse().ok()).collect();
    let [tick_ms, epoch_ms] = numbers(rest)?;
    Layout::new(widths?.try_into().ok()?, tick_ms, epoch_ms).checked().ok()
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
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { ttl: 30_000, max_clock_skew: 10_000, max_ahead: 0 };

    fn namespace() -> Namespace {
        let mut created = Ranges::default();
        for number in [3, 1, 0, 7, 2] {
            created.insert(number);
        }
        Namespace {
            id: Token(0x3f0c_5a7d_11e2_b694),
            layout: Layout::NODE,
            limits: LIMITS,
            floor: -1,
            size: 32,
            created,
        }
    }

    fn line(host: &str) -> Line {
        Line {
            owner: Token(0x55),
            token: Token(0xa1f3),
            is_held: true,
            floor: -1,
            ceiling: 1 << 40,
            expires: 1_795_000_000_000,
            holder: Holder::new(4711, 1_794_000_000_000, "10.0.0.7:8080", host),
        }
    }

    fn bucket() -> Bucket {
        let free = Line { is_held: false, holder: Holder::default(), ..line("") };
        Bucket::new(Token(1)).with(0, line("a host  é ")).with(7, free)
    }

    /// Versions of snowdrift share stores.
    #[test]
    fn records_have_the_same_texts_in_all_versions() {
        assert_eq!(
            namespace().text(),
            "snowdrift2 namespace 3f0c5a7d11e2b694\nlayout 41.3.5.2.12 1 1580486400000\nlimits 30000 10000 0\nfloor -1\nsize 32\nbuckets 0-3 7"
        );
        assert_eq!(
            bucket().text(),
            "snowdrift2 bucket 0000000000000001 -1\n0 held 0000000000000055 0000a1f3 -1 1099511627776 1795000000000 4711 1794000000000 10.0.0.7:8080 a host  é \n7 free 0000000000000055 0000a1f3 -1 1099511627776 1795000000000 0 0 - "
        );
        assert_eq!(Key::Bucket(3, 17).to_string(), "3/17");
        assert_eq!(Namespace::of_text(&namespace().text()), Ok(namespace()));
        assert_eq!(Bucket::of_text(&bucket().text()), Ok(bucket()));
    }

    #[test]
    fn a_key_has_one_spelling() {
        assert_eq!(Key::of_text("namespace"), Some(Key::Namespace));
        assert_eq!(Key::of_text("3/17"), Some(Key::Bucket(3, 17)));
        for text in ["", "x", "03/1", "3/+1", "3/1/0", "3/", "-1/0", "namespace/0", " 3/1"] {
            assert_eq!(Key::of_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_text_that_no_holder_writes_is_refused_by_its_line() {
        let text = namespace().text();
        let with = |from: &str, to: &str| Namespace::of_text(&text.replace(from, to));
        assert_eq!(with("snowdrift2", "snowdrift1"), Err(Unreadable::Format));
        assert_eq!(with("namespace", "bucket"), Err(Unreadable::Line(1)));
        assert_eq!(with("41.3", "99.3"), Err(Unreadable::Line(2)));
        assert_eq!(with(" 10000", ""), Err(Unreadable::Line(3)));
        assert_eq!(with("floor", "color"), Err(Unreadable::Line(4)));
        assert_eq!(with("floor -1", "floor -01"), Err(Unreadable::Line(4)));
        assert_eq!(with("size 32", "size 33"), Err(Unreadable::Line(5)));
        for ranges in ["0-3 4", "3-0", "0-3 2", "7 0", "0-18446744073709551615"] {
            assert_eq!(with("0-3 7", ranges), Err(Unreadable::Line(6)), "{ranges}");
        }
        assert_eq!(Namespace::of_text(&(text.clone() + "\ncolor red")), Err(Unreadable::Line(7)));
        assert_eq!(
            Namespace::of_text(&(text + &" ".repeat(20_000))),
            Err(Unreadable::Long(20_124))
        );
        assert_eq!(Bucket::of_text(""), Err(Unreadable::Format));
        assert_eq!(Bucket::of_text("snowdrift2"), Err(Unreadable::Line(1)));
    }

    #[test]
    fn a_damaged_line_concerns_its_worker_id_alone_and_stays() {
        let text = bucket().text().replace("7 free", "7 gone") + "\n9";
        let found = Bucket::of_text(&text).unwrap();
        assert_eq!(found.damaged.keys().copied().collect::<Vec<_>>(), [7, 9]);
        assert_eq!(found.lines, BTreeMap::from([(0, line("a host  é "))]));
        assert_eq!(found.text(), text);
        // Of two lines of a worker ID, or of none, nobody knows which counts.
        for more in ["\n0 twice", "\nnone", "\n"] {
            assert_eq!(Bucket::of_text(&(bucket().text() + more)), Err(Unreadable::Line(4)));
        }
    }

    #[test]
    fn a_line_with_a_longer_host_or_control_characters_is_damaged() {
        for host in ["x".repeat(65), "\u{1b}[2J a".into()] {
            let text = bucket().text().replace("a host  é ", &host);
            let found = Bucket::of_text(&text).unwrap();
            assert_eq!(found.damaged.keys().copied().collect::<Vec<_>>(), [0]);
            assert_eq!(found.text(), text);
        }
    }

    #[test]
    fn any_text_is_a_record_of_that_text_or_none() {
        for text in [namespace().text(), bucket().text()] {
            for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                for more in ["", "\0", " ", "\n", "-", "9", "é"] {
                    for text in [
                        format!("{}{more}", &text[..at]),
                        format!("{}{more}{}", &text[..at], &text[at..]),
                    ] {
                        assert!(
                            Namespace::of_text(&text).is_ok_and(|one| one.text() == text)
                                || Namespace::of_text(&text).is_err()
                        );
                        assert!(
                            Bucket::of_text(&text).is_ok_and(|one| one.text() == text)
                                || Bucket::of_text(&text).is_err()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_full_bucket_fits_into_a_text() {
        let most = Line { floor: i64::MIN, ceiling: i64::MIN, expires: i64::MIN, ..line("") };
        let holder = Holder::new(u32::MAX, i64::MIN, &"a".repeat(900), &"é\n".repeat(900));
        assert_eq!((holder.address.len(), holder.host.len()), (64, 64));
        let lines =
            (0..32).map(|at| ((1 << 53) - 1 - at, Line { holder: holder.clone(), ..most.clone() }));
        let full = Bucket { lines: lines.collect(), ..Bucket::new(Token(u64::MAX)) };
        assert!(full.text().len() <= MOST_BYTES, "{} bytes", full.text().len());
        let usual = line("web-1.example.com").to_string().len();
        assert!(usual <= 130, "{usual} bytes");
    }

    #[test]
    fn ranges_join_where_the_text_is_too_long() {
        let mut one = namespace();
        for number in [5, 6, 4, 9] {
            one.count(number);
        }
        assert_eq!(one.created.to_string(), " 0-7 9");
        assert!(one.created.contains(4) && !one.created.contains(8) && !one.created.contains(10));
        for number in 0..10_000 {
            one.count(number * 1000);
        }
        assert!(one.text().len() <= MOST_BYTES);
        assert!((0..10_000).all(|number| one.created.contains(number * 1000)));
        assert_eq!(Namespace::of_text(&one.text()), Ok(one));
    }

    #[test]
    fn damage_begins_an_hour_above_the_horizon() {
        let layout = Layout::new([41, 0, 0, 0, 1], 1, 0);
        assert_eq!(LIMITS.cap(layout, 1000), 41_000);
        assert_eq!(LIMITS.horizon(layout, 1000), 51_000);
        let last = 51_000 + HOUR_MS;
        assert_eq!(
            [last, last + 1].map(|tick| LIMITS.is_damage(layout, tick, 1000)),
            [false, true]
        );
    }
}
