//! Opens what a request names: shares the process's open generator, or begins one.

use std::sync::Arc;

use super::entry::{Entry, Held, Tenancy};
use super::request::{By, Request, Scope};
use super::share::Share;
use crate::core::fault::{Failure, fault};
use crate::generator::Generator;
use crate::pages::Directory;

impl Request {
    /// Opens the generator, or shares it with the process's other users. Returns None where the host has no place for a page
    /// that others of this machine could join.
    pub fn open(&self) -> Result<Option<Share>, Failure> {
        match &self.by {
            // They need a ceiling that survives the process and its page.
            By::Free if self.max_ahead_ms > 0 => {
                Err(fault!("ahead-unrecorded", maxAhead: self.max_ahead_ms).into())
            }
            By::Lease => Ok(None),
            By::Clock(_) => self.open_in(&Entry::new(self.node()?)),
            _ => self.open_in(&Entry::of(self.node()?)),
        }
    }

    fn open_in(&self, entry: &Arc<Entry>) -> Result<Option<Share>, Failure> {
        let mut tenancy = entry.tenancy.lock();
        let host = match tenancy.directory(self) {
            Some(known) => Some(known),
            None => self.host()?,
        };
        let is_free = matches!(self.by, By::Free);
        if is_free && host.is_none() && self.scope != Scope::Process {
            return Ok(None);
        }
        if let Some(one) = tenancy.find(self, host.is_some())? {
            return Ok(Some(entry.share(one, self)));
        }
        let generator = match host {
            Some(directory) => Arc::new(Generator::on_host(directory, entry.node, self.clock())?),
            None => entry.own(self),
        };
        Ok(Some(entry.begin(&mut tenancy, self, (generator, Held::Free))))
    }
}

impl Tenancy {
    /// The directory of the page that the process draws from, where the request names the same.
    pub fn directory(&self, request: &Request) -> Option<Directory> {
        let is_shared = matches!(request.by, By::Free) && request.scope != Scope::Process;
        let mut directories = self.uses.iter().filter_map(|one| one.generator.directory());
        directories.find(|one| is_shared && one.is_still(request.shared.as_deref())).cloned()
    }
}
