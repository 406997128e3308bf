//! Nodes that no store records.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::entry::{Entry, Tenancy};
use super::{Opening, Share};
use crate::core::clock::SystemClock;
use crate::core::fault::Failure;
use crate::core::node::Node;
use crate::generator::{Generator, Policies};
use crate::pages::Directory;

/// The time for which a list of second users is valid. Reading it takes as long as all else where the process has the
/// node open.
const SECOND_USERS: Duration = Duration::from_secs(1);

/// Opens a node that no store records, for the first time or along with others. All users at one time must agree on
/// `maxAhead` and on the scope. Does not block.
pub fn open(node: Node, opening: &Opening) -> Result<Share, Failure> {
    let entry = Entry::of(node);
    let mut tenancy = entry.tenancy.lock();
    tenancy.check_unrecorded()?;
    tenancy.check_scope(opening.host.is_some())?;
    tenancy.check_unleased()?;
    let Some(directory) = &opening.host else {
        if tenancy.users == 0 {
            entry.own.open_window();
        }
        entry.agree(&tenancy, opening)?;
        return Ok(entry.share(&mut tenancy, opening.policies));
    };
    if tenancy.shared.is_none() {
        let clock = Box::new(SystemClock);
        let host = Generator::on_host(directory.clone(), node, clock)?;
        // Above all ticks that the process issued alone, under a lease for example.
        host.start_above(entry.own.highest());
        tenancy.shared = Some(Arc::new(host));
    }
    entry.agree(&tenancy, opening)?;
    tenancy.second_users = None;
    Ok(share_page(&entry, &mut tenancy, directory, opening.policies))
}

/// Joins this process's users of an unrecorded node on the host's page. Returns None where [`open`] has to search
/// further, or to report the obstacle. `named` is as for [`Directory::find`]; it replaces the directory itself, which
/// takes long to find.
pub fn join(node: Node, opening: &Opening, named: Option<&Path>) -> Option<Share> {
    let entry = Entry::known(&node)?;
    let mut tenancy = entry.tenancy.lock();
    let shared = tenancy.shared.clone()?;
    let directory = shared.directory()?;
    let may_join = tenancy.check_unrecorded().is_ok()
        && directory.is_still(named)
        && tenancy.check_unleased().is_ok()
        && entry.agree(&tenancy, opening).is_ok();
    may_join.then(|| share_page(&entry, &mut tenancy, directory, opening.policies))
}

/// A share in the host's page, with the second users to warn of.
fn share_page(
    entry: &Arc<Entry>,
    tenancy: &mut Tenancy,
    directory: &Directory,
    policies: Policies,
) -> Share {
    let known = tenancy.second_users.take().filter(|(at, _)| at.elapsed() < SECOND_USERS);
    let look = || (Instant::now(), directory.second_users(entry.own.node()));
    let (at, second_users) = known.unwrap_or_else(look);
    let mut share = entry.share(tenancy, policies);
    share.second_users.clone_from(&second_users);
    tenancy.second_users = Some((at, second_users));
    share
}
