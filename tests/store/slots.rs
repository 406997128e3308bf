//! Slots and holders that tests share.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use snowdrift::authority::Holder;
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;

pub const LAYOUT: Layout = Layout { epoch_ms: 0, ..Layout::NODE };

pub fn slot(worker_id: u64) -> Node {
    Node::new(LAYOUT, 1, worker_id).unwrap()
}

pub fn holder() -> Holder {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let token = NEXT.fetch_add(1, SeqCst).into();
    Holder { token, pid: std::process::id(), host: "here".to_owned(), started_ms: 0 }
}
