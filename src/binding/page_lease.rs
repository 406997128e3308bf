//! What a leased page says of its lease.

use super::values::{Value, end_of, or_null, report};
use crate::core::fault::values;
use crate::core::loss::Loss;
use crate::lease::{CONFIRMED, Token};
use crate::pages::Page;
use crate::registry::HostPages;

/// The lease of the host's processes, or of this one alone; none of a page that is not leased. Times in Unix ms.
pub fn page_lease(page: &Page) -> Option<Vec<(&'static str, Value)>> {
    let leasing = page.lease_status()?;
    let node = page.header().node;
    let is_shared = page.path().is_some();
    let (floor, ceiling) = (page.sequence().floor(), page.cells().ceiling());
    let has_ended = leasing.loss.is_some() || page.has_ended() || !page.is_current();
    Some(values!(
        scope: if is_shared { "host" } else { "process" },
        slot: report!(datacenterId: node.datacenter_id(), workerId: node.worker_id()),
        owner: Token(leasing.owner).to_string(),
        // The last ms that may not be issued; null for the floor of a new namespace.
        floor: or_null((floor > CONFIRMED).then(|| end_of(node.layout(), floor))),
        ceiling: end_of(node.layout(), ceiling.max(floor)),
        expires: or_null(leasing.expires_ms),
        renewals: leasing.renewals,
        // The process that renewed the lease last, and the start of its renewals.
        renewer: is_shared.then(|| report!(pid: leasing.renewer, since: leasing.since_ms)),
        ended: has_ended.then(|| loss_word(HostPages::loss_of(page))),
    ))
}

/// The name of a loss in `js/`.
pub fn loss_word(loss: Loss) -> &'static str {
    match loss {
        Loss::Taken => "taken",
        Loss::Reverted => "reverted",
        // A slot in use is released only if its page was deleted, or another process of the host took its line over.
        Loss::Released => "page",
        Loss::Restored => "restored",
    }
}
