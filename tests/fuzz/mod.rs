//! What `cargo fuzz` has found worth keeping in `fuzz/corpus`, tried again by any toolchain. The
//! targets in `fuzz/` try these functions with new inputs, for as long as one likes.

mod layout;
mod sequencer;

use std::fs;

use arbitrary::{Arbitrary, Unstructured};

/// Tries a target with its corpus.
fn replay(target: &str, check: impl Fn(&[u8])) {
    let corpus = format!("{}/fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for entry in fs::read_dir(&corpus).expect("the corpus is there") {
        let path = entry.expect("an entry").path();
        println!("{}", path.display());
        check(&fs::read(path).expect("it is read"));
        count += 1;
    }
    assert!(count > 10, "there is no corpus in {corpus}");
}

/// As libfuzzer-sys makes an input of bytes.
fn input<'a, T: Arbitrary<'a>>(bytes: &'a [u8]) -> T {
    T::arbitrary_take_rest(Unstructured::new(bytes)).expect("bytes enough, or it is cut short")
}

#[test]
fn layout() {
    replay("layout", |bytes| layout::check(input(bytes)));
}

#[test]
fn sequencer() {
    replay("sequencer", |bytes| sequencer::check(input(bytes)));
}
