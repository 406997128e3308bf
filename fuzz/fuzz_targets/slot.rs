#![no_main]

#[path = "../../tests/fuzz/scratch.rs"]
mod scratch;
#[path = "../../tests/fuzz/slot.rs"]
mod slot;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| slot::check(bytes));
