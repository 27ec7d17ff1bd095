//! The daemon.

use std::process::ExitCode;

/// Replies come and go in pieces of all sizes between values that stay for ever, and a page is made by one thread and
/// sent by another: other allocators hold on to up to half as much memory again (`benches/README.md`).
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    pds_exporter::app::run::main(std::env::args_os(), std::env::vars_os())
}
