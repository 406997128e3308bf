//! Not a test: `cargo test --release --test core host:: -- --ignored --nocapture figures` measures.

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use snowdrift::core::clock::{Clock, SystemClock};
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::core::sequence::{Rules, Sequence};
use snowdrift::generator::Generator;

use super::{directory, draw, memory, open};

/// A sequence that is not exhausted within a ms.
const WIDE: Layout = Layout::new([41, 0, 1, 0, 20], 1, 1_580_486_400_000);

fn ns_each(times: u32, mut call: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        (0..times).for_each(|_| call());
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(times));
    }
    best
}

#[test]
#[ignore = "measures"]
fn figures() {
    let shared = memory();
    let node = Node::new(WIDE, 0, 0).unwrap();
    let host = || open(&directory(shared.path()), node, SystemClock).unwrap();
    let page = directory(shared.path()).page_of(&node);
    let created = ns_each(200, || {
        let _ = fs::remove_file(&page);
        drop(black_box(host()));
    });
    let joined = ns_each(200, || drop(black_box(host())));
    println!(
        "open a node: {:.1} us when created, {:.1} us when joined",
        created / 1e3,
        joined / 1e3
    );

    let shared = host();
    let own = Generator::new(node, 0, Box::new(SystemClock));
    let clock = ns_each(2_000_000, || {
        black_box(SystemClock.now());
    });
    let name = ns_each(20_000, || {
        black_box(shared.page().is_named().unwrap());
    });
    println!("the clock: {clock:.1} ns; a look at the name: {name:.0} ns, once a ms");
    let page = shared.page();
    let cells = Sequence::new(page.cells(), &WIDE);
    let mut time = || WIDE.tick_at(SystemClock.now().ms);
    for _ in 0..3 {
        let cells = ns_each(1_000_000, || {
            let _ = black_box(cells.reserve(&Rules::default(), &mut time, |_| 1));
        });
        let [own, page] = [&own, &shared].map(|generator| {
            ns_each(1_000_000, || {
                let _ = black_box(draw(generator, 1));
            })
        });
        println!(
            "reserve(1): {own:.1} ns from own memory, {page:.1} ns from a page with its name checked, \
             {cells:.1} ns from its cells alone"
        );
    }
}
