//! Processes of three hosts that lease from one directory: killed, stopped and continued at any instruction, on clocks that step,
//! across reboots, deleted pages and a disk that fails.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use std::{env, thread};

use snowdrift::core::layout::Layout;
use snowdrift::generator::Policies;
use snowdrift::registry::{By, DirectoryLease, DirectoryLeasing, Request, Scope};

use crate::amount;
use crate::steering::{Drawers, Log, Steering, command, count, duplicates, memory, reserve};

const HERE: &str = "SNOWDRIFT_TEST_HERE";
const LOG: &str = "SNOWDRIFT_TEST_LOG";
const HOST: &str = "SNOWDRIFT_TEST_HOST";
const HOSTS: usize = 3;
/// Two on each host.
const PROCESSES: usize = 2 * HOSTS;
/// Two slots.
const LAYOUT: Layout = Layout { worker_bits: 1, ..Layout::NODE };

/// What is between a process and its machine: see `__test__/support/machine-shim`. Without it clocks are right, and disks work.
fn shim() -> PathBuf {
    env::current_exe().unwrap().with_file_name("../libmachine_shim.so")
}

/// The clock and the disk of a host.
fn machine(here: &Path, host: usize) -> PathBuf {
    here.join(format!("machine-{host}"))
}

/// The memory that the processes of a host share.
fn shared(here: &Path, host: usize) -> PathBuf {
    here.join(format!("host-{host}"))
}

fn start(here: &Path, log: &Path, host: usize) -> Child {
    let mut command = command(&[], module_path!(), "leases");
    if shim().exists() {
        command.env("LD_PRELOAD", shim()).env("MACHINE_SHIM", machine(here, host));
    }
    command.env(HERE, here).env(LOG, log).env(HOST, host.to_string()).spawn().unwrap()
}

/// Not a test: what `start` runs. It leases again and again, and draws.
#[test]
#[ignore = "is started by another test"]
fn leases() {
    let path = |name| env::var_os(name).map(PathBuf::from);
    let (Some(here), Some(log)) = (path(HERE), path(LOG)) else { return };
    let (steering, mut log) = (Steering::new(&here.join("steer")), Log::new(&log));
    let host: usize = env::var(HOST).unwrap().parse().unwrap();
    let policies = Policies { max_wait: Duration::from_millis(2), ..Policies::default() };
    let leasing = DirectoryLeasing {
        directory: here.join("state"),
        ttl: Duration::from_millis(150),
        wait: Duration::from_millis(fastrand::u64(..50)),
        host: format!("host {host}"),
        started_ms: 0,
        is_common: false,
    };
    let is_told = || steering.phase().load(SeqCst) == 0;
    while is_told() {
        let request = Request {
            layout: LAYOUT,
            datacenter_id: 1,
            worker_id: fastrand::bool().then(|| fastrand::u64(..2)),
            policies,
            max_ahead_ms: 0,
            scope: if fastrand::u8(..4) == 0 { Scope::Process } else { Scope::Host },
            shared: Some(shared(&here, host)),
            by: By::Lease,
        };
        let Ok(lease) = DirectoryLease::open(&request, &leasing, Arc::new(|_| true)) else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let mut share = None;
        for draw in 0..fastrand::u32(1..2000) {
            if !is_told() {
                break;
            }
            let slot = || lease.state().slot?.share(&request);
            let Some(present) = share.take().or_else(slot) else {
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            let generator = &present.generator;
            match reserve(generator, &generator.user_page(), &policies, 3) {
                Ok(reserved) if !log.append((reserved.first_id, reserved.block.len)) => return,
                // The lease has another slot by now, or none.
                Err(_) if generator.page().has_ended() => continue,
                _ => {}
            }
            share = Some(present);
            if draw % 4 == 0 {
                thread::sleep(Duration::from_micros(300));
            }
        }
    }
}

#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn processes_of_hosts_that_lease_from_a_directory_draw_no_id_twice_whatever_is_done_to_them() {
    let memory = memory();
    let here = memory.path();
    let steering = Steering::new(&here.join("steer"));
    let machines: Vec<_> = (0..HOSTS)
        .map(|host| machine(here, host))
        .map(|path| {
            fs::write(&path, [0; 40]).unwrap();
            fs::File::options().write(true).open(path).unwrap()
        })
        .collect();
    (0..HOSTS).for_each(|host| fs::create_dir(shared(here, host)).unwrap());
    let set = |host: usize, word: u64, value: i64| {
        machines[host].write_all_at(&value.to_le_bytes(), word * 8).unwrap();
    };
    let step = |host| {
        // Mostly small rollbacks, which counters answer.
        let most = if fastrand::u8(..8) == 0 { 5_000 } else { 300 };
        set(host, 0, fastrand::i64(-most..most) * 1_000_000);
    };
    let remove_pages = |host| {
        for directory in fs::read_dir(shared(here, host)).unwrap().flatten() {
            for page in fs::read_dir(directory.path()).into_iter().flatten().flatten() {
                let _ = fs::remove_file(page.path());
            }
        }
    };
    let mut drawers = Drawers::new(PROCESSES, |index, log| start(here, log, index / 2));
    let (end, kills) = (Instant::now() + amount::storm(), amount::amount(40, 400) as usize);
    let [mut stops, mut reboots] = [0; 2];
    while Instant::now() < end || drawers.kills < kills {
        thread::sleep(Duration::from_millis(fastrand::u64(1..12)));
        let index = fastrand::usize(..PROCESSES);
        let host = index / 2;
        match fastrand::u8(..100) {
            0..12 => drawers.kill(index),
            12..30 => {
                drawers.signal(index, libc::SIGSTOP);
                stops += 1;
            }
            30..75 => drawers.signal(index, libc::SIGCONT),
            75..85 => step(host),
            85..88 => set(host, 1, [0, libc::ENOSPC.into()][fastrand::usize(..2)]),
            88..94 => remove_pages(host),
            94..97 => {
                drawers.replace(2 * host..2 * host + 2, || {
                    remove_pages(host);
                    step(host);
                });
                reboots += 1;
            }
            _ => {}
        }
    }
    (0..HOSTS).for_each(|host| (0..2).for_each(|word| set(host, word, 0)));
    drawers.await_drawn(1001, 0);
    steering.phase().store(1, SeqCst);
    let (kills, drawn) = (drawers.kills, drawers.end().concat());
    let shim = shim().exists();
    println!(
        "{} IDs, {kills} kills, {stops} stops, {reboots} reboots, clocks step: {shim}",
        count(&drawn)
    );
    assert_eq!(duplicates(drawn), 0);
}
