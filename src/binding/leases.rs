//! Reports on leases and their pages. Owners and namespaces are 32 hexadecimal digits in JavaScript.

use napi_derive::napi;

use super::layout::{OrNull, end_of};
use crate::core::fault::{Fault, fault};
use crate::core::sequencer::NEVER;
use crate::lease::Status;
use crate::pages::Loss;
use crate::registry::Share;

/// The state of a leased page. The floor and the ceiling are ticks.
#[napi(object, object_from_js = false)]
pub struct LeasingRecord {
    pub worker_id: f64,
    pub owner: String,
    pub floor: i64,
    pub ceiling: i64,
    pub expires: Option<i64>,
    /// The reason of its end; none before that.
    pub loss: Option<&'static str>,
    /// Whether other processes of the host find it.
    pub is_named: bool,
    /// Whether other processes use it now.
    pub is_used: bool,
    /// The last renewal by the host's monotonic clock, ms.
    pub renewed: i64,
    /// The duration of the confirmation, ms.
    pub ttl: i64,
    pub renewals: f64,
    /// The process that renewed it last.
    pub renewer: u32,
    /// The start of its renewals, Unix ms.
    pub since: i64,
}

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

impl LeasingRecord {
    /// The state of a share's page, if it is a leased one.
    pub fn of(share: &Share) -> Option<LeasingRecord> {
        let page = share.page();
        let leasing = page.leasing()?;
        let is_named = page.is_named().unwrap_or(false);
        // A page without its name has ended, too, though not its slot.
        let has_ended = is_named && page.has_ended();
        let loss = leasing.loss.or(has_ended.then_some(Loss::Released));
        Some(LeasingRecord {
            worker_id: share.node().worker_id() as f64,
            owner: digits(leasing.owner),
            floor: page.sequence().floor(),
            ceiling: page.cells().ceiling(),
            expires: leasing.expires_ms,
            loss: loss
                .and_then(|loss| LOSSES.iter().find(|(_, one)| *one == loss))
                .map(|(word, _)| *word),
            is_named,
            is_used: page.is_used().unwrap_or(false),
            renewed: leasing.renewed_ms,
            ttl: leasing.ttl_ms,
            renewals: leasing.renewals as f64,
            renewer: leasing.renewer,
            since: leasing.since_ms,
        })
    }
}

/// The loss of a word.
pub fn loss_of(word: &str) -> Loss {
    LOSSES.iter().find(|(one, _)| *one == word).map_or(Loss::Taken, |(_, loss)| *loss)
}

/// The state of a lease. Times in Unix ms.
#[napi(object, object_from_js = false)]
pub struct LeaseRecord {
    pub store: String,
    /// Hexadecimal.
    pub owner: String,
    /// The end of the last tick that may not be issued; null where there is none.
    pub floor: OrNull<i64>,
    /// The end of the last tick that may be issued.
    pub ceiling: i64,
    pub renewals: f64,
    pub state: &'static str,
    pub failure: Option<Fault>,
    /// None where the slot is this process's alone.
    pub renewer: Option<RenewerRecord>,
}

/// The host's process that renews a slot, and the start of its renewals, Unix ms.
#[napi(object, object_from_js = false)]
pub struct RenewerRecord {
    pub pid: u32,
    pub since: i64,
}

impl LeaseRecord {
    pub fn of(share: &Share) -> Option<LeaseRecord> {
        let report = share.lease()?;
        let layout = share.node().layout();
        let state = match report.status {
            Status::Held => "held",
            Status::Failing => "failing",
            Status::Lost => "lost",
        };
        Some(LeaseRecord {
            store: report.store,
            owner: digits(report.holder.token),
            floor: (report.floor != NEVER).then(|| end_of(layout, report.floor)),
            ceiling: end_of(layout, report.ceiling),
            renewals: report.renewals as f64,
            state,
            failure: report.failure,
            renewer: report.renewer.map(|(pid, since)| RenewerRecord { pid, since }),
        })
    }
}
