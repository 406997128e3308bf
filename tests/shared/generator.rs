//! A generator's reservations, waits and changes of its page, as they ship.

#![allow(dead_code, unused_imports, reason = "no search needs all of it")]

#[path = "../../src/generator/pages.rs"]
mod pages;
#[path = "../../src/generator/renewals.rs"]
mod renewals;
#[path = "../../src/generator/reports.rs"]
mod reports;
#[path = "../../src/generator/reserving.rs"]
mod reserving;
#[path = "../../src/generator/waiting.rs"]
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};

use parking_lot::{Mutex, RwLock};

use crate::core::clock::Clock;
use crate::core::fault::{Failure, Fault};
use crate::core::layout::Tick;
use crate::core::node::Node;
use crate::core::sequencer::{NEVER, Stall, Window};
use crate::pages::{Directory, Page};
use crate::shared::steps::{self, Next};
use renewals::Renewals;
use reports::Reports;

pub use reserving::{ClockBack, Policies, Reserved, Stalled, UserPage};
use waiting::Booking;

/// The same fields, and how it comes to its first page.
pub struct Generator {
    node: Node,
    clock: Box<dyn Clock>,
    page: RwLock<Arc<Page>>,
    directory: Option<Directory>,
    failure: Mutex<Option<Fault>>,
    max_ahead: Tick,
    first_tick: AtomicI64,
    renewals: Renewals,
    reports: Reports,
    issued: AtomicU64,
    waits: AtomicU64,
    waited_ns: AtomicU64,
}

impl Generator {
    pub fn on_host(node: Node, clock: Box<dyn Clock>) -> Result<Generator, Failure> {
        let page = Directory.open(&node, &*clock, NEVER)?;
        let generator = Generator::of(page, Some(Directory), clock);
        generator.note_first_tick();
        Ok(generator)
    }

    pub fn of(page: Page, directory: Option<Directory>, clock: Box<dyn Clock>) -> Generator {
        Generator {
            node: page.header().node,
            clock,
            max_ahead: page.header().terms.max_ahead,
            page: RwLock::new(Arc::new(page)),
            directory,
            failure: Mutex::new(None),
            first_tick: AtomicI64::new(NEVER),
            renewals: Renewals::new(),
            reports: Reports::new(),
            issued: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
        }
    }

    pub fn page(&self) -> Arc<Page> {
        self.page.read().clone()
    }

    pub fn tick_now(&self) -> Tick {
        self.node.layout().tick_at(self.clock.now().ms)
    }

    pub fn window(&self) -> Window {
        self.page().sequence().window()
    }

    /// Why it has no page.
    pub fn failure(&self) -> Option<&'static str> {
        self.failure.lock().as_ref().map(|fault| fault.kind)
    }

    /// All IDs of a tick, or of one that is booked.
    pub fn draw(&self, policies: &Policies, horizon: Tick) -> Result<Reserved, Stalled> {
        let drawn = self.try_reserve(&self.user_page(), policies, |_| 2);
        if let Err(Stalled { stall: Stall::SequenceExhausted { .. }, .. }) = drawn
            && horizon > 0
            && let Ok(booking) = self.book(policies, 2, horizon)
        {
            let since = steps::count();
            return match self.redeem(&booking) {
                Ok(redeemed) => redeemed.map_or(drawn, Ok),
                Err(_) => steps::again(Next::Wait, since),
            };
        }
        drawn
    }
}
