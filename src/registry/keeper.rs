//! A directory's lease without a thread: its driver, the pages of the host, and the register.

use std::time::Duration;

use super::host_page::HostPage;
use super::host_pages::HostPages;
use super::reasons::Reasons;
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::{Failure, Fault};
use crate::core::layout::Layout;
use crate::files::system::monotonic_ms;
use crate::lease::{
    At, Call, Driver, Holder, Input, Key, Limits, Next, Patience, Refusal, Reply, Report, Settings,
};
use crate::register::Register;

/// How long a call waits for another process that changes the record, ms.
pub(super) const CALL_MS: i64 = 2_000;
/// The most that the clocks of hosts differ that share a directory, ms.
const MAX_CLOCK_SKEW_MS: i64 = 10_000;

/// A driver with its host and register.
pub(super) struct Keeper {
    driver: Driver<HostPage>,
    host: HostPages,
    register: Register,
    /// The page that was opened last, and is not lost.
    page: Option<HostPage>,
    /// Why the last call has failed.
    failure: Option<Fault>,
}

impl Keeper {
    /// A lease that begins now: `claim` is the one worker ID that is wanted.
    pub fn new(
        register: Register,
        mut host: HostPages,
        settings: Settings,
        patience: Patience,
        at: At,
    ) -> Keeper {
        // After a restore of old files, the page still shows what was issued since.
        host.keeps_pages = true;
        let driver = Driver::new(settings, patience, at, fastrand::f64());
        Keeper { driver, host, register, page: None, failure: None }
    }

    /// Takes an input. Where a page is opened, others see from now on that this process lives.
    pub fn step(&mut self, input: Input, at: At) -> (Vec<Report<HostPage>>, Next) {
        let (reports, next) = self.driver.step(input, at, &mut self.host);
        for report in &reports {
            match report {
                Report::Open(page) => self.page = Some(page.clone()),
                // Others may use it again, if it is left and has not ended.
                Report::Lost(_) => self.page = None,
                _ => {}
            }
        }
        let shown = show(&mut self.register, &reports, &self.driver);
        self.failure = shown.err().map(Fault::from).or(self.failure.take());
        (reports, next)
    }

    /// From now on, leaves its page also where instances of this process still draw from it.
    pub fn set_exiting(&mut self, is_exiting: bool) {
        self.host.is_exiting = is_exiting;
    }

    /// The page from which to issue.
    pub fn page(&self) -> Option<&HostPage> {
        self.page.as_ref()
    }

    /// Why there is no slot, or a call has failed, as a report says.
    pub fn reason(&mut self, report: Report<HostPage>, store: &str) -> Option<Fault> {
        let reasons = Reasons { store, settings: self.driver.machine().settings() };
        match report {
            Report::Unsettled => Some(reasons.unsettled()),
            Report::Failed => match self.host.take_failure() {
                Some(Failure { fault, .. }) => Some(fault),
                None => self.failure.take(),
            },
            Report::Refused(refusal) => {
                let mut unusable = self.register.take_unusable();
                let of_file = match &refusal {
                    Refusal::Unreadable(key, _) => unusable.remove(key),
                    _ => None,
                };
                let unusable = unusable.into_values().collect();
                of_file.or_else(|| Some(reasons.refusal(refusal, unusable, &mut self.host)))
            }
            _ => None,
        }
    }

    /// Takes out why files were skipped in the search for a slot.
    pub fn take_skipped(&mut self) -> Vec<Fault> {
        self.register.take_unusable().into_values().collect()
    }

    /// Whether the clock has reached the ceiling of its page.
    pub fn is_low(&self) -> bool {
        let now = self.driver.machine().settings().layout.tick_at(SystemClock.now().ms);
        self.page.as_ref().is_some_and(|page| page.page().cells().ceiling() <= now)
    }

    /// Whether it looks for any slot.
    fn searches_any(&self) -> bool {
        self.driver.machine().settings().claim.is_none() && self.page.is_none()
    }

    /// Makes a call. None where it failed.
    pub fn answer(&mut self, call: &Call, within: i64) -> Option<Reply> {
        let at_most = Duration::from_millis(within.clamp(0, CALL_MS) as u64);
        match self.register.answer(call, at_most) {
            Ok(reply) => Some(reply),
            Err(Failure { fault, .. }) => match call {
                // Who is stopped as it changes a slot's file keeps nobody from the other slots.
                Call::Write { key: key @ Key::Bucket(..), .. }
                    if fault.kind == "slot-changing" && self.searches_any() =>
                {
                    Some(Reply::Found(self.register.pass_over(*key, fault)))
                }
                _ => {
                    self.failure = Some(fault);
                    None
                }
            },
        }
    }
}

/// Shows others that this process lives: from when it opens a page, until its line is free, or another one's. If that fails, others
/// may take the slot, and this process loses it. The next renewal tries again.
pub(super) fn show(
    register: &mut Register,
    reports: &[Report<HostPage>],
    driver: &Driver<HostPage>,
) -> Result<(), Failure> {
    let opened = reports.iter().rev().find_map(|report| match report {
        Report::Open(page) => Some(page.page().header().node),
        _ => None,
    });
    if !driver.machine().has_page() {
        register.let_go();
        return Ok(());
    }
    let Some(node) = opened else { return Ok(()) };
    register.hold(Key::Bucket(node.datacenter_id(), node.worker_id()), Duration::ZERO)
}

/// The settings of a lease from a directory.
pub fn directory_settings(
    layout: Layout,
    datacenter: u64,
    claim: Option<u64>,
    (ttl, max_ahead): (i64, i64),
    holder: Holder,
) -> Settings {
    let limits = Limits { ttl, max_clock_skew: MAX_CLOCK_SKEW_MS, max_ahead };
    let (size, may_forget, has_own_clock) = (1, false, true);
    Settings { layout, datacenter, claim, limits, holder, size, may_forget, has_own_clock }
}

pub(super) fn now() -> At {
    At { mono: monotonic_ms(), wall: SystemClock.now().ms }
}
