//! Why a lease has no slot, or could not renew it, as faults for people.

use std::path::Path;

use super::host_pages::HostPages;
use crate::core::fault::{Failure, Fault, fault};
use crate::core::layout::Layout;
use crate::lease::{Holder, Key, Refusal, Settings, Unreadable};
use crate::register::record_name;

/// How the name of a directory begins, as opposed to a store's.
const FILE_URL: &str = "file://";

/// What the faults of a lease name: its store, and its settings.
pub struct Reasons<'a> {
    /// The store's name.
    pub store: &'a str,
    /// What it wants.
    pub settings: &'a Settings,
}

impl Reasons<'_> {
    /// Others, or the store itself, change the record again and again.
    pub fn unsettled(&self) -> Fault {
        fault!("store-unsettled", store: self.store, ttl: self.settings.limits.ttl)
    }

    /// Why there is no slot. `skipped`: why records could not be read.
    pub fn refusal(&self, refusal: Refusal, skipped: Vec<Fault>, host: &mut HostPages) -> Fault {
        // A failure of this host is the reason of whatever follows from it.
        if let Some(Failure { fault, .. }) = host.take_failure() {
            return fault;
        }
        let Reasons { store, settings } = *self;
        let records = |evidence: String| fault!("store-records", store, evidence);
        match refusal {
            Refusal::NoSlot(holders) => match host.take_conflict() {
                Some(conflict) => conflict.fault,
                None => self.no_slot(&holders, skipped),
            },
            Refusal::Layout(layout) => {
                let layouts: Vec<Fault> = [&layout, &settings.layout].map(Layout::described).into();
                fault!("store-layout", store, layouts)
            }
            Refusal::Unreadable(key, Unreadable::Line(line)) => {
                records(format!("line {line} of {}", self.name_of(key)))
            }
            Refusal::Unreadable(key, Unreadable::Format) => records(self.name_of(key)),
            Refusal::Unreadable(key, Unreadable::Long(bytes)) => {
                records(format!("{}, with {bytes} bytes", self.name_of(key)))
            }
            Refusal::Clock(skew) => {
                fault!("clock-skew", store, skew, most: settings.limits.max_clock_skew)
            }
            Refusal::Ahead(Key::Namespace, floor) => {
                fault!("store-ahead", store, from: settings.layout.tick_end_ms(floor))
            }
            Refusal::Ahead(key, _) => records(format!("the floor of {}", self.name_of(key))),
        }
    }

    /// A record, for people: in a directory its file.
    fn name_of(&self, key: Key) -> String {
        match self.store.strip_prefix(FILE_URL) {
            Some(directory) => Path::new(directory).join(record_name(key)).display().to_string(),
            None => format!("the key {key}"),
        }
    }

    fn no_slot(&self, found: &[(u64, Option<Holder>)], skipped: Vec<Fault>) -> Fault {
        let Reasons { store, settings: Settings { datacenter, claim, .. } } = *self;
        let datacenter = *datacenter;
        let damaged = found.iter().filter(|(_, holder)| holder.is_none());
        let is_directory = self.store.starts_with(FILE_URL);
        let record_of = |worker| self.name_of(Key::Bucket(datacenter, worker));
        let unusable = |&(worker, _): &(u64, _)| match is_directory {
            true => fault!("slot-file-damaged", worker, place: record_of(worker), store),
            false => fault!("slot-record-damaged", worker),
        };
        let unusable: Vec<Fault> = skipped.into_iter().chain(damaged.map(unusable)).collect();
        let named = |(worker, holder): &(u64, Option<Holder>)| {
            let Holder { pid, started, host, .. } = holder.as_ref()?;
            Some(fault!("holder", worker: *worker, pid: *pid, host: &**host, started: *started))
        };
        let holders: Vec<Fault> = found.iter().filter_map(named).collect();
        match *claim {
            Some(worker) => fault!("claim-held", store, datacenter, worker, holders, unusable),
            None => fault!("no-slot", store, datacenter, holders, unusable),
        }
    }
}
