//! A leased page, as one lease of this process has it.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::request::Request;
use super::share::Share;
use crate::core::clock::{Clock, SystemClock};
use crate::generator::Generator;
use crate::pages::Page;

/// A leased page of this host, as one lease of this process found or made it.
#[derive(Clone)]
pub struct HostPage(pub(super) Arc<Handle>);

pub(super) struct Handle {
    /// The page. Once this process uses it, its generator may have another mapping of the same file.
    page: Arc<Page>,
    /// This lease's share in the page's generator: from when it joins or makes the page until it leaves it.
    pub share: Mutex<Option<Share>>,
    /// The page, locked so that nobody joins it: from when its last user has left it until its line is freed.
    pub last: Mutex<Option<Page>>,
}

impl HostPage {
    pub(super) fn new(page: Arc<Page>, share: Option<Share>) -> HostPage {
        HostPage(Arc::new(Handle { page, share: Mutex::new(share), last: Mutex::default() }))
    }

    /// The page.
    pub fn page(&self) -> &Page {
        &self.0.page
    }

    /// Another share in its generator; none before this process uses it, and once it has left it.
    pub fn share(&self, request: &Request) -> Option<Share> {
        self.0.share.lock().as_ref()?.again(request)
    }

    /// Its generator, while this lease uses it.
    pub(super) fn generator(&self) -> Option<Arc<Generator>> {
        self.0.share.lock().as_ref().map(|share| share.generator.clone())
    }
}

impl fmt::Debug for HostPage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("HostPage").field(self.page().header()).finish()
    }
}

impl PartialEq for HostPage {
    /// Whether both are the same page.
    fn eq(&self, other: &HostPage) -> bool {
        self.page().id() == other.page().id()
    }
}

impl Handle {
    /// Lets others have the page again. One that has ended is of no use to them.
    pub fn unlock_last(&self) {
        if let Some(last) = self.last.lock().take().filter(|last| last.has_ended()) {
            let layout = *last.header().node.layout();
            last.remove_passed(|| layout.tick_at(SystemClock.now().ms));
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.unlock_last();
    }
}
