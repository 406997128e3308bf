//! A machine whose power can be cut: the real file store in a temporary directory, with a disk that
//! remembers what was flushed to it.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use snowdrift::store::file::FileStore;
use tempfile::TempDir;

const SECTOR: usize = 512;

/// Something on the machine that does not work, to show that it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The disk says that it has flushed, and has not.
    Flush,
    /// The boot's ID stays the same when the power was cut.
    BootId,
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
    disk: Arc<Mutex<Disk>>,
    boots: u32,
    broken: Option<Broken>,
}

impl Machine {
    pub fn new(broken: Option<Broken>) -> Machine {
        let directory = tempfile::tempdir().unwrap();
        Machine { directory, disk: Arc::default(), boots: 0, broken }
    }

    pub fn store(&self) -> FileStore {
        let boots = if self.broken == Some(Broken::BootId) { 0 } else { self.boots };
        let disk = self.disk.clone();
        let lies = self.broken == Some(Broken::Flush);
        let flush = move |path: &Path, file: &File| disk.lock().flush(path, file, lies);
        FileStore::with(self.path(), Some(format!("boot {boots}")), Arc::new(flush)).unwrap()
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
        self.boots += 1;
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

mod contract {
    use snowdrift::node::Node;
    use snowdrift::store::Store;

    use super::*;
    use crate::contract::{World, held_to_the_contract};

    impl World for Machine {
        fn store(&self) -> Box<dyn Store> {
            Box::new(Machine::store(self))
        }

        fn bury_the_dead(&self) {}

        fn take_away(&self, slot: &Node) {
            fs::remove_file(Machine::store(self).path_of(slot)).unwrap();
        }

        fn break_down(&self, is_broken: bool) {
            self.set_disk_fails(is_broken);
        }
    }

    mod within_a_boot {
        use super::*;
        held_to_the_contract!(Machine::new(None));
    }

    /// A machine that loses its power whenever a holder has died.
    struct Reboots {
        machine: Mutex<Machine>,
        random: Mutex<fastrand::Rng>,
    }

    impl Reboots {
        fn new() -> Self {
            let random = Mutex::new(fastrand::Rng::with_seed(1));
            Reboots { machine: Mutex::new(Machine::new(None)), random }
        }
    }

    impl World for Reboots {
        fn store(&self) -> Box<dyn Store> {
            Box::new(self.machine.lock().store())
        }

        fn bury_the_dead(&self) {
            self.machine.lock().cut_power(&mut self.random.lock());
        }

        fn take_away(&self, slot: &Node) {
            self.machine.lock().take_away(slot);
        }

        fn break_down(&self, is_broken: bool) {
            self.machine.lock().set_disk_fails(is_broken);
        }
    }

    mod across_power_cuts {
        use super::*;
        held_to_the_contract!(Reboots::new());
    }
}
