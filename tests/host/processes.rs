//! Real processes on one page: they share it evenly, are killed at any instruction, and their clock jumps.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use std::{fs, thread};

use super::child::{Steering, logged, start, start_in};
use super::{directory, duplicates, duration, is_root, memory, node, sequence};

#[test]
fn four_processes_draw_from_one_page_and_share_it() {
    let shared = memory();
    let logs = tempfile::tempdir().unwrap();
    let steer = shared.path().join("steer");
    let steering = Steering::new(&steer);
    let log_of = |index: usize| logs.path().join(index.to_string());
    let mut children: Vec<_> =
        (0..4).map(|index| start(shared.path(), &steer, &log_of(index), None).unwrap()).collect();
    let directory = directory(shared.path());
    let deadline = Instant::now() + Duration::from_secs(20);
    let processes = || {
        let found = directory.pages().unwrap();
        found.first().map_or(0, |page| page.snapshot.as_ref().unwrap().processes.len())
    };
    while processes() < 4 {
        assert!(Instant::now() < deadline, "the processes do not open the page");
        thread::sleep(Duration::from_millis(5));
    }
    let pages = directory.pages().unwrap();
    let table = &pages[0].snapshot.as_ref().unwrap().processes;
    for child in &children {
        assert!(table.iter().any(|one| one.pid == child.id() && one.users == 1 && one.is_alive()));
    }
    steering.phase().store(1, SeqCst);
    thread::sleep(duration());
    steering.phase().store(2, SeqCst);
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(processes(), 0, "whoever ends leaves the table");

    let drawn: Vec<_> = (0..4).map(|index| logged(&log_of(index))).collect();
    let shares: Vec<u64> =
        drawn.iter().map(|blocks| blocks.iter().map(|&(_, len)| len).sum()).collect();
    let all: u64 = shares.iter().sum();
    println!("{all} IDs by 4 processes: {shares:?}");
    assert_eq!(duplicates(drawn.concat()), 0);
    let least = *shares.iter().min().unwrap();
    assert!(least * 4 * 3 > all, "one of four has less than a third of its share: {shares:?}");
}

#[test]
fn processes_killed_at_random_under_a_moving_clock_issue_no_id_twice() {
    let shared = memory();
    let logs = tempfile::tempdir().unwrap();
    let steer = shared.path().join("steer");
    let steering = Steering::new(&steer);
    steering.phase().store(1, SeqCst);
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut begin = || {
        let log = logs.path().join(paths.len().to_string());
        let child = start(shared.path(), &steer, &log, None).unwrap();
        paths.push(log);
        child
    };
    let mut children: Vec<_> = (0..8).map(|_| begin()).collect();
    let end = Instant::now() + duration();
    let mut kills = 0;
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(fastrand::u64(2..20)));
        if fastrand::u8(..4) == 0 {
            // Mostly small rollbacks, which counters answer; and jumps both ways.
            let off = if fastrand::bool() { -300..300 } else { -10_000..10_000 };
            steering.clock_off().store(fastrand::i64(off), SeqCst);
        }
        let victim = &mut children[fastrand::usize(..8)];
        victim.kill().unwrap();
        victim.wait().unwrap();
        *victim = begin();
        kills += 1;
    }
    steering.phase().store(2, SeqCst);
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let drawn: Vec<_> =
        paths.iter().filter(|path| path.exists()).flat_map(|log| logged(log)).collect();
    let all: u64 = drawn.iter().map(|&(_, len)| len).sum();
    println!("{all} IDs, {kills} processes killed");
    assert!(all > 1000 && kills > 10, "{all} IDs, {kills} kills");
    assert_eq!(duplicates(drawn), 0);
    // All of them were on one page, whose table has no room for all that were killed.
    let pages = directory(shared.path()).pages().unwrap();
    let [page] = &pages[..] else { panic!("{pages:?}") };
    assert!(page.snapshot.as_ref().unwrap().processes.len() <= 64);
}

#[test]
fn processes_stopped_and_killed_while_pages_are_deleted_issue_no_id_twice() {
    let shared = memory();
    let logs = tempfile::tempdir().unwrap();
    let steer = shared.path().join("steer");
    let steering = Steering::new(&steer);
    steering.phase().store(1, SeqCst);
    let page = directory(shared.path()).page_of(&node(0));
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut begin = || {
        let log = logs.path().join(paths.len().to_string());
        let child = start(shared.path(), &steer, &log, None).unwrap();
        paths.push(log);
        child
    };
    let mut children: Vec<_> = (0..5).map(|_| begin()).collect();
    let signal = |child: &Child, signal| {
        // SAFETY: a signal to a process that was started here, and was not waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
    };
    let end = Instant::now() + duration();
    let (mut deleted, mut stopped) = (0, 0);
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(fastrand::u64(1..8)));
        let index = fastrand::usize(..5);
        match fastrand::u8(..8) {
            0 => {
                children[index].kill().unwrap();
                children[index].wait().unwrap();
                children[index] = begin();
            }
            1..4 => {
                signal(&children[index], libc::SIGSTOP);
                stopped += 1;
            }
            4..7 => signal(&children[index], libc::SIGCONT),
            _ => deleted += u32::from(fs::remove_file(&page).is_ok()),
        }
    }
    steering.phase().store(2, SeqCst);
    for child in &mut children {
        signal(child, libc::SIGCONT);
        assert!(child.wait().unwrap().success());
    }
    let drawn: Vec<_> =
        paths.iter().filter(|path| path.exists()).flat_map(|log| logged(log)).collect();
    let all: u64 = drawn.iter().map(|&(_, len)| len).sum();
    println!("{all} IDs, {} processes, {deleted} pages deleted, {stopped} stops", paths.len());
    assert!(all > 1000 && deleted > 2 && stopped > 5);
    assert_eq!(duplicates(drawn), 0);
}

/// Containers that share a memory-backed volume have other process IDs, and other mounts.
#[test]
fn namespaces_do_not_split_a_host() {
    let shared = memory();
    let logs = tempfile::tempdir().unwrap();
    let steer = shared.path().join("steer");
    let steering = Steering::new(&steer);
    steering.phase().store(1, SeqCst);
    let log_of = |index: usize| logs.path().join(index.to_string());
    let wrap = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"];
    let can = Command::new(wrap[0]).args(&wrap[1..]).arg("true").stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        println!("skipped: no namespaces can be made here");
        return;
    }
    let mut children = [
        start(shared.path(), &steer, &log_of(0), None).unwrap(),
        start_in(&wrap, shared.path(), &steer, &log_of(1)).unwrap(),
        start_in(&wrap, shared.path(), &steer, &log_of(2)).unwrap(),
    ];
    thread::sleep(Duration::from_millis(600));
    steering.phase().store(2, SeqCst);
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let drawn: Vec<_> = (0..3).map(|index| logged(&log_of(index))).collect();
    assert!(drawn.iter().all(|blocks| blocks.len() > 100), "one drew nothing");
    assert_eq!(duplicates(drawn.concat()), 0);
    assert_eq!(directory(shared.path()).pages().unwrap().len(), 1);
}

/// Whether another user can run this executable depends on where it was built.
#[test]
fn another_user_of_the_same_node_is_found() {
    let shared = memory();
    let uid = 54_321;
    if !is_root() {
        println!("skipped: only root can start a process of another user");
        return;
    }
    let open = |mode| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(shared.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(0o1777);
    let own = sequence(shared.path(), node(0));
    assert_eq!(directory(shared.path()).other_users(&node(0)), []);
    let logs = tempfile::tempdir_in(shared.path()).unwrap();
    std::os::unix::fs::chown(logs.path(), Some(uid), None).unwrap();
    let steer = shared.path().join("steer");
    let steering = Steering::new(&steer);
    std::os::unix::fs::chown(&steer, Some(uid), None).unwrap();
    steering.phase().store(2, SeqCst);
    match start(shared.path(), &steer, &logs.path().join("log"), Some(uid)) {
        Err(cause) => println!("skipped: another user cannot run this executable: {cause}"),
        Ok(mut child) => {
            assert!(child.wait().unwrap().success());
            let found = directory(shared.path()).other_users(&node(0));
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].uid, uid);
            assert_eq!(found[0].path.file_name(), own.current().page().unwrap().path().file_name());
            assert_eq!(directory(shared.path()).other_users(&node(1)), []);
        }
    }
}
