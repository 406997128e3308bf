//! A process that draws from a page until it is told to end or killed. It is this test's own executable,
//! and says what it drew in a map that outlives it. It waits (phase 0), draws (1) or ends (2).

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::SeqCst;
use std::{env, io, thread};

use memmap2::MmapOptions;
use snowdrift::host::HostSequence;

use super::{RULES, directory, ids, node};
pub use crate::steering::Steering;

const SHARED: &str = "SNOWDRIFT_TEST_SHARED";
const LOG: &str = "SNOWDRIFT_TEST_LOG";
const STEER: &str = "SNOWDRIFT_TEST_STEER";
const LOG_BYTES: u64 = 64 << 20;

/// Starts one that draws from `shared` and logs to `log`; as another user where one is given.
pub fn start(shared: &Path, steer: &Path, log: &Path, uid: Option<u32>) -> io::Result<Child> {
    let own = own_command();
    let mut command = Command::new(&own[0]);
    command.args(&own[1..]);
    if let Some(uid) = uid {
        command.uid(uid);
    }
    spawn(command, shared, steer, log)
}

/// The same, started by a command that is given it.
pub fn start_in(by: &[&str], shared: &Path, steer: &Path, log: &Path) -> io::Result<Child> {
    let mut command = Command::new(by[0]);
    command.args(&by[1..]).args(own_command());
    spawn(command, shared, steer, log)
}

/// What starts this executable: one for another processor by `HOST_TEST_RUNNER`, such as `qemu-aarch64`.
fn own_command() -> Vec<OsString> {
    let runner = env::var("HOST_TEST_RUNNER").unwrap_or_default();
    let own = env::current_exe().unwrap().into_os_string();
    runner.split_whitespace().map(OsString::from).chain([own]).collect()
}

fn spawn(mut command: Command, shared: &Path, steer: &Path, log: &Path) -> io::Result<Child> {
    command
        .args(["--exact", "child::draws", "--ignored", "--nocapture", "--test-threads=1"])
        .env(SHARED, shared)
        .env(STEER, steer)
        .env(LOG, log)
        .stdout(Stdio::null())
        .spawn()
}

/// What a process logged.
pub fn logged(log: &Path) -> Vec<(u64, u64)> {
    let file = File::open(log).unwrap();
    // SAFETY: the process that wrote to it has ended.
    let bytes = unsafe { MmapOptions::new().map(&file) }.unwrap();
    let (words, _) = bytes.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let number = |word: &[u8; 8]| u64::from_ne_bytes(*word);
    pairs
        .iter()
        .map(|[id, len]| (number(id), number(len)))
        .take_while(|&(_, len)| len > 0)
        .collect()
}

/// Not a test: what `start` runs.
#[test]
#[ignore = "is started by other tests"]
fn draws() {
    let path = |name| env::var_os(name).map(PathBuf::from);
    let (Some(shared), Some(steer), Some(log)) = (path(SHARED), path(STEER), path(LOG)) else {
        return;
    };
    let steering = Steering::new(&steer);
    let file: File = OpenOptions::new().read(true).write(true).create_new(true).open(log).unwrap();
    file.set_len(LOG_BYTES).unwrap();
    // SAFETY: nobody else writes to it, nor reads it before this process has ended.
    let mut log = unsafe { MmapOptions::new().map_mut(&file) }.unwrap();
    let node = node(0);
    let sequence = HostSequence::open(Some(directory(&shared)), node, 0, &steering).unwrap();
    while steering.phase().load(SeqCst) == 0 {
        thread::yield_now();
    }
    let (entries, _) = log.as_chunks_mut::<16>();
    let mut entries = entries.iter_mut();
    while steering.phase().load(SeqCst) == 1 {
        let Ok(block) = sequence.reserve(&RULES, &steering, |_| 3) else {
            thread::yield_now();
            continue;
        };
        let (id, len) = ids(&node, &block);
        let entry = entries.next().expect("the log has room");
        entry[..8].copy_from_slice(&id.to_ne_bytes());
        entry[8..].copy_from_slice(&len.to_ne_bytes());
    }
}
