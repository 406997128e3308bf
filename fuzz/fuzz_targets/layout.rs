#![no_main]

#[path = "../../tests/fuzz/layout.rs"]
mod layout;

libfuzzer_sys::fuzz_target!(|input: layout::Input| layout::check(input));
