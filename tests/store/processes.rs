//! Real processes on one page and one record: killed at any instruction, stopped inside their writes, on
//! clocks that jump, and across reboots that lose the page.

use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::child::{Steering, host, logged, node, start};
use crate::steering::duplicates;

/// How long each storm lasts: `STORE_TEST_SECONDS`, or three.
fn duration() -> Duration {
    let seconds = env::var("STORE_TEST_SECONDS").map_or(3, |seconds| seconds.parse().unwrap());
    Duration::from_secs(seconds)
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: a signal to a process that was started here, and was not waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// What is done to the processes.
#[derive(Clone, Copy, Default)]
struct Harm {
    /// They are stopped from outside, and go on.
    stops: bool,
    /// They stop themselves in one of so many flushes.
    in_flushes: i64,
    /// Pages are removed while they are in use.
    unlinks: bool,
    /// All are killed, the page is lost, and the clock comes back wrong.
    reboots: bool,
    /// The clock jumps.
    jumps: bool,
}

/// Runs five processes under all that, each killed now and then.
fn storm(harm: Harm) {
    let memory = tempfile::Builder::new().prefix("snowdrift-test-").tempdir_in("/dev/shm").unwrap();
    let here = memory.path();
    fs::create_dir(here.join("state")).unwrap();
    let steering = Steering::new(&here.join("steer"));
    steering.stops().store(harm.in_flushes, SeqCst);
    let mut logs: Vec<PathBuf> = Vec::new();
    let mut begin = || {
        let log = here.join(format!("log-{}", logs.len()));
        logs.push(log.clone());
        start(here, &log)
    };
    let mut children: Vec<_> = (0..5).map(|_| begin()).collect();
    let page = host(here, 0).page_of(&node());
    let end = Instant::now() + duration();
    let (mut kills, mut stopped, mut unlinked, mut reboots) = (0, 0, 0, 0);
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(fastrand::u64(1..12)));
        let index = fastrand::usize(..5);
        match fastrand::u32(..100) {
            0..12 => {
                kill(&mut children[index]);
                children[index] = begin();
                kills += 1;
            }
            12..30 if harm.stops => {
                signal(&children[index], libc::SIGSTOP);
                stopped += 1;
            }
            30..70 => signal(&children[index], libc::SIGCONT),
            70..78 if harm.unlinks => unlinked += u32::from(fs::remove_file(&page).is_ok()),
            78..84 if harm.jumps => {
                let off = if fastrand::bool() { -300..300 } else { -10_000..10_000 };
                steering.clock_off().store(fastrand::i64(off), SeqCst);
            }
            84..87 if harm.reboots => {
                children.iter_mut().for_each(kill);
                let _ = fs::remove_file(&page);
                let _ = fs::remove_file(page.with_extension("born"));
                steering.boot().fetch_add(1, SeqCst);
                steering.clock_off().fetch_add(fastrand::i64(-200..200), SeqCst);
                children = (0..5).map(|_| begin()).collect();
                reboots += 1;
                kills += 5;
            }
            _ => {}
        }
    }
    steering.stops().store(0, SeqCst);
    steering.phase().store(1, SeqCst);
    for child in &mut children {
        // Those that stopped themselves may do so once more.
        for _ in 0..2000 {
            signal(child, libc::SIGCONT);
            if child.try_wait().unwrap().is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert!(child.wait().unwrap().success());
    }
    let drawn: Vec<_> = logs.iter().flat_map(|log| logged(log)).collect();
    let all: u64 = drawn.iter().map(|&(_, len)| len).sum();
    println!(
        "{all} IDs by {} processes, {kills} kills, {stopped} stops, {unlinked} pages removed, \
         {reboots} reboots",
        logs.len()
    );
    assert!(all > 1000 && kills > 5, "{all} IDs, {kills} kills");
    assert_eq!(duplicates(drawn), 0);
}

#[test]
fn processes_killed_under_a_moving_clock_issue_no_id_twice() {
    storm(Harm { jumps: true, ..Harm::default() });
}

#[test]
fn reboots_that_lose_the_page_lead_to_no_id_twice_whatever_the_clock_says() {
    storm(Harm { reboots: true, jumps: true, ..Harm::default() });
}

#[test]
fn keepers_stopped_inside_their_writes_and_resumed_after_a_takeover_issue_no_id_twice() {
    storm(Harm { stops: true, in_flushes: 6, ..Harm::default() });
}

#[test]
fn pages_removed_under_processes_that_are_stopped_lead_to_no_id_twice() {
    storm(Harm { stops: true, unlinks: true, ..Harm::default() });
}

#[test]
fn all_of_that_at_once_leads_to_no_id_twice() {
    storm(Harm { stops: true, in_flushes: 20, unlinks: true, reboots: true, jumps: true });
}
