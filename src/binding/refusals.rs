//! The refusals of leases from stores, as faults. `js/messages/faults.js` has their texts.

use super::leases::LeaseMachine;
use super::values::{Value, end_of, report};
use crate::core::fault::{Fault, fault};
use crate::core::layout::Layout;
use crate::lease::{Holder, LeaseRefusal, Limits};

/// The most characters that are shown of a host's name, which may be a stranger's text: the length of a DNS name.
const MOST_OF_HOST: usize = 255;

impl LeaseMachine {
    /// A refusal, with the time until the next try, ms. `until`: what the lease waits for, a slot or a proof.
    pub(super) fn refusal(&self, refusal: LeaseRefusal, ms: i64) -> Value {
        let terms = &self.terms;
        let store = terms.store.as_str();
        let fault = match refusal {
            LeaseRefusal::NoSlot(holders) => {
                if self.leases.take_contended() {
                    return report!(kind: "join", ms);
                }
                if let Some(conflict) = self.leases.take_conflict() {
                    return report!(kind: "refused", ms, fault: conflict.fault);
                }
                let fault = self.no_slot(&holders);
                return report!(kind: "refused", ms, until: "slot", fault);
            }
            LeaseRefusal::Layout(layout) => {
                let layouts: Vec<Fault> = [&layout, &terms.layout].map(Layout::described).into();
                fault!("store-layout", store, layouts)
            }
            LeaseRefusal::Limits(recorded) => {
                fault!("store-limits", store, limits: limits_above(terms.limits, recorded))
            }
            LeaseRefusal::Ahead(floor) => {
                fault!("store-ahead", store, from: end_of(&terms.layout, floor))
            }
            LeaseRefusal::Damaged(key) => {
                fault!("store-records", store, evidence: format!("the key {}", key.text()))
            }
            LeaseRefusal::Unproven(worker) => {
                let fault = fault!("store-unproven", store, worker);
                return report!(kind: "refused", ms, until: "proof", fault);
            }
        };
        report!(kind: "refused", ms, fault)
    }

    fn no_slot(&self, found: &[(u64, Option<Holder>)]) -> Fault {
        let datacenter = self.terms.datacenter;
        let store = self.terms.store.as_str();
        let damaged = found.iter().filter(|(_, holder)| holder.is_none());
        let unusable: Vec<Fault> =
            damaged.map(|(worker, _)| fault!("slot-record-damaged", worker: *worker)).collect();
        let named = |(worker, holder): &(u64, Option<Holder>)| {
            let Holder { pid, started, host, .. } = holder.as_ref()?;
            let host: String = host.chars().take(MOST_OF_HOST).collect();
            Some(fault!("holder", worker: *worker, pid: *pid, host, started: *started))
        };
        let holders: Vec<Fault> = found.iter().filter_map(named).collect();
        match self.terms.claim {
            Some(worker) => fault!("claim-held", store, datacenter, worker, holders, unusable),
            None => fault!("no-slot", store, datacenter, holders, unusable),
        }
    }
}

/// The own limits above the recorded ones, on which other holders rely when they take over a slot.
fn limits_above(own: Limits, recorded: Limits) -> Vec<Fault> {
    [
        ("ttl", own.ttl, recorded.ttl),
        ("maxClockSkew", own.max_clock_skew, recorded.max_clock_skew),
        ("maxAhead", own.max_ahead, recorded.max_ahead),
    ]
    .into_iter()
    .filter(|(_, own, recorded)| own > recorded)
    .map(|(name, own, recorded)| fault!("limit", name, own, recorded))
    .collect()
}
