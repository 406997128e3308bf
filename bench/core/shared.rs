//! What the shared sequencer costs beside the generator with its lock, in turns of one run, so that
//! whatever else the machine does concerns both. The fastest turn counts.
//!
//! `cargo run --release --package snowdrift-bench-core --bin shared`

use std::hint::black_box;
use std::time::{Duration, Instant};

use snowdrift::clock::{Clock, SystemClock};
use snowdrift::generator::{Generator, Policies};
use snowdrift::layout::Layout;
use snowdrift::node::Node;
use snowdrift::shared::{Cells, Rules, Sequence};

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
    let wide = Layout::cut([38, 0, 0, 0, 25], 1, Layout::NODE.epoch_ms);
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
    for want in [1, 256] {
        let [locked, shared] = fastest([
            &mut || {
                black_box(generator.try_reserve(&policies, |_| black_box(want))).ok();
            },
            &mut || draw(want),
        ]);
        println!("reserve({want}): generator {locked:6.1} ns, shared {shared:6.1} ns");
    }
}
