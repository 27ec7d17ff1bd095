//! The daemon.

use std::process::ExitCode;

/// Replies of all sizes come and go between values that stay for ever, and a page is rendered by one thread and sent by
/// another: other allocators keep more memory (`benches/README.md`).
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    pds_exporter::app::run::main(std::env::args_os(), std::env::vars_os())
}
