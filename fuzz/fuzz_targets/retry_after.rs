//! Runs `checks::retry_after` on whatever the fuzzer makes up.
#![no_main]

#[path = "../checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::retry_after(data));
