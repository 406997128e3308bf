//! A channel: the connection of one JavaScript instance to its source of IDs.

use std::cell::RefCell;
use std::sync::Arc;

use super::block::SharedBlock;
use super::draw::Draws;
use super::records::stats_of;
use super::report::{Report, report};
use super::request::Requested;
use super::source::Source;
use crate::core::layout::Tick;
use crate::core::listeners::Listener;
use crate::generator::WindowId;
use crate::pages::Page;
use crate::registry::{By, Share};

/// The connection of one instance to its source. It belongs to one thread.
pub struct Channel {
    /// None once it is closed.
    source: RefCell<Option<Source>>,
    pub draws: Draws,
    /// The counters at the time when it left its source.
    last_stats: RefCell<Option<Report>>,
    /// Listeners for renewals. They end with the instance.
    renewed: RefCell<Vec<Arc<Listener>>>,
    /// Listeners for rejected puts of every ring that this draws from. They end with the instance.
    rejected_put: RefCell<Vec<Arc<Listener>>>,
}

impl Channel {
    pub fn new(source: Source, block: SharedBlock) -> Channel {
        let (last_stats, renewed, rejected_put) = Default::default();
        let (source, draws) = (RefCell::new(Some(source)), Draws::new(block));
        Channel { source, draws, last_stats, renewed, rejected_put }
    }

    /// Applies a function to the source; none once it is closed.
    #[inline]
    pub fn with<R>(&self, does: impl FnOnce(&Source) -> R) -> Option<R> {
        self.source.borrow().as_ref().map(does)
    }

    /// Changes the window that a store keeps, if JavaScript leased the slot.
    pub fn with_window<R>(&self, change: impl FnOnce(&Share, WindowId) -> R) -> Option<R> {
        self.with(|source| Some(change(source, source.store_window()?))).flatten()
    }

    /// Applies a function to the page of a lease, if there is one.
    pub fn on_leased_page<R>(&self, does: impl FnOnce(&Page) -> R) -> Option<R> {
        let page = self.with(|source| source.page())?;
        page.leasing().map(|_| does(&page))
    }

    /// The counters, also once it is closed.
    pub fn stats(&self) -> Option<Report> {
        self.with(stats_of).or_else(|| self.last_stats.borrow().clone())
    }

    pub fn on_renewed(&self, listener: Arc<Listener>) {
        self.with(|source| source.on_renewed(&listener));
        self.renewed.borrow_mut().push(listener);
    }

    pub fn on_rejected_put(&self, listener: Arc<Listener>) {
        self.with(|source| source.on_rejected_put(&listener));
        self.rejected_put.borrow_mut().push(listener);
    }

    /// Draws from the requested source from now on. If that cannot be opened, the previous one stays, with its window
    /// closed. Reports the fault; `hasMoved`, which is false where the host has no slot to join; and `last`, the highest
    /// tick of the previous slot, if this was its last user and has ended it.
    pub fn move_to(&self, Requested(wanted): Requested) -> Report {
        // JavaScript's rest of the last block belongs to the previous slot, and was reserved while that was held. It
        // is not given back to the next.
        self.draws.lose();
        let opened = wanted.and_then(|wanted| {
            // A slot has one user at a time, so to reopen the same slot its share goes first. A page has any number of
            // users.
            let has_page = matches!(wanted.request.by, By::Grant(_) | By::Host(_));
            let is_same =
                |source: &Source| wanted.request.worker_id == Some(source.node().worker_id());
            if !has_page && self.with(is_same) == Some(true) {
                self.source.take();
            }
            Source::open(&wanted)
        });
        match opened {
            Ok(Some(source)) => {
                self.rejected_put.borrow().iter().for_each(|one| source.on_rejected_put(one));
                let last =
                    self.source.replace(Some(source)).and_then(|before| before.share.leave());
                report!(hasMoved: true, last)
            }
            Ok(None) => report!(hasMoved: false),
            Err(fault) => report!(fault, hasMoved: false),
        }
    }

    /// Leaves its source. Returns the highest tick issued, if it was a leased page that no process of the host uses any
    /// more.
    pub fn leave(&self) -> Option<Tick> {
        self.draws.block.lose();
        self.end().and_then(|source| source.share.leave())
    }

    pub fn close(&self) {
        self.end();
        self.renewed.take();
        self.rejected_put.take();
        self.draws.refusal.set(None);
    }

    /// Keeps the last counters, and makes an object of them only on request.
    fn end(&self) -> Option<Source> {
        self.last_stats.replace(self.stats());
        self.source.take()
    }
}
