//! One user's share in a node's generator.

use std::mem;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::Opening;
use super::entry::{Entry, Leased, RecordedIn, Tenancy};
use crate::core::fault::Fault;
use crate::core::layout::Tick;
use crate::core::listeners::Listener;
use crate::generator::{Generator, Policies, Refusal, Reserved, Seat, WindowId};
use crate::lease::{Lease, Report};

/// The longest time that a release holds its thread. A release takes some 0.1 ms, unless the disk hangs.
const RELEASE: Duration = Duration::from_secs(1);

/// A share in a node's generator. Dropping it gives up the share; the generator stays. Dropping the last share
/// releases the slot.
pub struct Share {
    entry: Arc<Entry>,
    generator: Arc<Generator>,
    seat: Seat,
    policies: Policies,
    what: What,
    /// Other users of the machine who have the same node open, to warn of.
    pub second_users: Vec<Fault>,
    /// Slots skipped because their records are unusable, with the reasons.
    pub passed_over: Vec<Fault>,
}

/// What a share is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// The node.
    Node,
    /// A leased page. With `in_thread` its user renews the lease in a thread of its own.
    Page { in_thread: bool },
    /// Nothing any more.
    Left,
}

impl Entry {
    /// A share in the node.
    pub(super) fn share(self: &Arc<Self>, tenancy: &mut Tenancy, policies: Policies) -> Share {
        tenancy.users += 1;
        let generator = tenancy.shared.as_ref().unwrap_or(&self.own).clone();
        self.share_in(What::Node, generator, policies)
    }

    /// A share in a leased page that the process has open. With `in_thread` its user renews the lease in a thread of
    /// its own.
    pub(super) fn share_leased(
        self: &Arc<Self>,
        leased: &mut Leased,
        opening: &Opening,
        in_thread: bool,
    ) -> Share {
        leased.users += 1;
        if in_thread {
            leased.threads += 1;
            leased.generator.renewals().attend(true);
        }
        self.share_in(What::Page { in_thread }, leased.generator.clone(), opening.policies)
    }

    fn share_in(
        self: &Arc<Self>,
        what: What,
        generator: Arc<Generator>,
        policies: Policies,
    ) -> Share {
        let (second_users, passed_over) = (Vec::new(), Vec::new());
        let (entry, seat) = (self.clone(), generator.seat());
        Share { entry, generator, seat, policies, what, second_users, passed_over }
    }
}

impl Share {
    /// The shared generator.
    pub fn generator(&self) -> &Arc<Generator> {
        &self.generator
    }

    /// Reserves under this user's policies: see [`Generator::try_reserve`].
    #[inline]
    pub fn try_reserve_next(&self, want: impl Fn(Tick) -> u64) -> Result<Reserved, Refusal> {
        self.generator.try_reserve_from(&self.seat, &self.policies, want)
    }

    /// The policies of this user.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// The window that a store has confirmed, if JavaScript leased the slot.
    pub fn store_window(&self) -> Option<WindowId> {
        let tenancy = self.entry.tenancy.lock();
        match (self.what, &tenancy.recorded) {
            (What::Node, RecordedIn::Store(window)) => Some(*window),
            (What::Node, _) => None,
            _ => {
                tenancy.leased.iter().find(|leased| self.is_in(leased)).map(|leased| leased.window)
            }
        }
    }

    fn is_in(&self, leased: &Leased) -> bool {
        Arc::ptr_eq(&leased.generator, &self.generator)
    }

    /// The state of its lease, if a directory records the node.
    pub fn lease(&self) -> Option<Report> {
        self.entry.tenancy.lock().lease().map(Lease::report)
    }

    /// Notifies the listener after each renewal of that lease.
    pub fn on_renewed(&self, listener: &Arc<Listener>) {
        if let Some(lease) = self.entry.tenancy.lock().lease() {
            lease.renewed().add(listener);
        }
    }

    /// Gives up the share. Of a leased page that no process of the host uses any more, ends the page and returns the
    /// highest tick issued.
    pub fn leave(mut self) -> Option<Tick> {
        self.leave_page(true)
    }

    /// Gives up the share in a leased page. Where no process of the host uses the page any more, the page ends, and
    /// this returns the highest tick issued. Without `is_release` a page that has not ended stays, for the next
    /// process to join.
    fn leave_page(&mut self, is_release: bool) -> Option<Tick> {
        let What::Page { in_thread } = self.what else { return None };
        self.what = What::Left;
        let mut tenancy = self.entry.tenancy.lock();
        let at = tenancy.leased.iter().position(|leased| self.is_in(leased))?;
        let leased = &mut tenancy.leased[at];
        leased.users -= 1;
        if in_thread {
            leased.threads -= 1;
            if leased.threads == 0 {
                self.generator.renewals().attend(false);
            }
        }
        if leased.users > 0 {
            return None;
        }
        let Leased { generator, .. } = tenancy.leased.remove(at);
        self.entry.own.start_above(generator.highest());
        let page = generator.page();
        if is_release || page.has_ended() {
            return page.leave();
        }
        page.retire();
        None
    }

    fn leave_node(&self) {
        let mut tenancy = self.entry.tenancy.lock();
        tenancy.users -= 1;
        if tenancy.users > 0 {
            return;
        }
        if let Some(shared) = tenancy.shared.take() {
            self.entry.own.start_above(shared.highest());
        }
        let lease = match mem::take(&mut tenancy.recorded) {
            RecordedIn::Directory { lease, .. } => lease,
            RecordedIn::Store(window) => {
                self.entry.own.end_window(window);
                return;
            }
            RecordedIn::Changing => {
                self.entry.settled.notify_all();
                return;
            }
            RecordedIn::Memory => return,
        };
        tenancy.recorded = RecordedIn::Changing;
        drop(tenancy);
        lease.release(RELEASE);
        self.entry.tenancy.lock().recorded = RecordedIn::Memory;
        self.entry.settled.notify_all();
    }
}

impl Deref for Share {
    type Target = Generator;

    fn deref(&self) -> &Generator {
        &self.generator
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        match self.what {
            What::Node => self.leave_node(),
            What::Page { .. } => drop(self.leave_page(false)),
            What::Left => {}
        }
    }
}
