//! Leases from stores: the protocol, without input and output. A store is a register: it replaces a record only where that
//! still has the token that the writer has read. `js/lease` makes the calls. `tests/leases` searches the orders of its steps.
//!
//! | file | content |
//! |---|---|
//! | `record` | the records of a namespace, its buckets and slots, and their texts |
//! | `page` | what the protocol needs of a page, and whose a record is |
//! | `calls` | what goes in and out: events and replies, calls and other commands |
//! | `state` | what one process's lease knows |
//! | `search` | from the namespace to a slot: joined, or taken |
//! | `hold` | a slot in use: proven to be this store's, renewed, left for a lower one of the host, freed |
//! | `machine` | its steps: from an event to the next command |
//! | `pace` | when a process renews, and tries again |
//!
//! What keeps IDs from being issued twice:
//!
//! 1. A page issues ticks in (floor, ceiling] only. Its floor is the ceiling of the record that it replaced, or the
//!    namespace's floor, whichever is higher. Its ceiling is one that the store has confirmed.
//! 2. Each record of a slot names its predecessor by the condition of its write, and no ceiling falls along this chain but by a
//!    release, after the page has ended. So records of one chain never allow a tick twice, also where a write is late.
//! 3. A page knows its own records by their tokens ([`whose`](page::whose)). It ends where it finds another one.
//! 4. A record that is absent is no condition: it may become absent again, and a late write would bring back what was true
//!    once. So a write that creates a record allows nothing. The next reader of that record replaces it.
//! 5. Lost data break the chain. Where a record is missing, or older than what the page has confirmed, the namespace's floor
//!    rises above all ceilings that anybody can have had confirmed (the *horizon*) before this process takes another slot.
//!
//! Expiry only decides who may take a slot: no rule above depends on a clock, but for the horizon and what is lost.

mod calls;
mod hold;
mod machine;
mod pace;
mod page;
mod record;
mod search;
mod state;

pub use calls::{Call, Command, Event, Found, Host, LeaseRefusal, Reply, Settings};
pub use pace::{JOIN_MS, LastRenewal, POLL_MS, RenewalPace};
pub use page::{At, Joinable, LeasePage, Loss, Phase, Whose, whose};
pub use record::{
    BUCKET, Bucket, Floor, Holder, Key, Limits, Namespace, Record, Slot, Standing, Token,
};
pub use state::Machine;
