//! Runs `checks::state_file` on whatever the fuzzer makes up.
#![no_main]

#[path = "../checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(
    init: {
        // The fuzzer's hook ends the program at any panic. Those of redb about damage are caught and become errors.
        let end = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic.location().is_some_and(|at| at.file().contains("/redb-")) {
                end(panic);
            }
        }));
    },
    |data: &[u8]| checks::state_file(data)
);
