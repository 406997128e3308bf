//! What the core itself costs: one reservation, of one ID and of 256.
//!
//! `cargo run --release --package snowdrift-bench-core -- --bench`

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use snowdrift::core::clock::SystemClock;
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::generator::{ClockBack, Generator, Policies, Waits};

fn reserve(criterion: &mut Criterion) {
    // 20 sequence bits, so that the layout is no limit.
    let wide = Layout {
        timestamp_bits: 41,
        datacenter_bits: 1,
        worker_bits: 1,
        clock_back_bits: 0,
        sequence_bits: 20,
        ..Layout::NODE
    };
    let node = Node::new(wide, 0, 0).expect("a layout of 63 bits");
    let policies = Policies {
        clock_back: ClockBack::Wait,
        max_wait: Duration::from_millis(10),
        random_start: false,
    };
    let generator = Generator::new(node, 0, Box::new(SystemClock));
    let seat = generator.seat();
    for want in [1, 256] {
        criterion.bench_function(&format!("reserve({want})"), |bencher| {
            let attempt = || generator.try_reserve(&seat, &policies, |_| black_box(want));
            let mut waits = Waits::default();
            bencher.iter(|| {
                black_box(
                    generator.waiting(&policies, &mut waits, want, attempt, |reserved| reserved),
                )
            })
        });
    }
}

criterion_group!(benches, reserve);
criterion_main!(benches);
