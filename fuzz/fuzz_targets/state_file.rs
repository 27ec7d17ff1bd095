//! Runs `checks::state_file` on whatever the fuzzer makes up.
#![no_main]

#[path = "../checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(
    init: {
        // The fuzzer's hook ends the program at any panic. Those about damage are caught and become errors.
        let end = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !pds_exporter::accounting::tables::is_examining() {
                end(panic);
            }
        }));
    },
    |data: &[u8]| checks::state_file(data)
);
