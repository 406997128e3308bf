//! Real processes on one page: they share it evenly, are killed at any instruction, and their clock jumps.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use std::{fs, thread};

use snowdrift::core::fault::Detail;

use super::child::{command, steering};
use super::{Directory, directory, duplicates, generator, is_root, node};
use crate::amount::storm;
use crate::steering::{Drawers, count, memory};

/// Starts processes that draw from `shared`.
fn drawers(shared: &Path, count: usize) -> Drawers<impl FnMut(usize, &Path) -> Child> {
    Drawers::new(count, move |_, log| command(&[], shared, log).spawn().unwrap())
}

#[test]
fn four_processes_draw_from_one_page_and_share_it() {
    let shared = memory();
    // Whether evenly, is for the storm below.
    unfair_shares(shared.path(), &directory(shared.path()));
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn four_processes_draw_from_one_page_and_share_it_evenly() {
    let shared = memory();
    let directory = directory(shared.path());
    // A busy machine may hold one of them up for as long as a storm lasts.
    let shares: Vec<_> = (0..6).map_while(|_| unfair_shares(shared.path(), &directory)).collect();
    assert!(shares.len() < 6, "one of four has less than a third of its share: {shares:?}");
}

/// Four processes draw from one page. Returns how many IDs each has, if one has less than a third of its share.
fn unfair_shares(shared: &Path, directory: &Directory) -> Option<Vec<u64>> {
    let steering = steering(shared);
    steering.phase().store(0, SeqCst);
    let drawers = drawers(shared, 4);
    let deadline = Instant::now() + Duration::from_secs(300);
    let processes = || {
        let found = directory.pages().unwrap();
        found.first().map_or(0, |page| page.1.as_ref().unwrap().processes.len())
    };
    while processes() < 4 {
        assert!(Instant::now() < deadline, "the processes do not open the page");
        thread::sleep(Duration::from_millis(5));
    }
    let pages = directory.pages().unwrap();
    let table = &pages[0].1.as_ref().unwrap().processes;
    for child in &drawers.children {
        assert!(table.iter().any(|one| one.pid == child.id() && one.users == 1 && one.is_alive()));
    }
    steering.phase().store(1, SeqCst);
    thread::sleep(storm());
    steering.phase().store(2, SeqCst);
    let drawn = drawers.end();
    assert_eq!(processes(), 0, "whoever ends leaves the table");

    let shares: Vec<u64> = drawn.iter().map(|blocks| count(blocks)).collect();
    let all: u64 = shares.iter().sum();
    println!("{all} IDs by 4 processes: {shares:?}");
    assert_eq!(duplicates(drawn.concat()), 0);
    let least = *shares.iter().min().unwrap();
    (least * 4 * 3 <= all).then_some(shares)
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn processes_killed_at_random_under_a_moving_clock_issue_no_id_twice() {
    let shared = memory();
    let steering = steering(shared.path());
    steering.phase().store(1, SeqCst);
    let mut drawers = drawers(shared.path(), 8);
    let end = Instant::now() + storm();
    while Instant::now() < end || drawers.kills <= 10 {
        thread::sleep(Duration::from_millis(fastrand::u64(2..20)));
        if fastrand::u8(..4) == 0 {
            steering.jump();
        }
        drawers.kill(fastrand::usize(..8));
    }
    drawers.await_drawn(1001, 0);
    steering.phase().store(2, SeqCst);
    let kills = drawers.kills;
    let drawn = drawers.end().concat();
    let all = count(&drawn);
    println!("{all} IDs, {kills} processes killed");
    assert!(all > 1000, "{all} IDs");
    assert_eq!(duplicates(drawn), 0);
    // All of them were on one page, whose table has no room for all that were killed.
    let pages = directory(shared.path()).pages().unwrap();
    let [page] = &pages[..] else { panic!("{pages:?}") };
    assert!(page.1.as_ref().unwrap().processes.len() <= 64);
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn processes_stopped_and_killed_while_pages_are_deleted_issue_no_id_twice() {
    let shared = memory();
    let steering = steering(shared.path());
    steering.phase().store(1, SeqCst);
    let page = directory(shared.path()).page_of(&node(0));
    let mut drawers = drawers(shared.path(), 5);
    let end = Instant::now() + storm();
    let (mut deleted, mut stopped) = (0, 0);
    while Instant::now() < end || deleted <= 2 || stopped <= 5 {
        thread::sleep(Duration::from_millis(fastrand::u64(1..8)));
        let index = fastrand::usize(..5);
        match fastrand::u8(..8) {
            0 => drawers.kill(index),
            1..4 => {
                drawers.signal(index, libc::SIGSTOP);
                stopped += 1;
            }
            4..7 => drawers.signal(index, libc::SIGCONT),
            _ => deleted += u32::from(fs::remove_file(&page).is_ok()),
        }
    }
    drawers.await_drawn(1001, 0);
    steering.phase().store(2, SeqCst);
    let processes = drawers.count();
    let drawn = drawers.end().concat();
    let all = count(&drawn);
    println!("{all} IDs, {processes} processes, {deleted} pages deleted, {stopped} stops");
    assert!(all > 1000, "{all} IDs");
    assert_eq!(duplicates(drawn), 0);
}

/// Containers that share a memory-backed volume have other process IDs, and other mounts.
#[test]
fn namespaces_do_not_split_a_host() {
    let shared = memory();
    let steering = steering(shared.path());
    steering.phase().store(1, SeqCst);
    let wrap = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"];
    let can = Command::new(wrap[0]).args(&wrap[1..]).arg("true").stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        println!("skipped: no namespaces can be made here");
        return;
    }
    let drawers = Drawers::new(3, |index, log| {
        let by: &[_] = if index == 0 { &[] } else { &wrap };
        command(by, shared.path(), log).spawn().unwrap()
    });
    drawers.await_drawn(0, 101);
    thread::sleep(Duration::from_millis(100));
    steering.phase().store(2, SeqCst);
    let drawn = drawers.end();
    assert!(drawn.iter().all(|blocks| blocks.len() > 100), "one drew nothing");
    assert_eq!(duplicates(drawn.concat()), 0);
    assert_eq!(directory(shared.path()).pages().unwrap().len(), 1);
}

/// Whether another user can run this executable depends on where it was built.
#[test]
fn another_user_of_the_same_node_is_found() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    let shared = memory();
    let uid = 54_321;
    if !is_root() {
        println!("skipped: only root can start a process of another user");
        return;
    }
    fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let own = generator(shared.path(), node(0));
    assert_eq!(directory(shared.path()).second_users(&node(0)), []);
    let logs = tempfile::tempdir_in(shared.path()).unwrap();
    chown(logs.path(), Some(uid), None).unwrap();
    let steering = steering(shared.path());
    chown(shared.path().join("steer"), Some(uid), None).unwrap();
    match command(&[], shared.path(), &logs.path().join("log")).uid(uid).spawn() {
        Err(cause) => println!("skipped: another user cannot run this executable: {cause}"),
        Ok(mut child) => {
            let second_users = || directory(shared.path()).second_users(&node(0));
            let found = loop {
                let found = second_users();
                if !found.is_empty() || child.try_wait().unwrap().is_some() {
                    break found;
                }
                thread::yield_now();
            };
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].detail("uid"), Some(&uid.into()));
            let Some(Detail::Text(place)) = found[0].detail("place") else { panic!("{found:?}") };
            assert_eq!(Path::new(place).file_name(), own.page().path().unwrap().file_name());
            assert_eq!(directory(shared.path()).second_users(&node(1)), []);
            steering.phase().store(2, SeqCst);
            assert!(child.wait().unwrap().success());
            assert_eq!(second_users(), [], "it has ended");
        }
    }
}
