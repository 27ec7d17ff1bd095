//! The operator's tool.

use std::process::ExitCode;

use pdstool::console::Console;

fn main() -> ExitCode {
    let environment = pds_config::environment(std::env::vars_os());
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let console = Console::of_process(no_color, is_dumb, columns);
    pdstool::main(std::env::args_os().collect(), environment, console)
}
