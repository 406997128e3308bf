//! Other users of the machine who have the same node. Users do not share a sequence.

use std::fs::{self, Metadata};
use std::path::PathBuf;

use super::Directory;
use super::header::file_name;
use crate::core::fault::{Fault, fault};
use crate::core::node::Node;
use crate::files::system::{outer_user, traits, user, user_of};

/// Another user's page of a node: both users issue the same IDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherUser {
    /// The page.
    pub path: PathBuf,
    /// The page's owner.
    pub uid: u32,
}

impl Directory {
    /// Other users who have the same node, and so issue the same IDs.
    pub fn second_users(&self, node: &Node) -> Vec<Fault> {
        let (datacenter, worker) = (node.datacenter_id(), node.worker_id());
        let fault =
            |OtherUser { path, uid }| fault!("second-user", place: path, uid, datacenter, worker);
        self.other_users(node).into_iter().map(fault).collect()
    }

    /// Other users' pages of this node, as far as their directories permit a search.
    pub fn other_users(&self, node: &Node) -> Vec<OtherUser> {
        let name = file_name(node);
        let mut others = Vec::new();
        for entry in fs::read_dir(&self.shared).into_iter().flatten().flatten() {
            let directory = entry.file_name();
            let Some(uid) = directory.to_str().and_then(user_of) else { continue };
            let path = entry.path().join(&name);
            // Any other owner has squatted the name, and nobody draws from the file.
            let is_page = |found: Metadata| {
                let owner = traits(&found).owner;
                found.is_file() && (outer_user(owner) == uid || owner == user())
            };
            if entry.path() != self.path() && fs::symlink_metadata(&path).is_ok_and(is_page) {
                others.push(OtherUser { path, uid });
            }
        }
        others
    }
}
