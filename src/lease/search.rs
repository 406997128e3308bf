//! Finds a slot: opens the namespace, joins the host's page, or takes a slot that is free.

use std::cmp::Ordering;

use super::calls::{Call, Command, Host, LeaseRefusal, Settings};
use super::page::{At, Joinable, LeasePage, Loss};
use super::record::{BUCKET, Bucket, Floor, Key, Namespace, Record, Slot, Standing, Token};
use super::state::{Held, Listed, Machine, Making, Proof, Search, Seen, Sent, Stage, Taking};
use crate::core::layout::Tick;
use crate::core::sequencer::{NEVER, Window};

/// A slot that may be taken.
#[derive(Clone, Copy)]
enum Free {
    /// This process has just created it: its record's token, and the floor.
    Own(Token, Tick),
    /// It has to be created.
    Absent,
    /// Others have held it: the floor, and its record's token.
    Used(Tick, Token),
    /// Others have, or may have, and what they had is lost: its record's token, if it has one.
    Lost(Option<Token>),
}

impl Free {
    /// The best is the lowest. Floors up to `passed` are as good as each other.
    fn rank(self, passed: Tick) -> (u8, Tick) {
        match self {
            Free::Own(..) => (0, NEVER),
            Free::Absent => (1, NEVER),
            Free::Used(floor, _) => (2, floor.max(passed)),
            Free::Lost(_) => (3, NEVER),
        }
    }
}

impl<P: LeasePage + Clone> Machine<P> {
    pub(super) fn create_namespace(&mut self, at: At) -> Command {
        let Settings { layout, may_forget, .. } = *self.settings;
        let limits = self.limits;
        let is_lost = self.namespace.is_some() || may_forget;
        let floor = if is_lost { Floor::Lost } else { Floor::New };
        // No other writer has this number.
        let id = u128::from(at.fresh.get());
        let record = Record::Namespace(Namespace { id, layout, limits, floor });
        self.write(Key::Namespace, record, None, at.fresh)
    }

    /// Looks for a slot in a namespace that exists.
    pub(super) fn find_slot(
        &mut self,
        token: Token,
        namespace: Namespace,
        at: At,
        host: &impl Host<Page = P>,
    ) -> Command {
        let Settings { layout, limits, claim, .. } = *self.settings;
        let refusal = if namespace.layout != layout {
            Some(LeaseRefusal::Layout(namespace.layout))
        } else {
            let fits = namespace.limits.max(limits) == namespace.limits;
            match namespace.floor {
                _ if !fits => Some(LeaseRefusal::Limits(namespace.limits)),
                Floor::At(floor) if self.limits.is_impossible(layout, floor, self.now(at).1) => {
                    Some(LeaseRefusal::Ahead(floor))
                }
                _ => None,
            }
        };
        if let Some(refusal) = refusal {
            // Somebody may have changed it by the next try.
            self.forget();
            return Command::Refused(refusal);
        }
        if self.namespace.is_some_and(|id| id != namespace.id) {
            // Another one in its place: that was lost.
            self.is_lost = true;
        }
        self.namespace = Some(namespace.id);
        if std::mem::take(&mut self.is_lost) {
            self.horizon = self.horizon.max(Some(self.horizon_now(at)));
        }
        let least = self.horizon.unwrap_or(NEVER);
        let floor = match namespace.floor {
            Floor::New => least,
            Floor::Lost => self.horizon_now(at).max(least),
            Floor::At(floor) => floor.max(least),
        };
        if namespace.floor != Floor::At(floor) {
            let record = Record::Namespace(Namespace { floor: Floor::At(floor), ..namespace });
            return self.write(Key::Namespace, record, Some(token), at.fresh);
        }
        self.horizon = None;
        let Some(listed) = self.search.listed.take() else {
            return match host.find(namespace.id, claim) {
                Joinable::Page(page) => {
                    self.drop_page(host);
                    self.look(Held { page, last: None, sent: None, proof: Proof::Wanted })
                }
                Joinable::Soon => Command::Join,
                Joinable::None => self.list_next(at),
            };
        };
        if let Some(key) = listed.damaged() {
            self.forget();
            return Command::Refused(LeaseRefusal::Damaged(key));
        }
        while let Some((worker, free)) = self.choose(&listed, namespace.id, floor, at) {
            // What can fail on this host fails before the store knows of it.
            if self.search.page.as_ref().is_none_or(|page| page.worker() != worker) {
                self.drop_page(host);
                self.search.page = host.create(namespace.id, worker);
            }
            let Some(page) = self.search.page.take() else {
                self.search.unusable.push(worker);
                continue;
            };
            let (before, floor) = match free {
                Free::Own(token, floor) | Free::Used(floor, token) => (token, floor),
                Free::Lost(Some(token)) if listed.is_noted_lost(worker, namespace.id) => {
                    (token, floor.max(self.horizon_now(at)))
                }
                _ => {
                    self.search.page = Some(page);
                    self.search.again = Some(listed.bucket);
                    return self.make(listed.making(worker, free, namespace.id), at);
                }
            };
            return self.begin(page, before, floor, namespace.id, at);
        }
        self.list_next(at)
    }

    /// How many buckets a search lists at random, and how many there are.
    fn probes(&self) -> (u64, u64) {
        let buckets = self.settings.layout.last_worker() / BUCKET + 1;
        (buckets.next_power_of_two().trailing_zeros().into(), buckets)
    }

    /// Others write to the bucket: in a range of several, looks into another one.
    pub(super) fn spread(&mut self) {
        let (probes, _) = self.probes();
        self.search.again.take_if(|_| self.search.count < probes);
    }

    /// Lists a bucket: one in a range that doubles, so that a search finds room without listing all buckets that are full; in
    /// the end each of them, twice.
    fn list_next(&mut self, at: At) -> Command {
        let Settings { datacenter, claim, .. } = *self.settings;
        let (probes, buckets) = self.probes();
        if let Some(bucket) = self.search.again.take() {
            return self.call(Call::List { datacenter, bucket }, None);
        }
        let (count, draw) = (self.search.count, at.fresh.get());
        let bucket = match claim {
            Some(worker) if count == 0 => worker / BUCKET,
            None if count < probes => draw % (1 << count),
            None if count < probes + 2 * buckets => {
                if count == probes {
                    self.search.first = draw % buckets;
                }
                (self.search.first + (count - probes)) % buckets
            }
            _ => {
                let holders = std::mem::take(&mut self.search.holders);
                self.search.count = 0;
                // What this host could not do, it may be able to do by then.
                self.search.unusable.clear();
                self.forget();
                return Command::Refused(LeaseRefusal::NoSlot(holders));
            }
        };
        self.search.count += 1;
        self.call(Call::List { datacenter, bucket }, None)
    }

    /// Picks a slot of the bucket, the best; one of those that are as good at random, so that those who start together try
    /// different ones.
    fn choose(
        &mut self,
        listed: &Listed,
        namespace: u128,
        floor: Tick,
        at: At,
    ) -> Option<(u64, Free)> {
        let Settings { layout, claim, .. } = *self.settings;
        // Others may be creating what looks lost, and it has to wait for the horizon: in the last round only.
        let (probes, buckets) = self.probes();
        let may_be_lost = claim.is_some() || self.search.count > probes + buckets;
        let passed = self.passed(at);
        let first = listed.bucket * BUCKET;
        let last = (first + BUCKET - 1).min(layout.last_worker());
        let workers = (first..=last).filter(|worker| claim.is_none_or(|wanted| wanted == *worker));
        self.search.holders.clear();
        let mut best: Vec<(u64, Free)> = Vec::new();
        for worker in workers {
            if self.search.unusable.contains(&worker) {
                continue;
            }
            let Some(free) = self.look_at(worker, listed, namespace, floor, at) else { continue };
            if matches!(free, Free::Lost(_)) && !may_be_lost {
                continue;
            }
            let order = best.first().map(|(_, other)| free.rank(passed).cmp(&other.rank(passed)));
            if order == Some(Ordering::Less) {
                best.clear();
            }
            if order != Some(Ordering::Greater) {
                best.push((worker, free));
            }
        }
        let at_random = at.fresh.get().checked_rem(best.len() as u64)?;
        Some(best.swap_remove(at_random as usize))
    }

    /// Whether a slot may be taken, and how. Notes its holder.
    fn look_at(
        &mut self,
        worker: u64,
        listed: &Listed,
        namespace: u128,
        floor: Tick,
        at: At,
    ) -> Option<Free> {
        let key = self.key(worker);
        let Some((_, token, record)) = listed.records.iter().find(|(of, ..)| *of == key) else {
            let is_made = listed.bucket(namespace).1.made >> (worker % BUCKET) & 1 == 1;
            return Some(if is_made { Free::Lost(None) } else { Free::Absent });
        };
        let slot = match record {
            Record::Slot(slot) => slot,
            Record::Made(id) => {
                let is_own = self.search.made == Some(*token) && *id == namespace;
                let is_new = is_own && !listed.is_noted_lost(worker, namespace);
                return Some(if is_new {
                    Free::Own(*token, floor)
                } else {
                    Free::Lost(Some(*token))
                });
            }
            _ => {
                self.search.holders.push((worker, None));
                return None;
            }
        };
        let Machine { limits, ref settings, .. } = *self;
        let own = Namespace { id: namespace, layout: settings.layout, limits, floor: Floor::New };
        let holder = match own.standing(slot, self.now(at)) {
            Standing::Free(highest) => return Some(Free::Used(highest.max(floor), *token)),
            Standing::Held => Some(slot.holder.clone()),
            Standing::Impossible => None,
        };
        self.search.holders.push((worker, holder));
        None
    }

    /// Gives up the page for a slot that is not to be taken.
    pub(super) fn drop_page(&mut self, host: &impl Host<Page = P>) {
        if let Some(page) = self.search.page.take() {
            page.end(Loss::Released);
            host.leave(&page);
        }
    }

    /// The next call of a slot that is being created. Its outcome shows when the bucket is listed again.
    pub(super) fn make(&mut self, making: Making, at: At) -> Command {
        let Making { worker, mark, is_absent } = making;
        if let Some((before, bucket)) = mark {
            self.making = is_absent.then_some(Making { worker, mark: None, is_absent });
            let key = Key::Bucket(self.settings.datacenter, worker / BUCKET);
            return self.write(key, Record::Bucket(bucket), before, at.fresh);
        }
        self.search.made = Some(at.fresh);
        let namespace = self.namespace.unwrap_or_default();
        self.write(self.key(worker), Record::Made(namespace), None, at.fresh)
    }

    /// Takes a slot for a pending page.
    fn begin(&mut self, page: P, before: Token, floor: Tick, namespace: u128, at: At) -> Command {
        let Settings { layout, limits, ref holder, .. } = *self.settings;
        let (earliest, _) = self.now(at);
        let wanted =
            layout.tick_at(earliest.saturating_add(limits.ttl).saturating_add(limits.max_ahead));
        let slot = Slot {
            namespace,
            owner: page.owner(),
            is_held: true,
            floor,
            ceiling: floor.max(wanted),
            expires: earliest.saturating_add(limits.ttl),
            holder: holder.clone(),
        };
        self.take(Taking { page, slot, before, token: None, stage: Stage::Write }, at)
    }

    /// The next call of a slot that is being taken.
    pub(super) fn take(&mut self, mut taking: Taking<P>, at: At) -> Command {
        let key = self.key(taking.page.worker());
        let command = match taking.stage {
            Stage::Write => {
                // The same token again where the outcome is unknown: it belongs to one predecessor.
                let token = *taking.token.get_or_insert(at.fresh);
                // Of a page that nobody else has.
                let _ = taking.page.announce(token, taking.before);
                self.write(key, Record::Slot(taking.slot.clone()), Some(taking.before), token)
            }
            Stage::ReadBack => self.call(Call::Read(key), None),
            Stage::ReadNamespace => self.call(Call::Read(Key::Namespace), None),
        };
        self.taking = Some(taking);
        command
    }

    /// Another process was first: look again. A record that was written, and was not what was read back, is freed, unless another
    /// one has replaced it: a read may lag.
    fn drop_taking(&mut self, taking: Taking<P>, host: &impl Host<Page = P>) {
        taking.page.end(Loss::Released);
        host.leave(&taking.page);
        if let (Stage::ReadNamespace, Some(token)) = (taking.stage, taking.token) {
            taking.page.advance(None, token);
            let (page, slot) = (taking.page.clone(), taking.slot.clone());
            let (floor, last) = (slot.floor, Some((token, slot)));
            let held = Held { page, last, sent: None, proof: Proof::Given };
            self.freeing = Some((held, floor));
        }
        self.search.again = Some(taking.page.worker() / BUCKET);
        self.spread();
        // It may know of another namespace by now: else the two would take the slot from each other for ever.
        self.forget();
    }

    /// What was found of a slot that is being taken.
    pub(super) fn found_taking(
        &mut self,
        mut taking: Taking<P>,
        found: Option<(Token, Record)>,
        host: &impl Host<Page = P>,
    ) {
        let is_ours = found.is_some_and(|(token, _)| Some(token) == taking.token);
        taking.stage = match taking.stage {
            Stage::Write => Stage::ReadBack,
            _ => Stage::ReadNamespace,
        };
        if is_ours {
            self.taking = Some(taking);
        } else {
            self.drop_taking(taking, host);
        }
    }

    /// Once the namespace was read: whether it is still the one in which a slot was taken. Then its page opens.
    pub(super) fn check_taken(&mut self, at: At, host: &impl Host<Page = P>) -> Option<Command> {
        let is_last = |taking: &mut Taking<P>| taking.stage == Stage::ReadNamespace;
        let taking = self.taking.take_if(is_last)?;
        let token = taking.token?;
        match &self.seen {
            Seen::Present(_, Namespace { id, floor: Floor::At(floor), .. })
                if *id == taking.slot.namespace =>
            {
                let floor = *floor;
                let Taking { page, slot, .. } = taking;
                page.advance(None, token);
                let window = Window { floor: slot.floor.max(floor), ceiling: slot.ceiling };
                page.open(window, slot.expires, at);
                self.search = Search::new();
                let (last, proof) = (Some((token, slot)), Proof::Given);
                self.held = Some(Held { page, last, sent: None, proof });
                Some(Command::Held)
            }
            _ => Some(self.give_up(taking, at, host)),
        }
    }

    /// Frees a slot that is being taken: no ID was issued from it.
    pub(super) fn give_up(
        &mut self,
        taking: Taking<P>,
        at: At,
        host: &impl Host<Page = P>,
    ) -> Command {
        let Taking { page, slot, before, token, stage } = taking;
        page.end(Loss::Released);
        host.leave(&page);
        // A write whose outcome is unknown may still be applied, until the record before it is replaced. So that is not read, but
        // replaced.
        let sent = token.filter(|_| stage == Stage::Write).map(|token| {
            page.advance(None, before);
            Sent { token, before, slot: slot.clone(), wanted: None }
        });
        let held = Held { page, last: None, sent, proof: Proof::Given };
        self.free(held, slot.floor, at).unwrap_or(Command::Retry)
    }
}

impl Listed {
    /// The bucket's record and its token; an empty one where there is none. Of another namespace, such as one that was recovered,
    /// it says which slots were created: holders that have not noticed may have renewed them above this one's floor.
    fn bucket(&self, namespace: u128) -> (Option<Token>, Bucket) {
        let found = self.records.iter().find_map(|(key, token, record)| match (key, record) {
            (Key::Bucket(..), Record::Bucket(bucket)) => Some((*token, *bucket)),
            _ => None,
        });
        let empty = Bucket { namespace, made: 0, lost: 0 };
        let of_this = |bucket: Bucket| match bucket.namespace == namespace {
            true => bucket,
            false => Bucket { made: bucket.made, ..empty },
        };
        (found.map(|(token, _)| token), found.map_or(empty, |(_, bucket)| of_this(bucket)))
    }

    /// The key of the bucket's record, if that is none of a bucket.
    fn damaged(&self) -> Option<Key> {
        let is_damaged = |(key, _, record): &&(Key, Token, Record)| {
            matches!(key, Key::Bucket(..)) && !matches!(record, Record::Bucket(_))
        };
        self.records.iter().find(is_damaged).map(|(key, ..)| *key)
    }

    fn is_noted_lost(&self, worker: u64, namespace: u128) -> bool {
        self.bucket(namespace).1.lost >> (worker % BUCKET) & 1 == 1
    }

    /// What notes a slot in its bucket, unless it is noted.
    fn making(&self, worker: u64, free: Free, namespace: u128) -> Making {
        let (token, mut bucket) = self.bucket(namespace);
        let before = bucket;
        let bit = 1 << (worker % BUCKET);
        bucket.made |= bit;
        if let Free::Lost(_) = free {
            bucket.lost |= bit;
        }
        let mark = (bucket != before).then_some((token, bucket));
        Making { worker, mark, is_absent: !matches!(free, Free::Lost(Some(_))) }
    }
}
