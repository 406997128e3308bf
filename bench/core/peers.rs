//! A reservation against the crates `ferroid` and `snowflaked`, in turns of one run: ns an ID by one thread,
//! one ID and a block of 256 at a time, and by two threads that contend. The fastest turn counts, since
//! whatever else the machine does only adds to it.
//!
//! `cargo run --release --package snowdrift-bench-core --bin peers`

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ferroid::generator::{AtomicSnowflakeGenerator, BasicSnowflakeGenerator};
use ferroid::time::MonotonicClock;
use snowdrift::core::clock::{Clock, SystemClock};
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::generator::{Generator, Policies};
use snowdrift::pages::{BootId, Directory};

use wide::WideId;

/// A sequence that no clock exhausts, where the crate allows it: snowflaked has 12 bits.
mod wide {
    ferroid::define_snowflake_id!(
        WideId, u64,
        reserved: 1,
        timestamp: 41,
        machine_id: 1,
        sequence: 21
    );
}

const TURNS: u32 = 400;
const CALLS: u32 = 2000;

/// One thread's share of a turn.
type Draw<'a> = &'a (dyn Fn() + Sync);

/// The fastest turn of each, in ns a call.
fn alone(subjects: &[(&str, Draw)]) -> Vec<f64> {
    let mut best = vec![Duration::MAX; subjects.len()];
    for _ in 0..TURNS {
        for ((_, draw), best) in subjects.iter().zip(&mut best) {
            *best = turn(*draw).min(*best);
        }
    }
    best.iter().map(ns_a_call).collect()
}

/// The same by two threads, each of which makes all calls.
fn contended(subjects: &[(&str, Draw)]) -> Vec<f64> {
    let mut best = vec![Duration::MAX; subjects.len()];
    for _ in 0..TURNS / 4 {
        for ((_, draw), best) in subjects.iter().zip(&mut best) {
            let start = Barrier::new(2);
            let both = std::thread::scope(|scope| {
                let thread = || {
                    start.wait();
                    turn(*draw)
                };
                let other = scope.spawn(thread);
                thread().max(other.join().unwrap_or(Duration::MAX))
            });
            *best = both.min(*best);
        }
    }
    best.iter().map(ns_a_call).collect()
}

fn turn(draw: Draw) -> Duration {
    let start = Instant::now();
    for _ in 0..CALLS {
        draw();
    }
    start.elapsed()
}

fn ns_a_call(time: &Duration) -> f64 {
    time.as_nanos() as f64 / f64::from(CALLS)
}

fn print(what: &str, subjects: &[(&str, Draw)], times: &[f64]) {
    println!("{what}");
    for ((name, _), ns) in subjects.iter().zip(times) {
        println!("  {name:42} {ns:7.1} ns");
    }
}

fn main() {
    let wide = Layout::new([41, 0, 1, 0, 21], 1, Layout::NODE.epoch_ms);
    let node = Node::new(wide, 0, 0).expect("a layout of 63 bits");
    let policies = Policies::default();
    let process = Generator::new(node, 0, Box::new(SystemClock));
    let shared = tempfile::tempdir().expect("a directory");
    let directory = Directory::with(shared.path(), BootId::now());
    let page = directory
        .ok()
        .and_then(|directory| Generator::on_host(directory, node, Box::new(SystemClock)).ok());
    let epoch = Duration::from_millis(Layout::NODE.epoch_ms as u64);
    let clock = MonotonicClock::<1>::with_epoch(epoch);
    let basic = BasicSnowflakeGenerator::<WideId, _>::new(0, clock.clone());
    let atomic = AtomicSnowflakeGenerator::<WideId, _>::new(0, clock);
    let snowflaked = snowflaked::sync::Generator::builder().epoch(UNIX_EPOCH + epoch).build();
    let snowflaked: snowflaked::sync::Generator = snowflaked;

    let yields = |_| std::thread::yield_now();
    let draw = |generator: &Generator, want| {
        black_box(generator.try_reserve(&generator.seat(), &policies, |_| black_box(want))).ok();
    };
    let clock_alone = || {
        black_box(SystemClock.now());
    };
    let system_time = || {
        black_box(SystemTime::now());
    };
    let of_process = || draw(&process, 1);
    let of_page = || draw(page.as_ref().unwrap_or(&process), 1);
    let by_block = || draw(page.as_ref().unwrap_or(&process), 256);
    let by_atomic = || {
        black_box(atomic.next_id(yields));
    };
    let by_snowflaked = || {
        black_box(snowflaked.generate::<u64>());
    };
    let subjects: &[(&str, Draw)] = &[
        ("the clock alone", &clock_alone),
        ("SystemTime::now() alone", &system_time),
        ("snowdrift, in the process", &of_process),
        ("snowdrift, on a page of the host", &of_page),
        ("snowdrift, a block of 256 on a page", &by_block),
        ("ferroid AtomicSnowflakeGenerator", &by_atomic),
        ("snowflaked sync::Generator", &by_snowflaked),
    ];
    let times = alone(subjects);
    print("one thread, a call:", subjects, &times);
    println!("  {:42} {:7.2} ns", "snowdrift, an ID of a block", times[4] / 256.0);
    let mut best = Duration::MAX;
    for _ in 0..TURNS {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(basic.next_id(yields));
        }
        best = best.min(start.elapsed());
    }
    println!("  {:42} {:7.1} ns", "ferroid BasicSnowflakeGenerator", ns_a_call(&best));
    let times = contended(subjects);
    print("two threads that contend, a call:", subjects, &times);
    println!("  {:42} {:7.2} ns", "snowdrift, an ID of a block", times[4] / 256.0);
}
