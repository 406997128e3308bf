//! Leases from stores and directories: the protocol, without input and output. A store is a register: it replaces a record
//! only where that still has the token that the writer has read.
//!
//! | file | content |
//! |---|---|
//! | `record` | the two kinds of record, and their texts |
//! | `page` | what the protocol needs of a host and its pages, the lease word, and whose a line is |
//! | `calls` | what goes in and out: events and replies, calls and other commands |
//! | `machine` | what one process's lease knows, and its steps |
//! | `take` | the search for a slot: from the namespace to a page that is joined or taken |
//! | `hold` | a page in use: proven, renewed, taken over, released |
//! | `driver` | when the machine takes its next step |

mod calls;
mod driver;
mod hold;
mod machine;
mod page;
mod record;
mod take;

pub use calls::{At, Call, Command, Event, Found, Record, Refusal, Reply, Settings};
pub use driver::{Driver, Input, Next, Patience, Report};
pub use machine::Machine;
pub use page::{Host, Judgement, Loss, Phase, Renewal, Tenure, Word, judge};
pub use record::{
    Bucket, Holder, Key, Limits, Line, MOST_BYTES, Namespace, Ranges, SIZES, Token, Unreadable,
};

#[cfg(test)]
mod tests;
