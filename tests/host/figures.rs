//! Not a test: `cargo test --release --test host -- --ignored --nocapture figures` measures.

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use snowdrift::clock::{Clock, SystemClock};
use snowdrift::host::HostSequence;
use snowdrift::layout::Layout;
use snowdrift::node::Node;
use snowdrift::sequencer::Stall;
use snowdrift::shared::Time;

use super::{RULES, directory, memory};

/// A sequence that is not exhausted within a ms.
const WIDE: Layout = Layout::cut([41, 0, 1, 0, 20], 1, 1_580_486_400_000);

fn ns_each(times: u32, mut call: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        (0..times).for_each(|_| call());
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(times));
    }
    best
}

struct Unchecked<'a>(&'a Node);

impl Time for Unchecked<'_> {
    type Refusal = Stall;

    fn now(&mut self) -> Result<i64, Stall> {
        Ok(self.0.layout().tick_at(SystemClock.now().ms))
    }
}

#[test]
#[ignore = "measures"]
fn figures() {
    let shared = memory();
    let node = Node::new(WIDE, 0, 0).unwrap();
    let host =
        || HostSequence::open(Some(directory(shared.path())), node, 0, &SystemClock).unwrap();
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

    let own = HostSequence::open(None, node, 0, &SystemClock).unwrap();
    let shared = host();
    let checked = |sequence: &HostSequence| {
        ns_each(2_000_000, || {
            let _ = black_box(sequence.reserve(&RULES, &SystemClock, |_| 1));
        })
    };
    let unchecked = |sequence: &HostSequence| {
        ns_each(2_000_000, || {
            let opened = sequence.current().sequence();
            let _ = black_box(opened.reserve(&RULES, &mut Unchecked(&node), |_| 1));
        })
    };
    let clock = ns_each(2_000_000, || {
        black_box(SystemClock.now());
    });
    let name = ns_each(20_000, || {
        black_box(shared.current().page().unwrap().is_named().unwrap());
    });
    println!("the clock: {clock:.1} ns; a look at the name: {name:.0} ns, once a ms");
    println!(
        "reserve(1), own memory: {:.1} ns; unchecked {:.1} ns",
        checked(&own),
        unchecked(&own)
    );
    println!(
        "reserve(1), page: {:.1} ns; unchecked {:.1} ns",
        checked(&shared),
        unchecked(&shared)
    );
}
