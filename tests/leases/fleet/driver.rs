//! What JavaScript and `src/binding/leases.rs` do in each process: they make the machine's calls, at the [`RenewalPace`] that ships. It
//! mirrors `#open`, `#checkSlot`, `#conclude` and `#fail` of `js/lease/lease.js`, and changes with them.
//!
//! One thing is short: JavaScript looks at its page each second, and mostly does nothing. Here a process wakes when it
//! would do something, and after a change of the page at a moment of its next second.

use snowdrift::lease::{
    At, Call, Command, Event, JOIN_MS, LastRenewal, LeaseRefusal, Loss, Machine, POLL_MS, Phase,
    RenewalPace, Reply,
};

use super::{Broken, CALL_TIMEOUT, Fleet, HOUR, Happening, Host, LIMITS, Network, Wrong, word_of};
use crate::leases::pages::{self, CHANGED, Here, Numbered, PAGES, Page, Renewed};

/// The longest pause between looks at a page, and a short one.
const CHECK_MS: i64 = 1000;
const SOON_MS: i64 = 50;
/// As in `js/lease/timing.js`.
const MAX_WAIT_CALLS: i64 = 4;
const RELEASE_MS: i64 = 2000;

/// When whatever started a process starts it again after it has failed, ms.
const RESTART_MS: std::ops::Range<i64> = 5000..10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Down,
    /// It has no slot yet.
    Opening,
    /// It has a slot, or had one and takes another one.
    Held,
    /// It ends. Whether it starts again.
    Closing(bool),
}

pub struct Process {
    pub stage: Stage,
    /// The page from which it issues.
    pub page: Option<Numbered>,
    /// The number of its pause or call: the end of another one is too late.
    pub turn: u32,
    machine: Option<Machine<Numbered>>,
    run: u64,
    /// When `lease()` was called.
    since: i64,
    waiting_since: Option<i64>,
    is_calling: bool,
    /// Whether the last call failed.
    has_failed: bool,
    is_lost: bool,
    is_failing: bool,
    /// Whether its timer is that of a check, and not of a pause.
    is_checking: bool,
    pace: RenewalPace,
}

impl Process {
    pub fn new(random: &mut fastrand::Rng) -> Process {
        Process {
            stage: Stage::Down,
            page: None,
            turn: 0,
            machine: None,
            run: 0,
            since: 0,
            waiting_since: None,
            is_calling: false,
            has_failed: false,
            is_lost: false,
            is_failing: false,
            is_checking: false,
            pace: RenewalPace::new(LIMITS.ttl, random.f64()),
        }
    }
}

impl Fleet {
    pub fn start(&mut self, id: usize) -> Result<(), Wrong> {
        let stage = self.processes[id].stage;
        if let Stage::Closing(_) = stage {
            // The one before has to end.
            self.push(self.time + RELEASE_MS, Happening::Start(id));
        }
        if stage != Stage::Down || !self.hosts[id / self.plan.processes].is_up {
            return Ok(());
        }
        let turn = self.processes[id].turn + 1;
        self.processes[id] = Process {
            turn,
            stage: Stage::Opening,
            machine: Some(Machine::new(self.settings.clone())),
            since: self.time,
            ..Process::new(&mut self.random)
        };
        self.step(id, Event::Go)
    }

    /// A process is gone at once.
    pub fn kill(&mut self, id: usize) {
        let (host, number) = (id / self.plan.processes, id % self.plan.processes);
        self.issue(host);
        let process = &mut self.processes[id];
        process.turn += 1;
        (process.stage, process.machine, process.page) = (Stage::Down, None, None);
        process.is_calling = false;
        let host = &mut self.hosts[host];
        host.lock.take_if(|owner| *owner == number);
        for page in &mut host.pages {
            page.leave(number);
        }
    }

    /// Releases the lease. A call under way is given up.
    pub fn close(&mut self, id: usize) -> Result<(), Wrong> {
        self.end(id, false)
    }

    fn end(&mut self, id: usize, is_again: bool) -> Result<(), Wrong> {
        let process = &mut self.processes[id];
        if process.stage == Stage::Down {
            return Ok(());
        }
        process.stage = Stage::Closing(is_again);
        process.turn += 1;
        let was_calling = std::mem::take(&mut process.is_calling);
        if !was_calling {
            return self.step(id, Event::Close);
        }
        self.command(id, Event::Close)?;
        let called = self.time;
        self.command(id, Event::Reply(Reply::Failed, None, called))?;
        self.step(id, Event::Go)
    }

    /// A pause has ended.
    pub fn wake(&mut self, id: usize) -> Result<(), Wrong> {
        if self.processes[id].stage == Stage::Held {
            self.check(id)
        } else {
            self.step(id, Event::Go)
        }
    }

    /// A call has ended.
    pub fn replied(
        &mut self,
        id: usize,
        reply: Reply,
        now: Option<i64>,
        called: i64,
    ) -> Result<(), Wrong> {
        let mono = self.hosts[id / self.plan.processes].mono;
        let process = &mut self.processes[id];
        process.is_calling = false;
        process.has_failed = reply == Reply::Failed;
        if process.run == 0 && process.machine.as_ref().is_some_and(Machine::is_joining) {
            self.describe_run(id);
        }
        self.step(id, Event::Reply(reply, now, called + mono))
    }

    /// How the server describes its own run.
    fn describe_run(&mut self, id: usize) {
        self.counts.describes += 1;
        if matches!(self.network, Network::Refused | Network::Silent) {
            return;
        }
        let process = &mut self.processes[id];
        process.run = self.run;
        if let Some(page) = process.machine.as_ref().and_then(Machine::page) {
            self.hosts[id / self.plan.processes].pages[page.0].run = self.run;
        }
    }

    /// Steps the machine until it makes a call or waits.
    fn step(&mut self, id: usize, event: Event) -> Result<(), Wrong> {
        if !matches!(event, Event::Reply(..)) {
            self.processes[id].pace.begin();
        }
        let mut event = event;
        loop {
            let command = self.command(id, event)?;
            if let Command::Call(call) = command {
                return self.call(id, call);
            }
            match self.conclude(id, command)? {
                Some(next) => event = next,
                None => return Ok(()),
            }
        }
    }

    fn call(&mut self, id: usize, call: Call) -> Result<(), Wrong> {
        let process = &mut self.processes[id];
        process.turn += 1;
        process.pace.call();
        (process.is_calling, process.is_checking) = (true, false);
        let is_closing = matches!(process.stage, Stage::Closing(_));
        let timeout = if is_closing { RELEASE_MS } else { CALL_TIMEOUT };
        self.send(id, self.processes[id].turn, call, timeout)
    }

    /// One step of the machine, on its host's pages.
    fn command(&mut self, id: usize, event: Event) -> Result<Command, Wrong> {
        let (at, number) = (id / self.plan.processes, id % self.plan.processes);
        self.issue(at);
        let fresh = self.token();
        let now = self.time;
        let host = &mut self.hosts[at];
        let process = &mut self.processes[id];
        let Some(machine) = &mut process.machine else { return Ok(Command::Wait) };
        // As in src/registry/leases.rs.
        let is_other = host.lock.is_some_and(|owner| owner != number);
        let is_patient =
            process.waiting_since.is_none_or(|since| now - since < MAX_WAIT_CALLS * CALL_TIMEOUT);
        let here = Here {
            fresh: fresh.get().into(),
            store: 0,
            is_full: false,
            is_locked: is_other && is_patient,
        };
        pages::set_actor(at, number, &[]);
        PAGES.set(std::mem::take(&mut host.pages));
        let command =
            machine.step(event, At { mono: now + host.mono, fresh, run: process.run }, &here);
        host.pages = PAGES.take();
        match command {
            Command::Call(Call::List { .. }) => {
                host.lock.get_or_insert(number);
                process.waiting_since = None;
            }
            Command::Call(_) | Command::Wait => {}
            _ => {
                host.lock.take_if(|owner| *owner == number);
                if command == Command::Join {
                    process.waiting_since.get_or_insert(now);
                }
            }
        }
        if machine.is_joining() && self.plan.broken != Some(Broken::Impatient) {
            process.waiting_since = None;
        }
        let changed = CHANGED.take();
        for number in &changed {
            let page = &self.hosts[at].pages[*number];
            self.ledger.note(page)?;
            if page.phase == Phase::Ended || page.is_asked {
                self.page_has_changed(at, Some(id));
            }
        }
        Ok(command)
    }

    /// What follows from a command that is no call: another event, or a pause.
    fn conclude(&mut self, id: usize, command: Command) -> Result<Option<Event>, Wrong> {
        match self.processes[id].stage {
            Stage::Down => Ok(None),
            Stage::Opening => self.conclude_opening(id, command),
            Stage::Held => self.conclude_check(id, command),
            Stage::Closing(is_again) => {
                let process = &mut self.processes[id];
                process.turn += 1;
                (process.stage, process.machine, process.page) = (Stage::Down, None, None);
                if is_again {
                    let begins = self.time + self.random.i64(RESTART_MS);
                    self.push(begins, Happening::Start(id));
                }
                Ok(None)
            }
        }
    }

    fn conclude_opening(&mut self, id: usize, command: Command) -> Result<Option<Event>, Wrong> {
        let host = id / self.plan.processes;
        let Process { has_failed, since, .. } = self.processes[id];
        let is_wrong_clock = self.hosts[host].clock.abs() > LIMITS.max_clock_skew;
        let may_wait = match &command {
            Command::Refused(LeaseRefusal::Unproven(_)) => self.time - since < LIMITS.ttl,
            Command::Join | Command::Held => true,
            Command::Retry | Command::Lost(_) => !has_failed,
            _ => false,
        };
        if is_wrong_clock || !may_wait {
            let why = if is_wrong_clock { "clock" } else { word_of(&command) };
            *self.counts.failed_starts.entry(why).or_default() += 1;
            self.end(id, self.plan.broken != Some(Broken::NoRestart))?;
            return Ok(None);
        }
        match command {
            Command::Held => {
                self.processes[id].stage = Stage::Held;
                self.take(id);
                self.describe_run(id);
                self.pause(id, None);
            }
            Command::Join => self.pause(id, Some(JOIN_MS)),
            Command::Refused(_) => self.pause(id, Some(self.processes[id].pace.retry())),
            _ => self.pause(id, Some(POLL_MS)),
        }
        Ok(None)
    }

    /// Issues from the slot that the machine has.
    fn take(&mut self, id: usize) {
        let host = &self.hosts[id / self.plan.processes];
        let process = &mut self.processes[id];
        (process.is_lost, process.is_failing) = (false, false);
        let Some(page) = process.machine.as_ref().and_then(Machine::page) else { return };
        process.page = Some(*page);
        let Renewed { by, count, .. } = host.pages[page.0].renewed;
        let is_own = by == id % self.plan.processes || self.plan.broken == Some(Broken::AllRenew);
        process.pace.hold(is_own.then_some(count));
    }

    fn conclude_check(&mut self, id: usize, command: Command) -> Result<Option<Event>, Wrong> {
        match command {
            Command::Held | Command::Wait => {
                self.take(id);
                self.pause(id, None);
            }
            Command::Moved => {
                self.processes[id].pace.lose();
                self.take(id);
                return Ok(Some(Event::Go));
            }
            Command::Lost(why) => {
                self.lose(id, why)?;
                return Ok(Some(Event::Go));
            }
            Command::Join => self.pause(id, Some(JOIN_MS)),
            Command::Retry if !self.processes[id].has_failed => {
                self.pause(id, Some(POLL_MS));
            }
            _ => {
                let process = &mut self.processes[id];
                process.is_failing = true;
                self.describe_run(id);
                let is_hasty = self.plan.broken == Some(Broken::NoPause);
                let ms = self.processes[id].pace.retry();
                self.pause(id, Some(if is_hasty { 1 } else { ms }));
            }
        }
        Ok(None)
    }

    fn lose(&mut self, id: usize, why: Loss) -> Result<(), Wrong> {
        *self.counts.losses.entry(format!("{why:?}")).or_default() += 1;
        let process = &mut self.processes[id];
        process.is_lost = true;
        process.pace.lose();
        let host = id / self.plan.processes;
        let disturbed = self.hosts[host].disturbed.max(self.calm_since);
        if why != Loss::Released
            && self.network == Network::Fine
            && self.time - disturbed > HOUR / 4
        {
            return Err(Wrong::Lost(host, why));
        }
        Ok(())
    }

    /// Waits so long; otherwise until the next check.
    fn pause(&mut self, id: usize, ms: Option<i64>) {
        let until = match ms {
            Some(ms) => self.time + ms,
            None => self.next_check(id),
        };
        let process = &mut self.processes[id];
        process.turn += 1;
        process.is_checking = ms.is_none();
        let turn = process.turn;
        self.push(until, Happening::Wake(id, turn));
    }

    /// When the process would do something, as long as its page does not change.
    fn next_check(&mut self, id: usize) -> i64 {
        let host = &self.hosts[id / self.plan.processes];
        let process = &self.processes[id];
        let Some(page) = process.page.map(|page| &host.pages[page.0]) else { return self.time };
        let renewal = self.renewal(host, page);
        let mut next = self.time + process.pace.due(renewal, false);
        if host.is_busy && !process.is_failing {
            // A draw above the ceiling wants a renewal: `wantRenewal`.
            let passed = page.ceiling - host.clock + 1;
            let wanted = passed.max(self.time + process.pace.due(renewal, true));
            if wanted < next {
                next = wanted + self.random.i64(0..SOON_MS);
            }
        }
        if self.may_merge(id) {
            next = next.min(self.time + self.random.i64(0..=CHECK_MS));
        }
        if next > self.time { next } else { self.time + SOON_MS }
    }

    /// The last renewal of a page. Not as a shared one: a process wakes only when it would do something.
    fn renewal(&self, host: &Host, page: &Page) -> LastRenewal {
        LastRenewal {
            elapsed: self.time + host.mono - page.renewed.at,
            ttl: LIMITS.ttl,
            count: page.renewed.count,
            is_shared: false,
            is_asked: page.is_asked,
        }
    }

    /// Whether the process looks for a lower slot of its host, and finds one; or has found one, and joins it.
    fn may_merge(&self, id: usize) -> bool {
        let host = &self.hosts[id / self.plan.processes];
        let Process { page: Some(number), pace, machine, .. } = &self.processes[id] else {
            return false;
        };
        let own = &host.pages[number.0];
        let is_lower = |page: &Page| page.phase == Phase::Open && page.worker < own.worker;
        let looks = || pace.clone().look(own.renewed.count) && host.pages.iter().any(is_lower);
        machine.as_ref().is_some_and(Machine::is_moving) || looks()
    }

    /// A page has ended, lost its name, or its users are asked to renew: they notice at their next check.
    pub fn page_has_changed(&mut self, host: usize, by: Option<usize>) {
        for id in self.processes_of(host) {
            let Process { stage, is_calling, is_checking, .. } = self.processes[id];
            if by != Some(id) && stage == Stage::Held && !is_calling && is_checking {
                let process = &mut self.processes[id];
                process.turn += 1;
                let turn = process.turn;
                let until = self.time + self.random.i64(0..=CHECK_MS);
                self.push(until, Happening::Wake(id, turn));
            }
        }
    }

    /// Whether this process should renew.
    fn is_due(&self, id: usize) -> bool {
        let host = &self.hosts[id / self.plan.processes];
        let process = &self.processes[id];
        let Some(page) = process.page.map(|page| &host.pages[page.0]) else { return false };
        let is_wanted =
            host.is_busy && !process.is_failing && self.time + host.clock > page.ceiling;
        process.pace.due(self.renewal(host, page), is_wanted) <= 0
    }

    fn check(&mut self, id: usize) -> Result<(), Wrong> {
        let host = &self.hosts[id / self.plan.processes];
        let process = &self.processes[id];
        let page = process.page.map(|page| &host.pages[page.0]);
        let is_over = page.is_none_or(|page| page.phase == Phase::Ended || page.is_gone);
        if process.is_lost || is_over {
            return self.step(id, Event::Go);
        }
        if !self.is_due(id) {
            if self.may_merge(id) {
                let count = page.map_or(0, |page| page.renewed.count);
                self.processes[id].pace.look(count);
                return self.step(id, Event::Merge);
            }
            self.pause(id, None);
            return Ok(());
        }
        let issued = page.map_or(-1, |page| page.issued);
        let ceiling = issued.max(self.time + host.clock + LIMITS.ttl);
        let has_page = process.machine.as_ref().is_some_and(|machine| machine.page().is_some());
        self.step(id, if has_page { Event::Renew(ceiling) } else { Event::Go })
    }
}
