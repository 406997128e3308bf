//! A process that draws beside a record until it is told to end or killed. It is this test's own
//! executable, and says what it drew in a map that outlives it. It draws (phase 0) or ends (1).

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;
use std::{env, thread};

use memmap2::MmapOptions;
use snowdrift::generator::{Generator, Policies};
use snowdrift::host::{BootId, Directory};
use snowdrift::layout::Layout;
use snowdrift::lease::{Lease, Standing};
use snowdrift::node::Node;
use snowdrift::store::file::FileStore;

use crate::contract::holder;
pub use crate::steering::Steering;

const HERE: &str = "SNOWDRIFT_TEST_HERE";
const LOG: &str = "SNOWDRIFT_TEST_LOG";
const LOG_BYTES: u64 = 16 << 20;
const TTL: Duration = Duration::from_millis(150);

impl Steering {
    /// One of how many flushes a process stops itself in, before or after it reached the disk; 0 for none.
    pub fn stops(&self) -> &AtomicI64 {
        self.word(2)
    }

    /// Which boot it is.
    pub fn boot(&self) -> &AtomicI64 {
        self.word(3)
    }
}

/// Starts one in a directory of the test's, which logs to `log`.
pub fn start(here: &Path, log: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "child::draws", "--ignored", "--nocapture", "--test-threads=1"])
        .env(HERE, here)
        .env(LOG, log)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a process logged: first IDs, and how many.
pub fn logged(log: &Path) -> Vec<(u64, u64)> {
    let Ok(file) = File::open(log) else { return Vec::new() };
    // SAFETY: the process that wrote to it has ended.
    let Ok(bytes) = (unsafe { MmapOptions::new().map(&file) }) else { return Vec::new() };
    let (words, _) = bytes.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let number = |word: &[u8; 8]| u64::from_ne_bytes(*word);
    pairs
        .iter()
        .map(|[id, len]| (number(id), number(len)))
        .take_while(|&(_, len)| len > 0)
        .collect()
}

pub fn host(here: &Path, boot: i64) -> Directory {
    Directory::with(here, BootId([boot as u8 + 1; 16])).unwrap()
}

pub fn node() -> Node {
    Node::new(Layout::NODE, 1, 3).unwrap()
}

/// Not a test: what `start` runs. It opens the node anew again and again, and draws.
#[test]
#[ignore = "is started by other tests"]
fn draws() {
    let path = |name| env::var_os(name).map(PathBuf::from);
    let (Some(here), Some(log)) = (path(HERE), path(LOG)) else { return };
    let steering = Arc::new(Steering::new(&here.join("steer")));
    let file: File = OpenOptions::new().read(true).write(true).create_new(true).open(log).unwrap();
    file.set_len(LOG_BYTES).unwrap();
    // SAFETY: nobody else writes to it, nor reads it before this process has ended.
    let mut log = unsafe { MmapOptions::new().map_mut(&file) }.unwrap();
    let (entries, _) = log.as_chunks_mut::<16>();
    let mut entries = entries.iter_mut();
    let policies = Policies { max_wait: Duration::from_millis(2), ..Policies::default() };
    while steering.phase().load(SeqCst) == 0 {
        let Some((generator, lease)) = open(&here, &steering) else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let mut left = fastrand::u32(1..3000);
        while left > 0 && steering.phase().load(SeqCst) == 0 {
            left -= 1;
            let Ok(reserved) = generator.reserve(&policies, |_| 3) else {
                if lease.report().standing == Standing::Lost {
                    break;
                }
                thread::yield_now();
                continue;
            };
            let Some(entry) = entries.next() else { return };
            entry[..8].copy_from_slice(&reserved.first_id.to_ne_bytes());
            entry[8..].copy_from_slice(&reserved.block.len.to_ne_bytes());
            if left.is_multiple_of(4) {
                thread::sleep(Duration::from_micros(300));
            }
        }
        lease.release(Duration::from_secs(1));
    }
}

fn open(here: &Path, steering: &Arc<Steering>) -> Option<(Arc<Generator>, Lease)> {
    let host = host(here, steering.boot().load(SeqCst));
    let hook = steering.clone();
    let flush = move |_: &Path, file: &File| {
        let stops = || {
            let one_of = hook.stops().load(SeqCst);
            if one_of > 0 && fastrand::i64(0..one_of) == 0 {
                // SAFETY: it stops this process, until the test lets it go on or kills it.
                unsafe { libc::raise(libc::SIGSTOP) };
            }
        };
        stops();
        file.sync_data()?;
        stops();
        Ok(())
    };
    let store = FileStore::with(&here.join("state"), Arc::new(flush)).unwrap();
    let generator = Arc::new(Generator::durable(host, node(), 0, Box::new(steering.clone())));
    // Others may be opening it, and stopped.
    let lease = Lease::take(&store, &generator, holder(), TTL, false).ok()?;
    Some((generator, lease))
}
