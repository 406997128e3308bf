//! The search for a slot: from the namespace to a page that is joined, or taken (rules 2, 5, 7, 9, 10, 12 and 14).

use super::calls::{Call, Command, Found, Record, Refusal};
use super::machine::{Here, Known, Look, Machine, Over, Search, Stage, User};
use super::page::{Phase, Renewal, Tenure, Word};
use super::record::{Bucket, Key, Line, Namespace, Ranges, Token, Unreadable};
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
    /// The next step of a process without a page.
    pub(super) fn search(&mut self, here: &mut Here<'_, P>) -> Command {
        let (before, namespace) = match self.namespace.clone() {
            Known::Unread => return self.call(Call::Read(Key::Namespace), here),
            Known::Absent => {
                let (id, layout) = (Token(here.host.random()), self.settings.layout);
                let (limits, size) = (self.limits, self.settings.size);
                let created = Ranges::default();
                (None, Namespace { id, layout, limits, floor: NEVER, size, created })
            }
            Known::Found(token, namespace) => (Some(token), namespace),
        };
        if namespace.layout != self.settings.layout {
            return self.refuse(Refusal::Layout(namespace.layout), here);
        }
        if self.is_lost && self.time.is_none() {
            return self.call(Call::Now, here);
        }
        // Rule 5, and the limits: both before a slot is looked for.
        // Above the floor of a namespace that an operator has confirmed to be new.
        let lost = if self.is_lost { self.horizon(here.at).max(1) } else { NEVER };
        let (floor, limits) = (namespace.floor.max(lost), namespace.limits.max(self.limits));
        let raised = Namespace { limits, floor, ..namespace.clone() };
        if before.is_none() || raised != namespace {
            return self.write(before, Record::Namespace(raised), here);
        }
        self.is_lost = false;
        // Another process may have opened a page before this one had the lock.
        for _ in 0..2 {
            if let Some(command) = self.join(namespace.id, here) {
                return command;
            }
            if !here.host.lock() {
                return Command::Locked;
            }
        }
        if self.time.is_none() {
            return self.call(Call::Now, here);
        }
        if self.is_damage(namespace.floor, here.at) {
            return self.refuse(Refusal::Ahead(Key::Namespace, namespace.floor), here);
        }
        self.take_from(before, namespace, here)
    }

    /// Joins an open page of this host, if it has one of the namespace.
    fn join(&mut self, id: Token, here: &mut Here<'_, P>) -> Option<Command> {
        if self.search.over.is_some() {
            return None;
        }
        let claim = self.settings.claim;
        let host = &mut *here.host;
        let page = host.pages().into_iter().find(|page| {
            let Tenure { namespace, owner, worker } = host.tenure(page);
            let is_wanted = namespace == id
                && claim.is_none_or(|claim| claim == worker)
                && !self.contradicted.contains(&owner);
            is_wanted && host.phase(page) == Phase::Open && host.join(page)
        })?;
        host.unlock();
        self.user = Some(User::new(page, Stage::Joining));
        Some(self.look(here))
    }

    /// Whether the bucket that is looked into was created, as far as known.
    pub(super) fn has_counted(&self) -> bool {
        self.namespace().is_some_and(|namespace| namespace.created.contains(self.number(namespace)))
    }

    /// The number of the bucket that is looked into.
    fn number(&self, namespace: &Namespace) -> u64 {
        namespace.number(self.settings.datacenter, self.search.bucket.unwrap_or_default())
    }

    /// Rule 7, and then a line of the bucket.
    fn take_from(
        &mut self,
        before: Option<Token>,
        namespace: Namespace,
        here: &mut Here<'_, P>,
    ) -> Command {
        let buckets = namespace.buckets();
        if self.search.bucket.is_none() {
            // At random: it leaves most hosts alone on their record. With an odd step, it comes to each bucket once. Where each is one
            // worker ID, the lowest is first: a directory has no more files than were used at once.
            let claimed = self.settings.claim.map(|worker| worker / namespace.size);
            let choices = if namespace.size == 1 { 1 } else { buckets };
            let mut any = || here.host.choose(choices.try_into().unwrap_or(usize::MAX)) as u64;
            self.search.bucket = Some(claimed.unwrap_or_else(&mut any));
            self.search.stride = if buckets > 2 { any() | 1 } else { 1 };
        }
        let number = self.number(&namespace);
        let is_counted = namespace.created.contains(number);
        match self.search.look.clone() {
            Look::Unread => self.look(here),
            // The write of an empty bucket allows nothing: it may be late.
            Look::Absent(true) => self.write(None, Record::Bucket(Bucket::new(namespace.id)), here),
            // It is new where the namespace, read after that, does not count it.
            Look::Absent(false) if !is_counted => self.call(Call::Read(Key::Namespace), here),
            // It is lost where the namespace, read before that, counted it.
            Look::Absent(false) => {
                let floor = namespace.floor.max(self.horizon(here.at));
                self.write(before, Record::Namespace(Namespace { floor, ..namespace }), here)
            }
            Look::Found(_, bucket, false) if bucket.id != namespace.id => {
                self.call(Call::Read(Key::Namespace), here)
            }
            Look::Found(..) if !is_counted => {
                let mut counted = namespace;
                counted.count(number);
                self.write(before, Record::Namespace(counted), here)
            }
            Look::Found(token, bucket, _) => self.choose(token, bucket, namespace, here),
        }
    }

    /// What was found of a bucket that is looked into, or written.
    pub(super) fn found_searching(
        &mut self,
        found: Found,
        here: &mut Here<'_, P>,
    ) -> Option<Command> {
        self.search.look = match found {
            None => Look::Absent(false),
            Some((token, Ok(Record::Bucket(bucket))))
                if !self.is_damage(bucket.floor, here.at) && bucket.has_room() =>
            {
                Look::Found(token, bucket, false)
            }
            Some((_, record)) => {
                let key = self.key(here);
                self.search.damage = Some(match record {
                    Err(why) => Refusal::Unreadable(key, why),
                    Ok(Record::Bucket(bucket)) if !bucket.has_room() => {
                        Refusal::Unreadable(key, Unreadable::Long(bucket.text().len()))
                    }
                    Ok(Record::Bucket(bucket)) => Refusal::Ahead(key, bucket.floor),
                    Ok(_) => return None,
                });
                return self.next_bucket(here);
            }
        };
        None
    }

    /// Begins a search in the bucket of a page that this process has ended.
    pub(super) fn search_over(&mut self, over: Over, (token, bucket): (Token, Bucket)) {
        let (look, stride) = (Look::Found(token, bucket, false), 1);
        let (bucket, over) = (Some(over.worker / self.size), Some(over));
        self.search = Search { bucket, stride, look, over, ..Search::default() };
    }

    /// Goes on with the next bucket. After all of them, there is no slot.
    fn next_bucket(&mut self, here: &mut Here<'_, P>) -> Option<Command> {
        let last_worker = self.settings.layout.last_worker();
        let buckets = last_worker / self.size + 1;
        let search = &mut self.search;
        search.full += 1;
        if self.settings.claim.is_none() && search.full < buckets {
            let next = u128::from(search.bucket.unwrap_or_default()) + u128::from(search.stride);
            search.bucket = Some((next % u128::from(buckets)) as u64);
            search.look = Look::Unread;
            return None;
        }
        if let Some((_, late)) = search.late.take() {
            (search.bucket, search.look) = (Some(late), Look::Unread);
            return None;
        }
        let Search { holders, damage, .. } = std::mem::take(search);
        // One worker ID that cannot be used keeps nobody from waiting for another.
        let is_one_of_many = self.size == 1 && holders.iter().any(|(_, holder)| holder.is_some());
        let damage = damage.filter(|_| !is_one_of_many);
        Some(self.refuse(damage.unwrap_or(Refusal::NoSlot(holders)), here))
    }

    /// Rule 2: takes one of the lines that are best, at random.
    fn choose(
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
