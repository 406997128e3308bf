//! Where there is no host scope: no directory, and so no page.

use std::path::Path;

use super::HostError;
use crate::layout::Tick;
use crate::node::Node;
use crate::shared::Cells;

/// There is none on this system.
pub enum Directory {}

impl Directory {
    /// None: there is no host scope on this system.
    pub fn find(_: Option<&Path>) -> Result<Option<Directory>, HostError> {
        Ok(None)
    }

    pub(super) fn open(&self, _: &Node, _: Tick) -> Result<Page, HostError> {
        match *self {}
    }
}

/// There is none on this system.
pub enum Page {}

impl Page {
    /// Never called.
    pub fn cells(&self) -> &Cells {
        match *self {}
    }

    /// Never called.
    pub fn path(&self) -> &Path {
        match *self {}
    }

    pub(super) fn is_first(&self) -> bool {
        match *self {}
    }

    pub(super) fn is_named(&self) -> Result<bool, HostError> {
        match *self {}
    }
}
