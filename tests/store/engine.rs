//! A simulated engine, such as a database: leases with an expiry, in memory, with a part of it that
//! is not on the disk yet.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use snowdrift::authority::{Holder, Recorded, in_use};
use snowdrift::core::fault::{Class, Failure, Fault};
use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::node::Node;
use snowdrift::core::sequencer::{NEVER, Window};

use crate::contract::{Held, Store};

/// A rule that the engine breaks, to show that it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Rule 1: a new holder may issue what was recorded before it came.
    Floor,
    /// Rule 2: a renewal sets the ceiling, even to a lower one.
    CeilingFalls,
    /// Rule 3: whoever renews is believed to be the owner.
    OwnerUnchecked,
}

#[derive(Clone)]
struct Row {
    owner: Option<Holder>,
    expires: u64,
    ceiling: Tick,
}

#[derive(Default)]
struct Tables {
    now: u64,
    /// What queries see.
    rows: BTreeMap<u64, Row>,
    /// What a crash leaves.
    on_disk: BTreeMap<u64, Row>,
    is_down: bool,
}

/// One engine. Its time is its own.
#[derive(Clone)]
pub struct Engine {
    tables: Arc<Mutex<Tables>>,
    ttl: u64,
    broken: Option<Broken>,
}

impl Engine {
    pub fn new(ttl: u64, broken: Option<Broken>) -> Engine {
        Engine { tables: Arc::default(), ttl, broken }
    }

    pub fn pass(&self, ms: u64) {
        self.tables.lock().now += ms;
    }

    pub fn set_down(&self, is_down: bool) {
        self.tables.lock().is_down = is_down;
    }

    /// What was done so far is on the disk.
    pub fn sync(&self) {
        let mut tables = self.tables.lock();
        tables.on_disk = tables.rows.clone();
    }

    /// Loses what is not on the disk.
    pub fn crash(&self) {
        let mut tables = self.tables.lock();
        tables.rows = tables.on_disk.clone();
    }

    pub fn expire(&self, worker_id: u64) {
        if let Some(row) = self.tables.lock().rows.get_mut(&worker_id) {
            row.expires = 0;
        }
    }

    fn down() -> Failure {
        let cause = std::io::ErrorKind::TimedOut.into();
        Failure::io("slot-io", "reach", Path::new("the engine"))(cause)
    }
}

impl Store for Engine {
    fn recorded(&self, _: &Layout, _: u64) -> Result<Vec<Recorded>, Failure> {
        let tables = self.tables.lock();
        if tables.is_down {
            return Err(Engine::down());
        }
        let recorded =
            |(&worker_id, row): (&u64, &Row)| Recorded { worker_id, ceiling: Some(row.ceiling) };
        Ok(tables.rows.iter().map(recorded).collect())
    }

    fn acquire(
        &self,
        slot: &Node,
        holder: &Holder,
        ceiling: Tick,
    ) -> Result<Box<dyn Held>, Failure> {
        let mut tables = self.tables.lock();
        if tables.is_down {
            return Err(Engine::down());
        }
        let now = tables.now;
        let fresh = Row { owner: None, expires: 0, ceiling: NEVER };
        let row = tables.rows.entry(slot.worker_id()).or_insert(fresh);
        if let Some(owner) = row.owner.as_ref().filter(|_| row.expires > now) {
            return Err(in_use(Path::new("a slot"), Some(owner)));
        }
        let floor = if self.broken == Some(Broken::Floor) { NEVER } else { row.ceiling };
        *row = Row {
            owner: Some(holder.clone()),
            expires: now + self.ttl,
            ceiling: row.ceiling.max(ceiling),
        };
        Ok(Box::new(HeldRow {
            engine: self.clone(),
            worker_id: slot.worker_id(),
            token: holder.token,
            terms: Window { floor, ceiling: row.ceiling },
        }))
    }
}

struct HeldRow {
    engine: Engine,
    worker_id: u64,
    token: u128,
    terms: Window,
}

impl HeldRow {
    /// Changes the row in one step, if it is this holder's.
    fn change(&self, change: impl FnOnce(&mut Row, u64)) -> Result<(), Failure> {
        let mut tables = self.engine.tables.lock();
        if tables.is_down {
            return Err(Engine::down());
        }
        let now = tables.now;
        let is_mine = |row: &&mut Row| {
            self.engine.broken == Some(Broken::OwnerUnchecked)
                || row.owner.as_ref().is_some_and(|owner| owner.token == self.token)
        };
        match tables.rows.get_mut(&self.worker_id).filter(is_mine) {
            Some(row) => {
                change(row, now);
                Ok(())
            }
            None => {
                Err(Failure::new(Class::Lost, Fault { kind: "taken-over", values: Vec::new() }))
            }
        }
    }
}

impl Held for HeldRow {
    fn terms(&self) -> Window {
        self.terms
    }

    fn renew(&mut self, ceiling: Tick) -> Result<(), Failure> {
        let falls = self.engine.broken == Some(Broken::CeilingFalls);
        let ttl = self.engine.ttl;
        self.change(|row, now| {
            row.ceiling = if falls { ceiling } else { row.ceiling.max(ceiling) };
            row.expires = now + ttl;
        })?;
        self.terms.ceiling = self.terms.ceiling.max(ceiling);
        Ok(())
    }

    fn release(self: Box<Self>, last: Tick) -> Result<(), Failure> {
        let floor = self.terms.floor;
        self.change(|row, _| {
            row.ceiling = last.max(floor);
            row.owner = None;
        })
    }
}

mod contract {
    use super::*;
    use crate::contract::{World, held_to_the_contract};

    const TTL: u64 = 1000;

    impl World for Engine {
        fn store(&self) -> Box<dyn Store> {
            Box::new(self.clone())
        }

        fn bury_the_dead(&self) {
            self.pass(TTL);
        }

        fn take_away(&self, slot: &Node) {
            self.expire(slot.worker_id());
        }

        fn break_down(&self, is_broken: bool) {
            self.set_down(is_broken);
        }
    }

    held_to_the_contract!(Engine::new(TTL, None));
}
