//! Leases from stores and directories: the protocol, without input and output.

mod record;

pub use record::{
    Bucket, Holder, Key, Limits, Line, MOST_BYTES, Namespace, Ranges, SIZES, Token, Unreadable,
};

#[cfg(test)]
mod tests;
