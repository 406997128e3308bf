#![no_main]

#[path = "../../tests/model.rs"]
mod model;
#[path = "../../tests/rule.rs"]
mod rule;
#[path = "../../tests/fuzz/sequencer.rs"]
mod sequencer;

libfuzzer_sys::fuzz_target!(|input: sequencer::Input| sequencer::check(input));
