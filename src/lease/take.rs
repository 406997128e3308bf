//! Takes a line of a bucket for a page that is made for it (rules 2, 9 and 11).

use super::calls::{Command, Record};
use super::known::{Here, Over, Search, Stage, User};
use super::machine::Machine;
use super::page::{Phase, Renewal, Tenure, Word};
use super::record::{Bucket, Line, Namespace, Token};
use crate::core::loss::Loss;
use crate::core::sequencer::{NEVER, Window};

/// Why a line may be taken. Those that are best come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Free {
    /// Its page was this process's, which has ended it to take it over.
    Over,
    /// Nobody holds it.
    Unheld,
    /// It expired, by two clocks that agree.
    Expired,
    /// It was watched.
    Watched,
}

impl<P: Clone> Machine<P> {
    /// Rule 2: takes one of the lines that are best, at random.
    pub(super) fn choose(
        &mut self,
        before: Token,
        bucket: Bucket,
        namespace: Namespace,
        here: &mut Here<'_, P>,
    ) -> Command {
        let first = self.search.bucket.unwrap_or_default() * namespace.size;
        let last = (first + namespace.size - 1).min(namespace.layout.last_worker());
        let now = namespace.layout.tick_at(self.now(here.at).0);
        let blocked = self.blocked(&bucket, here);
        let mut free = Vec::new();
        for worker in first..=last {
            let is_wanted = self.settings.claim.is_none_or(|claim| claim == worker);
            if is_wanted
                && !blocked.contains(&worker)
                && let Some(kind) = self.look_at(worker, &bucket, here)
            {
                let is_late = bucket.lines.get(&worker).is_some_and(|line| line.ceiling > now);
                free.push(((kind, is_late), worker));
            }
        }
        let best = free.iter().map(|(rank, _)| *rank).min();
        free.retain(|(rank, _)| Some(*rank) == best);
        let has_others = self.settings.claim.is_none() && self.search.full < namespace.buckets();
        if namespace.size == 1
            && has_others
            && best.is_some_and(|(kind, late)| late && kind > Free::Over)
        {
            // Its IDs would begin later. It comes after all others, the soonest first.
            let late = bucket.lines.get(&first).map(|line| (line.ceiling, first));
            self.search.late = self.search.late.into_iter().chain(late).min();
            free.clear();
        }
        while !free.is_empty() {
            let (_, worker) = free.swap_remove(here.host.choose(free.len()));
            if let Some(command) = self.take(worker, before, &bucket, &namespace, here) {
                return command;
            }
        }
        self.next_bucket(here).unwrap_or_else(|| self.look(here))
    }

    /// Whether a line may be taken. Notes its holder where it may not.
    fn look_at(&mut self, worker: u64, bucket: &Bucket, here: &mut Here<'_, P>) -> Option<Free> {
        let line = bucket.lines.get(&worker);
        let over = self.search.over;
        if line.is_some_and(|line| over.is_some_and(|over| over.is(worker, line))) {
            return Some(Free::Over);
        }
        if bucket.damaged.contains_key(&worker)
            || line.is_some_and(|line| self.is_damage(line.ceiling.max(line.floor), here.at))
        {
            self.search.holders.push((worker, None));
            return None;
        }
        let Some(line) = line.filter(|line| line.is_held) else { return Some(Free::Unheld) };
        let super::Limits { ttl, max_clock_skew: skew, .. } = self.limits;
        let ((earliest, latest), wall) = (self.now(here.at), here.at.wall);
        let is_agreed = (wall - earliest).abs() <= skew && !self.settings.has_own_clock;
        if is_agreed && line.expires.saturating_add(skew) < earliest.min(wall) {
            return Some(Free::Expired);
        }
        // Rule 9: by one clock it is not known to be dead. A holder renews it within half a ttl.
        if line.expires <= latest
            || line.expires > latest.max(wall).saturating_add(ttl).saturating_add(skew)
        {
            let now = (line.token, here.at.mono);
            let (token, since) = self.watched.entry(worker).or_insert(now);
            if *token != line.token {
                (*token, *since) = now;
            }
            if here.at.mono - *since >= ttl / 2 {
                return Some(Free::Watched);
            }
        } else {
            self.watched.remove(&worker);
        }
        self.search.holders.push((worker, Some(line.holder.clone())));
        None
    }

    /// Rule 11: the worker IDs that open pages of this host keep: of another namespace, or not found in this store. Until their ceiling
    /// has passed.
    fn blocked(&self, bucket: &Bucket, here: &mut Here<'_, P>) -> Vec<u64> {
        let skew = self.limits.max_clock_skew;
        let passed = self.settings.layout.tick_at(here.at.wall.saturating_sub(skew));
        let pages = here.host.pages();
        let host = &*here.host;
        let blocked = |page: P| {
            let (Tenure { namespace, owner, worker }, word) =
                (host.tenure(&page), host.word(&page));
            let is_mine = |line: &Line| line.owner == owner && word.has(line.token);
            let is_here = bucket.id == namespace && bucket.lines.get(&worker).is_some_and(is_mine);
            let is_blocking = host.phase(&page) == Phase::Open
                && !is_here
                && host.window(&page).ceiling >= passed;
            is_blocking.then_some(worker)
        };
        pages.into_iter().filter_map(blocked).collect()
    }

    /// Writes the line of a pending page. None where this host cannot use the worker ID.
    fn take(
        &mut self,
        worker: u64,
        before: Token,
        bucket: &Bucket,
        namespace: &Namespace,
        here: &mut Here<'_, P>,
    ) -> Option<Command> {
        let owner = Token(here.host.random());
        let token = Token(u64::from(here.host.random() as u32).max(1));
        let word = Word { known: Token(0), pending: token };
        let tenure = Tenure { namespace: namespace.id, owner, worker };
        let page = here.host.create(tenure, word)?;
        let mut bucket = bucket.clone();
        // Lines of another namespace count; what was lost with it lay below the horizon. So does what a store has forgotten.
        let may_forget = self.settings.may_forget && !namespace.is_confirmed();
        let is_forgotten = may_forget && bucket.lines.is_empty();
        if bucket.id != namespace.id || is_forgotten {
            bucket.floor = bucket.floor.max(self.horizon(here.at));
        }
        bucket.id = namespace.id;
        let line = bucket.lines.get(&worker);
        let over = self.search.over.filter(|over| line.is_some_and(|line| over.is(worker, line)));
        let issued = |line: &Line| line.floor.max(over.map_or(line.ceiling, |over| over.last));
        let floor = bucket.floor.max(line.map_or(NEVER, issued));
        let limits = self.settings.limits;
        let (earliest, _) = self.now(here.at);
        let expires = earliest.saturating_add(limits.ttl);
        let ceiling = self.settings.layout.tick_at(expires.saturating_add(limits.max_ahead));
        let line = Line {
            owner,
            token,
            is_held: true,
            floor,
            ceiling: ceiling.max(floor),
            expires: expires.max(here.at.wall.saturating_add(limits.ttl)),
            holder: self.settings.holder.clone(),
        };
        self.user = Some(User::new(page, Stage::Taking));
        Some(self.write(Some(before), Record::Bucket(bucket.with(worker, line)), here))
    }

    /// What was found of a bucket from which a line is taken, or written.
    pub(super) fn found_taking(
        &mut self,
        page: &P,
        found: Option<(Token, Bucket)>,
        here: &mut Here<'_, P>,
    ) -> Option<Command> {
        let (tenure, word) = (here.host.tenure(page), here.host.word(page));
        let line = found.as_ref().and_then(|(_, bucket)| bucket.lines.get(&tenure.worker));
        if line.is_some_and(|line| line.owner == tenure.owner && word.has(line.token)) {
            here.host.swap(page, word, Word { known: word.pending, pending: Token(0) });
            self.user.as_mut()?.seen = found;
            self.go_on(Stage::Checking);
            return None;
        }
        // Another process was first. Where the write is late, it takes a line for nobody, until that expires.
        here.host.end(page, Loss::Released);
        here.host.leave(page);
        self.user = None;
        match (self.search.over, found) {
            (Some(over), Some(found)) => self.search_over(over, found),
            // Others write to this bucket: another one is next, or this one as it is after a pause.
            _ => self.search = Search::default(),
        }
        Some(Command::Again)
    }

    /// Once the namespace was read after the take: the page opens above its floor, too.
    pub(super) fn check(&mut self, page: &P, here: &mut Here<'_, P>) -> Command {
        let worker = here.host.tenure(page).worker;
        let seen = self.user.as_ref().and_then(|user| user.seen.as_ref());
        let same = seen.zip(self.namespace()).filter(|((_, bucket), one)| one.id == bucket.id);
        let line =
            same.and_then(|((_, bucket), one)| Some((bucket.lines.get(&worker)?, one.floor)));
        let Some((line, floor)) = line.filter(|_| here.host.phase(page) == Phase::Pending) else {
            return self.give_up(page, here);
        };
        let window = Window { floor: line.floor.max(floor), ceiling: line.ceiling };
        let ttl = self.settings.limits.ttl;
        here.host.renew(page, Renewal { at: here.at.mono, expires: line.expires, ttl });
        here.host.open(page, window);
        here.host.unlock();
        self.go_on(Stage::Using(None));
        (self.search, self.renewing) = (Search::default(), None);
        self.contradicted.clear();
        self.watched.clear();
        Command::Open
    }

    /// Frees a line that was taken for a page that does not open.
    pub(super) fn give_up(&mut self, page: &P, here: &mut Here<'_, P>) -> Command {
        here.host.end(page, Loss::Released);
        self.go_on(Stage::Freeing(NEVER));
        self.free(page, NEVER, here)
    }
}

impl Over {
    /// Whether a line is still that of the page that was ended.
    fn is(&self, worker: u64, line: &Line) -> bool {
        self.worker == worker && self.owner == line.owner && self.word.has(line.token)
    }
}
