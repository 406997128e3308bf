//! The leased pages of this host, for one lease of this process.

use std::path::Path;
use std::sync::Arc;

use super::entry::{Entry, Held, Use};
use super::host_page::HostPage;
use super::request::Request;
use super::share::Share;
use crate::core::fault::{Class, Failure};
use crate::core::loss::Loss;
use crate::core::node::Node;
use crate::generator::Generator;
use crate::lease::{Tenure, Word};
use crate::pages::{Directory, LeasesLock, Page};

/// Whether a caller can use a slot that the host has.
pub type IsUsable = Arc<dyn Fn(&Share) -> bool + Send + Sync>;

/// The leased pages of this host, for one lease of this process.
pub struct HostPages {
    pub(super) request: Request,
    /// None for slots of this process alone.
    pub(super) directory: Option<Directory>,
    /// Whether its caller can use a slot that the host has: not with a ring of other options in this process.
    pub(super) is_usable: IsUsable,
    /// The pages of the host as a search saw them last, also ended ones.
    pub(super) seen: Vec<Arc<Page>>,
    /// Held while this process takes a slot for all of the host.
    pub(super) lock: Option<LeasesLock>,
    /// Whether it takes one without the lock, which a stopped process has.
    pub(super) is_broken: bool,
    /// The process ends: its instances, which have a share in what it leaves, are not closed any more.
    pub is_exiting: bool,
    /// Whether pages stay once they have ended.
    pub keeps_pages: bool,
    /// Why this host can have no page.
    pub(super) failure: Option<Failure>,
    /// Why it cannot have one of a certain node.
    pub(super) conflict: Option<Failure>,
}

impl HostPages {
    /// The pages that a request names.
    pub fn of(request: Request, is_usable: IsUsable) -> Result<HostPages, Failure> {
        let directory = request.host()?;
        let (seen, lock, failure, conflict) = Default::default();
        let (is_broken, is_exiting, keeps_pages) = Default::default();
        Ok(HostPages {
            request,
            directory,
            is_usable,
            seen,
            lock,
            is_broken,
            is_exiting,
            keeps_pages,
            failure,
            conflict,
        })
    }

    /// The directory of the pages; none for slots of this process alone.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_ref().map(Directory::path)
    }

    /// Takes out why this host can have no page. Until then, it makes none.
    pub fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// Takes out why this host could not use some node.
    pub fn take_conflict(&mut self) -> Option<Failure> {
        self.conflict.take()
    }

    /// Why a page has ended, or lost its name.
    pub fn loss_of(page: &Page) -> Loss {
        page.lease_status().and_then(|leasing| leasing.loss).unwrap_or(Loss::Released)
    }

    pub(super) fn note(&mut self, failure: Failure) {
        match failure.class {
            Class::Conflict => self.conflict = Some(failure),
            _ => self.failure = Some(failure),
        }
    }

    pub(super) fn find_pages(&mut self) -> Result<Vec<HostPage>, Failure> {
        let Some(directory) = &self.directory else { return Ok(Vec::new()) };
        // Pages of other worker IDs are nothing to a claim.
        let Request { layout, datacenter_id, worker_id, .. } = &self.request;
        let found = directory.leased(layout, *datacenter_id, *worker_id, &mut self.seen)?;
        Ok(found.into_iter().map(|page| HostPage::new(page, None)).collect())
    }

    pub(super) fn create_page(
        &mut self,
        tenure: Tenure,
        word: Word,
    ) -> Result<Option<HostPage>, Failure> {
        let seen = std::mem::take(&mut self.seen);
        let HostPages { request, directory, .. } = self;
        let node = Node::new(request.layout, request.datacenter_id, tenure.worker)?;
        let entry = Entry::of(node);
        let mut tenancy = entry.tenancy.lock();
        if tenancy.is_taken(tenure.namespace.0) {
            // Another lease of this process takes it, and goes on, or drops its page; or it has, and what the store showed is old.
            return Ok(None);
        }
        let conflict = |failure: Failure| Failure::new(Class::Conflict, failure.fault);
        let mut last = None;
        if let Some(directory) = directory {
            // What is no page of the node is in the way of this worker ID alone.
            last = directory.end_leased(&node, &seen).map_err(|failure| match failure.class {
                Class::Page => conflict(failure),
                _ => failure,
            })?;
        }
        drop(seen);
        // Where this process has the node open already, another one may do.
        tenancy.find(request, directory.is_some()).map_err(conflict)?;
        entry.note_lost(&tenancy);
        let (namespace, owner) = (tenure.namespace.0, tenure.owner.0);
        let max_ahead = request.max_ahead();
        let (page, held) = match directory {
            Some(directory) => {
                (directory.pending(&node, max_ahead, namespace, owner, last)?, Held::Page)
            }
            None => (Page::pending_in_process(node, max_ahead, namespace, owner), Held::Window),
        };
        page.set_lease_word(word.bits());
        if self.keeps_pages {
            page.notes().keep();
        }
        let generator = Arc::new(Generator::leased(page, request.clock()));
        let share = entry.begin(&mut tenancy, request, (generator, held));
        Ok(Some(HostPage::new(share.page(), Some(share))))
    }

    /// A share in the page's generator, if this process can use the page.
    pub(super) fn share_of(&self, found: &HostPage) -> Result<Option<Share>, Failure> {
        let (Some(directory), request) = (&self.directory, &self.request) else { return Ok(None) };
        let Some(page) = directory.join_leased(found.page(), request.max_ahead())? else {
            return Ok(None);
        };
        let entry = Entry::of(page.header().node);
        let mut tenancy = entry.tenancy.lock();
        let is_open = |one: &Use| one.generator.page().id() == page.id();
        let share = match tenancy.uses.iter().position(is_open) {
            Some(at) => entry.share(&mut tenancy.uses[at], request),
            None => match tenancy.find(request, true) {
                Ok(Some(one)) => entry.share(one, request),
                Ok(None) => {
                    let generator = Arc::new(Generator::leased(page, request.clock()));
                    entry.begin(&mut tenancy, request, (generator, Held::Page))
                }
                // This process has the node open in another way.
                Err(_) => return Ok(None),
            },
        };
        drop(tenancy);
        // A generator that this process had already may be of an earlier page of the node.
        let is_same = share.page().id() == found.page().id();
        Ok(Some(share).filter(|share| is_same && (self.is_usable)(share)))
    }

    /// Takes the lock of this layout and datacenter; none while another process or thread has it.
    pub(super) fn take_lock(&self) -> Result<Option<LeasesLock>, Failure> {
        let Some(directory) = &self.directory else { return Ok(None) };
        let Request { layout, datacenter_id, .. } = &self.request;
        let text = format!("{layout:?} {datacenter_id}");
        directory.lock_leases(u128::from(crc32fast::hash(text.as_bytes())))
    }
}
