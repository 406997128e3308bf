//! The record of a bucket, and its lines.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use super::{FORMAT, MOST_BYTES, Token, Unreadable, id_of, lines_of, same};
use crate::core::layout::Tick;
use crate::core::sequencer::NEVER;

/// The longest host and address in a line, in bytes. So 32 lines fit into a text.
const MOST_NAME: usize = 64;

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
            owner: Token::of_text(owner)?,
            token: Token::of_text(token).filter(|token| token.0 <= u32::MAX.into())?,
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
