#![no_main]

#[path = "../../tests/fuzz/damage.rs"]
mod damage;
#[path = "../../tests/fuzz/scratch.rs"]
mod scratch;

libfuzzer_sys::fuzz_target!(|input: damage::Input| damage::check(input));
