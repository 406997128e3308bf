//! A lease from a directory: a thread makes the calls that its driver wants, keeps its timer, and publishes its reports.
//!
//! The disk may hang, and with it the thread: then a page issues up to its ceiling, and nobody waits without a bound.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::host::HostPage;
use super::keeper::{Keeper, now};
use super::reasons::Reasons;
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::{Class, Failure, Fault, fault};
use crate::core::listeners::Listeners;
use crate::core::loss::Loss;
use crate::lease::{Input, Next, Reply, Report};

/// A directory's lease, as its thread has seen it last.
#[derive(Clone, Debug, Default)]
pub struct Leased {
    /// The page from which to issue.
    pub slot: Option<HostPage>,
    /// Why the last one was lost, while there is no other.
    pub lost: Option<Loss>,
    /// Why the last call or search failed; none since a renewal has succeeded.
    pub failure: Option<Fault>,
    /// Whether the slot is released, or there is none.
    pub has_ended: bool,
}

/// What a lease and its thread share.
pub(super) struct Executor {
    state: Mutex<(Leased, Wishes)>,
    changed: Condvar,
    pub listeners: Listeners,
    reasons: Reasons,
    /// How long the first slot is waited for.
    wait: Duration,
}

/// What the thread has not done yet.
#[derive(Default)]
pub(super) struct Wishes {
    pub is_restored: bool,
    pub is_closing: bool,
}

impl Executor {
    pub fn new(reasons: Reasons, wait: Duration) -> Executor {
        let (state, changed, listeners) = Default::default();
        Executor { state, changed, listeners, reasons, wait }
    }

    /// The lease's present state.
    pub fn state(&self) -> Leased {
        self.state.lock().0.clone()
    }

    /// Waits for the first slot.
    pub fn first(&self) -> Result<(), Failure> {
        let begun = Instant::now();
        let mut state = self.state.lock();
        loop {
            let (leased, _) = &*state;
            if leased.slot.is_some() {
                return Ok(());
            }
            let Some(left) = self.wait.checked_sub(begun.elapsed()).filter(|_| !leased.has_ended)
            else {
                let place = self.reasons.store.as_str();
                let hangs = || fault!("disk-hangs", place, waited: begun.elapsed().as_secs());
                return Err(Failure::new(
                    Class::Other,
                    leased.failure.clone().unwrap_or_else(hangs),
                ));
            };
            self.changed.wait_for(&mut state, left);
        }
    }

    /// Tells the thread.
    pub fn wish(&self, note: impl FnOnce(&mut Wishes)) {
        let mut state = self.state.lock();
        note(&mut state.1);
        self.changed.notify_all();
        let slot = state.0.slot.clone();
        drop(state);
        if let Some(generator) = slot.and_then(|slot| slot.generator()) {
            generator.renewals().interrupt();
        }
    }

    /// The lease's life, until it is released, or has no slot.
    pub fn execute(&self, mut keeper: Keeper) {
        let mut input = Input::Time;
        // A caller waits for a higher ceiling.
        let mut is_wanted = false;
        loop {
            let mut next = self.step(&mut keeper, input);
            for wish in self.take_wishes() {
                let is_calling = matches!(next, Next::Call(..));
                next = self.step(&mut keeper, wish);
                if is_calling {
                    // The call is not made.
                    next = self.step(&mut keeper, Input::Reply(Reply::Failed, None));
                }
            }
            input = match next {
                Next::End => break,
                Next::Call(call, within) => match keeper.answer(&call, within) {
                    Some(reply) => Input::Reply(reply, Some(SystemClock.now().ms)),
                    None => Input::Reply(Reply::Failed, None),
                },
                // One that was joined long after its holders were killed.
                Next::Wait { .. } if !is_wanted && keeper.is_low() => {
                    is_wanted = true;
                    Input::Wanted
                }
                Next::Wait { due, look } => {
                    let pause = Duration::from_millis(due.min(look).max(1) as u64);
                    self.publish(&keeper, is_wanted, pause);
                    is_wanted = self.pause(pause);
                    if is_wanted { Input::Wanted } else { Input::Time }
                }
            };
        }
        self.note(|leased| (leased.slot, leased.has_ended) = (None, true));
    }

    fn step(&self, keeper: &mut Keeper, input: Input) -> Next {
        let (reports, next) = keeper.step(input, now());
        for report in reports {
            match report {
                Report::Open(_) | Report::Unlocked => {}
                Report::Renewed => {
                    if let Some(generator) = keeper.page().and_then(HostPage::generator) {
                        generator.renewals().notify_raised();
                    }
                    self.note(|leased| leased.failure = None);
                }
                Report::Lost(loss) => self.lose(loss),
                failed => {
                    if let Some(fault) = keeper.reason(failed, &self.reasons) {
                        self.note(|leased| leased.failure = Some(fault));
                    }
                }
            }
        }
        next
    }

    /// Tells callers where the lease stands, before the next pause.
    fn publish(&self, keeper: &Keeper, is_wanted: bool, pause: Duration) {
        let Some(page) = keeper.page() else { return };
        let is_failing = self.state.lock().0.failure.is_some();
        if let Some(generator) = page.generator() {
            generator.renewals().set_attended(true);
            if is_failing || is_wanted && keeper.is_low() {
                generator.renewals().note_failure(pause);
            } else if is_wanted {
                generator.renewals().notify_raised();
            }
        }
        if self.state.lock().0.slot.as_ref() != Some(page) {
            self.note(|leased| (leased.slot, leased.lost) = (Some(page.clone()), None));
        }
    }

    /// The slot is lost: callers wait for it no longer.
    fn lose(&self, loss: Loss) {
        let slot = self.state.lock().0.slot.take();
        if let Some(slot) = slot
            && let Some(generator) = slot.generator()
            && slot.page().has_ended()
        {
            generator.renewals().set_attended(false);
        }
        self.note(|leased| leased.lost = Some(loss));
    }

    fn note(&self, change: impl FnOnce(&mut Leased)) {
        change(&mut self.state.lock().0);
        self.changed.notify_all();
        self.listeners.notify();
    }

    /// Waits until a caller wants a higher ceiling, or something else is wanted, for at most this long. Returns whether it is the
    /// ceiling.
    fn pause(&self, at_most: Duration) -> bool {
        let mut state = self.state.lock();
        if state.1.any() {
            return false;
        }
        match state.0.slot.as_ref().and_then(HostPage::generator) {
            // A wish interrupts it.
            Some(generator) => {
                MutexGuard::unlocked(&mut state, || generator.renewals().await_request(at_most))
            }
            None => {
                self.changed.wait_for(&mut state, at_most);
                false
            }
        }
    }

    fn take_wishes(&self) -> impl Iterator<Item = Input> {
        let Wishes { is_restored, is_closing } = std::mem::take(&mut self.state.lock().1);
        let restored = is_restored.then_some(Input::Restored);
        restored.into_iter().chain(is_closing.then_some(Input::Close))
    }
}

impl Wishes {
    fn any(&self) -> bool {
        self.is_restored || self.is_closing
    }
}
