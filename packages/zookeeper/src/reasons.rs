//! Why the client could not connect. It says only that no host is available, and logs the reason of each.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// What the client's log names as reasons, in the order of its attempts.
#[derive(Clone, Default)]
pub struct Reasons(Arc<Mutex<Vec<String>>>);

impl Reasons {
    /// All that differ, as one text. Empty if there are none.
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).join("; ")
    }
}

impl Subscriber for Reasons {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("zookeeper_client::")
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message::default();
        event.record(&mut message);
        let Some(reason) = reason_of(&message.0) else { return };
        let mut reasons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The text of an event.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // Writing to a String does not fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

/// The reason in `fails in connecting to tcp+tls://zk1:2281 due to Custom { kind: InvalidData, error: ... }` or in
/// `fails to establish session to tcp://zk1:2181 due to ...`, with its host.
fn reason_of(message: &str) -> Option<String> {
    let (attempt, reason) = message.split_once(" due to ")?;
    let endpoint = attempt.strip_prefix("fails ")?.rsplit_once(" to ")?.1;
    let (protocol, host) = endpoint.split_once("://")?;
    let Some((kind, text)) = kind_and_text(reason) else {
        return Some(format!("{host}: {reason}"));
    };
    // No error of TLS, but what becomes of a handshake with a server that does not expect one.
    let is_cut =
        ["ConnectionReset", "ConnectionAborted", "UnexpectedEof", "BrokenPipe"].contains(&kind);
    let is_handshake = protocol == "tcp+tls" && (is_cut || kind == "InvalidData");
    let what = if is_handshake { "TLS handshake" } else { kind };
    Some(format!("{host}: {what}: {text}"))
}

/// Kind and text of an `io::Error` as it is debugged.
fn kind_and_text(error: &str) -> Option<(&str, &str)> {
    let fields = error.strip_suffix(" }")?;
    let (_, rest) = fields.split_once("kind: ")?;
    let (kind, rest) = rest.split_once(", ")?;
    let text = rest.strip_prefix("error: ").or_else(|| rest.strip_prefix("message: "))?;
    Some((kind, text.trim_matches('"')))
}
