//! A directory with one slot's file, for a store whose disk costs nothing.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use snowdrift::layout::Layout;
use snowdrift::node::Node;
use snowdrift::store::Holder;
use snowdrift::store::file::FileStore;
use tempfile::TempDir;

/// Where a slot's file has its marks: see src/store/file.rs.
pub const MARKS_AT: usize = 1024;
pub const MARKS_BYTES: usize = 264;

/// The boot that the files were written in, as the tests have it.
pub const BOOT: &str = "boot";

pub struct Scratch(TempDir);

impl Scratch {
    /// Runs `check` with the directory of this thread, emptied. Making one takes longer than most else.
    pub fn with(check: impl FnOnce(&Scratch)) {
        thread_local! {
            static HERE: Scratch =
                Scratch(tempfile::tempdir().expect("a directory for temporary files"));
        }
        HERE.with(|scratch| {
            for entry in fs::read_dir(scratch.path()).expect("the directory is there") {
                fs::remove_file(entry.expect("an entry").path()).expect("it is removed");
            }
            check(scratch);
        });
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The store, as a process of this boot or of the next one opens it.
    pub fn store(&self, is_same_boot: bool) -> FileStore {
        let boot = if is_same_boot { BOOT } else { "the next boot" };
        let flush = Arc::new(|_: &Path, _: &File| Ok(()));
        FileStore::with(self.path(), Some(boot.to_owned()), flush).expect("the directory is there")
    }
}

/// A slot of the default layout.
pub fn slot() -> Node {
    Node::new(Layout::NODE, 1, 3).expect("it fits")
}

pub fn holder(pid: u32) -> Holder {
    Holder { token: pid.into(), pid, host: "here".to_owned(), started_ms: 0 }
}
