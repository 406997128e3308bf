//! Real processes on one page and one record: killed at any instruction, stopped inside their writes, on
//! clocks that jump, and across reboots that lose the page.

use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use std::{fs, thread};

use super::child::{host, node, start};
use crate::amount;
use crate::steering::{Drawers, Steering, count, duplicates, memory};

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
    let memory = memory();
    let here = memory.path();
    fs::create_dir(here.join("state")).unwrap();
    let steering = Steering::new(&here.join("steer"));
    steering.stops().store(harm.in_flushes, SeqCst);
    let mut drawers = Drawers::new(5, |_, log| start(here, log));
    let page = host(here, 0).page_of(&node());
    let end = Instant::now() + amount::storm();
    let (mut stopped, mut unlinked, mut reboots) = (0, 0, 0);
    while Instant::now() < end || drawers.kills <= 5 {
        thread::sleep(Duration::from_millis(fastrand::u64(1..12)));
        let index = fastrand::usize(..5);
        match fastrand::u32(..100) {
            0..12 => drawers.kill(index),
            12..30 if harm.stops => {
                drawers.signal(index, libc::SIGSTOP);
                stopped += 1;
            }
            30..70 => drawers.signal(index, libc::SIGCONT),
            70..78 if harm.unlinks => unlinked += u32::from(fs::remove_file(&page).is_ok()),
            78..84 if harm.jumps => steering.jump(),
            84..87 if harm.reboots => {
                drawers.replace(0..5, || {
                    let _ = fs::remove_file(&page);
                    let _ = fs::remove_file(page.with_extension("born"));
                    steering.boot().fetch_add(1, SeqCst);
                    steering.clock_off().fetch_add(fastrand::i64(-200..200), SeqCst);
                });
                reboots += 1;
            }
            _ => {}
        }
    }
    steering.stops().store(0, SeqCst);
    drawers.await_drawn(1001, 0);
    steering.phase().store(1, SeqCst);
    let (processes, kills) = (drawers.count(), drawers.kills);
    let drawn = drawers.end().concat();
    let all = count(&drawn);
    println!(
        "{all} IDs by {processes} processes, {kills} kills, {stopped} stops, {unlinked} pages removed, \
         {reboots} reboots"
    );
    assert!(all > 1000, "{all} IDs");
    assert_eq!(duplicates(drawn), 0);
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn processes_killed_under_a_moving_clock_issue_no_id_twice() {
    storm(Harm { jumps: true, ..Harm::default() });
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn reboots_that_lose_the_page_lead_to_no_id_twice_whatever_the_clock_says() {
    storm(Harm { reboots: true, jumps: true, ..Harm::default() });
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn keepers_stopped_inside_their_writes_and_resumed_after_a_takeover_issue_no_id_twice() {
    storm(Harm { stops: true, in_flushes: 6, ..Harm::default() });
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn pages_removed_under_processes_that_are_stopped_lead_to_no_id_twice() {
    storm(Harm { stops: true, unlinks: true, ..Harm::default() });
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn all_of_that_at_once_leads_to_no_id_twice() {
    storm(Harm { stops: true, in_flushes: 20, unlinks: true, reboots: true, jumps: true });
}
