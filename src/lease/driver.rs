//! When a process's lease takes its next step: when to renew, to try again, and to give up. Times in ms.
//!
//! JavaScript, and the thread of a directory's lease, execute what [`Driver::step`] returns: they publish the reports, then make the
//! call within its time, or wait. Fleets in virtual time do the same.

use super::calls::{At, Call, Command, Event, Refusal, Reply, Settings};
use super::machine::Machine;
use super::page::{Host, Phase, Renewal};
use super::steps::{Input, Life, Next, Patience, Report};

/// The pause before the next look at the slot that another process of the host takes.
const JOIN_MS: i64 = 20;
/// The shortest and the longest pause after a try that failed, or that found no slot.
const RETRY_MS: (i64, i64) = (100, 1000);
/// The shortest pause for each call of a search that found no slot, and the longest such pause: a store whose lines are all held is
/// not read all the time.
const SEARCH_MS: (i64, i64) = (100, 5000);
/// The shortest and the longest pause of a caller who waits for a slot of a directory, which costs no server anything. In between, 1 ms
/// for each call of the search: one in many files uses little of a CPU.
const WAIT_MS: (i64, i64) = (20, 1000);
/// The shortest and the longest pause between looks at a page, which other processes of the host may end; in between, 1/12 ttl.
const LOOK_MS: (i64, i64) = (50, 1000);
/// The time for the release of a slot.
const RELEASE_MS: i64 = 2000;
/// A renewal is due after this part of a ttl, and each of its calls may take half of that: so two of three may be lost.
const RENEW_AFTER: i64 = 3;
/// The same for a directory, where a renewal costs a flush, and no call is lost.
const RENEW_DIRECTORY_AFTER: f64 = 0.4;
/// How often a lease writes without coming to hold its slot. Others may change a record twice for each of its worker IDs.
const MOST_WRITES: u32 = 150;
/// How many calls a take may last before another process of the host goes on without the lock.
const MOST_CALLS: i64 = 4;

/// One process's lease in time.
#[derive(Clone, Debug)]
pub struct Driver<P> {
    machine: Machine<P>,
    patience: Patience,
    ttl: i64,
    /// How much later than its last renewer this process renews, as a part of the ttl: 1/12 to 1/6.
    turn: f64,
    life: Life,
    /// When this process renewed last, by the monotonic clock.
    own: Option<i64>,
    /// The last renewal that was reported.
    reported: Option<i64>,
    is_wanted: bool,
    /// When the call under way was sent.
    called: At,
    skew: i64,
    /// How long the last call took.
    took: i64,
    /// Conflicts, or refusals, in a row.
    tries: u32,
    /// Calls since the last pause.
    calls: i64,
    /// Writes since the slot was held last.
    writes: u32,
    locked_since: Option<i64>,
    /// What to tell at the end of this step.
    reports: Vec<Report<P>>,
}

impl<P: Clone> Driver<P> {
    /// A lease that begins now. `random` is from 0 to 1.
    pub fn new(settings: Settings, patience: Patience, at: At, random: f64) -> Driver<P> {
        let ttl = settings.limits.ttl;
        Driver {
            machine: Machine::new(settings),
            patience,
            ttl,
            turn: (1.0 + random) / 12.0,
            life: Life::Opening(at.mono + patience.wait),
            own: None,
            reported: None,
            is_wanted: false,
            called: at,
            skew: 0,
            took: 1,
            tries: 0,
            calls: 0,
            writes: 0,
            locked_since: None,
            reports: Vec::new(),
        }
    }

    /// Its machine, for what it knows.
    pub fn machine(&self) -> &Machine<P> {
        &self.machine
    }

    /// Wants this worker ID alone, from the next search on: a store assigned it.
    pub fn claim(&mut self, worker: u64) {
        self.machine.claim(worker);
    }

    /// Takes an input. Returns what to tell the application, and what to do next.
    pub fn step(
        &mut self,
        input: Input,
        at: At,
        host: &mut dyn Host<Page = P>,
    ) -> (Vec<Report<P>>, Next) {
        if !matches!(input, Input::Reply(..)) {
            self.calls = 0;
        }
        let mut event = match input {
            Input::Reply(reply, now) => {
                self.took = (at.mono - self.called.mono).max(1);
                if let Some(now) = now {
                    self.note_skew(now, at, host);
                }
                Event::Reply(reply, now, self.called.mono)
            }
            Input::Close => {
                self.life = Life::Closing(at.mono + RELEASE_MS);
                Event::Close
            }
            Input::Restored => Event::Restored,
            Input::Wanted => {
                self.is_wanted = true;
                self.event(at, host)
            }
            Input::Time => self.event(at, host),
        };
        let next = loop {
            let command = self.machine.step(event, at, host);
            match self.conclude(command, at, host) {
                Some(next) => break next,
                None if matches!(self.life, Life::Closing(_)) => event = Event::Close,
                None => event = Event::Go,
            }
        };
        if next == Next::End {
            self.machine.abandon(host);
        }
        (std::mem::take(&mut self.reports), next)
    }

    /// The smallest difference of this host's clock from the store's that agrees with the last reply, ms: that was read at some moment
    /// of the call.
    pub fn skew(&self) -> i64 {
        self.skew
    }

    /// A host whose clock differs too much gets no first slot, and does not wait for one.
    fn note_skew(&mut self, now: i64, at: At, host: &mut dyn Host<Page = P>) {
        self.skew = (self.called.wall - now).max((at.wall - now).min(0));
        let most = self.machine.settings.limits.max_clock_skew;
        if matches!(self.life, Life::Opening(_)) && self.skew.abs() > most {
            self.reports.push(Report::Refused(Refusal::Clock(self.skew)));
            self.life = Life::Closing(at.mono + RELEASE_MS);
            self.machine.step(Event::Close, at, host);
        }
    }

    /// A renewal where one is due.
    fn event(&self, at: At, host: &dyn Host<Page = P>) -> Event {
        match self.due(at, host) {
            Some(0) if self.machine.unproven().is_none() => Event::Renew,
            _ => Event::Go,
        }
    }

    /// What follows from a command; none to go on at once.
    fn conclude(
        &mut self,
        command: Command,
        at: At,
        host: &mut dyn Host<Page = P>,
    ) -> Option<Next> {
        match command {
            Command::Call(call) => {
                self.writes += u32::from(matches!(call, Call::Write { .. }));
                if self.writes <= MOST_WRITES {
                    return Some(self.call(call, at));
                }
                // The call is not made.
                self.writes = 0;
                let failed = Event::Reply(Reply::Failed, None, at.mono);
                return match self.machine.step(failed, at, host) {
                    Command::Failed => self.failed(Report::Unsettled, false, at),
                    command => self.conclude(command, at, host),
                };
            }
            Command::Open => {
                let page = self.machine.page().cloned()?;
                self.own = self.machine.unproven().is_none().then_some(at.mono);
                self.life = Life::Open;
                self.reports.push(Report::Open(page));
            }
            Command::Lost(loss) => {
                (self.own, self.reported, self.tries) = (None, None, 0);
                self.reports.push(Report::Lost(loss));
                return None;
            }
            Command::Released => return Some(Next::End),
            Command::Wait => {}
            Command::Again => {
                // Longer and at random, so that hosts that start together spread.
                self.tries += 1;
                let most = (self.took << self.tries.min(10)).min(RETRY_MS.1).max(1);
                return Some(self.after(host.choose(most as usize) as i64));
            }
            Command::Locked => {
                let since = *self.locked_since.get_or_insert(at.mono);
                if at.mono - since < MOST_CALLS * self.patience.call {
                    return Some(self.after(JOIN_MS));
                }
                // The other process may have been stopped.
                self.locked_since = None;
                host.break_lock();
                self.reports.push(Report::Unlocked);
                return None;
            }
            Command::Failed => return self.failed(Report::Failed, false, at),
            Command::Refused(refusal) => {
                let is_final = !matches!(refusal, Refusal::NoSlot(_));
                return self.failed(Report::Refused(refusal), is_final, at);
            }
        }
        if self.machine.is_calling() {
            // The reply comes.
            return Some(self.after(self.patience.call));
        }
        self.held(at, host);
        // What is due and was not done waits for another process.
        let due = self.due(at, host).filter(|due| *due > 0).unwrap_or(RETRY_MS.0);
        Some(Next::Wait { due, look: (self.ttl / 12).clamp(LOOK_MS.0, LOOK_MS.1) })
    }

    /// Its page is held. Notes who renewed it last.
    fn held(&mut self, at: At, host: &dyn Host<Page = P>) {
        (self.tries, self.writes, self.locked_since) = (0, 0, None);
        let Some(page) = self.machine.page() else { return };
        let renewed = host.renewal(page).at;
        if self.reported.replace(renewed) != Some(renewed) {
            self.reports.push(Report::Renewed);
            self.is_wanted = false;
            if renewed == at.mono {
                self.own = Some(renewed);
            }
        }
    }

    /// How long until this lease has something to do with its page; none where it has no page.
    fn due(&self, at: At, host: &dyn Host<Page = P>) -> Option<i64> {
        let page = self.machine.page()?;
        if host.phase(page) == Phase::Ended {
            return Some(0);
        }
        let Renewal { at: renewed, ttl, .. } = host.renewal(page);
        let elapsed = at.mono - renewed;
        // In a Linux time namespace the monotonic clock differs from the other processes'.
        if elapsed < 0 {
            return Some(0);
        }
        if let Some(joined) = self.machine.unproven() {
            let is_news = !joined.has(host.word(page).known);
            let left = (ttl.max(self.ttl) / 2 - elapsed).max(0);
            return Some(if is_news { 0 } else { left });
        }
        // Processes of one host may have different ttls. The one that renewed last is first.
        let ttl = self.ttl.min(ttl);
        let turn = if self.own == Some(renewed) { 0 } else { (self.turn * ttl as f64) as i64 };
        let usual = turn
            + match self.machine.settings.has_own_clock {
                true => (ttl as f64 * RENEW_DIRECTORY_AFTER) as i64,
                false => ttl / RENEW_AFTER,
            };
        let after = if self.is_wanted { usual.min(RETRY_MS.0) } else { usual };
        Some((after - elapsed).max(0))
    }

    fn after(&self, due: i64) -> Next {
        Next::Wait { due, look: i64::MAX }
    }

    fn call(&mut self, call: Call, at: At) -> Next {
        self.called = at;
        self.calls += 1;
        let most = match self.life {
            Life::Closing(by) if by <= at.mono => return Next::End,
            // So that there is time for another one.
            Life::Closing(by) => (by - at.mono + 1) / 2,
            // A renewal has to leave time for others before the ceiling is reached.
            _ if self.machine.page().is_some() => (self.ttl / RENEW_AFTER / 2).max(LOOK_MS.0),
            _ => self.patience.call,
        };
        Next::Call(call, most.min(self.patience.call))
    }

    /// A try has failed: the next one is after a pause, unless the caller waits no longer. The time in which lines are watched does
    /// not count, up to a ttl.
    fn failed(&mut self, report: Report<P>, is_final: bool, at: At) -> Option<Next> {
        // What fails while it closes is no reason of anything.
        if !matches!(self.life, Life::Closing(_)) {
            self.reports.push(report);
        }
        let pause = self.pause();
        self.tries += 1;
        let watch = if self.machine.is_watching() { self.ttl } else { 0 };
        match self.life {
            Life::Opening(until) if is_final || until + watch <= at.mono => {
                // What was taken meanwhile is freed.
                self.life = Life::Closing(at.mono + RELEASE_MS);
                None
            }
            Life::Closing(by) if by <= at.mono => Some(Next::End),
            Life::Closing(by) => Some(self.after(pause.min(by - at.mono))),
            Life::Opening(until) => Some(self.after(pause.min(until + watch - at.mono))),
            _ => Some(self.after(pause)),
        }
    }

    /// The pause after a try that failed, ms: longer after many calls, as of a search in many buckets.
    fn pause(&self) -> i64 {
        if self.machine.page().is_some() {
            return (self.ttl / 10).clamp(RETRY_MS.0, RETRY_MS.1);
        }
        if matches!(self.life, Life::Opening(_)) && self.machine.settings.has_own_clock {
            return self.calls.clamp(WAIT_MS.0, WAIT_MS.1);
        }
        let pause = (RETRY_MS.0 << self.tries.min(4)).min(RETRY_MS.1);
        pause.max((self.calls * SEARCH_MS.0).min(SEARCH_MS.1))
    }
}
