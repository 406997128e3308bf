//! A process that draws from a page until it is told to end or killed. It is this test's own executable,
//! and logs what it drew. It waits (phase 0), draws (1) or ends (2).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::{env, thread};

use super::{directory, draw, ids, node, open};
use crate::steering::{self, Log, Steering};

const SHARED: &str = "SNOWDRIFT_TEST_SHARED";
const LOG: &str = "SNOWDRIFT_TEST_LOG";

/// What steers the processes that draw from `shared`.
pub fn steering(shared: &Path) -> Steering {
    Steering::new(&shared.join("steer"))
}

/// Starts one that draws from `shared` and logs to `log`.
pub fn command(by: &[&str], shared: &Path, log: &Path) -> Command {
    let mut command = steering::command(by, module_path!(), "draws");
    command.env(SHARED, shared).env(LOG, log);
    command
}

/// Not a test: what `command` starts.
#[test]
#[ignore = "is started by other tests"]
fn draws() {
    let path = |name| env::var_os(name).map(PathBuf::from);
    let (Some(shared), Some(log)) = (path(SHARED), path(LOG)) else { return };
    let steering = Arc::new(steering(&shared));
    let mut log = Log::new(&log);
    let node = node(0);
    let generator = open(&directory(&shared), node, steering.clone()).unwrap();
    while steering.phase().load(SeqCst) == 0 {
        thread::yield_now();
    }
    while steering.phase().load(SeqCst) == 1 {
        let Ok(block) = draw(&generator, 3) else {
            thread::yield_now();
            continue;
        };
        if !log.append(ids(&node, &block)) {
            return;
        }
    }
}
