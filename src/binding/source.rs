//! The source of an instance's IDs: a generator, or the ring in front of one.

use std::path::Path;
use std::sync::Arc;

use super::request::OpenRequest;
use super::ring::RingShare;
use crate::core::clock::ManualClock;
use crate::core::fault::Fault;
use crate::core::layout::Tick;
use crate::core::listeners::Listener;
use crate::generator::{Generator, Policies, Refusal, Reserved};
use crate::registry::{self, Basis, Opening, Share};
use crate::ring::{self, Caching};

/// The source of a channel's IDs.
pub enum Source {
    /// The node's generator on the system clock, shared by the whole process.
    Shared(Share),
    /// The same, through the ring in front of it.
    Ring(RingShare),
    /// A generator of this instance alone, on a clock that the application sets.
    Own(Box<Generator>, Arc<ManualClock>, Policies),
}

impl Source {
    /// Opens the requested source. None where there is no page to join, or no place for one that others of this machine
    /// could join. May block, if the node is recorded.
    pub fn open(request: &OpenRequest) -> Result<Option<Source>, Fault> {
        let mut wanted = request.alone()?;
        let caching = request.caching(&wanted.layout)?;
        if request.own_clock == Some(true) {
            let clock = Arc::new(ManualClock::default());
            let Opening { policies, max_ahead_ms, .. } = wanted.opening;
            let generator = Generator::new(wanted.node()?, max_ahead_ms, Box::new(clock.clone()));
            return Ok(Some(Source::Own(Box::new(generator), clock, policies)));
        }
        // Finding the directory of a page that this process draws from already would take longer than all else.
        if request.may_share()
            && matches!(wanted.basis, Basis::Named)
            && let named = request.shared.as_deref().map(Path::new)
            && let Some(share) = registry::join(wanted.node()?, &wanted.opening, named)
        {
            return Ok(Some(Source::through(caching, share)?));
        }
        wanted.opening.host = request.host(&wanted.basis)?;
        let is_alone = wanted.opening.host.is_none() && request.may_share();
        if is_alone && matches!(wanted.basis, Basis::Named) {
            return Ok(None);
        }
        let Some(share) = wanted.open()? else { return Ok(None) };
        match Source::through(caching, share) {
            // A ring of this process with other options: the caller needs a slot of its own.
            Err(_) if matches!(wanted.basis, Basis::Page { .. }) => Ok(None),
            source => Ok(Some(source?)),
        }
    }

    fn through(caching: Option<Caching>, share: Share) -> Result<Source, Fault> {
        let Some(caching) = caching else { return Ok(Source::Shared(share)) };
        let cached = ring::open(&share, caching)?;
        Ok(Source::Ring(RingShare::new(share, cached)))
    }

    /// Gives up the source. Returns the highest tick issued, if it was a leased page that no process of the host uses
    /// any more.
    pub fn leave(self) -> Option<Tick> {
        match self {
            Source::Shared(share) | Source::Ring(RingShare { share, .. }) => share.leave(),
            Source::Own(..) => None,
        }
    }

    pub fn generator(&self) -> &Generator {
        match self {
            Source::Shared(share) | Source::Ring(RingShare { share, .. }) => share,
            Source::Own(generator, ..) => generator,
        }
    }

    /// Reserves under the instance's policies, or refuses at once.
    #[inline]
    pub fn try_reserve(&self, want: impl Fn(Tick) -> u64) -> Result<Reserved, Refusal> {
        match self {
            Source::Shared(share) | Source::Ring(RingShare { share, .. }) => {
                share.try_reserve_next(want)
            }
            Source::Own(generator, _, policies) => generator.try_reserve(policies, want),
        }
    }

    pub fn share(&self) -> Option<&Share> {
        match self {
            Source::Shared(share) | Source::Ring(RingShare { share, .. }) => Some(share),
            Source::Own(..) => None,
        }
    }

    /// Calls the listener when scheduled padding finds the ring full, if there is a ring.
    pub fn on_rejected_put(&self, listener: &Arc<Listener>) {
        if let Some(ring) = self.ring() {
            ring.cached.rejected_put().add(listener);
        }
    }

    pub fn ring(&self) -> Option<&RingShare> {
        match self {
            Source::Ring(ring) => Some(ring),
            _ => None,
        }
    }

    pub fn policies(&self) -> &Policies {
        match self {
            Source::Shared(share) | Source::Ring(RingShare { share, .. }) => share.policies(),
            Source::Own(_, _, policies) => policies,
        }
    }

    /// Whether to report a clock rollback.
    pub fn has_rollback_to_report(&self) -> bool {
        match self {
            Source::Ring(ring) => ring.cached.has_rollback_to_report(),
            source => source.generator().has_rollback_to_report(),
        }
    }

    /// Takes back single IDs, in the order of their draws, that JavaScript has drawn and nobody has seen.
    pub fn take_back(&self, ids: &[u64]) {
        if let Source::Ring(ring) = self {
            return ring.keep(ids);
        }
        let generator = self.generator();
        for block in ids.iter().rev().filter_map(|id| generator.node().block_of(*id)) {
            generator.give_back(&block, 1);
        }
    }
}
