//! Hot parts take as many instructions and allocations as `benches/counts.txt` and `benches/allocations.txt` say.

use std::path::Path;
use std::process::Command;

use crate::deploy::succeed;
use crate::tools::without_this_package;

#[test]
fn hot_parts_take_as_many_instructions_and_allocations_as_before() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The tests beside it wait for programs that reply in time.
    let mut count = Command::new("nice");
    without_this_package(&mut count)
        .arg(project.join("benches/count"))
        .current_dir(project)
        .env("CARGO_NET_OFFLINE", "true");
    // Shown even if the test passes, as fewer are to be written down.
    println!("{}", succeed(count));
}
