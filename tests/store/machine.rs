//! A machine whose power can be cut: the real file store in a temporary directory, with a disk that
//! remembers what was flushed to it, and a directory of pages in memory.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use snowdrift::authority::file::FileStore;
use snowdrift::pages::{BootId, Directory};
use tempfile::TempDir;

use crate::steering::memory;

const SECTOR: usize = 512;

/// Something on the machine that does not work, to show that it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The disk says that it has flushed, and has not.
    Flush,
    /// The memory comes back as it was some time before the power was cut.
    Memory,
}

#[derive(Default)]
struct Disk {
    /// By inode: what a power cut leaves of it at the least.
    flushed: HashMap<u64, Vec<u8>>,
    /// Names that a power cut leaves.
    names: Vec<PathBuf>,
    fails: bool,
}

/// One machine, from boot to boot.
pub struct Machine {
    directory: TempDir,
    memory: TempDir,
    /// What [`Broken::Memory`] brings back.
    pages: Vec<(PathBuf, Vec<u8>)>,
    disk: Arc<Mutex<Disk>>,
    boots: u32,
    broken: Option<Broken>,
}

impl Machine {
    pub fn new(broken: Option<Broken>) -> Machine {
        let directory = tempfile::tempdir().unwrap();
        Machine {
            directory,
            memory: memory(),
            pages: Vec::new(),
            disk: Arc::default(),
            boots: 0,
            broken,
        }
    }

    pub fn store(&self) -> FileStore {
        let disk = self.disk.clone();
        let lies = self.broken == Some(Broken::Flush);
        let flush = move |path: &Path, file: &File| disk.lock().flush(path, file, lies);
        FileStore::with(self.path(), Arc::new(flush)).unwrap()
    }

    /// Where its processes have their pages.
    pub fn host(&self) -> Directory {
        let boots = if self.broken == Some(Broken::Memory) { 0 } else { self.boots };
        Directory::with(self.memory.path(), BootId([boots as u8 + 1; 16])).unwrap()
    }

    fn page_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.host().path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Somebody removes the pages, though they are in use.
    pub fn remove_pages(&self) {
        for path in self.page_files() {
            if path.extension().is_some_and(|extension| extension == "page") {
                fs::remove_file(path).unwrap();
            }
        }
    }

    /// The same, with their markers: as if the node had had no page.
    pub fn forget_pages(&self) {
        for path in self.page_files() {
            fs::remove_file(path).unwrap();
        }
    }

    /// Remembers the memory as it is, if it is to come back. Returns whether it is.
    pub fn copy_memory(&mut self) -> bool {
        let comes_back = self.broken == Some(Broken::Memory);
        if comes_back {
            let of = |path: PathBuf| fs::read(&path).map(|bytes| (path, bytes)).ok();
            self.pages = self.page_files().into_iter().filter_map(of).collect();
        }
        comes_back
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn set_disk_fails(&self, fails: bool) {
        self.disk.lock().fails = fails;
    }

    /// Leaves of each file what was flushed, and of the rest, sector by sector, what chance has
    /// written back. Every process must be dead already.
    pub fn cut_power(&mut self, random: &mut fastrand::Rng) {
        for path in self.page_files() {
            if !self.pages.iter().any(|(known, _)| *known == path) {
                fs::remove_file(path).unwrap();
            }
        }
        self.boots += 1;
        // Into the same file: a copy would be noticed.
        for (path, bytes) in &self.pages {
            fs::write(path, bytes).unwrap();
            fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
        let disk = self.disk.lock();
        let entries = fs::read_dir(self.path()).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        // So that a seed meets them in the same order each time.
        paths.sort();
        for path in paths {
            let inode = fs::metadata(&path).unwrap().ino();
            let Some(flushed) = disk.flushed.get(&inode).filter(|_| disk.names.contains(&path))
            else {
                fs::remove_file(&path).unwrap();
                continue;
            };
            let mut bytes = fs::read(&path).unwrap();
            for (sector, flushed) in bytes.chunks_mut(SECTOR).zip(flushed.chunks(SECTOR)) {
                if random.bool() {
                    sector.copy_from_slice(flushed);
                }
            }
            OpenOptions::new().write(true).open(&path).unwrap().write_all(&bytes).unwrap();
        }
    }
}

impl Disk {
    fn flush(&mut self, path: &Path, file: &File, lies: bool) -> io::Result<()> {
        if self.fails {
            return Err(ErrorKind::StorageFull.into());
        }
        if path.is_dir() {
            let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
            self.names = entries.collect::<io::Result<_>>()?;
            return Ok(());
        }
        let inode = file.metadata()?.ino();
        if !lies || !self.flushed.contains_key(&inode) {
            self.flushed.insert(inode, fs::read(path)?);
        }
        Ok(())
    }
}
