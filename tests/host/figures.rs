//! Not a test: `cargo test --release --test host -- --ignored --nocapture figures` measures.

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use snowdrift::core::clock::{Clock, SystemClock};
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::core::sequence::Time;
use snowdrift::host::{Halt, HostSequence, Opened};

use super::{RULES, directory, memory};

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

/// The least that a generator's reading does.
struct Now<'a> {
    node: &'a Node,
    opened: &'a Opened,
    checks: bool,
}

impl Time for Now<'_> {
    type Refusal = Halt;

    #[inline]
    fn now(&mut self) -> Result<i64, Halt> {
        let now = SystemClock.now();
        if self.checks && !self.opened.may_issue(now.ms)? {
            return Err(Halt::Unnamed);
        }
        Ok(self.node.layout().tick_at(now.ms))
    }
}

#[test]
#[ignore = "measures"]
fn figures() {
    let shared = memory();
    let node = Node::new(WIDE, 0, 0).unwrap();
    let host = || HostSequence::open(directory(shared.path()), node, 0, &SystemClock).unwrap();
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
    let own = HostSequence::own(node, 0);
    let clock = ns_each(2_000_000, || {
        black_box(SystemClock.now());
    });
    let name = ns_each(20_000, || {
        black_box(shared.current().page().unwrap().is_named().unwrap());
    });
    println!("the clock: {clock:.1} ns; a look at the name: {name:.0} ns, once a ms");
    let draw = |sequence: &HostSequence, checks| {
        ns_each(1_000_000, || {
            let opened = sequence.current();
            let mut time = Now { node: &node, opened, checks };
            let _ = black_box(opened.sequence().reserve(&RULES, &mut time, |_| 1));
        })
    };
    for _ in 0..3 {
        let [own, page, checked] = [(&own, false), (&shared, false), (&shared, true)]
            .map(|(sequence, checks)| draw(sequence, checks));
        println!(
            "reserve(1): {own:.1} ns from own memory, {page:.1} ns from a page, {checked:.1} ns with \
             its name checked"
        );
    }
    let whole = ns_each(1_000_000, || {
        let _ = black_box(shared.reserve(&RULES, &SystemClock, |_| 1));
    });
    println!("HostSequence::reserve(1): {whole:.1} ns");
}
