#![no_main]

#[path = "../../tests/model/mod.rs"]
mod model;
#[path = "../../tests/rule/mod.rs"]
mod rule;
#[path = "../../tests/fuzz/sequencer.rs"]
mod sequencer;

libfuzzer_sys::fuzz_target!(|input: sequencer::Input| sequencer::check(input));
