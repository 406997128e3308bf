//! A process that draws beside a record until it is told to end or killed. It is this test's own
//! executable, and logs what it drew. It draws (phase 0) or ends (1). `draws` opens
//! one node with `state`; `leases` leases any slot of a directory, on one of several hosts.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;
use std::{env, thread};

use snowdrift::authority::Access;
use snowdrift::authority::file::FileStore;
use snowdrift::authority::{Lease, Status};
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::generator::{Generator, Policies, Refusal, Reserved};
use snowdrift::pages::{BootId, Directory};
use snowdrift::registry::{By, Recording, Request, Scope, Share};

use super::slots::holder;
use crate::steering::{Log, Steering, command, reserve};

const HERE: &str = "SNOWDRIFT_TEST_HERE";
const LOG: &str = "SNOWDRIFT_TEST_LOG";
const HOST: &str = "SNOWDRIFT_TEST_HOST";
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
    command(&[], module_path!(), "draws").env(HERE, here).env(LOG, log).spawn().unwrap()
}

/// The same, one that leases on a host.
pub fn start_leasing(here: &Path, log: &Path, host: usize) -> Child {
    let mut command = command(&[], module_path!(), "leases");
    command.env(HERE, here).env(LOG, log).env(HOST, host.to_string()).spawn().unwrap()
}

/// What the test has told it: where it is, what steers it, and its log.
fn told() -> Option<(PathBuf, Steering, Log)> {
    let path = |name| env::var_os(name).map(PathBuf::from);
    let (here, log) = (path(HERE)?, path(LOG)?);
    let steering = Steering::new(&here.join("steer"));
    Some((here, steering, Log::new(&log)))
}

/// Draws so many times at the most, and pauses now and then. False once its log is full.
fn draw(
    steering: &Steering,
    log: &mut Log,
    times: u32,
    reserve: impl Fn() -> Result<Reserved, Refusal>,
    is_lost: impl Fn() -> bool,
) -> bool {
    let mut left = times;
    while left > 0 && steering.phase().load(SeqCst) == 0 {
        left -= 1;
        let Ok(reserved) = reserve() else {
            if is_lost() {
                break;
            }
            thread::yield_now();
            continue;
        };
        if !log.append((reserved.first_id, reserved.block.len)) {
            return false;
        }
        if left.is_multiple_of(4) {
            thread::sleep(Duration::from_micros(300));
        }
    }
    true
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
    let Some((here, steering, mut log)) = told() else { return };
    let steering = Arc::new(steering);
    let policies = Policies { max_wait: Duration::from_millis(2), ..Policies::default() };
    while steering.phase().load(SeqCst) == 0 {
        let Some((generator, lease)) = open(&here, &steering) else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let user_page = generator.user_page();
        let reserve = || reserve(&generator, &user_page, &policies, 3);
        let is_lost = || lease.report().status == Status::Lost;
        if !draw(&steering, &mut log, fastrand::u32(1..3000), reserve, is_lost) {
            return;
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
    let generator =
        Arc::new(Generator::recorded(Some(host), node(), 0, Box::new(steering.clone())));
    // Others may be opening it, and stopped.
    let lease = Lease::take(&store, &generator, holder(), TTL, Access::Shared).ok()?;
    Some((generator, lease))
}

/// Two slots.
pub const LEASED: Layout = Layout { worker_bits: 1, ..Layout::NODE };

/// The pages of one of the hosts.
pub fn host_of_leases(here: &Path, host: usize) -> Directory {
    Directory::with(&shared_by_host(here, host), BootId::now()).unwrap()
}

/// The memory that the processes of one of the hosts share.
fn shared_by_host(here: &Path, host: usize) -> PathBuf {
    let shared = here.join(format!("host-{host}"));
    let _ = std::fs::create_dir(&shared);
    shared
}

/// Not a test: what `start_leasing` runs. It leases again and again, and draws.
#[test]
#[ignore = "is started by other tests"]
fn leases() {
    let Some((here, steering, mut log)) = told() else { return };
    let host = env::var(HOST).unwrap().parse().unwrap();
    let policies = Policies { max_wait: Duration::from_millis(2), ..Policies::default() };
    let recording = Recording {
        directory: here.join("state"),
        ttl: TTL,
        wait: Duration::ZERO,
        host: format!("host {host}"),
        started_ms: 0,
        common: false,
    };
    let request = Request {
        layout: LEASED,
        datacenter_id: 1,
        worker_id: None,
        policies,
        max_ahead_ms: 0,
        scope: Scope::Host,
        shared: Some(shared_by_host(&here, host)),
        by: By::Record(recording),
    };
    while steering.phase().load(SeqCst) == 0 {
        let lease = || request.open().ok().flatten();
        let shares: Vec<Share> = (0..fastrand::u32(1..3)).filter_map(|_| lease()).collect();
        let Some(share) = shares.first() else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let user_page = share.user_page();
        let reserve = || reserve(share, &user_page, &policies, 3);
        let is_lost = || share.lease().is_none_or(|report| report.status == Status::Lost);
        if !draw(&steering, &mut log, fastrand::u32(1..2000), reserve, is_lost) {
            return;
        }
    }
}
