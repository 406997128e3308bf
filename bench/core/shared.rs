//! What a reservation costs: of the bare sequencer, of a generator in the process's memory, and of one on a
//! page of the host; in turns of one run, so that whatever else the machine does concerns all. The fastest
//! turn counts. Then two threads contend, each on a page mapping of its own, and a node is opened.
//!
//! `cargo run --release --package snowdrift-bench-core --bin shared`

use std::hint::black_box;
use std::time::{Duration, Instant};

use snowdrift::core::clock::{Clock, SystemClock};
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::core::sequence::{Cells, Rules, Sequence};
use snowdrift::generator::{Generator, Policies};
use snowdrift::pages::{BootId, Directory};

const TURNS: u32 = 3000;
const CALLS: u32 = 1000;

/// The fastest turn of each, in ns a call.
fn fastest<const N: usize>(mut subjects: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut best = [Duration::MAX; N];
    for _ in 0..TURNS {
        for (subject, best) in subjects.iter_mut().zip(&mut best) {
            let start = Instant::now();
            for _ in 0..CALLS {
                subject();
            }
            *best = start.elapsed().min(*best);
        }
    }
    best.map(|best| best.as_nanos() as f64 / f64::from(CALLS))
}

fn main() {
    // As many sequence bits as no clock exhausts.
    let wide = Layout::new([38, 0, 0, 0, 25], 1, Layout::NODE.epoch_ms);
    let node = Node::new(wide, 0, 0).expect("a layout of 63 bits");
    let generator = Generator::new(node, 0, Box::new(SystemClock));
    let policies = Policies::default();
    let sequence = Sequence::new(Box::<Cells>::default(), &wide);
    let rules = Rules::default();
    let now = || wide.tick_at(SystemClock.now().ms);
    let draw = |want: u64| {
        let block = sequence.reserve(&rules, &mut &now, |_| black_box(want));
        black_box(block.map(|block| node.first_id(&block)).ok());
    };
    let [clock] = fastest([&mut || {
        black_box(now());
    }]);
    println!("clock                {clock:6.1} ns");
    let given = Sequence::new(Box::<Cells>::default(), &wide);
    let swapped = std::sync::atomic::AtomicU64::new(0);
    let [untimed, swap] = fastest([
        &mut || {
            black_box(given.reserve(&rules, &mut || black_box(7), |_| black_box(1))).ok();
        },
        &mut || {
            use std::sync::atomic::Ordering::Relaxed;
            let seen = swapped.load(Relaxed);
            black_box(swapped.compare_exchange(seen, seen + 1, Relaxed, Relaxed)).ok();
        },
    ]);
    println!("reserve(1), time given {untimed:6.1} ns; one compare-and-swap {swap:6.1} ns");
    let shared = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
    let directory = || Directory::with(shared.path(), BootId::now()).expect("a directory of pages");
    let on_page = |node| Generator::on_host(directory(), node, Box::new(SystemClock));
    let host = on_page(node).expect("a page");
    let (own, user_page) = (generator.user_page(), host.user_page());
    for want in [1, 256] {
        let [process, host, bare] = fastest([
            &mut || {
                black_box(generator.try_reserve(&own, &policies, |_| black_box(want))).ok();
            },
            &mut || {
                black_box(host.try_reserve(&user_page, &policies, |_| black_box(want))).ok();
            },
            &mut || draw(want),
        ]);
        println!(
            "reserve({want}): process {process:6.1} ns, page {host:6.1} ns, bare {bare:6.1} ns"
        );
    }
    let contended = || {
        let host = on_page(node).expect("a page");
        let user_page = host.user_page();
        let start = Instant::now();
        for _ in 0..2_000_000 {
            black_box(host.try_reserve(&user_page, &policies, |_| 1)).ok();
        }
        start.elapsed().as_nanos() as f64 / 2e6
    };
    let alone = contended();
    let both = std::thread::scope(|scope| {
        [scope.spawn(contended), scope.spawn(contended)].map(|thread| thread.join().unwrap_or(0.0))
    });
    println!(
        "reserve(1) in a row: alone {alone:.1} ns, two contend {:.1} and {:.1} ns",
        both[0], both[1]
    );
    for what in ["creates", "joins"] {
        let mut times: Vec<_> = (0..200)
            .map(|_| {
                let start = Instant::now();
                let opened = on_page(node);
                let took = start.elapsed();
                let page = opened.expect("a page").page();
                if let (Some(page), "creates") = (page.path(), what) {
                    std::fs::remove_file(page.with_extension("born")).expect("its marker");
                    std::fs::remove_file(page).expect("its page");
                }
                took
            })
            .collect();
        times.sort();
        println!("open, {what} the page: median {:?}, 90% {:?}", times[100], times[180]);
    }
}
