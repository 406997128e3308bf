//! Leases from stores and directories: the protocol, without input and output. A store is a register: it replaces a record
//! only where that still has the token that the writer has read.
//!
//! The machine decides, the driver paces. An executor makes the calls, keeps one timer, and publishes reports: JavaScript for a
//! store, a thread for a directory, and the tests in virtual time.
//!
//! | file | content |
//! |---|---|
//! | `record` | the two kinds of record, and their texts |
//! | `page` | what the protocol needs of a host and its pages, the lease word, and whose a line is |
//! | `calls` | what goes in and out: events and replies, calls and other commands |
//! | `known` | what a machine knows |
//! | `machine` | one process's lease: its steps by what it knows |
//! | `replies` | what the replies of calls tell it |
//! | `search` | the search for a slot: from the namespace to a page that is joined, or to a bucket |
//! | `take` | a line of a bucket is taken |
//! | `hold` | a page in use: proven, renewed, taken over, released |
//! | `steps` | what goes into a driver, and what comes out |
//! | `driver` | when the machine takes its next step |
//! | `recover` | for operators: what a line says, and what is written after a loss |
//!
//! What keeps IDs from being issued twice:
//!
//! 1. A page issues ticks in (floor, ceiling] only. Its ceiling is one that a line with a token of the page has confirmed.
//! 2. A line is taken above its ceiling, and no ceiling falls but by a release, after the page has ended. So lines of one
//!    chain never allow a tick twice, also where a write is late.
//! 3. A page knows its own lines by owner and word ([`judge`]). It ends where it finds another one.
//! 4. A record that is absent is no condition: it may become absent again. So the write that creates a bucket allows nothing,
//!    and the namespace counts the bucket before anybody takes a line of it.
//! 5. Lost data break the chain. A process that notes it raises the namespace's floor to the *horizon*, above all that anybody can have had
//!    confirmed, before it takes another line. Each page reads that floor after its take.
//!
//! Expiry only decides who may take a line: no rule above depends on a clock, but for the horizon and what is lost.

mod calls;
mod driver;
mod hold;
mod known;
mod machine;
mod page;
mod record;
mod recover;
mod replies;
mod search;
mod steps;
mod take;

pub use calls::{At, Call, Command, Event, Found, Record, Refusal, Reply, Settings};
pub use driver::Driver;
pub use machine::Machine;
pub use page::{Host, Judgement, Phase, Renewal, Tenure, Word, judge};
pub use record::{
    Bucket, Holder, Key, Limits, Line, MOST_BYTES, Namespace, Ranges, SIZES, Token, Unreadable,
};
pub use recover::{CONFIRMED, State};
pub use steps::{Input, Next, Patience, Report};

#[cfg(test)]
mod tests;
