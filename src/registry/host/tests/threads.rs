//! Processes of two hosts at one time, by the clock: each is a thread. They come, draw, go and are killed while their pages lose
//! names, and the store is slow, and loses replies.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tempfile::TempDir;

use super::super::*;
use super::driven::{LAYOUT, Store, register, settings};
use super::request_in;
use crate::core::clock::{Clock, SystemClock};
use crate::lease::{At, Driver, Input, Limits, Next, Patience, Reply, Report};
use crate::registry::entry::played::Process;
use crate::registry::keeper::show;

const LIMITS: Limits = Limits { ttl: 400, max_clock_skew: 50, max_ahead: 0 };

/// A process's lease, until it is closed or killed. Returns the IDs that it has drawn.
struct Run<'a> {
    memory: &'a TempDir,
    store: &'a Mutex<Store>,
    /// The directory that is the register, in place of the store.
    directory: Option<&'a Path>,
    begun: Instant,
    random: fastrand::Rng,
    ids: Vec<u64>,
}

impl Run<'_> {
    fn at(&self) -> At {
        // The hosts' monotonic clocks are the same. It differs from their clocks.
        let mono = self.begun.elapsed().as_millis() as i64;
        At { mono, wall: SystemClock.now().ms }
    }

    fn lease(&mut self, until: Instant) {
        let mut process = Process::default();
        let request = request_in(LAYOUT, self.memory.path());
        let mut host = HostPages::of(request, Arc::new(|_| true)).unwrap();
        let patience = Patience { wait: 60_000, call: 200 };
        let at = self.at();
        let mut settings = settings(LAYOUT, LIMITS, None);
        let mut register = self.directory.map(register);
        if register.is_some() {
            (settings.size, settings.has_own_clock) = (1, true);
        }
        let mut driver = Driver::new(settings, patience, at, self.random.f64());
        let is_killed = self.random.u8(..3) == 0;
        let (mut input, mut share, mut path) = (Input::Time, None, None);
        let mut is_closing = false;
        loop {
            let at = self.at();
            let (reports, next) = process.run(|| driver.step(input, at, &mut host));
            if let Some(register) = &mut register {
                show(register, &reports, &driver).unwrap();
            }
            for report in reports {
                match report {
                    Report::Open(page) => {
                        share = process.run(|| page.share(&host.request));
                        path = page.page().path().map(|path| path.to_owned());
                    }
                    Report::Lost(_) => process.run(|| share = None),
                    _ => {}
                }
            }
            let mut pause = 0;
            input = match next {
                Next::End => return,
                Next::Call(call, within) => {
                    let is_lost = self.random.u8(..20) == 0;
                    if self.random.u8(..4) == 0 {
                        thread::sleep(Duration::from_millis(self.random.u64(..20)));
                    }
                    if is_lost && self.random.bool() {
                        Input::Reply(Reply::Failed, None)
                    } else {
                        let reply = match &mut register {
                            None => self.store.lock().answer(&call),
                            Some(register) => {
                                let at_most = Duration::from_millis(within as u64);
                                register.answer(&call, at_most).unwrap_or(Reply::Failed)
                            }
                        };
                        let now = SystemClock.now().ms;
                        let reply = if is_lost { Reply::Failed } else { reply };
                        Input::Reply(reply, Some(now))
                    }
                }
                Next::Wait { due, look } => {
                    pause = due.min(look).clamp(1, 10);
                    Input::Time
                }
            };
            if let Some(share) = &share {
                for _ in 0..self.random.u8(..20) {
                    let want = self.random.u64(1..20);
                    let Ok(reserved) = share.try_reserve_next(|_| want) else { break };
                    self.ids.extend((0..reserved.block.len).map(|n| reserved.first_id + n));
                }
                if self.random.u16(..300) == 0 {
                    let _ = fs::remove_file(path.as_ref().unwrap());
                }
            }
            thread::sleep(Duration::from_millis(pause as u64));
            if !is_closing && Instant::now() >= until && !matches!(input, Input::Reply(..)) {
                if is_killed {
                    return process.run(|| drop((share, driver, host)));
                }
                is_closing = true;
                process.run(|| share = None);
                input = Input::Close;
            }
        }
    }
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn processes_at_one_time_draw_no_id_twice() {
    draw_at_one_time(None);
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn processes_that_share_a_directory_draw_no_id_twice_at_one_time() {
    draw_at_one_time(Some(TempDir::new().unwrap().path()));
}

fn draw_at_one_time(directory: Option<&Path>) {
    let hosts = [(); 2].map(|()| tempfile::tempdir_in("/dev/shm").unwrap());
    let store = Mutex::new(Store::default());
    let begun = Instant::now();
    let end = begun + Duration::from_secs(30);
    let ids: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let (memory, store) = (&hosts[number % 2], &store);
                scope.spawn(move || {
                    let random = fastrand::Rng::with_seed(number as u64);
                    let mut run = Run { memory, store, directory, begun, random, ids: Vec::new() };
                    while Instant::now() < end {
                        let time = Duration::from_millis(run.random.u64(..1_000));
                        run.lease(Instant::now() + time);
                    }
                    run.ids
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut drawn = HashMap::new();
    for (number, ids) in ids.iter().enumerate() {
        for id in ids {
            let before = drawn.insert(*id, number);
            assert_eq!(before, None, "{id} of {number}: {LAYOUT:?}");
        }
    }
    println!("{} IDs", drawn.len());
    assert!(ids.iter().all(|ids| ids.len() > 1_000), "all have drawn");
}
