//! The pages of leases from stores, as the protocol sees them: [`crate::lease`].

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::entry::{Entry, Held};
use super::request::Request;
use super::share::Share;
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::{Class, Failure};
use crate::core::layout::Tick;
use crate::core::node::Node;
use crate::core::sequencer::Window;
use crate::generator::Generator;
use crate::lease::{At, Host, Joinable, LeasePage, Loss, Phase, Token};
use crate::pages::{Announcer, Directory, LeasesLock, Page};

/// How often, and at which pauses, the last user of a slot tries to keep others from looking for one.
const LEAVES: usize = 3;
const LEAVE: Duration = Duration::from_millis(1);

fn wait<T>(pause: Duration) -> Option<T> {
    thread::sleep(pause);
    None
}

/// A page of a lease, as one user of this process has it.
#[derive(Clone)]
pub struct LeasedPage(Arc<Leased>);

struct Leased {
    page: Arc<Page>,
    generator: Arc<Generator>,
    /// None once its user has left it.
    share: Mutex<Option<Share>>,
    /// The place for this user's tokens, from when it has joined.
    announcer: Mutex<Option<Announcer>>,
    /// The page, locked so that nobody joins it: from when nobody else uses it until it is removed.
    last: Mutex<Option<Page>>,
    /// The time for which this user renews it.
    ttl_ms: i64,
}

impl LeasedPage {
    fn new(share: Share, ttl_ms: i64) -> LeasedPage {
        let (page, generator) = (share.page(), share.generator.clone());
        let (announcer, last) = Default::default();
        let share = Mutex::new(Some(share));
        LeasedPage(Arc::new(Leased { page, generator, share, announcer, last, ttl_ms }))
    }

    /// The page.
    pub fn page(&self) -> &Page {
        &self.0.page
    }

    /// The ceiling to ask for, that far ahead.
    pub fn next_ceiling(&self, ahead: Duration) -> Tick {
        self.0.generator.next_ceiling(ahead)
    }

    /// Takes a place for this user's tokens, unless it has one or there is none.
    fn take_place(&self) {
        let mut announcer = self.0.announcer.lock();
        if announcer.is_none() {
            *announcer = Announcer::new(&self.0.page);
        }
    }

    /// Another share in its generator; none once its user has left it.
    pub fn share(&self, request: &Request) -> Option<Share> {
        self.0.share.lock().as_ref()?.again(request)
    }

    /// Notes how the server describes its own run.
    pub fn note_run(&self, run: u64) {
        self.page().notes().run.store(run, Release);
    }

    /// Whether a process wants the others to renew it soon.
    pub fn is_asked(&self) -> bool {
        self.page().notes().asked.load(Acquire) != 0
    }
}

impl fmt::Debug for LeasedPage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("LeasedPage").field(&self.page().header()).finish()
    }
}

impl LeasePage for LeasedPage {
    fn owner(&self) -> u128 {
        self.page().lease_status().map_or(0, |leasing| leasing.owner)
    }

    fn worker(&self) -> u64 {
        self.page().header().node.worker_id()
    }

    fn phase(&self) -> Phase {
        let page = self.page();
        match (page.has_ended(), page.sequence().is_closed()) {
            (true, _) => Phase::Ended,
            (false, true) => Phase::Pending,
            (false, false) => Phase::Open,
        }
    }

    /// What it was, also once it has ended.
    fn window(&self) -> Window {
        let page = self.page();
        Window { floor: page.sequence().floor(), ceiling: page.cells().ceiling() }
    }

    fn expires(&self) -> i64 {
        self.page().lease_status().and_then(|leasing| leasing.expires_ms).unwrap_or(i64::MIN)
    }

    fn known(&self) -> Option<Token> {
        Token::new(self.page().notes().known.load(Acquire))
    }

    fn advance(&self, from: Option<Token>, to: Token) -> bool {
        self.page().advance_known(from.map_or(0, Token::get), to.get())
    }

    fn announce(&self, token: Token, before: Token) -> Option<Token> {
        self.take_place();
        let announcer = self.0.announcer.lock();
        Token::new(announcer.as_ref()?.announce(token.get(), before.get()))
    }

    fn is_announced(&self, token: Token) -> bool {
        self.page().announced().any(|announced| announced == token.get())
    }

    fn tokens(&self) -> Vec<Token> {
        self.page().announced().filter_map(Token::new).chain(self.known()).collect()
    }

    fn run(&self) -> u64 {
        self.page().notes().run.load(Acquire)
    }

    fn confirm(&self, ceiling: Tick, expires: i64, is_renewal: bool, at: At) {
        let Leased { page, generator, ttl_ms, .. } = &*self.0;
        if page.has_ended() {
            return;
        }
        self.take_place();
        generator.raise_ceiling(ceiling);
        let kept = page.notes();
        kept.run.store(at.run, Release);
        if is_renewal {
            let expires = expires.max(self.expires());
            kept.note_renewal(at.mono, Some(expires), *ttl_ms);
            kept.asked.store(0, Release);
        }
    }

    fn open(&self, window: Window, expires: i64, at: At) {
        self.take_place();
        let kept = self.page().notes();
        kept.set_renewed(at.mono, Some(expires), self.0.ttl_ms);
        kept.run.store(at.run, Release);
        let generator = &self.0.generator;
        self.page().open_lease(window, generator.tick_now());
        generator.note_first_tick();
    }

    fn end(&self, why: Loss) -> Option<Tick> {
        self.page().end_lease(why)
    }

    fn loss(&self) -> Option<Loss> {
        self.page().lease_status().and_then(|leasing| leasing.loss)
    }

    fn ask(&self) {
        self.page().notes().asked.store(1, Release);
    }

    fn is_shared(&self) -> bool {
        self.page().has_other_places(self.0.announcer.lock().as_ref())
    }

    fn is_gone(&self) -> bool {
        !self.page().is_named().unwrap_or(false)
    }
}

impl Drop for Leased {
    /// A page that has ended is of no use to others.
    fn drop(&mut self) {
        let page = &self.page;
        if let Some(last) = self.last.get_mut()
            && last.has_ended()
        {
            let layout = page.header().node.layout();
            last.remove_passed(|| layout.tick_at(SystemClock.now().ms));
        }
    }
}

/// The pages of this host, for one lease of this process.
pub struct Leases {
    request: Request,
    /// None for a slot of this process alone.
    directory: Option<Directory>,
    ttl_ms: i64,
    /// Whether its caller can use a slot that the host has: not with a ring of other options in this process.
    is_usable: Box<dyn Fn(&Share) -> bool>,
    /// How long to wait for another process of the host that takes a slot. It may have been stopped.
    patience: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Held while this process takes a slot.
    lock: Option<LeasesLock>,
    waiting_since: Option<Instant>,
    /// Why this host has no page.
    failure: Option<Failure>,
    /// Why it cannot have one of a certain node.
    conflict: Option<Failure>,
    /// Whether another lease of this process was taking a slot that this one could have taken.
    is_contended: bool,
}

impl Leases {
    /// The pages that a request names.
    pub fn of(
        request: Request,
        ttl_ms: i64,
        patience: Duration,
        is_usable: Box<dyn Fn(&Share) -> bool>,
    ) -> Result<Leases, Failure> {
        let directory = request.host()?;
        Ok(Leases { request, directory, ttl_ms, is_usable, patience, state: Mutex::default() })
    }

    /// Whether the host's processes share slots.
    pub fn is_of_host(&self) -> bool {
        self.directory.is_some()
    }

    /// Whether this host has no page, for a reason of its own.
    pub fn has_failed(&self) -> bool {
        self.state.lock().failure.is_some()
    }

    /// Lets other processes of the host take a slot: this one has one, or pauses. Takes out why this host has no page.
    pub fn pause(&self) -> Option<Failure> {
        let mut state = self.state.lock();
        state.lock = None;
        state.failure.take()
    }

    /// Takes out why this host could not use some node.
    pub fn take_conflict(&self) -> Option<Failure> {
        self.state.lock().conflict.take()
    }

    /// Whether another lease of this process was taking a slot that this one could have taken. Forgets it.
    pub fn take_contended(&self) -> bool {
        mem::take(&mut self.state.lock().is_contended)
    }

    /// Whether another lease of this process takes this slot now. It may not get it.
    fn is_being_taken(&self, worker: u64) -> bool {
        let Request { layout, datacenter_id, .. } = self.request;
        let node = Node::new(layout, datacenter_id, worker);
        node.is_ok_and(|node| Entry::of(node).tenancy.lock().has_pending())
    }

    fn find_page(
        &self,
        namespace: u128,
        claim: Option<u64>,
    ) -> Result<Joinable<LeasedPage>, Failure> {
        let Some(directory) = &self.directory else { return Ok(Joinable::None) };
        let is_wanted = |worker| claim.is_none_or(|wanted| wanted == worker);
        let join = || self.request.join(directory, namespace, is_wanted, &self.is_usable);
        let had_lock = self.state.lock().lock.is_some();
        let mut found = join()?;
        if found.is_none() && !had_lock {
            if !self.may_take(directory, namespace)? {
                return Ok(Joinable::Soon);
            }
            // Another one may have taken a slot before the lock.
            found = join()?;
        }
        Ok(found.map_or(Joinable::None, |share| {
            // The next wait begins anew.
            self.state.lock().waiting_since = None;
            Joinable::Page(LeasedPage::new(share, self.ttl_ms))
        }))
    }

    /// Whether this process may take a slot: no other one of the host does, or it takes too long.
    fn may_take(&self, directory: &Directory, namespace: u128) -> Result<bool, Failure> {
        let mut state = self.state.lock();
        let since = *state.waiting_since.get_or_insert_with(Instant::now);
        state.lock = self.lock(directory, namespace)?;
        let may_take = state.lock.is_some() || since.elapsed() >= self.patience;
        if may_take {
            state.waiting_since = None;
        }
        Ok(may_take)
    }

    /// Keeps other processes from taking a slot; none while another one does.
    fn lock(&self, directory: &Directory, namespace: u128) -> Result<Option<LeasesLock>, Failure> {
        let Request { layout, datacenter_id, .. } = &self.request;
        let text = format!("{layout:?} {datacenter_id}");
        directory.lock_leases(namespace ^ u128::from(crc32fast::hash(text.as_bytes())))
    }

    fn create_page(&self, namespace: u128, worker: u64) -> Result<Share, Failure> {
        let Leases { request, directory, .. } = self;
        let node = Node::new(request.layout, request.datacenter_id, worker)?;
        let entry = Entry::of(node);
        let mut tenancy = entry.tenancy.lock();
        // Where this process has the node open already, another one may do.
        let conflict = |failure: Failure| Failure::new(Class::Conflict, failure.fault);
        tenancy.find(request, directory.is_some(), None).map_err(conflict)?;
        entry.note_lost(&tenancy);
        let owner = fastrand::u128(1..);
        let max_ahead = request.max_ahead();
        let (page, held) = match directory {
            Some(directory) => (directory.pending(&node, max_ahead, namespace, owner)?, Held::Page),
            None => (Page::pending_in_process(node, max_ahead, namespace, owner), Held::Window),
        };
        let generator = Arc::new(Generator::leased(page, request.clock()));
        Ok(entry.begin(&mut tenancy, request, (generator, held)))
    }

    fn note(&self, failure: Failure) {
        let mut state = self.state.lock();
        match failure.class {
            Class::Conflict => state.conflict = Some(failure),
            _ => state.failure = Some(failure),
        }
    }
}

impl Host for Leases {
    type Page = LeasedPage;

    fn find(&self, namespace: u128, claim: Option<u64>) -> Joinable<LeasedPage> {
        self.find_page(namespace, claim).unwrap_or_else(|failure| {
            self.state.lock().failure = Some(failure);
            Joinable::Soon
        })
    }

    fn find_lower(&self, namespace: u128, worker: u64, now: Tick) -> Option<LeasedPage> {
        let issues = |share: &Share| {
            let page = share.page();
            page.sequence().floor() < now && now < page.cells().ceiling()
        };
        let is_usable = |share: &Share| issues(share) && (self.is_usable)(share);
        let directory = self.directory.as_ref()?;
        let found = self.request.join(directory, namespace, |lower| lower < worker, is_usable);
        // What fails here is no loss: the process has a page.
        found.ok().flatten().map(|share| LeasedPage::new(share, self.ttl_ms))
    }

    fn create(&self, namespace: u128, worker: u64) -> Option<LeasedPage> {
        if self.state.lock().failure.is_some() {
            // What has failed for one worker ID fails for the next.
            return None;
        }
        if self.is_being_taken(worker) {
            self.state.lock().is_contended = true;
            return None;
        }
        match self.create_page(namespace, worker) {
            Ok(share) => Some(LeasedPage::new(share, self.ttl_ms)),
            Err(failure) => {
                self.note(failure);
                None
            }
        }
    }

    fn leave(&self, page: &LeasedPage) -> bool {
        let Some(share) = page.0.share.lock().take() else { return false };
        // To free the slot; a page that was left has no more places.
        page.take_place();
        let mut state = self.state.lock();
        // Who looks for a slot meanwhile waits until this one is free.
        let lock = || {
            let namespace = page.page().lease_status()?.namespace;
            self.lock(self.directory.as_ref()?, namespace).unwrap_or_default()
        };
        let before = if state.lock.is_none() { lock() } else { None };
        let (is_last, last) = share.leave_last();
        if is_last && state.lock.is_none() {
            // Another process that left at the same time had the lock, and was not the last one.
            let again = || (0..LEAVES).find_map(|_| lock().or_else(|| wait(LEAVE)));
            state.lock = before.or_else(again);
        }
        *page.0.last.lock() = last;
        is_last
    }
}
