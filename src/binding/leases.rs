//! Reports on leases and their pages. Owners and namespaces are 32 hexadecimal digits in JavaScript.

use super::layout::end_of;
use super::report::{Report, or_null, report};
use crate::authority::Status;
use crate::core::fault::{Fault, fault};
use crate::core::sequencer::NEVER;
use crate::pages::Loss;
use crate::registry::Share;

const LOSSES: [(&str, Loss); 4] = [
    ("taken", Loss::Taken),
    ("missing", Loss::Missing),
    ("reverted", Loss::Reverted),
    ("released", Loss::Released),
];

/// An ID of a namespace or owner.
pub fn id(digits: &str) -> Result<u128, Fault> {
    u128::from_str_radix(digits, 16).map_err(|_| fault!("malformed-id", id: digits))
}

fn digits(id: u128) -> String {
    format!("{id:032x}")
}

/// The state of a share's page, if it is a leased one. The floor and the ceiling are ticks.
pub fn leasing_of(share: &Share) -> Option<Report> {
    let page = share.page();
    let leasing = page.leasing()?;
    let is_named = page.is_named().unwrap_or(false);
    // A page without its name has ended, too, though not its slot.
    let has_ended = is_named && page.has_ended();
    let loss = leasing.loss.or(has_ended.then_some(Loss::Released));
    let word_of = |loss| LOSSES.iter().find(|(_, one)| *one == loss).map(|(word, _)| *word);
    Some(report!(
        workerId: share.node().worker_id(),
        owner: digits(leasing.owner),
        floor: page.sequence().floor(),
        ceiling: page.cells().ceiling(),
        expires: leasing.expires_ms,
        // The reason of its end; none before that.
        loss: loss.and_then(word_of),
        // Whether other processes of the host find it, and whether they use it now.
        isNamed: is_named,
        isUsed: page.is_used().unwrap_or(false),
        // The last renewal by the host's monotonic clock, and the duration of the confirmation, ms.
        renewed: leasing.renewed_ms,
        ttl: leasing.ttl_ms,
        renewals: leasing.renewals,
        // The process that renewed it last, and the start of its renewals, Unix ms.
        renewer: leasing.renewer,
        since: leasing.since_ms,
    ))
}

/// The loss of a word.
pub fn loss_of(word: &str) -> Loss {
    LOSSES.iter().find(|(one, _)| *one == word).map_or(Loss::Taken, |(_, loss)| *loss)
}

/// The state of a lease from a directory. Times in Unix ms.
pub fn lease_of(share: &Share) -> Option<Report> {
    let report = share.lease()?;
    let layout = share.node().layout();
    let state = match report.status {
        Status::Held => "held",
        Status::Failing => "failing",
        Status::Lost => "lost",
    };
    Some(report!(
        store: report.store,
        owner: digits(report.holder.token),
        // The ends of the last tick that may not be issued, null where there is none, and of the last that may.
        floor: or_null((report.floor != NEVER).then(|| end_of(layout, report.floor))),
        ceiling: end_of(layout, report.ceiling),
        renewals: report.renewals,
        state,
        failure: report.failure,
        // The host's process that renews it; none where the slot is this process's alone.
        renewer: report.renewer.map(|(pid, since)| report!(pid, since)),
    ))
}
