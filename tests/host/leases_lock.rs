//! The lock under which one process of a host looks for its leased slot.

use std::env;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use snowdrift::pages::LeasesLock;

use super::{directory, memory};
use crate::steering::{command, signal};

const HERE: &str = "SNOWDRIFT_TEST_LOCKED";
const KEY: u128 = 7 << 64 | 11;

fn file_in(shared: &Path) -> PathBuf {
    directory(shared).path().join("leases.lock")
}

fn try_lock(shared: &Path, key: u128) -> Option<LeasesLock> {
    directory(shared).lock_leases(key).unwrap()
}

#[test]
fn one_caller_at_a_time_has_a_key() {
    let shared = memory();
    let one = try_lock(shared.path(), KEY).unwrap();
    assert!(try_lock(shared.path(), KEY).is_none(), "another open of this process");
    let other = try_lock(shared.path(), KEY + 1).expect("another key");
    drop(one);
    let one = try_lock(shared.path(), KEY).expect("it was dropped");
    assert!(try_lock(shared.path(), KEY + 1).is_none());
    drop((one, other));
    let found = fs::metadata(file_in(shared.path())).unwrap();
    assert_eq!((found.mode() & 0o7777, found.len(), found.nlink()), (0o600, 0, 1));
}

#[test]
fn threads_that_create_the_file_at_once_lock_the_same_one() {
    for _ in 0..50 {
        let shared = memory();
        let all: Vec<_> = std::thread::scope(|scope| {
            let lock = || try_lock(shared.path(), KEY);
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(lock)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(all.iter().flatten().count(), 1);
    }
}

#[test]
fn a_deleted_file_leaves_the_holder_its_lock_and_others_a_new_one() {
    let shared = memory();
    let one = try_lock(shared.path(), KEY).unwrap();
    fs::remove_file(file_in(shared.path())).unwrap();
    let two = try_lock(shared.path(), KEY).expect("another file");
    drop(one);
    assert!(try_lock(shared.path(), KEY).is_none(), "the old one's lock is not the new one's");
    fs::remove_dir_all(directory(shared.path()).path()).unwrap();
    drop(two);
    assert!(try_lock(shared.path(), KEY).is_some(), "the directory was removed, too");
}

#[test]
fn what_stands_in_its_place_is_an_error_as_it_is_for_a_page() {
    let shared = memory();
    let path = file_in(shared.path());
    let refused = |words: &str| {
        let error = format!("{:?}", directory(shared.path()).lock_leases(KEY).unwrap_err());
        assert!(error.contains(path.to_str().unwrap()) && error.contains(words), "{error}");
    };
    symlink("nothing", &path).unwrap();
    refused("(\"isLink\", Flag(true))");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o622)).unwrap();
    refused("page-writable");
}

/// A process that has the lock, says so, and waits.
fn holder(shared: &Path) -> Child {
    let mut child = command(&[], module_path!(), "holds")
        .env(HERE, shared)
        .stdout(Stdio::piped())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("locked")));
    child
}

#[test]
fn the_end_of_a_process_ends_its_lock_and_a_stop_does_not() {
    let shared = memory();
    let mut child = holder(shared.path());
    assert!(try_lock(shared.path(), KEY).is_none());
    signal(&child, libc::SIGSTOP);
    assert!(try_lock(shared.path(), KEY).is_none(), "it answers at once");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(try_lock(shared.path(), KEY).is_some());
}

/// Not a test: what `holder` runs.
#[test]
#[ignore = "is started by other tests"]
fn holds() {
    let Some(shared) = env::var_os(HERE) else { return };
    let lock = try_lock(Path::new(&shared), KEY).unwrap();
    println!("locked");
    // Until it is killed, or the test has ended.
    let _ = std::io::stdin().read_line(&mut String::new());
    drop(lock);
}
