//! How often the hot parts allocate, counted by the allocator and compared with `benches/allocations.txt`.
//!
//! `benches/count` runs it, and `benches/count --write` writes what is counted.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench that can't go on ends")]

#[path = "fixture/mod.rs"]
mod fixture;

use std::process::ExitCode;

use fixture::guard;
use fixture::hot::{APPS, PARTS, runtime};
use fixture::store::Filled;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() -> ExitCode {
    let _profiler = dhat::Profiler::builder().testing().build();
    guard::run(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/allocations.txt"), "allocations", count)
}

/// Allocations of one repetition: what forty take more than twenty.
fn count(part: &str) -> u64 {
    let (_, run) = PARTS.iter().find(|(name, _)| *name == part).unwrap();
    let blocks = |times: u32| {
        let filled = runtime().block_on(Filled::new(APPS));
        let before = dhat::HeapStats::get().total_blocks;
        run(&filled, times);
        dhat::HeapStats::get().total_blocks - before
    };
    (blocks(40) - blocks(20)) / 20
}
