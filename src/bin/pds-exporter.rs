//! The daemon.

use std::process::ExitCode;

/// Replies come and go in pieces of all sizes between values that stay for ever: the C library's allocator spends a
/// seventh of a poll on that, and holds on to a tenth more memory (`benches/README.md`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pds_exporter::app::run::main(std::env::args_os(), std::env::vars_os())
}
