//! Nodes that JavaScript has leased from a store: for this process alone, or for all processes of the host. A page has
//! one generator in the process, however many instances and threads draw from it.

use std::sync::Arc;

use super::entry::{Entry, Leased, RecordedIn, Tenancy};
use super::{Opening, Share};
use crate::core::clock::SystemClock;
use crate::core::fault::{Failure, fault};
use crate::core::layout::Layout;
use crate::core::node::Node;
use crate::core::sequencer::Window;
use crate::generator::Generator;
use crate::pages::{Directory, Grant, Page};

/// Opens a node whose slot JavaScript has leased from a store, within the window that the store has confirmed. Does
/// not block.
///
/// `in_thread`: a thread of its own renews the lease, so that waiting for a renewal helps.
pub(super) fn open_leased(
    node: Node,
    opening: &Opening,
    window: Window,
    in_thread: bool,
) -> Result<Share, Failure> {
    let entry = Entry::of(node);
    let mut tenancy = entry.tenancy.lock();
    if tenancy.users > 0 || tenancy.check_unrecorded().is_err() {
        return Err(fault!("open-already").into());
    }
    tenancy.check_unleased()?;
    entry.own.set_max_ahead_ms(opening.max_ahead_ms);
    tenancy.recorded = RecordedIn::Store(entry.own.begin_window(window, in_thread));
    Ok(entry.share(&mut tenancy, opening.policies))
}

/// Joins this process's users of such a node. Does not block.
pub(super) fn join_leased(node: Node, opening: &Opening) -> Result<Share, Failure> {
    let entry = Entry::of(node);
    let mut tenancy = entry.tenancy.lock();
    // The page that another thread of the process opened last.
    if let Some(leased) = tenancy.leased.last_mut() {
        return Ok(entry.share_leased(leased, opening, false));
    }
    if tenancy.users == 0 || !matches!(tenancy.recorded, RecordedIn::Store(_)) {
        return Err(fault!("open-unleased").into());
    }
    entry.agree(&tenancy, opening)?;
    Ok(entry.share(&mut tenancy, opening.policies))
}

/// Opens the node of a slot that this host has just leased, in a page that its other processes can join. `in_thread`:
/// the caller renews it in a thread of its own, so that waiting for a renewal helps.
pub(super) fn lease_on_host(
    node: Node,
    opening: &Opening,
    directory: &Directory,
    grant: &Grant,
    in_thread: bool,
) -> Result<Share, Failure> {
    let entry = Entry::of(node);
    let mut tenancy = entry.tenancy.lock();
    if tenancy.is_changing() {
        tenancy.check_unrecorded()?;
    }
    tenancy.check_scope(true)?;
    tenancy.check_unleased()?;
    let page = directory.lease(&node, opening.max_ahead(node.layout()), grant)?;
    Ok(share_page(&entry, &mut tenancy, page, opening, in_thread))
}

/// Joins the host's slot of a namespace. Returns None where the host has no slot that this process can use.
pub(super) fn join_on_host(
    layout: &Layout,
    datacenter_id: u64,
    opening: &Opening,
    directory: &Directory,
    namespace: u128,
    is_wanted: impl Fn(u128) -> bool,
    in_thread: bool,
) -> Result<Option<Share>, Failure> {
    let max_ahead = opening.max_ahead(layout);
    let mut skipped = Vec::new();
    loop {
        let is_wanted = |owner| is_wanted(owner) && !skipped.contains(&owner);
        let found = directory.join_lease(layout, datacenter_id, namespace, max_ahead, is_wanted)?;
        let Some(page) = found else { return Ok(None) };
        let entry = Entry::of(page.header().node);
        let mut tenancy = entry.tenancy.lock();
        let is_open = tenancy.leased.iter().any(|leased| leased.is_of(&page));
        if !tenancy.is_changing()
            && tenancy.check_scope(true).is_ok()
            && (is_open || tenancy.check_unleased().is_ok())
        {
            return Ok(Some(share_page(&entry, &mut tenancy, page, opening, in_thread)));
        }
        // This process has the node open in another way.
        skipped.extend(page.leasing().map(|leasing| leasing.owner));
    }
}

/// A share in a leased page.
fn share_page(
    entry: &Arc<Entry>,
    tenancy: &mut Tenancy,
    page: Page,
    opening: &Opening,
    in_thread: bool,
) -> Share {
    let open = tenancy.leased.iter().position(|leased| leased.is_of(&page));
    let at = open.unwrap_or_else(|| {
        let generator = Generator::leased(page, Box::new(SystemClock));
        // Above all ticks that the process issued alone, under a lease for example.
        generator.start_above(entry.own.highest());
        let window = generator.renewals().begin(false, || ());
        let generator = Arc::new(generator);
        tenancy.leased.push(Leased { generator, window, users: 0, threads: 0 });
        tenancy.leased.len() - 1
    });
    entry.share_leased(&mut tenancy.leased[at], opening, in_thread)
}
