//! Runs `checks::journal` on whatever the fuzzer makes up.
#![no_main]

#[path = "../checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::journal(data));
