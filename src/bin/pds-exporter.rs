//! The daemon.

use std::process::ExitCode;

/// Short-lived replies of all sizes lie between values that stay, and one thread renders pages that another sends.
/// Other allocators keep more memory under this load (`benches/README.md`).
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    pds_exporter::app::run::main(std::env::args_os(), std::env::vars_os())
}
