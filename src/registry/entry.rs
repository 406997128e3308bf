//! The process's entry for a node: its generators and their users.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::request::{By, Request};
use crate::core::fault::{Failure, Fault, fault};
use crate::core::layout::Tick;
use crate::core::node::Node;
use crate::core::sequencer::NEVER;
use crate::generator::Generator;
use crate::pages::Terms;

/// The time for which a list of second users is valid. Reading it takes as long as all else where the process has the
/// node open.
const SECOND_USERS: Duration = Duration::from_secs(1);

static NODES: LazyLock<Mutex<HashMap<Node, Arc<Entry>>>> = LazyLock::new(Mutex::default);

pub(super) struct Entry {
    pub node: Node,
    /// The generator of IDs that the process issues alone, once it does. It is never dropped.
    own: OnceLock<Arc<Generator>>,
    /// The highest tick that the process's other generators of the node have reached.
    reached: AtomicI64,
    pub tenancy: Mutex<Tenancy>,
}

#[derive(Default)]
pub(super) struct Tenancy {
    /// The generators in use. More than one only while some instances have moved to the next leased page and others
    /// have not.
    pub uses: Vec<Use>,
}

/// A generator in use: on the process's own page, on the host's, or on a leased one.
pub(super) struct Use {
    pub generator: Arc<Generator>,
    pub held: Held,
    pub users: usize,
    /// The second users to warn of, and the time at which they were read.
    pub second_users: Option<(Instant, Vec<Fault>)>,
}

/// What the process holds for a generator in use, to be given up with it.
pub(super) enum Held {
    /// Nothing.
    Free,
    /// A window that its lease raises.
    Window,
    /// The same, on a page of the host's processes.
    Page,
}

impl Entry {
    pub fn new(node: Node) -> Arc<Entry> {
        Arc::new(Entry {
            node,
            own: OnceLock::new(),
            reached: AtomicI64::new(NEVER),
            tenancy: Mutex::default(),
        })
    }

    pub fn of(node: Node) -> Arc<Entry> {
        #[cfg(all(test, target_os = "linux", not(miri)))]
        if let Some(entry) = played::entry(node) {
            return entry;
        }
        NODES.lock().entry(node).or_insert_with(|| Entry::new(node)).clone()
    }

    /// The process-private generator. It needs no lease.
    pub fn own(&self, request: &Request) -> Arc<Generator> {
        let make = || Arc::new(Generator::new(self.node, request.max_ahead_ms, request.clock()));
        self.own.get_or_init(make).clone()
    }

    /// The highest tick of the node that the process has reached, by any generator that it has given up.
    pub fn reached(&self) -> Tick {
        let alone = self.own.get().map_or(NEVER, |own| own.highest());
        self.reached.load(SeqCst).max(alone)
    }

    pub fn note_reached(&self, tick: Tick) {
        self.reached.fetch_max(tick, SeqCst);
    }

    /// Notes what the slots have reached that the process has lost. Their users may not have left them yet.
    pub fn note_lost(&self, tenancy: &Tenancy) {
        let lost = tenancy.uses.iter().filter(|one| one.generator.page().has_ended());
        lost.for_each(|one| self.note_reached(one.generator.highest()));
    }
}

impl Tenancy {
    /// The use that a request shares; none where it begins one. Refuses what the process has open in another way.
    pub fn find(&mut self, request: &Request, is_host: bool) -> Result<Option<&mut Use>, Failure> {
        for one in self.uses.iter_mut().rev() {
            let scope = if one.generator.directory().is_some() { "host" } else { "process" };
            let elsewhere = || fault!("open-in-scope", scope);
            let is_elsewhere = (scope == "host") != is_host;
            let conflict = match (&one.held, &request.by) {
                (Held::Page, _) if one.has_ended() => continue,
                // Its user has lost the slot, and may take the same one again.
                (Held::Window, By::Lease) if one.generator.page().has_ended() => continue,
                (Held::Page, _) => Some(fault!("open-leased", scope: "host")),
                (_, By::Lease) if !is_host => Some(fault!("open-already")),
                // The host's page decides.
                (_, By::Lease) if scope == "host" => continue,
                (_, By::Lease) => Some(elsewhere()),
                (Held::Window, By::Free | By::Clock(_)) => Some(fault!("open-leased")),
                (Held::Free, _) => is_elsewhere.then(elsewhere),
            };
            // All users at one time agree on it; the first one decides.
            return match conflict {
                Some(fault) => Err(fault.into()),
                None if one.terms().max_ahead == request.max_ahead() => Ok(Some(one)),
                None => {
                    Err(fault!("open-max-ahead", maxAhead: one.generator.max_ahead_ms()).into())
                }
            };
        }
        Ok(None)
    }

    /// Whether another lease of the process takes the node's slot now, or has just taken it for itself in this namespace.
    pub fn is_taken(&self, namespace: u64) -> bool {
        self.uses.iter().any(|one| {
            let page = one.generator.page();
            let is_own = || page.lease_status().is_some_and(|lease| lease.namespace == namespace);
            let is_taken = match one.held {
                Held::Page => page.sequence().is_closed(),
                Held::Window => page.sequence().is_closed() || is_own(),
                Held::Free => false,
            };
            is_taken && !page.has_ended()
        })
    }
}

impl Use {
    /// Whether it is on a leased page that issues nothing any more.
    fn has_ended(&self) -> bool {
        matches!(self.held, Held::Page) && self.generator.page().has_ended()
    }

    fn terms(&self) -> Terms {
        self.generator.page().header().terms
    }

    /// Other users of the machine who have the same node open.
    pub fn second_users(&mut self) -> Vec<Fault> {
        let (Held::Free, Some(directory)) = (&self.held, self.generator.directory()) else {
            return Vec::new();
        };
        let known = self.second_users.take().filter(|(at, _)| at.elapsed() < SECOND_USERS);
        let look = || (Instant::now(), directory.second_users(self.generator.node()));
        self.second_users.insert(known.unwrap_or_else(look)).1.clone()
    }
}

/// Other processes, as a thread of a test plays them: each has entries of its own, and opens files of its own.
#[cfg(all(test, target_os = "linux", not(miri)))]
pub(super) mod played {
    use std::cell::RefCell;
    use std::mem;

    use super::*;

    thread_local! {
        static PLAYED: RefCell<Option<HashMap<Node, Arc<Entry>>>> = const { RefCell::new(None) };
    }

    /// A process that a test plays.
    #[derive(Default)]
    pub struct Process(HashMap<Node, Arc<Entry>>);

    impl Process {
        /// Does this as that process.
        pub fn run<R>(&mut self, work: impl FnOnce() -> R) -> R {
            let outer = PLAYED.replace(Some(mem::take(&mut self.0)));
            let done = work();
            self.0 = PLAYED.replace(outer).unwrap_or_default();
            done
        }
    }

    pub(super) fn entry(node: Node) -> Option<Arc<Entry>> {
        let mut played = PLAYED.take()?;
        let entry = played.entry(node).or_insert_with(|| Entry::new(node)).clone();
        PLAYED.set(Some(played));
        Some(entry)
    }
}
