//! The operator's tool.

use std::process::ExitCode;

use pdstool::console::Console;

fn main() -> ExitCode {
    // A variable that is not Unicode is not one of ours.
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    pdstool::main(
        std::env::args_os().collect(),
        environment.collect(),
        Console::of_process(no_color, columns),
    )
}
