//! A lease from a directory: a thread makes the calls that its driver wants, keeps its timer, and publishes its reports.
//!
//! The disk may hang, and with it the thread: then a page issues up to its ceiling, and nobody waits without a bound.

use std::mem;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::host_page::HostPage;
use super::keeper::{Keeper, now};
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::{Failure, Fault, fault};
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
    /// Why files were skipped in the search for the slot.
    pub skipped: Vec<Fault>,
    /// Whether the slot is released, or there is none.
    pub has_ended: bool,
}

/// What a lease and its thread share.
pub(super) struct Executor {
    state: Mutex<Shared>,
    changed: Condvar,
    pub listeners: Listeners,
    /// The directory's name in errors.
    pub store: String,
}

#[derive(Default)]
struct Shared {
    leased: Leased,
    /// Whether the slot is to be released.
    is_closing: bool,
    /// Whether that is for the end of the process.
    is_exiting: bool,
}

impl Executor {
    pub fn new(store: String) -> Executor {
        let (state, changed, listeners) = Default::default();
        Executor { state, changed, listeners, store }
    }

    /// Whether the slot is released, or there is none.
    pub fn has_ended(&self) -> bool {
        self.state.lock().leased.has_ended
    }

    /// The lease's present state.
    pub fn state(&self) -> Leased {
        self.state.lock().leased.clone()
    }

    /// Waits this long for the first slot, and for `disk` longer while no reason is known. `is_own`: this caller began the lease, so
    /// the lease itself ends in time.
    pub fn first(&self, (wait, disk): (Duration, Duration), is_own: bool) -> Result<(), Failure> {
        let begun = Instant::now();
        let mut state = self.state.lock();
        loop {
            let leased = &state.leased;
            if leased.slot.is_some() {
                return Ok(());
            }
            let is_held = !is_own && leased.failure.is_some();
            let at_most = if is_held { wait } else { wait.saturating_add(disk) };
            let left = at_most.checked_sub(begun.elapsed()).filter(|_| !leased.has_ended);
            let Some(left) = left else {
                let (place, waited) = (&*self.store, begun.elapsed().as_secs());
                let known = leased.failure.clone();
                return Err(known.unwrap_or_else(|| fault!("disk-hangs", place, waited)).into());
            };
            self.changed.wait_for(&mut state, left);
        }
    }

    /// Has the thread release the slot. `is_exiting`: also where instances of this process still draw from it.
    pub fn close(&self, is_exiting: bool) {
        let mut state = self.state.lock();
        (state.is_closing, state.is_exiting) = (true, is_exiting);
        self.changed.notify_all();
        let slot = state.leased.slot.clone();
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
            if mem::take(&mut self.state.lock().is_closing) {
                keeper.set_exiting(self.state.lock().is_exiting);
                let closing = self.step(&mut keeper, Input::Close);
                // A call is made: after one that failed, the release would wait.
                next = if matches!(next, Next::Call(..)) { next } else { closing };
            }
            input = match next {
                Next::End => break,
                Next::Call(call, within) => match keeper.answer(&call, within) {
                    Some(reply) => Input::Reply(reply, Some(SystemClock.now().ms)),
                    None => Input::Reply(Reply::Failed, None),
                },
                // One that was joined long after its holders were killed. One that fails is tried again in its time.
                Next::Wait { .. } if !is_wanted && keeper.is_low() && !self.is_failing() => {
                    is_wanted = true;
                    Input::Wanted
                }
                Next::Wait { due, look } => {
                    let pause = Duration::from_millis(due.min(look).max(1) as u64);
                    self.publish(&mut keeper, is_wanted, pause);
                    is_wanted = self.pause(pause);
                    if is_wanted { Input::Wanted } else { Input::Time }
                }
            };
        }
        // Callers that wait for the end may take the slot again.
        drop(keeper);
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
                    if let Some(fault) = keeper.reason(failed, &self.store) {
                        self.note(|leased| leased.failure = Some(fault));
                    }
                }
            }
        }
        next
    }

    /// Tells callers where the lease stands, before the next pause.
    fn publish(&self, keeper: &mut Keeper, is_wanted: bool, pause: Duration) {
        let Some(page) = keeper.page().cloned() else { return };
        if let Some(generator) = page.generator() {
            generator.renewals().set_attended(true);
            if self.is_failing() || is_wanted && keeper.is_low() {
                generator.renewals().note_failure(pause);
            } else if is_wanted {
                generator.renewals().notify_raised();
            }
        }
        if self.state.lock().leased.slot.as_ref() != Some(&page) {
            let skipped = keeper.take_skipped();
            self.note(|leased| {
                (leased.slot, leased.lost, leased.skipped) = (Some(page), None, skipped);
            });
        }
    }

    fn is_failing(&self) -> bool {
        self.state.lock().leased.failure.is_some()
    }

    /// The slot is lost: callers wait for it no longer.
    fn lose(&self, loss: Loss) {
        let slot = self.state.lock().leased.slot.take();
        if let Some(slot) = slot
            && let Some(generator) = slot.generator()
            && slot.page().has_ended()
        {
            generator.renewals().set_attended(false);
        }
        self.note(|leased| leased.lost = Some(loss));
    }

    fn note(&self, change: impl FnOnce(&mut Leased)) {
        change(&mut self.state.lock().leased);
        self.changed.notify_all();
        self.listeners.notify();
    }

    /// Waits until a caller wants a higher ceiling, or something else is wanted, for at most this long. Returns whether it is the
    /// ceiling.
    fn pause(&self, at_most: Duration) -> bool {
        let mut state = self.state.lock();
        if state.is_closing {
            return false;
        }
        match state.leased.slot.as_ref().and_then(HostPage::generator) {
            // A close interrupts it.
            Some(generator) => {
                let await_request = || generator.renewals().await_request(at_most);
                MutexGuard::unlocked(&mut state, await_request) && !state.is_closing
            }
            None => {
                self.changed.wait_for(&mut state, at_most);
                false
            }
        }
    }
}
