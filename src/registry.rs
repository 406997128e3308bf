//! One generator a node for the whole process, so that instances and worker_threads that name the
//! same node cannot collide; and one lease, where the node is recorded in a store.
//!
//! What a process issues alone is never forgotten, not even after all instances are closed: it must not be
//! issued again when the node is opened next. A process names few nodes. What it draws from the host's page,
//! the page remembers.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use thiserror::Error;

use crate::clock::{Clock, SystemClock};
use crate::durable::Refused;
use crate::generator::{Generator, Policies, WindowId};
use crate::host::{Directory, HostError};
use crate::layout::{Layout, LayoutError};
use crate::lease::{Lease, Report};
use crate::listeners::Listener;
use crate::node::Node;
use crate::store::file::FileStore;
use crate::store::{Holder, Recorded, StoreError, Terms};

/// How often a slot that is held by another is tried again.
const POLL: Duration = Duration::from_millis(20);

/// How long processes need to give a page up that has lost its name.
const GRACE: Duration = Duration::from_millis(500);

/// How long giving up a slot may hold the thread that does it. It takes some 0.1 ms, unless the disk
/// hangs.
const RELEASE: Duration = Duration::from_secs(1);

/// How long a thread waits while another one takes or gives up the same slot. Shorter than what a
/// constructor waits for the disk, so that this tells it why.
const SETTLE: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 8_000 });

static NODES: LazyLock<Mutex<HashMap<Node, Arc<Entry>>>> = LazyLock::new(Mutex::default);

/// The slots that the process leased for all who want any: a lock for each, since the disk answers
/// and is waited for under it.
static COMMON: LazyLock<Mutex<HashMap<Wanted, Arc<Common>>>> = LazyLock::new(Mutex::default);

/// Any slot of a store's directory, for a layout and a datacenter.
type Wanted = (PathBuf, Layout, u64);

/// The slot that was leased for all who want that.
type Common = Mutex<Option<Node>>;

struct Entry {
    /// What the process issues alone. It is never forgotten.
    own: Arc<Generator>,
    tenancy: Mutex<Tenancy>,
    settled: Condvar,
}

struct Tenancy {
    users: usize,
    memory: Memory,
    /// What the process draws from with the host's other processes, while it has the node open so.
    shared: Option<Arc<Generator>>,
}

/// How a node is to be opened.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The caller's own.
    pub policies: Policies,
    /// How far ahead of the clock IDs may lie, in ms. All who share the node agree on it.
    pub max_ahead_ms: i64,
    /// Where the host's page is; none to share the node within the process only.
    pub host: Option<Directory>,
}

/// Where a node's high marks are kept.
enum Memory {
    /// In the process.
    Process,
    /// A lease is being taken or given up.
    Changing,
    /// In an engine that JavaScript talks to: this is the window it keeps.
    Engine(WindowId),
    /// In a store besides.
    Store { lease: Lease, directory: PathBuf, ttl: Duration },
}

/// Where and how a node is recorded.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The file store's.
    pub directory: PathBuf,
    /// How far ahead of the clock the ceiling is recorded.
    pub ttl: Duration,
    /// How long to wait for a slot that is held by another process.
    pub wait: Duration,
    /// This host's name.
    pub host: String,
    /// When this process started, Unix ms.
    pub started_ms: i64,
}

/// Why a node could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// It is open in this process with another `maxAhead`, in ms.
    #[error("open with maxAhead {0}")]
    MaxAhead(i64),
    /// It is open in this process and recorded elsewhere, or not at all, or with another ttl.
    #[error("{0}")]
    Elsewhere(String),
    /// The host's page refused.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The layout has no room for it.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A share in a node's generator. Dropping it gives the share up; the generator stays. The last one
/// gives up the slot.
pub struct Share {
    entry: Arc<Entry>,
    generator: Arc<Generator>,
    policies: Policies,
    /// Other users of the machine who have the same node: what to warn of.
    pub second_users: Vec<String>,
    /// Slots that were passed over because their records cannot be used, and why.
    pub passed_over: Vec<String>,
}

/// Opens a node that is recorded nowhere, for the first time or along with others. All at one time
/// must agree on `maxAhead` and on the scope. Does not block.
pub fn open(node: Node, opening: &Opening) -> Result<Share, OpenError> {
    let entry = Entry::of(node);
    let mut tenancy = entry.tenancy.lock();
    match &tenancy.memory {
        Memory::Process => {}
        Memory::Changing => return Err(OpenError::Elsewhere("and recorded in a store".to_owned())),
        Memory::Engine(_) => return Err(OpenError::Elsewhere("and leased".to_owned())),
        Memory::Store { lease, .. } => return Err(OpenError::recorded(lease)),
    }
    let Some(directory) = &opening.host else {
        if tenancy.shared.is_some() {
            return Err(OpenError::Elsewhere("with scope 'host'".to_owned()));
        }
        if tenancy.users == 0 {
            entry.own.open_window();
        }
        entry.agree(&tenancy, opening)?;
        return Ok(entry.share(&mut tenancy, opening.policies));
    };
    if tenancy.shared.is_none() && tenancy.users > 0 {
        return Err(OpenError::Elsewhere("with scope 'process'".to_owned()));
    }
    if tenancy.shared.is_none() {
        let clock = Box::new(SystemClock);
        let host = Generator::on_host(directory.clone(), node, opening.max_ahead_ms, clock)?;
        // What the process issued alone, under a lease for example.
        host.raise_floor(entry.own.highest());
        tenancy.shared = Some(Arc::new(host));
    }
    entry.agree(&tenancy, opening)?;
    let mut share = entry.share(&mut tenancy, opening.policies);
    share.second_users = directory.second_users(&node);
    Ok(share)
}

/// Opens a node that is recorded in a store, which takes its slot or shares it with others in this
/// process. Blocks for the disk, and for `recording.wait`.
pub fn open_recorded(
    node: Node,
    opening: &Opening,
    recording: &Recording,
) -> Result<Share, OpenError> {
    let store = FileStore::open(&recording.directory)?;
    // Processes of this host that lost their page are about to give it up.
    let least = if opening.host.is_some() { GRACE } else { POLL };
    until_free(recording.wait.max(least), || take_or_share(&store, node, opening, recording))
}

/// Takes any free slot of a datacenter. Blocks for the disk, and for `recording.wait`.
pub fn lease(
    layout: Layout,
    datacenter_id: u64,
    opening: &Opening,
    recording: &Recording,
) -> Result<Share, OpenError> {
    let store = FileStore::open(&recording.directory)?;
    until_free(recording.wait, || take_any(&store, layout, datacenter_id, opening, recording))
}

/// As [`lease`], but all of the process who want any slot of this store, layout and datacenter get
/// the same one.
pub fn lease_common(
    layout: Layout,
    datacenter_id: u64,
    opening: &Opening,
    recording: &Recording,
) -> Result<Share, OpenError> {
    let store = FileStore::open(&recording.directory)?;
    let directory = store.directory().to_owned();
    let wanted = (directory.clone(), layout, datacenter_id);
    let common = COMMON.lock().entry(wanted).or_default().clone();
    until_free(recording.wait, || {
        // Held for one attempt, not while waiting for a slot: other threads have deadlines of their own.
        let Some(mut common) = common.try_lock_for(SETTLE) else {
            return Err(busy(directory.display().to_string()));
        };
        if let Some(node) = *common {
            let entry = Entry::of(node);
            let mut tenancy = entry.settled_tenancy()?;
            if tenancy.users > 0 {
                return entry.join(&mut tenancy, opening, &directory, recording.ttl);
            }
        }
        let share = take_any(&store, layout, datacenter_id, opening, recording)?;
        *common = Some(*share.node());
        Ok(share)
    })
}

/// Tries again while slots are held by others, for this long.
fn until_free(
    wait: Duration,
    mut attempt: impl FnMut() -> Result<Share, OpenError>,
) -> Result<Share, OpenError> {
    // Once more in any case: a holder that has just come may not have written its name yet.
    let deadline = Instant::now() + wait.max(POLL);
    loop {
        match attempt() {
            Err(OpenError::Store(StoreError::InUse { .. } | StoreError::NoSlot { .. }))
                if Instant::now() < deadline =>
            {
                thread::sleep(POLL);
            }
            answer => return answer,
        }
    }
}

/// Opens a node whose slot JavaScript has leased from an engine: within the window that the engine
/// has confirmed. Does not block.
///
/// `in_thread`: whoever keeps the lease runs in a thread of its own, so that waiting for it helps.
pub fn open_leased(
    node: Node,
    opening: &Opening,
    terms: &Terms,
    in_thread: bool,
) -> Result<Share, OpenError> {
    let entry = Entry::of(node);
    let mut tenancy = entry.tenancy.lock();
    if tenancy.users > 0 || !matches!(tenancy.memory, Memory::Process) {
        return Err(OpenError::Elsewhere("already".to_owned()));
    }
    entry.own.set_max_ahead_ms(opening.max_ahead_ms);
    tenancy.memory = Memory::Engine(if in_thread {
        entry.own.begin_window(terms)
    } else {
        entry.own.begin_unattended_window(terms)
    });
    Ok(entry.share(&mut tenancy, opening.policies))
}

/// Joins those who have such a node open, with the same policies. Does not block.
pub fn join_leased(node: Node, opening: &Opening) -> Result<Share, OpenError> {
    let entry = Entry::of(node);
    let mut tenancy = entry.tenancy.lock();
    if tenancy.users == 0 || !matches!(tenancy.memory, Memory::Engine(_)) {
        return Err(OpenError::Elsewhere("without that lease".to_owned()));
    }
    entry.agree(&tenancy, opening)?;
    Ok(entry.share(&mut tenancy, opening.policies))
}

/// A worker ID whose slot may be tried.
struct Candidate {
    worker_id: u64,
    /// Whether the slot has a file.
    is_recorded: bool,
}

/// The worker IDs in the order in which to try their slots: first those that were used before and
/// can start at once, the longest unused first; then those that were never used; then the others.
fn candidates(
    store: &FileStore,
    layout: &Layout,
    datacenter_id: u64,
) -> Result<impl Iterator<Item = Candidate>, OpenError> {
    // Tells whether the layout has such a datacenter, before there is a worker.
    Node::new(*layout, datacenter_id, 0)?;
    let now = layout.tick_at(SystemClock.now().ms);
    let mut recorded = store.recorded(layout, datacenter_id)?;
    recorded.sort_by_key(|slot| (slot.ceiling, slot.worker_id));
    let known: HashSet<u64> = recorded.iter().map(|slot| slot.worker_id).collect();
    // One that cannot be read is tried first, too: that tells what is wrong with it.
    let has_passed = |slot: &Recorded| slot.ceiling.is_none_or(|ceiling| ceiling < now);
    let (passed, others): (Vec<_>, Vec<_>) = recorded.into_iter().partition(has_passed);
    let unused = (0..=layout.last_worker()).filter(move |id| !known.contains(id));
    let of = |is_recorded| move |worker_id| Candidate { worker_id, is_recorded };
    let ids = |slots: Vec<Recorded>| slots.into_iter().map(|slot| slot.worker_id).map(of(true));
    Ok(ids(passed).chain(unused.map(of(false))).chain(ids(others)))
}

/// Takes the first free slot, and passes over those whose files cannot be used.
fn take_any(
    store: &FileStore,
    layout: Layout,
    datacenter_id: u64,
    opening: &Opening,
    recording: &Recording,
) -> Result<Share, OpenError> {
    let mut holders = Vec::new();
    let mut unusable = Vec::new();
    let mut not_made = None;
    for Candidate { worker_id, is_recorded } in candidates(store, &layout, datacenter_id)? {
        // Where one file cannot be made, the next cannot either; those that are there may do.
        if not_made.is_some() && !is_recorded {
            continue;
        }
        let node = Node::new(layout, datacenter_id, worker_id)?;
        match take_only(store, node, opening, recording) {
            Ok(mut share) => {
                share.passed_over = unusable;
                return Ok(share);
            }
            Err(OpenError::Store(StoreError::InUse { holder, .. })) => {
                holders.push((worker_id, holder));
            }
            Err(OpenError::Store(refusal @ StoreError::Unusable { .. })) => {
                unusable.push(refusal.to_string());
            }
            // Processes of this host have the node, and not from here.
            Err(OpenError::Host(
                refusal @ (HostError::OtherKind { .. }
                | HostError::OtherRecord { .. }
                | HostError::OtherMaxAhead { .. }),
            )) => unusable.push(refusal.to_string()),
            Err(OpenError::Store(refusal)) if refusal.is_of(&store.path_of(&node)) => {
                if is_recorded {
                    unusable.push(refusal.to_string());
                } else {
                    not_made = Some(refusal);
                }
            }
            Err(failure) => return Err(failure),
        }
    }
    Err(OpenError::Store(not_made.unwrap_or_else(|| StoreError::NoSlot {
        store: store.name(),
        datacenter_id,
        holders,
        unusable,
    })))
}

fn take_or_share(
    store: &FileStore,
    node: Node,
    opening: &Opening,
    recording: &Recording,
) -> Result<Share, OpenError> {
    let entry = Entry::of(node);
    let mut tenancy = entry.settled_tenancy()?;
    if tenancy.users > 0 {
        return entry.join(&mut tenancy, opening, store.directory(), recording.ttl);
    }
    take(store, &entry, tenancy, opening, recording, false)
}

/// Takes a slot, unless someone in this process has it, or is about to.
fn take_only(
    store: &FileStore,
    node: Node,
    opening: &Opening,
    recording: &Recording,
) -> Result<Share, OpenError> {
    let entry = Entry::of(node);
    let tenancy = entry.tenancy.lock();
    if tenancy.users > 0 || matches!(tenancy.memory, Memory::Changing) {
        let place = store.path_of(&node).display().to_string();
        return Err(StoreError::InUse { place, holder: tenancy.holder() }.into());
    }
    take(store, &entry, tenancy, opening, recording, true)
}

fn take(
    store: &FileStore,
    entry: &Arc<Entry>,
    mut tenancy: MutexGuard<Tenancy>,
    opening: &Opening,
    recording: &Recording,
    is_alone: bool,
) -> Result<Share, OpenError> {
    tenancy.memory = Memory::Changing;
    // The disk may hang: whoever opens the node without a store must not wait for it.
    drop(tenancy);
    let generator = match &opening.host {
        None => {
            entry.own.set_max_ahead_ms(opening.max_ahead_ms);
            entry.own.clone()
        }
        Some(directory) => {
            let (node, clock) = (*entry.own.node(), Box::new(SystemClock));
            let directory = directory.clone();
            Arc::new(Generator::durable(directory, node, opening.max_ahead_ms, clock))
        }
    };
    let holder = Holder {
        token: fastrand::u128(..),
        pid: std::process::id(),
        host: recording.host.clone(),
        started_ms: recording.started_ms,
    };
    let taken = Lease::take(store, &generator, holder, recording.ttl, is_alone);
    let mut tenancy = entry.tenancy.lock();
    entry.settled.notify_all();
    match taken {
        Ok(lease) => {
            let directory = store.directory().to_owned();
            tenancy.memory = Memory::Store { lease, directory, ttl: recording.ttl };
            if opening.host.is_some() {
                // What the process issued alone, under a lease for example.
                generator.raise_floor(entry.own.highest());
                tenancy.shared = Some(generator);
            }
            Ok(entry.share(&mut tenancy, opening.policies))
        }
        Err(refusal) => {
            tenancy.memory = Memory::Process;
            Err(refusal.into())
        }
    }
}

impl Entry {
    fn of(node: Node) -> Arc<Entry> {
        let mut nodes = NODES.lock();
        let entry = nodes.entry(node).or_insert_with(|| {
            Arc::new(Entry {
                own: Arc::new(Generator::new(node, 0, Box::new(SystemClock))),
                tenancy: Mutex::new(Tenancy { users: 0, memory: Memory::Process, shared: None }),
                settled: Condvar::new(),
            })
        });
        entry.clone()
    }

    /// The tenancy when no lease is being taken or given up.
    fn settled_tenancy(&self) -> Result<MutexGuard<'_, Tenancy>, OpenError> {
        let deadline = Instant::now() + SETTLE;
        let mut tenancy = self.tenancy.lock();
        while matches!(tenancy.memory, Memory::Changing) {
            if self.settled.wait_until(&mut tenancy, deadline).timed_out() {
                let node = self.own.node();
                let (datacenter_id, worker_id) = (node.datacenter_id(), node.worker_id());
                return Err(busy(format!(
                    "the slot of datacenterId {datacenter_id} and workerId {worker_id}"
                )));
            }
        }
        Ok(tenancy)
    }

    /// All at one time agree on `maxAhead`; the first one decides.
    fn agree(&self, tenancy: &Tenancy, opening: &Opening) -> Result<(), OpenError> {
        let generator = tenancy.shared.as_ref().unwrap_or(&self.own);
        if tenancy.users == 0 && tenancy.shared.is_none() {
            generator.set_max_ahead_ms(opening.max_ahead_ms);
        }
        match generator.max_ahead_ms() {
            in_force if in_force == generator.whole_ticks(opening.max_ahead_ms) => Ok(()),
            in_force => Err(OpenError::MaxAhead(in_force)),
        }
    }

    /// Shares a node that others have open, recorded in the same place.
    fn join(
        self: &Arc<Self>,
        tenancy: &mut Tenancy,
        opening: &Opening,
        directory: &Path,
        ttl: Duration,
    ) -> Result<Share, OpenError> {
        tenancy.agree(directory, ttl)?;
        if tenancy.shared.is_some() != opening.host.is_some() {
            let scope = if tenancy.shared.is_some() { "host" } else { "process" };
            return Err(OpenError::Elsewhere(format!("with scope '{scope}'")));
        }
        self.agree(tenancy, opening)?;
        Ok(self.share(tenancy, opening.policies))
    }

    fn share(self: &Arc<Self>, tenancy: &mut Tenancy, policies: Policies) -> Share {
        tenancy.users += 1;
        let generator = tenancy.shared.as_ref().unwrap_or(&self.own).clone();
        let (second_users, passed_over) = (Vec::new(), Vec::new());
        Share { entry: self.clone(), generator, policies, second_users, passed_over }
    }
}

impl Tenancy {
    fn holder(&self) -> Option<Holder> {
        match &self.memory {
            Memory::Store { lease, .. } => Some(lease.report().holder),
            _ => None,
        }
    }

    fn agree(&self, directory: &Path, ttl: Duration) -> Result<(), OpenError> {
        match &self.memory {
            Memory::Store { directory: in_force, ttl: ttl_in_force, .. }
                if in_force == directory && *ttl_in_force == ttl =>
            {
                Ok(())
            }
            Memory::Store { lease, .. } => Err(OpenError::recorded(lease)),
            _ => Err(OpenError::Elsewhere("without a store".to_owned())),
        }
    }
}

impl From<Refused> for OpenError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Store(error) => error.into(),
            Refused::Host(error) => error.into(),
        }
    }
}

fn busy(place: String) -> OpenError {
    StoreError::Busy { place, waited: SETTLE }.into()
}

impl OpenError {
    fn recorded(lease: &Lease) -> OpenError {
        let Report { store, ttl, .. } = lease.report();
        OpenError::Elsewhere(format!("and recorded in {store} with ttl {}", ttl.as_millis()))
    }
}

impl Share {
    /// The generator that is shared.
    pub fn generator(&self) -> &Arc<Generator> {
        &self.generator
    }

    /// How it behaves towards this user.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// The window that an engine keeps, if one does.
    pub fn engine_window(&self) -> Option<WindowId> {
        match self.entry.tenancy.lock().memory {
            Memory::Engine(window) => Some(window),
            _ => None,
        }
    }

    /// How its lease stands, if it is recorded in a store.
    pub fn lease(&self) -> Option<Report> {
        match &self.entry.tenancy.lock().memory {
            Memory::Store { lease, .. } => Some(lease.report()),
            _ => None,
        }
    }

    /// Has it hear after each renewal of that lease.
    pub fn on_renewed(&self, listener: &Arc<Listener>) {
        if let Memory::Store { lease, .. } = &self.entry.tenancy.lock().memory {
            lease.renewed().add(listener);
        }
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
        let mut tenancy = self.entry.tenancy.lock();
        tenancy.users -= 1;
        if tenancy.users > 0 {
            return;
        }
        if let Some(shared) = tenancy.shared.take() {
            self.entry.own.raise_floor(shared.highest());
        }
        if let Memory::Process = tenancy.memory {
            return;
        }
        if let Memory::Engine(window) = tenancy.memory {
            self.entry.own.end_window(window);
            tenancy.memory = Memory::Process;
            return;
        }
        let memory = std::mem::replace(&mut tenancy.memory, Memory::Changing);
        drop(tenancy);
        if let Memory::Store { lease, .. } = memory {
            lease.release(RELEASE);
        }
        self.entry.tenancy.lock().memory = Memory::Process;
        self.entry.settled.notify_all();
    }
}

/// Gives up every slot that is still held, as the process ends: at most this long, and without those
/// whose state another thread is changing.
pub fn release_all(at_most: Duration) {
    let deadline = Instant::now() + at_most;
    let Some(nodes) = NODES.try_lock_for(at_most) else { return };
    let leases: Vec<Lease> = nodes
        .values()
        .filter_map(|entry| {
            let mut tenancy = entry.tenancy.try_lock_until(deadline)?;
            if !matches!(tenancy.memory, Memory::Store { .. }) {
                return None;
            }
            // Nobody opens it any more.
            match std::mem::replace(&mut tenancy.memory, Memory::Changing) {
                Memory::Store { lease, .. } => Some(lease),
                _ => None,
            }
        })
        .collect();
    Lease::release_all(leases, deadline);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::generator::ClockBack;
    use crate::layout::Layout;
    use crate::store::file::SlotFile;
    use crate::store::lock::{Hold, USERS};

    const POLICIES: Policies = Policies {
        clock_back: ClockBack::Counter,
        max_wait: Duration::from_millis(10),
        random_start: false,
    };
    const ALONE: Opening = Opening { policies: POLICIES, max_ahead_ms: 0, host: None };

    /// A node of this test alone: the registry is the process's.
    fn node(worker_id: u64) -> Node {
        Node::new(Layout::NODE, 7, worker_id).unwrap()
    }

    #[test]
    fn all_who_name_a_node_share_its_generator() {
        let one = open(node(1), &ALONE).unwrap();
        let two = open(node(1), &ALONE).unwrap();
        assert!(Arc::ptr_eq(&one.entry, &two.entry));
        assert!(!Arc::ptr_eq(&one.entry, &open(node(2), &ALONE).unwrap().entry));
    }

    #[test]
    fn another_max_ahead_is_refused_while_the_node_is_open() {
        let further = Opening { max_ahead_ms: 7, ..ALONE };
        let open_one = open(node(3), &ALONE).unwrap();
        let refused = open(node(3), &further).err();
        assert!(matches!(refused, Some(OpenError::MaxAhead(0))), "{refused:?}");
        drop(open_one);
        assert_eq!(open(node(3), &further).unwrap().max_ahead_ms(), 7);
    }

    #[test]
    fn each_user_has_policies_of_its_own() {
        let policies = Policies { clock_back: ClockBack::Throw, ..POLICIES };
        let [one, other] =
            [POLICIES, policies].map(|policies| open(node(8), &Opening { policies, ..ALONE }));
        assert_eq!((*one.unwrap().policies(), *other.unwrap().policies()), (POLICIES, policies));
    }

    #[test]
    fn a_node_that_was_closed_remembers_what_it_issued() {
        let layout = Layout { tick_ms: 86_400_000, ..Layout::NODE };
        let node = Node::new(layout, 7, 4).unwrap();
        let first = open(node, &ALONE).unwrap().reserve(&POLICIES, |_| 1).unwrap();
        let again = open(node, &ALONE).unwrap().reserve(&POLICIES, |_| 1).unwrap();
        assert_ne!(first.first_id, again.first_id);
    }

    #[test]
    fn threads_of_one_node_never_share_an_id() {
        let ids = std::thread::scope(|scope| {
            let draw = || {
                let share = open(node(5), &ALONE).unwrap();
                let mut ids = Vec::new();
                while ids.len() < 20_000 {
                    let reserved = share.reserve(&POLICIES, |_| 7).unwrap();
                    ids.extend((0..reserved.block.len).map(|n| reserved.first_id + n));
                }
                ids
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(draw)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<u64>>()
        });
        let mut distinct = ids.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), ids.len());
        assert_eq!(open(node(5), &ALONE).unwrap().stats().issued, ids.len() as u64);
    }

    /// One worker ID.
    const NARROW: Layout = Layout { worker_bits: 0, ..Layout::NODE };

    /// Holds the only slot of a directory, as another process does.
    fn held(directory: &Path) -> SlotFile {
        let node = Node::new(NARROW, 1, 0).unwrap();
        let slot = FileStore::open(directory).unwrap().slot(&node).unwrap();
        assert!(slot.try_take(USERS, Hold::Exclusive).unwrap());
        slot
    }

    fn recording(directory: &Path, wait: Duration) -> Recording {
        let directory = directory.to_owned();
        Recording {
            directory,
            ttl: Duration::from_secs(10),
            wait,
            host: String::new(),
            started_ms: 0,
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes slot files, by a call that Miri does not know")]
    fn whoever_wants_a_common_slot_elsewhere_does_not_wait_for_another_directory() {
        fn common(
            datacenter_id: u64,
            directory: &Path,
            wait: Duration,
        ) -> Result<Share, OpenError> {
            lease_common(NARROW, datacenter_id, &ALONE, &recording(directory, wait))
        }
        let [full, empty] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let held = held(full.path());
        let wait = Duration::from_secs(20);
        thread::scope(|scope| {
            let first = scope.spawn(|| common(1, full.path(), wait));
            // By then it waits. If it does not yet, this shows less, and does not fail.
            thread::sleep(5 * POLL);
            let (answers, answer) = channel();
            let elsewhere = empty.path();
            scope.spawn(move || answers.send(common(2, elsewhere, Duration::ZERO).is_ok()));
            let answer = answer.recv_timeout(wait / 4);
            let refused = common(1, full.path(), Duration::ZERO).err();
            drop(held);
            assert_eq!(first.join().unwrap().unwrap().node().worker_id(), 0);
            assert_eq!(answer, Ok(true), "another directory is not waited for");
            assert!(
                matches!(refused, Some(OpenError::Store(StoreError::NoSlot { .. }))),
                "nor does who wants the same one wait longer than it may: {refused:?}"
            );
        });
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes slot files, by a call that Miri does not know")]
    fn all_threads_that_want_a_common_slot_get_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout { epoch_ms: 1, ..Layout::NODE };
        let shares: Vec<Share> = thread::scope(|scope| {
            let open = || {
                let recording = recording(directory.path(), Duration::ZERO);
                lease_common(layout, 1, &ALONE, &recording).unwrap()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(
            shares.iter().all(|share| share.node().worker_id() == shares[0].node().worker_id())
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes slot files, by a call that Miri does not know")]
    fn a_slot_whose_disk_hangs_is_waited_for_with_a_bound() {
        let directory = tempfile::tempdir().unwrap();
        let node = node(6);
        Entry::of(node).tenancy.lock().memory = Memory::Changing;
        let recording = recording(directory.path(), Duration::ZERO);
        let refused = open_recorded(node, &ALONE, &recording).err().unwrap();
        assert!(matches!(refused, OpenError::Store(StoreError::Busy { .. })), "{refused:?}");
        assert!(refused.to_string().contains("datacenterId 7 and workerId 6"), "{refused}");
    }
}
